"""A plan in the terminal: the recommendation first, then each answer with what it is sure of."""

from __future__ import annotations

from math import ceil, isfinite, log
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results.planning.as_json import shortfalls
from specplan.results.planning.placements import REPLICAS, RUNS
from specplan.results.planning.swings import swings_text
from specplan.results.tables import (
    columns,
    duration,
    facts,
    heading,
    milliseconds,
    number,
    percent,
    verbatim,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specplan.results.intervals import Interval
    from specplan.results.planning.answer import Plan, Way
    from specplan.sim.looks import Capacity

SMALLEST_FACTOR = 1.2  # what is less is told in percent
NAMES = {"plain": "without speculation", "speculative": "with speculation"}


def plan_text(plan: Plan) -> Group:
    """Lay a plan out for the terminal."""
    asked = ", ".join(str(o) for o in plan.planner.objectives)
    parts: list[RenderableType] = [
        Text(recommendation(plan), style="bold"),
        Text(f"for {asked}; intervals of 95 %"),
        heading("Rate, GPUs and cost"),
        facts(_ways(plan)),
    ]
    if plan.gammas:
        parts += [heading(f"γ at {number(plan.load)}/s a replica"), *_gammas(plan)]
    if plan.placements:
        parts += [heading("Where the draft runs"), *_placements(plan)]
    if plan.swings:
        parts += [heading("What the rate depends on"), *swings_text(plan.swings)]
    return Group(*parts)


def recommendation(plan: Plan) -> str:
    """Say in one sentence what to run."""
    name = plan.scenario.name
    if not plan.feasible:
        return f"{name}: no load meets the objectives"
    base = plan.ways["plain"]
    spec = plan.ways.get("speculative")
    if spec is None or not plan.gammas or plan.gammas[0].gamma == 0 or not spec.capacity.met:
        why = "" if spec is None else "do not speculate at this load; "
        return f"{name}: {why}{_fleet_words(base)}"
    best = plan.gammas[0].gamma
    parts = [f"{name}: run γ = {best}, the fastest per user at {number(plan.load)}/s a replica"]
    off = plan.schedule.off_above if plan.schedule else None
    if off:
        parts.append(f"up to {off} running sequences and switch off above")
    kept = "" if best == plan.scenario.gamma else f" at γ = {plan.scenario.gamma} as set"
    parts += [_fleet_words(spec) + kept + _beside_plain(spec, base), cost_words(spec, base)]
    return ", ".join(part for part in parts if part)


def cost_words(spec: Way, base: Way) -> str:
    """Compare the cost per token of two ways; empty where these runs cannot tell them apart.

    Fleets for a rate are compared as they stand, else one replica of each at its full load.
    """
    ours, theirs = spec.spent_between(), base.spent_between()
    if ours is None or theirs is None or (ours[1] >= theirs[0] and theirs[1] >= ours[0]):
        return ""
    where = "" if spec.rate else " at full load of one replica"
    return f"{_cheaper(ours[1], theirs[1])} per token than without{where}"


def _cheaper(ours: float, theirs: float) -> str:
    """Compare two costs; factors below 1.2 in percent.

    >>> _cheaper(100.0, 257.0), _cheaper(94.0, 100.0), _cheaper(106.0, 100.0)
    ('2.57x cheaper', '6 % cheaper', '6 % dearer')
    """
    factor, word = max(ours, theirs) / min(ours, theirs), "cheaper" if ours < theirs else "dearer"
    if factor >= SMALLEST_FACTOR:
        return f"{factor:.3g}x {word}"
    return f"{100 * abs(ours / theirs - 1):.2g} % {word}"


def _fleet_words(way: Way) -> str:
    if way.fleet is None:
        return f"{number(way.capacity.load)}/s a replica"
    fleet = way.fleet
    return f"{_counted(fleet.replicas, 'replica')} ({_counted(fleet.gpus, 'GPU')})"


def _beside_plain(spec: Way, base: Way) -> str:
    """Say what the fleet for a rate would be without speculation; empty where there is no rate."""
    if spec.fleet is None or base.fleet is None:
        return ""
    if spec.fleet.gpus == base.fleet.gpus:
        return ", as many as without speculation"
    return f" against {_counted(base.fleet.gpus, 'GPU')} without speculation"


def _counted(count: float, what: str) -> str:
    """Count things.

    >>> _counted(1, "GPU"), _counted(4.5, "GPU")
    ('1 GPU', '4.5 GPUs')
    """
    return f"{count:g} {what}" + ("" if count == 1 else "s")


def _ways(plan: Plan) -> Iterator[tuple[str, str]]:
    price = plan.scenario.cluster.price_per_gpu_hour
    for name, way in plan.ways.items():
        yield f"Rate {NAMES[name]}", capacity_words(plan, way.capacity)
        if way.fleet:
            sure = "" if way.fleet.sure else "; one fewer is neither met nor missed for sure"
            yield "", f"{_fleet_words(way)} for {number(plan.rate)}/s{sure}"
            yield from _cost(way.gpu_s_per_million, price, f"at {number(plan.rate)}/s")
        full_load = way.full_load_gpu_s(way.capacity.load)
        yield from _cost(full_load, price, "at full load of one replica")
    if plan.crossover is not None:
        yield "Crossover", crossover_words(plan.crossover)


def _cost(spent_s: float | None, price: float | None, where: str) -> Iterator[tuple[str, str]]:
    if spent_s:
        cost = f"{number(spent_s)} GPU-s per million output tokens {where}"
        if price is not None:
            cost += f": {number(spent_s * price / 3600)} at {price:g} per GPU-hour"
        yield "", cost


def capacity_words(plan: Plan, capacity: Capacity) -> str:
    """Say which rate is met for sure and which is missed, or what is out of reach."""
    if capacity.met is None:
        missing = "; ".join(
            f"{s['objective']} is out of reach by {s['times_over']:.3g}x even when idle"
            if isfinite(s["times_over"])
            else f"{s['objective']} is out of reach"
            for s in shortfalls(plan, capacity)
        )
        return f"none: {missing}"
    low, high = capacity.interval
    if capacity.missed is None:
        return f"{number(low)}/s a replica met, and nothing more was tried"
    which = plan.planner.objectives[capacity.missed.worst]
    why = str(which) if capacity.missed.stable else "a queue that grows without end"
    apart = f"{percent(high / low - 1)} apart"
    words = f"{number(low)}/s a replica met for sure; {number(high)}/s missed ({why}); {apart}"
    if capacity.resolved:
        return words
    wider = f"wider than the {percent(capacity.tolerance)} asked for"
    return f"{words}, {wider}: {_narrower(plan, capacity)}"


def _narrower(plan: Plan, capacity: Capacity) -> str:
    """Say how many requests would bring an interval inside its tolerance, by 1/√n."""
    low, high = capacity.interval
    assert capacity.missed is not None
    if not capacity.missed.stable:
        return "more --requests narrow it"
    share = log(high / low) / log(1 + capacity.tolerance)
    wanted = 1000 * ceil(plan.planner.trials.requests * share**2 / 1000)
    return f"about --requests {wanted} would do"


def crossover_words(found: Capacity) -> str:
    """Say from which load on speculation hurts."""
    if found.met is None:
        return "speculation is slower than plain decoding at every load that was tried"
    low, high = found.interval
    if found.missed is None:
        return f"none: speculation is faster up to {number(low)}/s a replica, beyond saturation"
    words = (
        f"speculation is faster up to {number(low)}/s a replica and slower from {number(high)}/s"
    )
    return words if found.resolved else f"{words}; these runs cannot tell in between"


def _gammas(plan: Plan) -> Iterator[RenderableType]:
    best = plan.gammas[0]
    others = [str(c.gamma) for c in plan.gammas[1:] if c.as_good]
    told = f" (these runs cannot tell it from {', '.join(others)})" if others else ""
    yield Text(f"Best γ is {best.gamma}{told}.")
    if plan.best_gamma_note:
        yield Text(f"It is {plan.best_gamma_note}".replace(": --set", ":\n  --set"))
    yield columns(
        ("γ", "TPOT", "E2EL", "latency/best", "± 95 %"),
        [
            (
                str(c.gamma),
                *(
                    ("saturated",) * 4
                    if c.saturated
                    else (
                        milliseconds(c.tpot_s),
                        duration(c.e2el_s),
                        f"{c.against_best.mean:.3f}",
                        f"{c.against_best.half_width:.3f}" if c.against_best.known else "unknown",
                    )
                ),
            )
            for c in sorted(plan.gammas, key=lambda c: c.gamma)
        ],
    )
    if plan.beyond is not None:
        deepest = int(plan.beyond.gamma[-1])
        says = f"at γ = {deepest} {plan.beyond.words(deepest)} in the closed form"
        yield Text(f"Acceptance is extrapolated {plan.beyond.border}: {says}.")
    made = plan.schedule
    if made is None:
        return
    rows = "; ".join(f"{low}–{high}: {gamma}" for low, high, gamma in made.rows)
    yield Text(f"\nSchedule by running sequences: {rows}")
    if made.against_fixed and made.against_plain:
        yield Text(
            f"simulated: latency {_times(made.against_fixed)} γ = {best.gamma} throughout, "
            f"{_times(made.against_plain)} plain decoding"
        )
        yield verbatim(f"vLLM: --speculative-config '{made.vllm()}'")
        if made.off_above:
            limits = f"max_draft_len: {made.deepest}, max_concurrency: {made.off_above}"
            yield verbatim(f"TensorRT-LLM, which has one limit: {limits}")


def _times(ratio: Interval) -> str:
    """Write a ratio of latencies; 0 or inf where one of the two has no steady state."""
    if not isfinite(ratio.mean):
        return "(saturated) above that of"
    if ratio.mean == 0:
        return "below that of the saturated"
    return f"{ratio.mean:.3f} ± {ratio.half_width:.3f} of"


def _placements(plan: Plan) -> Iterator[RenderableType]:
    gpu = max(plan.placements, key=lambda p: p.rate_per_gpu)
    steady = [p for p in plan.placements if isfinite(p.tpot_s.mean)]
    user = min(steady, key=lambda p: p.tpot_s.mean).placement if steady else "none (all saturated)"
    near = [p.placement for p in plan.placements if p is not gpu and p.as_good_per_gpu(gpu)]
    told = f" (these runs cannot tell it from {', '.join(near)})" if near else ""
    yield Text(f"Fastest per user: {user}. Cheapest per token: {gpu.placement}{told}.")
    yield columns(
        ("placement", "GPUs/replica", "TPOT", "rate/s met", "missed", "met per GPU"),
        [
            (
                p.placement,
                f"{p.gpus:g}",
                milliseconds(p.tpot_s.mean) if isfinite(p.tpot_s.mean) else "saturated",
                number(p.capacity.load, 3),
                number(p.capacity.missed.load, 3) if p.capacity.missed else "none tried",
                number(p.rate_per_gpu, 3),
            )
            for p in plan.placements
        ],
    )
    yield Text(f"on {REPLICAS} replicas, by at most {RUNS} shorter runs a load: coarser than above")
    if plan.scenario.draft.transfer is None:
        yield Text("dedicated and shared are shown without transfer delay (draft.transfer)")
