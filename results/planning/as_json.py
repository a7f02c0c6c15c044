"""A plan as one JSON object, and what of its objectives is out of reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specplan.results.planning.answer import Plan, Way
    from specplan.results.planning.gammas import Schedule
    from specplan.sim.looks import Capacity


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
                "noise": s.noise,
                "within_noise": s.within_noise,
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
