"""What somebody states about acceptance, and every way in which it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from specplan.models.conversions import unconditional_from_histogram
from specplan.models.counts import CountReading, Counts
from specplan.models.statements import ENGINES, READINGS, Figure, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What somebody states about acceptance.

    figures: name → Figure, by the names of `statements` (`length` and `rate` when their meaning is
    unknown); lists: likewise (`positions` when unknown); histogram: rounds that accepted exactly
    0..γ; fill: what to do when a list is shorter than γ; engine: whose figures these are.
    """

    gamma: int | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    lists: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    histogram: tuple[float, ...] | None = None
    counts: Counts = field(default_factory=Counts)
    engine: str | None = None
    fill: str | None = None


def combinations(
    evidence: Evidence, counts: CountReading | None, gamma: int | None
) -> Iterator[tuple[Statement, ...]]:
    """Every way to read all statements at once; lists come first, they say most."""
    alternatives = [
        _alternatives(name, _filled(name, figures, gamma, evidence.fill), evidence.engine)
        for name, figures in evidence.lists.items()
    ]
    if evidence.histogram is not None:
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


def _filled(
    name: str, figures: tuple[Figure, ...], gamma: int | None, fill: str | None
) -> tuple[Figure, ...]:
    """Extend a list to γ positions by the stated policy; refuse when none is stated."""
    if gamma is None or len(figures) >= gamma:
        return figures
    missing = gamma - len(figures)
    if fill == "zero":
        return figures + (Figure(0.0),) * missing
    if fill == "repeat_last" and name == "conditional":
        return figures + figures[-1:] * missing
    if fill == "repeat_last" and name == "unconditional":
        before = figures[-2].value if len(figures) > 1 else 1.0
        ratio = figures[-1].value / before if before else 0.0
        steps = range(1, missing + 1)
        return figures + tuple(Figure(figures[-1].value * ratio**step) for step in steps)
    given = f"{len(figures)} positions of {name} are given and gamma is {gamma}"
    if fill == "repeat_last":
        raise ValueError(f"{given}; repeat_last needs to know whether the list is conditional")
    raise ValueError(f"{given} (give {gamma}, or say how to fill: zero or repeat_last)")
