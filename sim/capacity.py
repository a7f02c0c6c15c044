"""Searches over simulations: the largest load that meets its limits, for sure.

A look at one load is a set of replications on consecutive seeds, the same seeds at every load
(common luck). A load counts as met only when the interval of every ratio figure/limit lies at or
below 1, as missed only when one lies above, and as undecided otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.sim.looks import Capacity, Look

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_RUNS, MOST_RUNS = 6, 24
FEW_RUNS = 2  # while the search is far from the limits: only the side matters
STRIDE = 1.4  # between loads while the search looks for its two ends
SMALLEST = 1e-9  # ratio of which a logarithm is taken
SMALLEST_SLOPE = 0.05  # d ln(ratio)/d ln(load) below which a crossing would lie anywhere
IDLE = 0.01  # of the first guess: a load at which requests hardly meet
STEPS = 24


def largest_load(  # noqa: PLR0917
    look_at: Callable[[float, int], Look],
    guess: float,
    tolerance: float,
    most_load: float = float("inf"),
    first_runs: int = FIRST_RUNS,
    most_runs: int = MOST_RUNS,
) -> Capacity:
    """Search the largest load at which every ratio is at most 1; ratios rise with the load.

    Strides of 1.4 find loads below and above, a secant the crossing of the worst ratio; then looks
    a little below and a little above it, with as many runs as the noise asks for, until one is met,
    one missed, and missed/met ≤ 1 + tolerance. Where `most_runs` do not suffice for that, the two
    ends lie further apart and `resolved` is False. No load beyond `most_load` is tried.

    >>> def look(load, runs): return Look(load, np.full((runs, 1), load / 5), np.zeros(runs))
    >>> found = largest_load(look, 2.0, tolerance=0.01)
    >>> found.resolved, found.interval[0] <= 5 < found.interval[1]
    (True, True)
    >>> largest_load(lambda load, runs: look(9.0, runs), 2.0, tolerance=0.01).met is None
    True
    """
    search = _Search(look_at, tolerance, first_runs, most_runs)
    search.bracket(guess, most_load)
    if search.below() is not None and search.above() is not None:
        search.close_in()
    met, missed = search.ends()
    return Capacity(met, missed, tuple(sorted(search.looks.values(), key=_load)), tolerance)


class _Search:
    """The looks taken so far, the best one at each load."""

    def __init__(
        self, look_at: Callable[[float, int], Look], tolerance: float, runs: int, most_runs: int
    ) -> None:
        self.look_at, self.tolerance = look_at, tolerance
        self.runs, self.most_runs = runs, most_runs
        self.looks: dict[float, Look] = {}

    def look(self, load: float, runs: int | None = None) -> Look:
        found = self.looks[load] = self.look_at(load, runs or self.runs)
        return found

    def below(self) -> Look | None:
        """Return the largest load whose mean ratios are at most 1, below all that are not."""
        above = self.above()
        kept = [
            one
            for one in self.looks.values()
            if one.means.max() <= 1 and (above is None or one.load < above.load)
        ]
        return max(kept, key=_load, default=None)

    def above(self) -> Look | None:
        """Return the smallest load with a mean ratio above 1."""
        over = (one for one in self.looks.values() if not one.means.max() <= 1)
        return min(over, key=_load, default=None)

    def ends(self) -> tuple[Look | None, Look | None]:
        """Return the largest load met for sure below the smallest missed for sure, and that one."""
        missed = min((one for one in self.looks.values() if one.missed), key=_load, default=None)
        met = [o for o in self.looks.values() if o.met and (missed is None or o.load < missed.load)]
        return max(met, key=_load, default=None), missed

    def bracket(self, guess: float, most_load: float) -> None:
        """Look upwards until the mean is above its limit, and downwards until it is below."""
        few = min(FEW_RUNS, self.runs)
        load = min(guess, most_load)
        while self.look(load, few).means.max() <= 1 and load < most_load and load < guess * 1e6:
            load = min(load * STRIDE, most_load)
        if self.above() is None:
            self.look(max(self.looks))  # the answer itself
        load = min(self.looks)
        for step in range(6):
            if self.below() is not None:
                return
            load = load / STRIDE ** (step + 1) if step < 5 else guess * IDLE
            self.look(load, few if step < 5 else None)

    def close_in(self) -> None:
        """Narrow the bracket, then look to both sides of the crossing."""
        for _ in range(STEPS):
            below, above = self.below(), self.above()
            if below is None or above is None or self._done():
                return
            if not above.stable or above.load > below.load * (1 + 3 * self.tolerance) * 1.1:
                self.look(self._between(below, above), min(FEW_RUNS, self.runs))
            else:
                break
        self._settle()

    def _settle(self) -> None:
        """Take as many runs as the noise asks for, then look where the answer should be sure."""
        slope = self._slope()
        self.look(self._crossing(slope)[0])
        widen = 1.0
        for _ in range(STEPS):
            if self._done():
                return
            slope = self._slope_of_the_precise(slope)
            crossing, spread = self._crossing(slope)
            wanted = 0.4 * self.tolerance
            if spread > wanted and self.runs < self.most_runs:
                more = int(np.ceil(self.runs * (spread / wanted) ** 2))
                self.runs = min(self.most_runs, max(self.runs + 2, more))
                self.look(crossing)
                continue
            margin = 1 + widen * min(max(1.15 * spread, 0.1 * self.tolerance), 0.9)
            if self.runs < self.most_runs:
                margin = min(margin, float(np.sqrt(1 + self.tolerance)))
            low, high = self.look(crossing / margin), self.look(crossing * margin)
            if self.runs == self.most_runs and low.met and high.missed:
                return  # as close as so many runs can tell
            widen *= 1.3
            self.runs = min(self.most_runs, int(1.5 * self.runs))

    def _done(self) -> bool:
        met, missed = self.ends()
        return bool(met and missed and missed.load <= met.load * (1 + self.tolerance) * (1 + 1e-9))

    @staticmethod
    def _between(below: Look, above: Look) -> float:
        """Choose a load inside a wide bracket: a secant in logarithms, kept away from its ends."""
        wide = float(np.log(above.load / below.load))
        share = 0.5
        if above.stable and below.means.max() > 0:
            low, high = np.log(below.means.max()), np.log(above.means.max())
            share = float(np.clip(-low / (high - low), 0.2, 0.8)) if high > low else 0.5
        return float(below.load * np.exp(share * wide))

    def _slope(self) -> float:
        """Estimate d ln(worst ratio)/d ln(load) from the two looks around the crossing."""
        below, above = self.below(), self.above()
        assert below is not None  # a bracket was found before
        assert above is not None
        rise = np.log(above.means.max() / max(below.means.max(), SMALLEST))
        return max(float(rise / np.log(above.load / below.load)), SMALLEST_SLOPE)

    def _slope_of_the_precise(self, before: float) -> float:
        """Fit the slope to the looks with the most runs: on common luck, their noise cancels."""
        precise = self._precise()
        if len(precise) < 2:
            return before
        loads = np.log([one.load for one in precise])
        x = loads - loads.mean()
        found = float(x @ np.log([_worst_mean(one) for one in precise]) / (x @ x))
        return max(found, SMALLEST_SLOPE)

    def _precise(self) -> list[Look]:
        stable = [one for one in self.looks.values() if one.stable]
        most = max(len(one.ratios) for one in stable)
        return [one for one in stable if len(one.ratios) == most]

    def _crossing(self, slope: float) -> tuple[float, float]:
        """Find where the worst mean ratio crosses 1 and how far its interval moves that, relative.

        From the look with the most runs nearest to the crossing: looks with fewer runs have other
        luck.
        """
        near = min(self._precise(), key=lambda one: abs(np.log(_worst_mean(one))))
        worst = _worst_mean(near)
        return near.load * worst ** (-1 / slope), float(
            near.half_widths[near.worst]
        ) / worst / slope


def _worst_mean(look: Look) -> float:
    return max(float(look.means.max()), SMALLEST)


def _load(look: Look) -> float:
    return look.load
