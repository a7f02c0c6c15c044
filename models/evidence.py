"""What somebody states about acceptance, and every way in which it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from specplan.models.conversions import unconditional_from_histogram
from specplan.models.counts import CountReading, Counts
from specplan.models.extrapolation import Rule, extrapolate
from specplan.models.statements import ENGINES, READINGS, Figure, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What somebody states about acceptance.

    figures: name → Figure, by the names of `statements` (`length` and `rate` when their meaning is
    unknown); lists: likewise (`positions` when unknown); histogram: rounds that accepted exactly
    0..γ; fill: the rule by which a list shorter than γ goes on; engine: whose figures these are.
    """

    gamma: int | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    lists: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    histogram: tuple[float, ...] | None = None
    counts: Counts = field(default_factory=Counts)
    engine: str | None = None
    fill: Rule | None = None


def combinations(
    evidence: Evidence, counts: CountReading | None, gamma: int | None
) -> Iterator[tuple[Statement, ...]]:
    """Every way to read all statements at once; lists come first, they say most."""
    alternatives = [
        [
            _filled(read, gamma, evidence.fill)
            for read in _alternatives(name, figures, evidence.engine)
        ]
        for name, figures in evidence.lists.items()
    ]
    if evidence.histogram is not None:
        if len(evidence.histogram) < 2:
            raise ValueError("histogram has 1 count (rounds that accepted exactly 0, 1, … γ)")
        listed = unconditional_from_histogram(evidence.histogram)
        exact = tuple(Figure(float(value)) for value in listed)
        alternatives.append([Statement("histogram", "unconditional", exact)])
    if counts is not None:
        alternatives += _count_statements(counts)
    alternatives += [
        _alternatives(name, (figure,), evidence.engine) for name, figure in evidence.figures.items()
    ]
    if not alternatives:
        raise ValueError("no acceptance figure is stated (one of alpha, acceptance_length, …)")
    yield from product(*alternatives)


def _count_statements(counts: CountReading) -> list[list[Statement]]:
    if counts.acceptance_length is not None:
        return [[Statement("counts", "acceptance_length", (Figure(counts.acceptance_length),))]]
    if counts.accepted is not None and counts.drafted:
        rate = Figure(counts.accepted / counts.drafted)
        return [[Statement("counts", "acceptance_rate", (rate,))]]
    return []


def _alternatives(name: str, figures: tuple[Figure, ...], engine: str | None) -> list[Statement]:
    """Return the readings of one figure that are possible by themselves."""
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"engine is {engine} ({' | '.join(ENGINES)})")
    readings = READINGS.get(name, (name,))
    if engine is not None:
        readings = ENGINES[engine].get(name, readings)
    possible, reasons = [], []
    for reading in readings:
        statement = Statement(name, reading, figures)
        try:
            statement.check()
            possible.append(statement)
        except ValueError as error:
            reasons.append(error)
    if not possible:
        raise reasons[0]
    return possible


def _filled(statement: Statement, gamma: int | None, rule: Rule | None) -> Statement:
    """Extend a list to γ positions by the stated rule; refuse when none is stated."""
    listed = len(statement.figures)
    if gamma is None or not statement.is_list or listed >= gamma:
        return statement
    if rule is None:
        raise ValueError(
            f"{listed} positions of {statement.name} are given and gamma is {gamma} (give {gamma},"
            " or say how to go on with fill: zero, last_ratio, plateau or iid)"
        )
    longer = extrapolate(statement.lists(listed), gamma, rule)
    added = longer.unconditional[listed:].tolist()
    if statement.reading == "conditional":
        added = [longer.ratio] * len(added)
    return replace(statement, figures=statement.figures + tuple(Figure(x) for x in added))
