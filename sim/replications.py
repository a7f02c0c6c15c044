"""The same scenario on several seeds, on any executor: results depend on the seeds alone."""

from __future__ import annotations

from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

    Figures = Mapping[str, Any]


def seeds_from(first: int, count: int) -> list[int]:
    """Give the seeds of so many replications: the scenario's own and the next ones.

    >>> seeds_from(7, 3)
    [7, 8, 9]
    """
    return [(first + i) % 2**63 for i in range(count)]


def replicate(
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    measure: Callable[[Run], Figures],
    executor: Executor,
) -> Iterator[tuple[int, int, Figures]]:
    """Simulate every scenario on every seed; give (scenario, seed, figures) as they come.

    `measure` turns a run into figures in the worker. Raises ScenarioError when a worker dies, and
    KeyboardInterrupt in one that is interrupted: half a run is no replication.
    """
    futures = {
        executor.submit(_one, scenario.model_copy(update={"seed": seed}), measure): (which, seed)
        for seed in seeds
        for which, scenario in enumerate(scenarios)
    }
    try:
        for future in as_completed(futures):
            yield *futures[future], future.result()
    except BrokenProcessPool as error:
        wrong = "a worker process was killed (out of memory?)"
        raise ScenarioError(Fault(wrong, "fewer --workers")) from error
    finally:
        for future in futures:
            future.cancel()


def _one(scenario: Scenario, measure: Callable[[Run], Figures]) -> Figures:
    from specplan.sim.simulate import simulate

    run = simulate(scenario)
    if run.interrupted:
        raise KeyboardInterrupt
    return measure(run)
