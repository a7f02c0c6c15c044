"""Tokens per round measured at several γ, as one list of acceptance by position."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.models.extrapolation import unconditional_from_curve
from specplan.scenarios.importers.evidence import Evidence, Latency, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def over_gamma(found: Iterable[Evidence]) -> list[tuple[Evidence, list[Evidence]]]:
    """Join evidence that differs in γ alone: each curve as one piece of evidence, with its points.

    A_i = τ(i) − τ(i − 1), made non-increasing (`models.extrapolation.unconditional_from_curve`).
    Only evidence that states τ and no rates by position has to be joined for them.

    >>> from specplan.scenarios.importers.evidence import Source
    >>> points = [Evidence(Source("f", "k"), gamma=g, acceptance_length=tau)
    ...           for g, tau in ((1, 1.8), (2, 2.4))]
    >>> [(curve, _)] = over_gamma(points)
    >>> curve.gamma, [round(rate, 3) for rate in curve.unconditional]
    (2, [0.8, 0.6])
    """
    by_condition: dict[tuple[object, ...], list[Evidence]] = {}
    for one in found:
        if one.gamma and one.acceptance_length is not None and not one.unconditional:
            key = (one.model, one.label, one.method, one.source.kind, one.tree)
            by_condition.setdefault(key, []).append(one)
    curves = []
    for points in by_condition.values():
        points.sort(key=lambda one: one.gamma or 0)
        gammas = [one.gamma for one in points]
        if len(points) > 1 and len(set(gammas)) == len(points) and not points[0].tree:
            curves.append((_joined(points), points))
    return curves


def _joined(points: Sequence[Evidence]) -> Evidence:
    gammas = [one.gamma or 0 for one in points]
    last, told = points[-1], ["drafting more is taken to leave the first positions as they were"]
    curve = unconditional_from_curve(gammas, [one.acceptance_length or 1.0 for one in points])
    if curve.remark:
        told.append(curve.remark)
    if gammas[-1] > len(points):
        told.append("between the γ measured, acceptance by position is taken as equal")
    return checked(
        replace(
            last,
            source=replace(
                last.source, where=f"{last.label} γ {gammas[0]} to {gammas[-1]}".strip()
            ),
            unconditional=tuple(float(rate) for rate in curve.unconditional),
            acceptance_length=float(1 + curve.unconditional.sum()),
            drafting_rounds=None,
            draftless_rounds=None,
            drafted_tokens=None,
            accepted_tokens=None,
            request_lengths=(),
            recorded=(),
            latency=Latency(),
            dropped=tuple(dict.fromkeys(text for one in points for text in one.dropped)),
            warnings=(*dict.fromkeys(text for one in points for text in one.warnings), *told),
        )
    )
