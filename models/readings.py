"""From stated acceptance figures to the readings that fit them, or to the contradiction in them.

Every combination of readings of the stated figures is tried, at the stated γ or at each γ that the
figures allow; what fits within print rounding wins, else what fits within `NOISE`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import (
    alpha_from_tokens_per_round,
    checked_gamma,
    unconditional_from_alpha,
)
from specplan.models.counts import CountReading, Warned, read_counts
from specplan.models.evidence import Evidence, combinations
from specplan.models.inferred_gamma import (
    GAMMAS_TRIED,
    SHARES_OF_GAMMA,
    how_inferred,
    other_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from specplan.models.statements import Statement

    Floats = NDArray[np.float64]

NOISE = 0.05
"""Relative disagreement in τ up to which figures are one measurement told twice."""

MOST_DRAFTS = 1000
"""Largest γ that scenarios take, too."""


class ContradictionError(ValueError):
    """Figures that cannot all be true under any reading; the message shows both numbers."""


@dataclass(frozen=True)
class Reading:
    """One consistent account of the evidence.

    chosen: stated name → reading; acceptance_length: τ with the bonus, of rounds that draft, None
    when more is needed; unconditional (γ,) and whether it was stated or follows from one iid α;
    disagreement: relative spread of τ over the statements beyond print rounding.
    """

    gamma: int | None
    chosen: Mapping[str, str]
    acceptance_length: float | None
    unconditional: Floats | None
    positions_from: str | None
    disagreement: float
    statements: tuple[Statement, ...]
    counts: CountReading | None
    warnings: tuple[Warned, ...] = ()


def interpret(evidence: Evidence) -> tuple[Reading, ...]:
    """Return every reading that fits the evidence, the usual one first.

    Raises ContradictionError with both numbers when none fits, ValueError for figures that are
    impossible by themselves.

    >>> from specplan.models.statements import Figure
    >>> evidence = Evidence(gamma=3, figures={"length": Figure(3.72, 0.005)})
    >>> [reading.chosen["length"] for reading in interpret(evidence)]  # 3.72 > γ has the bonus
    ['acceptance_length']
    """
    gamma = None if evidence.gamma is None else checked_gamma(evidence.gamma)
    if gamma is not None and gamma > MOST_DRAFTS:
        raise ValueError(f"gamma is {gamma} (at most {MOST_DRAFTS} draft tokens a round)")
    _refuse_longer_rounds(evidence.histogram or (), gamma)
    lengths = {len(figures) for figures in evidence.lists.values()}
    if evidence.histogram is not None:
        lengths.add(len(evidence.histogram) - 1)
    known_gamma = gamma if gamma is not None or not lengths else max(lengths)
    counts = read_counts(evidence.counts, known_gamma) if evidence.counts else None
    known_gamma = _gamma_of_counts(counts) if known_gamma is None else known_gamma
    fits, failures = [], []
    for combination in combinations(evidence, counts, known_gamma):
        for candidate in _gammas(combination, known_gamma, counts):
            try:
                fits.append(_fit(combination, candidate, counts))
            except ContradictionError as error:
                failures.append(error)
    if not fits:
        raise min(failures, key=lambda error: error.args[1] if len(error.args) > 1 else np.inf)
    best = _best(fits)
    return best if gamma is not None or lengths else tuple(_told(reading) for reading in best)


def _told(reading: Reading) -> Reading:
    """Say where a γ is from that nobody stated; refuse one that another name would settle."""
    found = how_inferred(reading)
    if found is None:
        return reading
    if settled := other_name(reading):
        raise ContradictionError(settled)
    return replace(reading, warnings=(*reading.warnings, found))


def _refuse_longer_rounds(histogram: Sequence[float], gamma: int | None) -> None:
    """Refuse rounds that accepted more drafts than gamma allows."""
    if gamma is None:
        return
    for accepted, rounds in enumerate(histogram):
        if accepted > gamma and rounds:
            raise ValueError(
                f"histogram has {rounds:g} rounds that accepted {accepted} drafts and gamma is "
                f"{gamma} (at most gamma + 1 = {gamma + 1} counts: gamma {len(histogram) - 1}?)"
            )


def _gamma_of_counts(counts: CountReading | None) -> int | None:
    effective = None if counts is None else counts.drafted_per_round
    return round(effective) if effective and abs(effective - round(effective)) < 1e-9 else None


def _gammas(
    combination: tuple[Statement, ...], gamma: int | None, counts: CountReading | None
) -> list[int | None]:
    """Return the draft lengths to try: the known one, or those that a share and a τ can settle."""
    if gamma is not None:
        return [gamma]
    need = [s for s in combination if s.reading in SHARES_OF_GAMMA]
    known = [s for s in combination if s.tokens_per_round(None) is not None]
    if need and known and (counts is None or counts.drafted_per_round is None):
        return list(GAMMAS_TRIED)
    return [None]


def _fit(
    combination: tuple[Statement, ...], gamma: int | None, counts: CountReading | None
) -> Reading:
    """Return the reading, or raise ContradictionError(message, disagreement)."""
    drafted = None if counts is None else counts.drafted_per_round
    spans = []
    for statement in combination:
        if statement.is_list and gamma is None:
            continue
        low, mid, high = (statement.tokens_per_round(gamma, drafted, shift) for shift in (-1, 0, 1))
        if low is None or mid is None or high is None:
            continue
        if gamma is not None and not (high >= 1 - 1e-9 and low <= gamma + 1 + 1e-9):
            raise ContradictionError(_out_of_bounds(statement, mid, gamma), np.inf)
        # Of the values that the printed digits allow, only those from 1 to γ + 1 are possible.
        most = float("inf") if gamma is None else gamma + 1.0
        spans.append((statement, max(low, 1.0), min(max(mid, 1.0), most), min(high, most)))
    disagreement = _disagreement(spans, gamma)
    tau = spans[0][2] if spans else None
    unconditional, source = _positions(combination, gamma, tau, counts)
    return Reading(
        gamma,
        {statement.name: statement.reading for statement in combination},
        tau,
        unconditional,
        source,
        disagreement,
        combination,
        counts,
        () if counts is None else counts.warnings,
    )


def _out_of_bounds(statement: Statement, tau: float, gamma: int) -> str:
    return (
        f"{statement} means {tau:.4g} tokens per round at gamma {gamma} (with the bonus token it"
        f" lies between 1 and gamma + 1 = {gamma + 1})"
    )


def _disagreement(spans: list[tuple[Statement, float, float, float]], gamma: int | None) -> float:
    """Largest relative gap between two statements' intervals of τ; raises beyond NOISE."""
    worst, pair = 0.0, None
    for i, (_, low, mid, high) in enumerate(spans):
        for j, (_, other_low, _, other_high) in enumerate(spans[:i]):
            gap = max(0.0, low - other_high, other_low - high) / mid
            if gap > worst:
                worst, pair = gap, (j, i)
    if worst <= NOISE or pair is None:
        return worst
    (one, _, first, _), (two, _, second, _) = (spans[k] for k in pair)
    at = "" if gamma is None else f" at gamma {gamma}"
    message = (
        f"{one} means {first:.4g} tokens per round{at} and {two} means {second:.4g}: they differ"
        f" by {abs(second / first - 1):.0%} and cannot both hold"
    )
    hint = _chain_limit(one, two, first, second, gamma)
    if abs(abs(first - second) - 1) < 0.02:
        hint += "; they differ by one token: one of them counts the bonus and the other does not"
    raise ContradictionError(message + hint, worst)


