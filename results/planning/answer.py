"""`specplan plan`: from a scenario and its objectives to what to run and what it costs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.planning.as_json import plan_json
from specplan.results.planning.gammas import Choice, Schedule, best_gamma, extrapolated, schedule
from specplan.results.planning.loads import Planner, at_rate, gpus, offered_rate, plain, single
from specplan.results.planning.objectives import objectives_of
from specplan.results.planning.placements import Placed, placements
from specplan.results.planning.rates import Fleet, crossover, fewest_replicas
from specplan.results.planning.sensitivity import Swing, tornado
from specplan.results.planning.text import plan_text
from specplan.results.progress import asking
from specplan.results.searched import search_note
from specplan.results.spending import gpu_seconds_per_million
from specplan.scenarios.batch import batch_notes
from specplan.sim.executors import cluster, local

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from specplan.scenarios.extrapolated import Band
    from specplan.scenarios.schema import Scenario
    from specplan.sim.looks import Capacity


@dataclass(frozen=True)
class Way:
    """Decoding with or without speculation: capacity of a replica, fleet for a rate, cost.

    `gpus` are those of one replica, `rate` the requests/s over all of them that were asked for.
    """

    capacity: Capacity
    gpus: float
    fleet: Fleet | None
    tokens_per_request: float
    rate: float | None = None

    @property
    def gpu_s_per_million(self) -> float | None:
        """GPU-seconds per million output tokens of the fleet at the rate that was asked for.

        Without a rate those of one replica at its largest load met for sure; None where none is.
        """
        if self.rate is None:
            return self.full_load_gpu_s(self.capacity.load)
        tokens_per_s = self.rate * self.tokens_per_request
        if self.fleet is None or not tokens_per_s:
            return None
        return gpu_seconds_per_million(self.fleet.gpus, tokens_per_s)

    def full_load_gpu_s(self, load: float) -> float | None:
        """GPU-seconds per million output tokens of one replica at a load, requests/s."""
        tokens_per_s = load * self.tokens_per_request
        return gpu_seconds_per_million(self.gpus, tokens_per_s) if tokens_per_s else None

    def spent_between(self) -> tuple[float, float] | None:
        """Least and most GPU-seconds per million output tokens that these runs allow.

        Equal for a fleet of which one replica fewer is missed for sure; None where none is met.
        """
        most = self.gpu_s_per_million
        if most is None:
            return None
        if self.fleet:
            fewer = 0 if self.fleet.sure else 1
            return most * (self.fleet.replicas - fewer) / self.fleet.replicas, most
        missed = self.capacity.missed
        return (self.full_load_gpu_s(missed.load) if missed else None) or 0.0, most


@dataclass(frozen=True)
class Plan:
    """Every answer of `specplan plan`; None or empty where a question does not arise."""

    scenario: Scenario
    planner: Planner
    rate: float | None
    load: float
    ways: dict[str, Way]
    crossover: Capacity | None
    gammas: list[Choice]
    schedule: Schedule | None
    placements: list[Placed]
    swings: list[Swing]
    beyond: Band | None = None  # both ends of the figures at γ whose acceptance is extrapolated

    @property
    def searched_to(self) -> int | None:
        """The largest γ that was simulated; None where none was."""
        return max((choice.gamma for choice in self.gammas), default=None)

    @property
    def best_gamma_note(self) -> str | None:
        """Where the best γ is only the largest that was simulated: how to look further."""
        if self.searched_to is None:
            return None
        return search_note(self.scenario, self.gammas[0].gamma, self.searched_to)

    @property
    def feasible(self) -> bool:
        """Whether some load meets the objectives, with or without speculation."""
        return any(way.capacity.met for way in self.ways.values())


def make_plan(scenario: Scenario, planner: Planner, rate: float | None = None) -> Plan:
    """Answer every question by simulation, for `rate` requests/s over all replicas.

    The load at which γ, schedule and placements are judged is the rate spread over the fewest
    replicas that carry it; in a closed loop, the capacity.
    """
    rate = rate or offered_rate(scenario)
    one = single(scenario)
    ways = {"plain": _way(planner, plain(scenario), rate)}
    if scenario.gamma:
        ways["speculative"] = _way(planner, scenario, rate)
    chosen = ways.get("speculative", ways["plain"])
    load = _load(ways, chosen, rate)
    if not scenario.gamma or not load:
        return Plan(scenario, planner, rate, load, ways, None, [], None, [], [])
    at_load = at_rate(one, load)
    gammas = best_gamma(planner, at_load)
    return Plan(
        scenario,
        planner,
        rate,
        load,
        ways,
        crossover(planner, one),
        gammas,
        schedule(planner, at_load, gammas[0].gamma or scenario.gamma),
        placements(planner, scenario, load),
        tornado(planner, one, chosen.capacity),
        extrapolated(at_load, (choice.gamma for choice in gammas)),
    )


def _way(planner: Planner, scenario: Scenario, rate: float | None) -> Way:
    planner.ask(f"largest rate {'with' if scenario.gamma else 'without'} speculation")
    one = single(scenario)
    capacity = planner.capacity(one)
    fleet = fewest_replicas(planner, scenario, rate, capacity) if rate else None
    known = planner.figures(at_rate(one, capacity.looks[0].load), 2)
    return Way(capacity, gpus(scenario), fleet, float(known["output_all"].mean()), rate)


def _load(ways: dict[str, Way], chosen: Way, rate: float | None) -> float:
    if rate and chosen.fleet:
        return rate / chosen.fleet.replicas
    return max(way.capacity.load for way in ways.values())


def plan_answer(  # noqa: PLR0917
    scenario: Scenario,
    slo: Sequence[str] = (),
    rate: float | None = None,
    requests: int = 2000,
    tolerance: float = 0.1,
    workers: int = 1,
    address: str | None = None,
    output: Path | None = None,
    *,
    force: bool = False,
) -> Answer:
    """Plan for the objectives written in `slo`, or the scenario's own.

    `output` gets `plan.json`, `scenario.yaml` and `schedule.yaml`, the scenario with the policy
    that the plan proposes. Exit code 1 when no load meets the objectives. Raises ScenarioError.
    """
    from specplan.scenarios.load import override, to_yaml

    objectives = objectives_of(scenario, slo)
    if output is not None:
        store.check_folder(output, force=force)
    with ExitStack() as stack:
        executor = stack.enter_context(cluster(address) if address else local(workers))
        planner = Planner.on(
            executor, objectives, requests=requests, tolerance=tolerance, ask=asking
        )
        plan = make_plan(scenario, planner, rate)
    value = plan_json(plan)
    notes = [f"{planner.trials.runs:,} simulated runs of {requests:,} requests a replica"]
    notes += batch_notes(scenario)
    notes += [f"warning: {text}" for text in plan.beyond.warnings] if plan.beyond else []
    if scenario.workload.arrivals.streams is not None:
        notes.append("the closed loop is planned as Poisson arrivals")
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            (folder / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
            if plan.schedule is not None and plan.schedule.deepest:
                scheduled = override(scenario, plan.schedule.settings())
                (folder / "schedule.yaml").write_text(to_yaml(scheduled), encoding="utf-8")
            store.write_json(folder / "plan.json", value)
            store.write_json(folder / store.MARK, value)
        notes.append(f"written to {output}")
    return Answer(value, plan_text(plan), notes, exit_code=0 if plan.feasible else 1)
