"""The share of requests that meet their limits, over the load, with and without speculation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.results import metrics
from specplan.results.intervals import t_interval
from specplan.results.planning.loads import at_rate, plain, saturation_rate
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.intervals import Interval
    from specplan.scenarios.schema import Scenario

LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25)  # of the larger of the two saturation rates
SEEDS = 5
REQUESTS = 400  # of one run, for each replica


@dataclass(frozen=True)
class Attained:
    """At a rate per replica, the share of completed requests that meet every limit."""

    rate: float
    share: Interval


def attainment(scenario: Scenario) -> dict[str, list[Attained]]:
    """Simulate a scenario and plain decoding at several loads; {} where it states no limits.

    Each point is the mean over a few seeds, with its t interval; both sides share the seeds.
    """
    if not scenario.slo.request_limits():
        return {}
    sides = {"plain decoding": plain(scenario)}
    if scenario.gamma:
        sides[f"speculation, γ = {scenario.gamma}"] = scenario
    top = max(saturation_rate(side) for side in sides.values())
    rates = [top * load for load in LOADS]
    return {name: [_at(side, rate) for rate in rates] for name, side in sides.items()}


def _at(scenario: Scenario, rate: float) -> Attained:
    asked = REQUESTS * scenario.cluster.replicas
    workload = at_rate(scenario, rate).workload.model_copy(update={"requests": asked})
    shares: Sequence[float] = [
        _share(scenario.model_copy(update={"workload": workload, "seed": scenario.seed + number}))
        for number in range(SEEDS)
    ]
    return Attained(rate, t_interval(np.array(shares)))


def _share(scenario: Scenario) -> float:
    figures = metrics.summary(simulate(scenario))
    throughput = float(figures["request_throughput"])
    return float(figures["request_goodput"]) / throughput if throughput > 0 else 0.0
