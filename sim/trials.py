"""Replications of scenarios on consecutive seeds, each simulated once."""

from __future__ import annotations

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


class Trials:
    """Replications of scenarios, each simulated once however often it is asked for."""

    def __init__(self, measure: Measure, executor: Executor, requests: int) -> None:
        self.measure, self.executor, self.requests = measure, executor, requests
        self.runs = 0
        self._known: dict[str, dict[str, float]] = {}

    def figures(
        self, scenario: Scenario, runs: int, requests: int | None = None
    ) -> dict[str, Floats]:
        """Simulate `runs` seeds from the scenario's own on; return each figure as `(runs,)`."""
        workload = scenario.workload.model_copy(
            update={"requests": requests or self.requests, "warmup": None}
        )
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
