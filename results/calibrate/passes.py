"""Linear costs of measured passes, as JSON and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.results.tables import columns, facts, heading, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from specplan.models.calibration import LinearFit
    from specplan.scenarios.importers.costs_passes import PassTimes


def passes_json(one: PassTimes, fit: LinearFit) -> dict[str, Any]:
    """Give a linear fit and its passes as plain JSON, times in seconds."""
    return {
        "source": one.source,
        "kind": one.kind,
        "label": one.label,
        "evidence": one.evidence,
        "base_s": fit.base_s,
        "per_sequence_s": fit.per_sequence_s,
        "per_token_s": fit.per_token_s,
        "per_context_token_s": fit.per_context_token_s,
        "points": fit.points,
        "unknowns": fit.unknowns,
        "median_residual": fit.median,
        "worst_residual": fit.worst,
        "residuals": list(fit.relative_residuals),
        "trust": fit.trust(),
        "verify_ratios": [
            {"batch": batch, "width": width, "ratio": ratio}
            for batch, width, ratio in one.verify_ratios()
        ],
        "notes": [*one.notes, *fit.notes],
    }


def passes_text(fits: Sequence[tuple[PassTimes, LinearFit]]) -> list[RenderableType]:
    """Lay out linear fits, one a line, in microseconds."""
    header = ("us per", "pass", "sequence", "position", "cached", "n", "worst")
    rows = [
        (
            one.label or one.kind,
            *(f"{1e6 * value:,.3g}" if value < 1e-4 else f"{1e6 * value:,.0f}" for value in terms),
            str(fit.points),
            f"{100 * fit.worst:.0f} %",
        )
        for one, fit in fits
        for terms in [(fit.base_s, fit.per_sequence_s, fit.per_token_s, fit.per_context_token_s)]
    ]
    parts: list[RenderableType] = [heading("Linear cost of a pass"), columns(header, rows)]
    if len(fits) == 1:
        one, fit = fits[0]
        lines = [("Trust", fit.trust())]
        ratios = [ratio for _, _, ratio in one.verify_ratios()]
        if ratios:
            span = f"{times(min(ratios))} to {times(max(ratios))} of a plain step"
            lines.append(("Verify passes", span))
        lines += [("Note", note) for note in (*one.notes, *fit.notes)]
        parts.append(facts(lines))
    return parts
