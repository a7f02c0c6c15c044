"""A scenario at another load, on one replica or several, and what its GPUs are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from specplan.results.intervals import Interval, t_interval
from specplan.results.planning.objectives import measure
from specplan.scenarios.closed_form import operating_point
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import override
from specplan.scenarios.offered import offered
from specplan.scenarios.priced import Priced
from specplan.sim.capacity import MOST_RUNS, largest_load
from specplan.sim.looks import Look
from specplan.sim.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from specplan.results.planning.objectives import Objective
    from specplan.scenarios.schema import Scenario
    from specplan.sim.looks import Capacity


LONGEST = 8  # replicas whose requests one run has at most: a fleet is no longer than that


def _silently(_: str) -> None:
    """Take a question without telling anybody."""


@dataclass(frozen=True)
class Planner:
    """What every question of a plan needs: how to simulate, the objectives, the tolerance.

    `ask` is told each question when its turn comes.
    """

    trials: Trials
    objectives: tuple[Objective, ...]
    tolerance: float
    ask: Callable[[str], None] = _silently

    @classmethod
    def on(
        cls,
        executor: Executor,
        objectives: Sequence[Objective],
        *,
        requests: int = 2000,
        tolerance: float = 0.1,
        ask: Callable[[str], None] = _silently,
    ) -> Planner:
        """Plan with simulations of so many requests on an executor."""
        trials = Trials(partial(measure, objectives=tuple(objectives)), executor, requests)
        return cls(trials, tuple(objectives), tolerance, ask)

    def shorter(self, times: int) -> Planner:
        """Return a planner whose runs have so many times fewer requests."""
        trials = self.trials
        fewer = Trials(trials.measure, trials.executor, max(200, trials.requests // times))
        return replace(self, trials=fewer)

    def look(self, scenario: Scenario, rate: float, runs: int) -> Look:
        """Judge a rate per replica on so many seeds."""
        figures = self.figures(at_rate(scenario, rate), runs)
        ratios = np.stack([o.ratio(figures[o.name]) for o in self.objectives], axis=1)
        return Look(rate, ratios, surplus(scenario, rate, figures))

    def figures(self, scenario: Scenario, runs: int) -> dict[str, NDArray[np.float64]]:
        """Simulate so many seeds; each figure as `(runs,)`. Several replicas get more requests."""
        requests = self.trials.requests * min(scenario.cluster.replicas, LONGEST)
        return self.trials.figures(scenario, runs, requests)

    def capacity(
        self, scenario: Scenario, tolerance: float | None = None, most_runs: int = MOST_RUNS
    ) -> Capacity:
        """Largest rate per replica at which all objectives are met, requests per second."""
        return largest_load(
            lambda rate, runs: self.look(scenario, rate, runs),
            0.7 * saturation_rate(scenario),
            tolerance or self.tolerance,
            most_runs=most_runs,
        )


def surplus(
    scenario: Scenario, rate: float, figures: dict[str, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """By how much more work than its law says each run happened to be offered, `(runs,)`.

    ln of (mean prompt and output, weighted by the time they take, per mean gap between arrivals)
    over its expectation: known to be 0 on average, so that it serves as a control variate.
    """
    usual = offered(scenario)
    priced = Priced(scenario, usual.prompt_tokens + usual.output_tokens / 2)
    batch = max(1.0, scenario.scheduler.max_num_seqs / 4)
    output_s = (
        priced.round_s(batch)
        / batch
        / float(priced.acceptance.tokens_per_round(priced.gamma(batch)))
    )
    prompt_s = priced.prompt_s(usual.prompt_tokens)(batch) / max(usual.prompt_tokens, 1.0)
    work = figures["prompt_all"] * prompt_s + figures["output_all"] * output_s
    expected = usual.prompt_tokens * prompt_s + usual.output_tokens * output_s
    per_s = figures["arrivals_per_s"] / (rate * scenario.cluster.replicas)
    found = np.log(np.maximum(work * per_s, 1e-300) / expected)
    return found if np.isfinite(found).all() else np.zeros(len(found))


def single(scenario: Scenario) -> Scenario:
    """Return one replica of a scenario; replicas that share a draft pool stay together."""
    if scenario.draft.placement == "shared" and scenario.gamma:
        return scenario
    return with_replicas(scenario, 1)


def with_replicas(scenario: Scenario, replicas: int) -> Scenario:
    """Return the scenario on so many replicas."""
    cluster = scenario.cluster.model_copy(update={"replicas": replicas})
    return scenario.model_copy(update={"cluster": cluster})


def plain(scenario: Scenario) -> Scenario:
    """Switch speculation off; the draft leaves the GPU, and any pool it had.

    >>> from specplan.scenarios.load import load
    >>> plain(load("toy-20ms")).gamma
    0
    """
    draft = scenario.draft.model_copy(update={"placement": "colocated", "gpus": 1})
    spec = scenario.speculation.model_copy(update={"method": "none"})
    return scenario.model_copy(update={"draft": draft, "speculation": spec})


def with_gamma(scenario: Scenario, gamma: int) -> Scenario:
    """Return the scenario with a fixed γ; 0 is plain decoding."""
    if gamma == 0:
        return plain(scenario)
    return override(scenario, [f"speculation.gamma={gamma}", "speculation.policy=fixed"])


def at_rate(scenario: Scenario, rate: float) -> Scenario:
    """Let requests arrive at `rate` a second and replica, in the pattern the scenario has.

    Poisson or gamma arrivals, intervals and bursts change their rate, a trace its time scale; a
    closed loop becomes Poisson arrivals.
    """
    arrivals, replicas = scenario.workload.arrivals, scenario.cluster.replicas
    total = rate * replicas
    match arrivals.kind:
        case "trace" | "on_off":
            factor = offered(scenario).rate / rate
            changed: dict[str, object]
            if arrivals.on_off is None:
                changed = {"time_scale": arrivals.time_scale * factor}
            else:
                bursts = arrivals.on_off
                changed = {"on_off": bursts.model_copy(update={"rate": bursts.rate / factor})}
            new = arrivals.model_copy(update=changed)
        case "interval":
            new = arrivals.model_copy(update={"interval": 1 / total})
        case _:
            new = arrivals.model_copy(update={"streams": None, "rate": total, "think_time": 0.0})
    workload = scenario.workload.model_copy(update={"arrivals": new})
    return scenario.model_copy(update={"workload": workload})


def offered_rate(scenario: Scenario) -> float | None:
    """Return the requests per second of all replicas; None for a closed loop."""
    rate = offered(scenario).rate * scenario.cluster.replicas
    return float(rate) if np.isfinite(rate) else None


def saturation_rate(scenario: Scenario) -> float:
    """Most requests per second and replica by the closed form: where its load reaches 1."""
    load = operating_point(at_rate(scenario, 1.0)).load
    if load is None or not load > 0:
        wrong = "a request takes no time, so that no load is too much"
        raise ScenarioError(Fault(wrong, "costs above zero", field=scenario.name))
    return 1.0 / load


def gpus(scenario: Scenario) -> float:
    """GPUs of one replica: its own, and its share of those that draft.

    >>> from specplan.scenarios.load import load
    >>> gpus(load("shared-draft-pool-70b"))  # 4, and 2 for 4 replicas
    4.5
    """
    own = float(scenario.cluster.gpus_per_replica)
    placement = scenario.draft.placement
    if not scenario.gamma or placement == "colocated":
        return own / scenario.cluster.engines_per_gpu
    share = scenario.cluster.replicas if placement == "shared" else 1
    return own + scenario.draft.gpus / share


def faster(a: dict[str, NDArray[np.float64]], b: dict[str, NDArray[np.float64]]) -> Interval:
    """Mean end-to-end latency of A over that of B, seed by seed, with its 95 % interval.

    Where one has no steady state the other wins (0 or inf); where neither has, throughput decides.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = a["e2el_mean"] / b["e2el_mean"]
        ratio = np.where(np.isnan(ratio), b["throughput"] / a["throughput"], ratio)
    if not np.isfinite(ratio).all():
        return Interval(float("inf"), float("nan"), len(ratio))
    return t_interval(ratio)
