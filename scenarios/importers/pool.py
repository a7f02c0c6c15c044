"""Several pieces of evidence as one: counts are added, rates weighted by rounds with a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.evidence import Evidence, Latency, checked, tail_rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def groups(found: Iterable[Evidence]) -> list[list[Evidence]]:
    """Return the evidence in groups that may be pooled, those without acceptance left out."""
    by_key: dict[tuple[object, ...], list[Evidence]] = {}
    for one in found:
        if one.says_acceptance:
            by_key.setdefault(one.group, []).append(one)
    return list(by_key.values())


def pool(group: Sequence[Evidence]) -> Evidence:
    """Return a group as one piece of evidence.

    τ = 1 + Σ accepted / Σ rounds with a draft; A_i = Σ rounds · A_i / Σ rounds. Never the mean of
    ratios: 8,280 rounds of eight engines give 2.4899, whatever each one's own τ.

    Raises ScenarioError: more than one piece, and one of them without a number of rounds.
    """
    first = group[0]
    if len(group) == 1:
        return first
    for one in group:
        if one.drafting_rounds is None or (one.drafting_rounds and one.accepted_tokens is None):
            raise ScenarioError(
                Fault(
                    f"no number of rounds, so no weight against the other {len(group) - 1}",
                    "import it alone",
                    file=one.source.file,
                    line=one.source.line,
                    field=one.source.where,
                )
            )
    rounds = sum(one.drafting_rounds or 0.0 for one in group)
    drafting = [one for one in group if one.drafting_rounds]
    accepted = sum(one.accepted_tokens or 0.0 for one in group)
    histogram: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    if drafting and all(one.histogram for one in drafting):
        histogram = _sum_positions([one.histogram for one in drafting], [1.0] * len(drafting))
        rates = tail_rates(histogram)
    elif drafting and all(one.unconditional for one in drafting):
        weights = [(one.drafting_rounds or 0.0) / rounds for one in drafting]
        rates = _sum_positions([one.unconditional for one in drafting], weights)
    warnings = list(dict.fromkeys(text for one in group for text in one.warnings))
    if drafting and not rates and any(one.unconditional for one in drafting):
        warnings.append("rates per position left out: not every piece of evidence has them")
    files = {one.source.file for one in group}
    if len(files) > 1 and not (first.model or first.label):
        warnings.append(f"{len(files)} files, nothing in them says that they are one system")
    draftless = [one.draftless_rounds for one in group]
    if None in draftless and any(draftless):
        warnings.append("rounds without a draft left out: not every piece of evidence counts them")
    return checked(
        replace(
            first,
            drafting_rounds=rounds,
            draftless_rounds=None if None in draftless else sum(one or 0 for one in draftless),
            drafted_tokens=_total([one.drafted_tokens for one in group]),
            accepted_tokens=accepted,
            unconditional=rates,
            histogram=histogram,
            acceptance_length=1 + accepted / rounds if rounds else None,
            request_lengths=tuple(tau for one in group for tau in one.request_lengths),
            recorded=tuple(kept for one in group for kept in one.recorded)
            if all(one.recorded for one in drafting)
            else (),
            rounding=max(one.rounding for one in group),
            latency=Latency(),
            dropped=tuple(dict.fromkeys(text for one in group for text in one.dropped)),
            warnings=tuple(warnings),
        )
    )


def _sum_positions(rows: Sequence[Sequence[float]], weights: Sequence[float]) -> tuple[float, ...]:
    """Return Σ weight · row, rows padded with zeros."""
    longest = max(len(row) for row in rows)
    return tuple(
        sum(weight * row[i] for row, weight in zip(rows, weights, strict=True) if i < len(row))
        for i in range(longest)
    )


def _total(counts: Sequence[float | None]) -> float | None:
    return None if None in counts else sum(count or 0.0 for count in counts)
