"""Searches over simulations: the largest load that meets its limits, for sure.

A look at one load is a set of replications on consecutive seeds, the same seeds at every load
(common luck). A load counts as met only when the interval of every ratio figure/limit lies at or
below 1, as missed only when one lies above, and is looked at longer otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.sim.ledger import scenario_hash
from specplan.sim.sweep import simulate_point

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.sweep import Measure

    Floats = NDArray[np.float64]

Ratios = Callable[[float, int], "Floats"]
"""(load, replications) → figure over limit `(replications, objectives)`; inf where none exists."""

CONFIDENCE = 0.99  # of one look; a search takes several, so that all together hold at about 95 %
FIRST_RUNS, MOST_RUNS = 4, 32
STRIDE = 1.5  # between loads while the search looks for its two ends
IDLE = 0.01  # of the first guess: a load at which requests hardly meet


class Trials:
    """Replications of scenarios, each simulated once however often it is asked for."""

    def __init__(self, measure: Measure, executor: Executor, requests: int) -> None:
        self.measure, self.executor, self.requests = measure, executor, requests
        self.runs = 0
        self._known: dict[str, dict[str, float]] = {}

    def figures(self, scenario: Scenario, runs: int, requests: int | None = None) -> dict[str, Floats]:
        """Simulate `runs` seeds from the scenario's own on; return each figure as `(runs,)`."""
        workload = scenario.workload.model_copy(update={"requests": requests or self.requests})
        seeds = range(scenario.seed, scenario.seed + runs)
        asked = [scenario.model_copy(update={"seed": s, "workload": workload}) for s in seeds]
        keys = [scenario_hash(one) for one in asked]
        missing = {k: s for k, s in zip(keys, asked, strict=True) if k not in self._known}
        futures = {
            k: self.executor.submit(simulate_point, s, self.measure) for k, s in missing.items()
        }
        self.runs += len(futures)
        self._known.update({key: future.result() for key, future in futures.items()})
        rows = [self._known[key] for key in keys]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@dataclass(frozen=True, eq=False)
class Look:
    """What replications say at one load: `ratios (runs, objectives)`, figure over limit."""

    load: float
    ratios: Floats

    @property
    def means(self) -> Floats:
        """Mean ratio of each objective."""
        means: Floats = self.ratios.mean(axis=0)
        return means

    @property
    def half_widths(self) -> Floats:
        """Half width of each ratio's interval (Student's t over replications)."""
        from scipy.special import stdtrit

        runs = len(self.ratios)
        if runs < 2:
            return np.full(self.ratios.shape[1], np.inf)
        with np.errstate(invalid="ignore"):
            spread = self.ratios.std(axis=0, ddof=1)
        t = float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2))
        widths: Floats = np.nan_to_num(t * spread / np.sqrt(runs), nan=np.inf)
        return widths

    @property
    def met(self) -> bool:
        """Whether every interval lies at or below its limit."""
        return bool(np.all(self.means + self.half_widths <= 1))

    @property
    def missed(self) -> bool:
        """Whether an interval lies above its limit, or a replication had no steady state."""
        if np.isinf(self.ratios).any():
            return True
        return bool(np.any(self.means - self.half_widths > 1))

    @property
    def worst(self) -> int:
        """Index of the objective that is furthest beyond its limit, or closest to it."""
        return int(np.argmax(self.means))


@dataclass(frozen=True, eq=False)
class Capacity:
    """The largest load met for sure, the smallest missed for sure, and every look on the way.

    `met` is None when not even an idle system meets the limits (`missed` is then that look);
    `missed` is None when no load that was tried is too much.
    """

    met: Look | None
    missed: Look | None
    looks: tuple[Look, ...]
    tolerance: float

    @property
    def load(self) -> float:
        """Largest load that is met for sure; 0 when none is."""
        return self.met.load if self.met else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true capacity lies: above what is met, below what is missed."""
        return self.load, self.missed.load if self.missed else float("inf")

    @property
    def resolved(self) -> bool:
        """Whether the interval is inside the tolerance."""
        low, high = self.interval
        return high <= low * (1 + self.tolerance)


def largest_load(
    ratios: Ratios,
    guess: float,
    *,
    tolerance: float,
    first_runs: int = FIRST_RUNS,
    most_runs: int = MOST_RUNS,
    most_load: float = float("inf"),
) -> Capacity:
    """Search the largest load at which every ratio is at most 1; ratios rise with the load.

    Brackets from `guess` in strides of 1.5, then bisects (geometrically) until missed/met ≤
    1 + tolerance. A load whose interval straddles 1 after `most_runs` is neither met nor missed:
    the search closes in from both sides and stops where noise allows no more (`resolved` is False).
    A bracket beyond `most_load` is not searched.

    >>> found = largest_load(lambda load, runs: np.full((runs, 1), load / 5), 2.0, tolerance=0.01)
    >>> found.resolved, found.interval[0] <= 5 < found.interval[1]
    (True, True)
    >>> largest_load(lambda load, runs: np.full((runs, 1), 1.2), 2.0, tolerance=0.01).met is None
    True
    """
    looks: dict[float, Look] = {}

    def look(load: float) -> Look:
        runs = first_runs
        found = Look(load, ratios(load, runs))
        while not (found.met or found.missed) and runs < most_runs:
            runs = min(2 * runs, most_runs)
            found = Look(load, ratios(load, runs))
        looks[load] = found
        return found

    _bracket(look, looks, guess, most_load)
    for _ in range(64):
        low, high = _ends(looks)
        if low is None or high is None or high.load <= low.load * (1 + tolerance):
            break
        load = _next(looks, low.load, high.load, tolerance)
        if load is None:
            break
        look(load)
    met, missed = _ends(looks)
    return Capacity(met, missed, tuple(looks[load] for load in sorted(looks)), tolerance)


def _bracket(
    look: Callable[[float], Look], looks: dict[float, Look], guess: float, most_load: float
) -> None:
    """Look upwards until a load is missed, and downwards until one is met, at last when idle."""
    load = min(guess, most_load)
    while not look(load).missed and load < most_load and load < guess * 1e6:
        load = min(load * STRIDE, most_load)
    load = min(looks)
    for step in range(4):
        if _ends(looks)[0] is not None:
            return
        load = load / STRIDE if step < 3 else guess * IDLE
        look(load)


def _ends(looks: dict[float, Look]) -> tuple[Look | None, Look | None]:
    """Find the smallest load missed, and the largest met below it (ratios rise, looks are noisy)."""
    missed = min((one for one in looks.values() if one.missed), key=_load, default=None)
    below = [one for one in looks.values() if one.met and (not missed or one.load < missed.load)]
    return max(below, key=_load, default=None), missed


def _next(looks: dict[float, Look], low: float, high: float, tolerance: float) -> float | None:
    """Choose the next load between the ends: their middle, or the wider gap beside the undecided."""
    undecided = [load for load in looks if low < load < high]
    if not undecided:
        return float(np.sqrt(low * high))
    below, above = min(undecided) / low, high / max(undecided)
    if max(below, above) <= 1 + tolerance / 2:
        return None
    return float(low * np.sqrt(below) if below >= above else high / np.sqrt(above))


def _load(look: Look) -> float:
    return look.load
