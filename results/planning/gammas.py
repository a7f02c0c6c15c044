"""Which γ: the best one for a load, and a schedule by running batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models.long_run import round_figures
from specplan.results.planning.loads import faster, plain, with_gamma
from specplan.scenarios.closed_form import operating_point
from specplan.scenarios.extrapolated import band
from specplan.scenarios.load import override
from specplan.scenarios.offered import offered
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from specplan.results.intervals import Interval
    from specplan.results.planning.loads import Planner
    from specplan.scenarios.extrapolated import Band
    from specplan.scenarios.schema import Scenario

DEEPEST = 8
RUNS = 8
SCREENING_RUNS = 3
IN_QUESTION = 1.1  # of the least latency while screening: these get all runs
NEGLIGIBLE = 1.002  # a longer γ must promise this much more to be worth its row in a schedule


@dataclass(frozen=True)
class Choice:
    """One γ at a load: means over seeds, and its latency over that of the best γ."""

    gamma: int
    tpot_s: float
    e2el_s: float
    throughput: float
    against_best: Interval

    @property
    def saturated(self) -> bool:
        """Whether a run of it had no steady state."""
        return not np.isfinite(self.e2el_s)

    @property
    def as_good(self) -> bool:
        """Whether these runs cannot tell it from the best."""
        ratio = self.against_best
        return bool(ratio.known and ratio.low <= 1)


@dataclass(frozen=True)
class Schedule:
    """γ by running batch, `rows` of (from, to, γ), inclusive and without holes."""

    rows: tuple[tuple[int, int, int], ...]
    against_fixed: Interval | None
    against_plain: Interval | None

    @property
    def off_above(self) -> int | None:
        """Largest batch that still speculates; None when every batch does."""
        on = [high for _, high, gamma in self.rows if gamma]
        if self.rows[-1][2]:
            return None
        return max(on, default=0)

    @property
    def deepest(self) -> int:
        """Largest γ of the schedule."""
        return max(gamma for _, _, gamma in self.rows)

    def vllm(self) -> str:
        """Write the keys of vLLM's --speculative-config.

        >>> print(Schedule(((1, 64, 5),), None, None).vllm())
        {"num_speculative_tokens": 5, "num_speculative_tokens_per_batch_size": [[1, 64, 5]]}
        """
        keys: dict[str, object] = {
            "num_speculative_tokens": self.deepest,
            "num_speculative_tokens_per_batch_size": [list(row) for row in self.rows],
        }
        return json.dumps(keys)

    def settings(self) -> tuple[str, ...]:
        """Write the policy as settings of a scenario."""
        rows = json.dumps([list(row) for row in self.rows])
        return (f"speculation.gamma={self.deepest}", f"speculation.policy={{by_batch: {rows}}}")


def choices(scenario: Scenario) -> tuple[int, ...]:
    """Tell which γ can be asked for: 0, and as deep as acceptance and costs are known."""
    if not scenario.gamma:
        return (0,)
    if scenario.speculation.method == "tree":
        return (0, scenario.gamma)
    return tuple(range(min(max(DEEPEST, scenario.gamma), Priced(scenario, 0.0).positions) + 1))


def extrapolated(scenario: Scenario, gammas: Iterable[int]) -> Band | None:
    """Evaluate the closed form at both ends of an extended acceptance, at the scenario's load."""
    return band(scenario, operating_point(scenario), gammas)


def best_gamma(planner: Planner, scenario: Scenario, runs: int = RUNS) -> list[Choice]:
    """Simulate every γ at the scenario's own load on the same seeds; best first.

    Best is the least mean end-to-end latency, or the most throughput where nothing has a steady
    state. A few runs screen all; those that are far from the best get no more.
    """
    planner.ask("best γ")
    few = min(runs, SCREENING_RUNS)
    found = {g: planner.figures(with_gamma(scenario, g), few) for g in choices(scenario)}
    ahead = found[_best(found)]
    for gamma, figures in found.items():
        against = faster(figures, ahead)
        if against.mean - max(against.half_width, 0.0) <= IN_QUESTION:
            found[gamma] = planner.figures(with_gamma(scenario, gamma), runs)
    best = _best({g: f for g, f in found.items() if len(f["e2el_mean"]) == runs} or found)
    rows = [
        Choice(
            gamma,
            float(figures["tpot_mean"].mean()),
            float(figures["e2el_mean"].mean()),
            float(figures["throughput"].mean()),
            faster(figures, {k: v[: len(figures[k])] for k, v in found[best].items()}),
        )
        for gamma, figures in found.items()
    ]
    return sorted(rows, key=lambda c: (c.gamma != best, c.e2el_s, -c.throughput))


