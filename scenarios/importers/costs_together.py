"""Measured points beside a table of target passes: V from the table splits each point's round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.models.diagnosis import Warned
from specplan.scenarios.importers import costs_vllm
from specplan.scenarios.importers.costs_points import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.costs_passes import PassTimes


def with_passes(
    points: Sequence[Point], passes: Sequence[PassTimes], *, add_plain: bool
) -> list[Point]:
    """Return the points with V(b, γ + 1) as far as the table knows it; V(b, 1) if `add_plain`.

    What a round takes beyond its verify pass is drafting and overhead; the plain step is taken from
    the table where no point is plain. A point that states its
    verify pass or its drafting keeps that; a table that holds the drafter (`vllm bench forward`),
    several tables, and a pass measured at several contexts split nothing.
    """
    tables = [one for one in passes if one.kind != costs_vllm.KIND]
    if len(tables) != 1:
        return list(points)
    table = tables[0]
    found = [_split(point, table) for point in points]
    if not add_plain or any(point.is_baseline for point in points):
        return found
    for label, batch in dict.fromkeys((point.label, point.batch) for point in points):
        step_s = _seconds(table, batch, 1)
        if step_s is not None:
            source = f"{table.source}: batch {batch:g}, width 1"
            plain = Point(
                source, label, 0, batch, tokens_per_round=1.0, round_s=step_s, token_s=step_s
            )
            found.append(plain)
    return found


def _split(point: Point, table: PassTimes) -> Point:
    known = point.verify_s is not None or point.draft_s is not None
    if known or not point.gamma or not point.round_s:
        return point
    verify_s = _seconds(table, point.batch, point.gamma + 1)
    if verify_s is None:
        return point
    if verify_s > point.round_s:
        says = (
            f"the table's verify pass takes {1e3 * verify_s:.4g} ms at batch {point.batch:g} and "
            f"width {point.gamma + 1:g}, the whole round {1e3 * point.round_s:.4g} ms: another "
            "system, or phases that overlap"
        )
        return replace(point, warnings=(*point.warnings, Warned("table_disagrees", says)))
    return replace(point, verify_s=verify_s)


def _seconds(table: PassTimes, batch: float, width: float) -> float | None:
    """Seconds of the one pass of this batch and width; None where there is none, or several."""
    there = [one.seconds for one in table.passes if (one.batch, one.width) == (batch, width)]
    return there[0] if len(there) == 1 else None