def _chain_limit(
    one: Statement, two: Statement, first: float, second: float, gamma: int | None
) -> str:
    """Say what a τ beyond any chain at the stated α would need."""
    if gamma is None or "alpha" not in {one.reading, two.reading}:
        return ""
    alpha, tau = (one, second) if one.reading == "alpha" else (two, first)
    value = alpha.figures[0].value
    if value >= 1 or tau < 1 / (1 - value):
        return ""
    needed = float(alpha_from_tokens_per_round(min(tau, gamma + 1), gamma))
    return (
        f"; a chain at alpha {value:g} stays below 1/(1 − alpha) = {1 / (1 - value):.4g} for any"
        f" gamma, so this is a tree, or alpha is {needed:.4g}"
    )


def _positions(
    combination: tuple[Statement, ...],
    gamma: int | None,
    tau: float | None,
    counts: CountReading | None,
) -> tuple[Floats | None, str | None]:
    """Return A_i and where it comes from; None where rounds draft fewer than γ tokens."""
    if gamma is None:
        return None, None
    listed = next((s for s in combination if s.is_list), None)
    if listed is not None:
        return listed.lists(gamma), "stated"
    drafted = None if counts is None else counts.drafted_per_round
    if tau is None or (drafted is not None and abs(drafted - gamma) > 0.01 * gamma):
        return None, None
    accepted = None if counts is None else counts.accepted_per_draft
    with_bonus = tau if accepted is None else 1 + accepted
    stated_alpha = next((s for s in combination if s.reading == "alpha"), None)
    if stated_alpha is combination[0]:
        alpha = stated_alpha.figures[0].value
    else:
        alpha = float(alpha_from_tokens_per_round(min(max(with_bonus, 1.0), gamma + 1.0), gamma))
    return unconditional_from_alpha(alpha, gamma), "iid"


def _best(fits: list[Reading]) -> tuple[Reading, ...]:
    """Keep exact fits if there are any; one γ a combination; drop readings that say the same."""
    exact = [reading for reading in fits if reading.disagreement <= 1e-9]
    kept: dict[tuple[str, ...], Reading] = {}
    for reading in exact or fits:
        key = tuple(reading.chosen.values())
        if key not in kept or reading.disagreement < kept[key].disagreement:
            kept[key] = reading
    different: list[Reading] = []
    for reading in kept.values():
        if not any(_same(reading, other) for other in different):
            different.append(reading)
    return tuple(different)


def _same(one: Reading, other: Reading) -> bool:
    if one.gamma != other.gamma or one.acceptance_length is None or other.acceptance_length is None:
        return False
    equal = abs(one.acceptance_length - other.acceptance_length) <= 1e-9
    if one.unconditional is None or other.unconditional is None:
        return equal
    return equal and bool(np.allclose(one.unconditional, other.unconditional, atol=1e-9))