def _best(found: dict[int, dict[str, NDArray[np.float64]]]) -> int:
    steady = {g: f["e2el_mean"] for g, f in found.items() if np.isfinite(f["e2el_mean"]).all()}
    if steady:
        return min(steady, key=lambda g: (float(steady[g].mean()), g))
    return max(found, key=lambda g: (float(found[g]["throughput"].mean()), -g))


def token_rates(scenario: Scenario, batches: NDArray[np.int64]) -> NDArray[np.float64]:
    """Predict committed tokens per second of one sequence, `(batches, γ = 0…)`.

    τ(γ)/R(b, γ) at the workload's mean context (MODEL.md § 3).
    """
    usual = offered(scenario)
    at = Priced(scenario, usual.prompt_tokens + usual.output_tokens / 2)
    law = round_figures(at.acceptance)
    chosen = choices(scenario)
    rates = np.zeros((len(batches), len(chosen)))
    for i, batch in enumerate(batches):
        common = at.costs(float(batch), max(scenario.gamma, 1))
        for j, gamma in enumerate(chosen):
            one_pass = scenario.speculation.method == "one_pass" and gamma
            costs = at.costs(float(batch), gamma) if one_pass else common
            drafting, full = law.drafting[gamma], law.fully_accepted[gamma]
            rates[i, j] = law.tokens[gamma] / float(sum(costs.parts(gamma, drafting, full)))
    return rates


def schedule_rows(scenario: Scenario) -> tuple[tuple[int, int, int], ...]:
    """Choose γ for every running batch up to max_num_seqs; the smaller γ where it hardly matters.

    >>> from specplan.scenarios.load import load
    >>> costs = ["target.round.linear={base: 6 ms, per_token: 200 us}", "draft.step=1 ms"]
    >>> size = ["target.step.linear={base: 6 ms, per_token: 200 us}", "scheduler.max_num_seqs=64"]
    >>> rows = schedule_rows(load("toy-20ms", [*costs, *size]))
    >>> rows[0][0], rows[-1][1], [gamma for *_, gamma in rows]
    (1, 64, [2, 1, 0])
    """
    batches = np.arange(1, scenario.scheduler.max_num_seqs + 1)
    rates = token_rates(scenario, batches)
    chosen = np.array(choices(scenario))
    near = rates * NEGLIGIBLE >= rates.max(axis=1, keepdims=True)
    best = chosen[np.argmax(near, axis=1)]
    edges = np.flatnonzero(np.diff(best)) + 1
    starts, ends = [0, *edges], [*edges, len(best)]
    return tuple(
        (int(batches[a]), int(batches[b - 1]), int(best[a]))
        for a, b in zip(starts, ends, strict=True)
    )


def schedule(planner: Planner, scenario: Scenario, fixed: int, runs: int = RUNS) -> Schedule:
    """Make the schedule and simulate it at the scenario's load against a fixed γ and no drafts."""
    rows = schedule_rows(scenario)
    made = Schedule(rows, None, None)
    if not any(gamma for *_, gamma in rows):
        return made
    planner.ask("schedule by running sequences")
    adaptive = planner.figures(override(scenario, made.settings()), runs)
    others: dict[str, Any] = {"fixed": with_gamma(scenario, fixed), "plain": plain(scenario)}
    found = {name: faster(adaptive, planner.figures(o, runs)) for name, o in others.items()}
    return Schedule(rows, found["fixed"], found["plain"])
