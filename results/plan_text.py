"""A plan in the terminal: the recommendation first, then each answer with what it is sure of."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results.planning.sensitivity import UNCERTAINTY
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
    from specplan.results.plan_answer import Plan, Way
    from specplan.sim.capacity import Capacity

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
        parts += [heading("What the rate depends on"), *_swings(plan)]
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
        return f"{name}: {why}{_fleet_words(base)}{_sure(base.capacity)}"
    parts = [f"{name}: run γ = {plan.gammas[0].gamma}"]
    off = plan.schedule.off_above if plan.schedule else None
    if off:
        parts.append(f"up to {off} running sequences and switch off above")
    parts.append(_fleet_words(spec))
    ours, theirs = spec.gpu_s_per_million, base.gpu_s_per_million
    if ours and theirs:
        word = "cheaper" if theirs >= ours else "dearer"
        parts.append(f"{max(theirs / ours, ours / theirs):.2g}x {word} per token than without")
    return ", ".join(part for part in parts if part) + _sure(spec.capacity)


def _fleet_words(way: Way) -> str:
    if way.fleet is None:
        return f"{number(way.capacity.load)}/s a replica"
    fleet = way.fleet
    plural = "" if fleet.replicas == 1 else "s"
    return f"{fleet.replicas} replica{plural} ({fleet.gpus:g} GPUs)"


def _sure(capacity: Capacity) -> str:
    low, high = capacity.interval
    if not low or not isfinite(high):
        return ""
    return f", sure to ±{100 * (sqrt(high / low) - 1):.0f} %"


def _ways(plan: Plan) -> Iterator[tuple[str, str]]:
    price = plan.scenario.cluster.price_per_gpu_hour
    for name, way in plan.ways.items():
        yield f"Rate {NAMES[name]}", capacity_words(plan, way.capacity)
        if way.fleet:
            sure = "" if way.fleet.sure else "; one fewer is neither met nor missed for sure"
            yield "", f"{_fleet_words(way)} for {number(plan.rate)}/s{sure}"
        spent = way.gpu_s_per_million
        if spent:
            cost = f"{number(spent)} GPU-s per million output tokens"
            if price is not None:
                cost += f", {number(spent * price / 3600)} at {price:g} per GPU-hour"
            yield "", cost
    if plan.crossover is not None:
        yield "Crossover", crossover_words(plan.crossover)


def capacity_words(plan: Plan, capacity: Capacity) -> str:
    """Say which rate is met for sure and which is missed, or what is out of reach."""
    from specplan.results.plan_answer import shortfalls

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
    words = f"{number(low)}/s a replica met for sure; {number(high)}/s missed ({why})"
    if capacity.resolved:
        return words
    return f"{words}; wider than asked for: more --requests narrow it"


def crossover_words(found: Capacity) -> str:
    """Say from which load on speculation hurts."""
    if found.met is None:
        return "speculation is slower than plain decoding at every load that was tried"
    low, high = found.interval
    if found.missed is None:
        return f"none: speculation is faster up to {number(low)}/s a replica, beyond saturation"
    return f"speculation is faster up to {number(low)}/s a replica and slower from {number(high)}/s"


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
                milliseconds(c.tpot_s),
                duration(c.e2el_s) if isfinite(c.e2el_s) else "none",
                f"{c.against_best.mean:.3f}",
                f"{c.against_best.half_width:.3f}" if c.against_best.known else "none",
            )
            for c in sorted(plan.gammas, key=lambda c: c.gamma)
        ],
    )
    made = plan.schedule
    if made is None:
        return
    rows = "; ".join(f"{low}–{high}: {gamma}" for low, high, gamma in made.rows)
    yield Text(f"\nSchedule by running sequences: {rows}")
    if made.against_fixed and made.against_plain:
        yield Text(
            f"simulated: latency {_times(made.against_fixed)} of γ = {best.gamma} throughout, "
            f"{_times(made.against_plain)} of plain decoding"
        )
        yield verbatim(f"vLLM: --speculative-config '{made.vllm()}'")


def _times(ratio: Interval) -> str:
    return f"{ratio.mean:.3f} ± {ratio.half_width:.3f}" if ratio.known else number(ratio.mean)


def _placements(plan: Plan) -> Iterator[RenderableType]:
    user = min(plan.placements, key=lambda p: p.tpot_s.mean)
    gpu = max(plan.placements, key=lambda p: p.capacity.estimate / p.gpus)
    near = [p.placement for p in plan.placements if p is not gpu and p.as_good_per_gpu(gpu)]
    told = f" (these runs cannot tell it from {', '.join(near)})" if near else ""
    yield Text(f"Per user {user.placement}; per GPU {gpu.placement}{told}.")
    yield columns(
        ("placement", "GPUs/replica", "TPOT", "rate/s met", "missed", "rate/s per GPU"),
        [
            (
                p.placement,
                f"{p.gpus:g}",
                milliseconds(p.tpot_s.mean),
                number(p.capacity.interval[0], 3),
                number(p.capacity.interval[1], 3),
                number(p.capacity.estimate / p.gpus, 3),
            )
            for p in plan.placements
        ],
    )
    if plan.scenario.draft.transfer is None:
        yield Text("dedicated and shared are shown without transfer delay (draft.transfer)")


def _swings(plan: Plan) -> Iterator[RenderableType]:
    most = max(plan.swings, key=lambda s: s.at_stake)
    usual = ", ".join(f"{word} ±{100 * share:g} %" for word, share in UNCERTAINTY.items())
    yield Text(
        f"To measure first: {most.field} ({most.evidence}); it may put the rate off by "
        f"{percent(most.at_stake)} (assuming {usual})."
    )
    yield columns(
        ("input", "at −10 %", "at +10 %", "known by", "at stake"),
        [
            (
                s.field,
                f"{100 * s.lower:+.1f} %",
                f"{100 * s.higher:+.1f} %",
                s.evidence,
                percent(s.at_stake),
            )
            for s in plan.swings
        ],
    )
