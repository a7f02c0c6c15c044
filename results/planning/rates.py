"""How much load: replicas for a rate, and the load beyond which speculation hurts."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from specplan.results.planning.loads import (
    at_rate,
    gpus,
    plain,
    saturation_rate,
    with_replicas,
)
from specplan.sim.capacity import largest_load
from specplan.sim.looks import Look

if TYPE_CHECKING:
    from specplan.results.planning.loads import Planner
    from specplan.scenarios.schema import Scenario
    from specplan.sim.looks import Capacity

RUNS, MORE_RUNS = 6, 12
BEYOND = 1.25  # of the larger saturation rate: nothing new happens there


@dataclass(frozen=True)
class Fleet:
    """The fewest replicas that carry a rate, what they need, and what one fewer does.

    `sure` says that one replica fewer misses an objective for sure, too.
    """

    replicas: int
    gpus: float
    sure: bool
    looks: tuple[tuple[int, Look], ...]


def fewest_replicas(
    planner: Planner, scenario: Scenario, rate: float, capacity: Capacity
) -> Fleet | None:
    """Find the fewest replicas behind the scenario's router that meet the objectives at a rate.

    Starts from rate/capacity of one replica and goes down while a fleet is met for sure (a router
    that balances lends one replica's room to another), up while it is not. None when no load at
    all meets the objectives, or not even twice the replicas are enough.
    """
    if capacity.met is None:
        return None
    planner.ask(f"fewest replicas {'with' if scenario.gamma else 'without'} speculation")
    start = max(1, ceil(rate / capacity.load - 1e-9))
    looks: dict[int, Look] = {}

    def met(replicas: int) -> bool:
        fleet = _fleet(scenario, replicas)
        for runs in (RUNS, MORE_RUNS):
            looks[replicas] = planner.look(fleet, rate / replicas, runs)
            if looks[replicas].met or looks[replicas].missed:
                break
        return looks[replicas].met

    count = start
    while not met(count):
        count += 1
        if count > 2 * start + 1:
            return None
    while count > 1 and (count - 1 not in looks) and met(count - 1):
        count -= 1
    fewer = looks.get(count - 1)
    sure = count == 1 or (fewer is not None and fewer.missed)
    needed = count * gpus(_fleet(scenario, count))
    return Fleet(count, needed, sure, tuple(sorted(looks.items())))


def _fleet(scenario: Scenario, replicas: int) -> Scenario:
    """Return so many replicas, with a draft pool in proportion."""
    draft = scenario.draft
    if scenario.gamma and draft.placement == "shared":
        pool = max(1, round(draft.gpus * replicas / scenario.cluster.replicas))
        scenario = scenario.model_copy(update={"draft": draft.model_copy(update={"gpus": pool})})
    return with_replicas(scenario, replicas)


def crossover(planner: Planner, scenario: Scenario, tolerance: float = 0.15) -> Capacity:
    """Find the load per replica up to which speculation is faster than plain decoding.

    Compares mean end-to-end latency seed by seed; where neither has a steady state, throughput.
    `met` None: slower even when idle; `missed` None: never slower, up to both saturations.
    """
    planner.ask("load up to which speculation is faster")
    base = plain(scenario)
    limits = [saturation_rate(scenario), saturation_rate(base)]

    def look(rate: float, runs: int) -> Look:
        one = planner.figures(at_rate(scenario, rate), runs)
        other = planner.figures(at_rate(base, rate), runs)
        return Look(rate, _ratios(one, other)[:, None], np.zeros(runs))

    return largest_load(
        look, 0.5 * max(limits), tolerance, most_load=BEYOND * max(limits), most_runs=MORE_RUNS
    )


def _ratios(
    one: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]],
    other: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Latency of one over the other; inf or 0 where one alone has no steady state."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = one["e2el_mean"] / other["e2el_mean"]
        return np.where(np.isnan(ratio), other["throughput"] / one["throughput"], ratio)
