"""Totals over predicted points: errors, tolerance, best γ, and the sign of the effect."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specplan.results.validation.points import Point

#: A γ this close to the best measured one is as good.
AS_GOOD = 0.02
#: Measured effects smaller than this have no sign.
EFFECT = 0.05


@dataclass(frozen=True)
class Score:
    """How well a set of points was predicted; errors are absolute and relative."""

    points: int
    sources: int
    median_error: float
    p90_error: float
    within: float


@dataclass(frozen=True)
class Sweep:
    """One sweep over γ: which γ is best by measurement and by prediction."""

    scenario: str
    series: str
    simulated: bool
    best_measured: int
    best_predicted: int
    loss: float

    @property
    def right(self) -> bool:
        """Whether the predicted γ is the best, or within 2 % of it."""
        return self.loss <= AS_GOOD


@dataclass(frozen=True)
class Signs:
    """Points whose measured effect exceeds 5 %, and those whose sign was predicted."""

    points: int
    right: int


def score(points: Sequence[Point]) -> Score | None:
    """Summarise the predicted points; None where there are none. p90 is interpolated linearly."""
    tested = [point for point in points if point.tested]
    if not tested:
        return None
    errors = np.abs([point.error for point in tested])
    return Score(
        points=len(tested),
        sources=len({point.scenario for point in tested}),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        within=sum(point.within for point in tested) / len(tested),
    )


def sweeps(points: Iterable[Point]) -> list[Sweep]:
    """Compare the best γ of every sweep; plain decoding is a γ of 0 where its speed was measured.

    Fit rows count as alternatives: what is compared is the choice, by the fitted model.
    """
    found = []
    for (scenario, name), group in groupby(points, lambda p: (p.scenario, p.series.name)):
        rows = [point for point in group if point.row.gamma is not None]
        if len(rows) < 2 or not rows[0].series.sweep:
            continue
        worth = [p.measured**p.better for p in rows]
        expected = [p.predicted**p.better for p in rows]
        best, chosen = int(np.argmax(worth)), int(np.argmax(expected))
        found.append(
            Sweep(
                scenario,
                name,
                rows[0].series.simulated,
                rows[best].row.gamma or 0,
                rows[chosen].row.gamma or 0,
                1 - worth[chosen] / worth[best],
            )
        )
    return found


def signs(points: Iterable[Point]) -> Signs:
    """Count the predicted points with an effect above 5 %, and those on the right side of 1."""
    seen = [
        (p.speedup_measured, p.speedup_predicted)
        for p in points
        if p.tested and p.speedup_measured and p.speedup_predicted
    ]
    clear = [(m, f) for m, f in seen if abs(m - 1) > EFFECT]
    return Signs(len(clear), sum((m > 1) == (f > 1) for m, f in clear))
