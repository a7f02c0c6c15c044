"""Where the draft runs: the placements compared per user and per GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.results.intervals import Interval, t_interval
from specplan.results.planning.loads import at_rate, gpus, with_replicas

if TYPE_CHECKING:
    from specplan.results.planning.loads import Planner
    from specplan.scenarios.schema import Scenario
    from specplan.sim.looks import Capacity

PLACEMENTS = ("colocated", "dedicated", "shared", "parallel")
REPLICAS = 2  # the fewest that can share
RUNS = 4
TOLERANCE = 0.2


@dataclass(frozen=True)
class Placed:
    """One placement: time per token at the load, and the rate per GPU within the objectives."""

    placement: str
    gpus: float
    tpot_s: Interval
    capacity: Capacity

    @property
    def rate_per_gpu(self) -> float:
        """Requests per second and GPU that meet the objectives for sure."""
        return self.capacity.load / self.gpus

    def as_good_per_gpu(self, other: Placed) -> bool:
        """Whether the intervals of the rate per GPU overlap."""
        (low, high), (least, most) = self.capacity.interval, other.capacity.interval
        return high / self.gpus >= least / other.gpus and low / self.gpus <= most / other.gpus


def placed(scenario: Scenario, placement: str, replicas: int) -> Scenario:
    """Move the draft of so many replicas; a transfer that is not stated takes no time.

    A shared pool has the scenario's share of draft GPUs a replica, or one GPU for all.

    >>> from specplan.scenarios.load import load
    >>> placed(load("toy-20ms"), "shared", 4).draft.gpus
    1
    """
    draft = scenario.draft
    pool = draft.gpus * replicas / scenario.cluster.replicas if draft.placement == "shared" else 1
    kept = draft.gpus if draft.placement == placement == "dedicated" else 1
    away = placement in ("dedicated", "shared")
    changed: dict[str, object] = {
        "placement": placement,
        "ping_pong": draft.ping_pong and placement == "dedicated",
        "gpus": max(1, round(pool)) if placement == "shared" else kept,
        "transfer": (draft.transfer or 0.0) if away else None,
    }
    moved = scenario.model_copy(update={"draft": draft.model_copy(update=changed)})
    return with_replicas(moved, replicas)


def placements(planner: Planner, scenario: Scenario, rate: float) -> list[Placed]:
    """Compare the placements at a rate per replica; empty where there is nothing to place.

    All on two replicas, the fewest that can share, and on shorter runs than other questions.
    """
    if not scenario.gamma or scenario.speculation.method == "ngram":
        return []
    shorter = planner.shorter(2)
    found = []
    for placement in PLACEMENTS:
        planner.ask(f"draft {placement}")
        one = placed(scenario, placement, REPLICAS)
        tpot = shorter.figures(at_rate(one, rate), RUNS)["tpot_mean"]
        capacity = shorter.capacity(one, TOLERANCE, most_runs=RUNS)
        steady = bool(np.isfinite(tpot).all())
        per_token = t_interval(tpot) if steady else Interval(float("inf"), float("nan"), len(tpot))
        found.append(Placed(placement, gpus(one), per_token, capacity))
    return found
