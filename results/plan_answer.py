"""`specplan plan`: from a scenario and its objectives to what to run and what it costs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.plan_text import plan_text
from specplan.results.planning.gammas import Choice, Schedule, best_gamma, extrapolated, schedule
from specplan.results.planning.loads import Planner, at_rate, gpus, offered_rate, plain, single
from specplan.results.planning.objectives import objectives_of
from specplan.results.planning.placements import Placed, placements
from specplan.results.planning.rates import Fleet, crossover, fewest_replicas
from specplan.results.planning.sensitivity import Swing, tornado
from specplan.results.progress import asking
from specplan.results.searched import search_note
from specplan.results.spending import gpu_seconds_per_million
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


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as one JSON object; rates in requests/s, intervals as [low, high]."""
    price = plan.scenario.cluster.price_per_gpu_hour
    return {
        "scenario_name": plan.scenario.name,
        "objectives": [str(o) for o in plan.planner.objectives],
        "feasible": plan.feasible,
        "rate": plan.rate,
        "load_per_replica": plan.load,
        "ways": {name: _way_json(plan, way, price) for name, way in plan.ways.items()},
        "crossover": _capacity_json(plan.crossover) if plan.crossover else None,
        "best_gamma": plan.gammas[0].gamma if plan.gammas else None,
        "best_gamma_searched_to": plan.searched_to,
        "best_gamma_note": plan.best_gamma_note,
        "extrapolation": plan.beyond.value() if plan.beyond else None,
        "gammas": [
            {
                "gamma": c.gamma,
                "saturated": c.saturated,
                "tpot_s": c.tpot_s,
                "e2el_s": c.e2el_s,
                "throughput": c.throughput,
                "latency_over_best": c.against_best.mean,
                "latency_over_best_ci95": c.against_best.ends(),
            }
            for c in plan.gammas
        ],
        "schedule": _schedule_json(plan.schedule) if plan.schedule else None,
        "placements": [
            {
                "placement": p.placement,
                "gpus_per_replica": p.gpus,
                "tpot_s": p.tpot_s.mean,
                "tpot_s_ci95": p.tpot_s.ends(),
                "rate_per_gpu": p.rate_per_gpu,
                **_capacity_json(p.capacity),
            }
            for p in plan.placements
        ],
        "sensitivity": [
            {
                "field": s.field,
                "at_minus_10_percent": s.lower,
                "at_plus_10_percent": s.higher,
                "evidence": s.evidence,
                "at_stake": s.at_stake,
                "steady": s.steady,
            }
            for s in plan.swings
        ],
        "runs": plan.planner.trials.runs,
    }


def _way_json(plan: Plan, way: Way, price: float | None) -> dict[str, Any]:
    fleet, spent = way.fleet, way.gpu_s_per_million
    return {
        **_capacity_json(way.capacity),
        "out_of_reach": shortfalls(plan, way.capacity),
        "replicas": fleet.replicas if fleet else None,
        "gpus": fleet.gpus if fleet else None,
        "replicas_sure": fleet.sure if fleet else None,
        "gpu_seconds_per_million_tokens": spent,
        "gpu_seconds_per_million_tokens_full_load": way.full_load_gpu_s(way.capacity.load),
        "cost_per_million_tokens": spent * price / 3600 if spent and price is not None else None,
    }


def _capacity_json(capacity: Capacity) -> dict[str, Any]:
    return {
        "max_rate": capacity.load,
        "interval": list(capacity.interval),
        "inside_tolerance": capacity.resolved,
    }


def shortfalls(plan: Plan, capacity: Capacity) -> list[dict[str, Any]]:
    """Name the objectives that not even an idle engine meets, and by how much; else empty."""
    look = min(capacity.looks, key=lambda one: one.load)
    pairs = zip(plan.planner.objectives, look.means, look.half_widths, strict=True)
    return [
        {"objective": str(o), "times_over": float(mean), "ci95": [mean - half, mean + half]}
        for o, mean, half in pairs
        if capacity.met is None and not mean + half <= 1
    ]


def _schedule_json(made: Schedule) -> dict[str, Any]:
    pairs = {"fixed": made.against_fixed, "plain": made.against_plain}
    return {
        "rows": [list(row) for row in made.rows],
        "off_above": made.off_above,
        "vllm": made.vllm(),
        "policy": {"by_batch": [list(row) for row in made.rows]},
        **{f"latency_over_{k}": i.mean if i else None for k, i in pairs.items()},
        **{f"latency_over_{k}_ci95": i.ends() if i else None for k, i in pairs.items()},
    }
