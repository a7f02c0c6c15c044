"""Which measured points a scenario stands for, and why the others are left out."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from specplan.models.calibration import WILD
from specplan.models.diagnosis import Measured
from specplan.scenarios.importers.costs_groups import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.diagnose.answer import Finding, Row

_MISSING = "it takes a baseline and a point with gamma, tokens per round and a time"


def unusable(row: Row) -> str:
    """Say why no scenario can stand for the row; "" where one can."""
    if row.diagnosis is None or not row.point.gamma or not row.point.token_s:
        return _MISSING
    if row.point.gamma % 1:
        return f"γ = {row.point.gamma:g} is a mean, and a scenario drafts a whole number of tokens"
    measured = row.diagnosis.measured
    if row.diagnosis.impossible:
        if measured.round_s < measured.step_s:
            return (
                f"{name(row.point)} contradicts the baseline: a round of "
                f"{1e3 * measured.round_s:.4g} ms is shorter than a plain step of "
                f"{1e3 * measured.step_s:.4g} ms"
            )
        return f"{name(row.point)} is impossible: τ = {measured.tokens_per_round:.4g}"
    token_s = measured.round_s / measured.tokens_per_round
    if abs(token_s / row.point.token_s - 1) > WILD:
        return (
            f"{name(row.point)}: τ = {measured.tokens_per_round:.4g} and the round say "
            f"{1e3 * token_s:.4g} ms a token, and {1e3 * row.point.token_s:.4g} ms is stated"
        )
    if (measured.overhead_s or 0.0) < -0.05 * measured.round_s:
        return f"{name(row.point)}: draft and verify sum to more than the round"
    return ""


def why_none(findings: Sequence[Finding]) -> str:
    """Say why the findings give no scenario: what is impossible first, else what is missing."""
    reasons = [unusable(row) for found in findings for row in found.rows]
    wrong = list(dict.fromkeys(one for one in reasons if one != _MISSING))
    return "no scenario: " + ("; ".join(wrong) or _MISSING)


def together(rows: Sequence[Row]) -> list[Row]:
    """Return the fastest row and those that repeat it: γ and phases alike, within the scatter."""
    best = min(rows, key=lambda row: row.point.token_s or 0.0)
    same = [row for row in rows if _phases(row) == _phases(best)]
    lengths = [row.point.tokens_per_round or 1.0 for row in same]
    rounds = [row.point.round_s or 1.0 for row in same]
    if not (_agree(lengths) and _agree(rounds)):
        return [best]
    return [best, *(row for row in same if row is not best)]


def _agree(values: Sequence[float]) -> bool:
    mean = sum(values) / len(values)
    return all(abs(mean / one - 1) <= WILD for one in values)


def mean_of(rows: Sequence[Row]) -> Measured:
    """Average what the rows measured, quantity by quantity."""
    measured = [row.diagnosis.measured for row in rows if row.diagnosis]
    means: dict[str, Any] = {}
    for field in fields(Measured):
        values = [getattr(one, field.name) for one in measured]
        known = [value for value in values if value is not None]
        means[field.name] = sum(known) / len(known) if len(known) == len(values) else None
    return Measured(**means)


def _phases(row: Row) -> tuple[object, ...]:
    point = row.point
    return (
        point.gamma,
        point.draft_s is None,
        point.verify_s is None,
        point.draft_steps,
        len(point.unconditional),
    )
