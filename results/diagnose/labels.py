"""Points of several labels (placements, engines, workloads): the fastest, and what they span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.diagnose.answer import Finding
    from specplan.scenarios.importers.costs_points import Point

#: Absolute times this close are a tie between placements or engines.
TIE = 0.01


def bands(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Span the speedups of each γ over the labels that measured it, batch and context alike."""
    found: dict[tuple[float, float | None, float], dict[str, float]] = {}
    for one in findings:
        for row in one.rows:
            if row.point.gamma and row.value["speedup"] and one.group.label:
                kind = (one.group.batch, one.group.context, row.point.gamma)
                found.setdefault(kind, {})[one.group.label] = row.value["speedup"]
    return [
        {
            "batch": batch,
            "context": context,
            "gamma": gamma,
            "low": min(by_label.values()),
            "low_label": min(by_label, key=lambda label: by_label[label]),
            "high": max(by_label.values()),
            "high_label": max(by_label, key=lambda label: by_label[label]),
        }
        for (batch, context, gamma), by_label in sorted(
            found.items(), key=lambda item: (item[0][0], item[0][1] or 0.0, item[0][2])
        )
        if len(by_label) > 1
    ]


def fastest(points: Sequence[Point]) -> dict[str, Any]:
    """Rank points by what a user gets, tok/s or the time of the job; ratios to baselines aside.

    Points of several batches or contexts are no rivals: nothing is ranked then.
    """
    if len({(one.batch, one.context) for one in points}) > 1:
        return {}
    for quantity in ("tokens_per_s", "total_s"):
        stated = [(getattr(one, quantity), one) for one in points]
        sign = 1 if quantity == "tokens_per_s" else -1
        ranked = sorted(
            ((value**sign, one) for value, one in stated if value), key=lambda pair: -pair[0]
        )
        if len(ranked) < 2:
            continue
        top, best = ranked[0]
        tied = [one.label or one.source for speed, one in ranked if speed >= top * (1 - TIE)]
        plain = next(((top / speed, one) for speed, one in ranked if one.is_baseline), None)
        apart = plain and plain[1].label not in {"", best.label}
        return {
            quantity: getattr(best, quantity),
            "label": best.label,
            "gamma": best.gamma,
            "source": best.source,
            "tie": tied if len(tied) > 1 else [],
            "over_fastest_plain": plain[0] if plain and apart else None,
            "fastest_plain": (plain[1].label or plain[1].source) if plain and apart else None,
        }
    return {}
