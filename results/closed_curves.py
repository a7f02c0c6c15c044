"""The curves of the closed form that a report draws: over γ, draft cost, batch, and each input."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import speedup
from specplan.models.long_run import round_figures
from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.extrapolated import band, stated_positions
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from specplan.models.acceptance import Acceptance
    from specplan.models.round_costs import RoundCosts
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.extrapolated import Band
    from specplan.scenarios.schema import Scenario

    Floats = NDArray[np.float64]

DEEPEST = 12  # γ beyond this is not drawn
FARTHEST = 10.0  # a draft step beyond so many times the present one is not drawn
SHIFT = 0.2  # what a tornado moves each input by


@dataclass(frozen=True, eq=False)
class Curves:
    """A scenario made ready to be evaluated at any γ, batch and cost."""

    scenario: Scenario
    point: OperatingPoint
    priced: Priced
    _costs: dict[int, RoundCosts] = field(default_factory=dict, repr=False)

    @cached_property
    def found(self) -> speedup.Prediction:
        """The closed form at the operating point."""
        return predict_at(self.scenario, self.point)

    @property
    def gammas(self) -> NDArray[np.int64]:
        """γ = 0 … as deep as the acceptance is stated, up to `DEEPEST`; a tree has its own only."""
        if self.scenario.speculation.method == "tree":
            return np.array([0, self.scenario.gamma])
        return np.arange(min(self.priced.positions, DEEPEST) + 1)

    @property
    def stated(self) -> float:
        """Draft positions whose acceptance is stated; those beyond follow a rule of the scenario.

        `inf` where the statement is a law without an end, such as one α.
        """
        return stated_positions(self.scenario)

    @cached_property
    def band(self) -> Band | None:
        """Both ends of the speedup at the γ drawn that are beyond what is stated."""
        return band(self.scenario, self.point, (int(gamma) for gamma in self.gammas))

    @property
    def counted(self) -> Floats | None:
        """Rounds that kept at least 0, 1, … drafted tokens, where the scenario states counts."""
        block = self.scenario.speculation.acceptance
        if block is None or any(kind.acceptance for kind in self.scenario.workload.classes):
            return None
        kept = block.histogram
        if block.recorded:
            kept = tuple(np.bincount(block.recorded))
        return None if kept is None else np.cumsum(kept[::-1], dtype=np.float64)[::-1]

    def costs(self, gamma: int) -> RoundCosts:
        """Seconds of the passes at the operating point's batch."""
        key = gamma if self._by_gamma else 0
        if key not in self._costs:
            self._costs[key] = self.priced.costs(self.point.batch, gamma)
        return self._costs[key]

    @property
    def _by_gamma(self) -> bool:
        """Whether γ changes a pass: the draft of one pass and a tree do, a step of a chain not."""
        return self.scenario.speculation.method in ("one_pass", "tree")

    @property
    def draft_step_s(self) -> float:
        """Seconds of the draft step at the operating point; 0 where nothing is drafted."""
        return float(np.mean(self.costs(max(self.point.gamma, 1)).draft_step_s))

    def speedup_as_set(self) -> float:
        """Speedup at the operating point, at the γ that is set."""
        tpot, plain = self.by_batch(np.array([self.point.batch]), self.point.gamma)
        return float(plain[0] / tpot[0])

    def speedup_by_gamma(self) -> Floats:
        """Speedup `(γ,)` at the operating point."""
        tpot, plain = self.by_batch(np.array([self.point.batch]), self.gammas)
        return np.asarray(plain / tpot[0])

    def speedup_by_draft_step(self, factors: Floats) -> Floats:
        """Speedup `(factors, γ)` with the draft step multiplied by each factor."""
        costs = self._at_each(np.array([self.point.batch]), self.gammas)
        scaled = dataclasses.replace(costs, draft_step_s=costs.draft_step_s * factors[:, None])
        tpot = speedup.token_s(self.priced.figures, self.gammas, scaled)
        return np.broadcast_to(costs.step_s / tpot, (len(factors), len(self.gammas)))

    def break_even_factors(self) -> Floats:
        """Multiple of the draft step at which each γ ≥ 1 breaks even: R is linear in the step.

        Below 0 where even a free draft is slower than plain decoding.
        """
        free, present = 1 / self.speedup_by_draft_step(np.array([0.0, 1.0]))[:, 1:]
        return np.asarray((1 - free) / (present - free))

    def draft_factors(self) -> Floats:
        """Multiples of the draft step to draw: to 3, or past the break-even of the γ that is set.

        >>> from specplan.scenarios.load import load
        >>> float(curves(load("toy-20ms")).draft_factors()[-1])  # 37.5 ms of 20 ms break even
        3.0
        """
        at = self.break_even_factors()[self.gammas[1:] == self.point.gamma]
        return np.linspace(0.0, float(np.clip(1.25 * at, 3.0, FARTHEST).max(initial=3.0)), 31)

    def batches(self, count: int = 25) -> Floats:
        """Batch sizes 1 … `max_num_seqs`, evenly spaced on a logarithmic scale."""
        return np.unique(np.geomspace(1, self.scenario.scheduler.max_num_seqs, count).round())

    def by_batch(self, batches: Floats, gammas: ArrayLike) -> tuple[Floats, Floats]:
        """Seconds per output token at each batch and γ, and of a plain step at each batch.

        batches (n,), gammas (...) → tpot (n, ...), plain step (n,).
        """
        gamma = np.asarray(gammas)
        costs = self._at_each(batches, gamma.ravel())
        tpot = speedup.token_s(self.priced.figures, gamma.ravel(), costs)
        return tpot.reshape(len(batches), *gamma.shape), np.asarray(costs.step_s[:, 0])

    def _at_each(self, batches: Floats, gammas: NDArray[np.int64]) -> RoundCosts:
        """Price rounds on the grid (batches, γ), or (batches, 1) where γ leaves a pass as it is."""
        priced = gammas if self._by_gamma else gammas[-1:]
        return _joined([self.priced.costs(batches, int(gamma)) for gamma in priced], len(batches))

    def tornado(self) -> list[tuple[str, float, float]]:
        """Speedup with one input `SHIFT` lower and `SHIFT` higher: (input, low, high), widest last.

        The acceptance moves as every A_i (capped at 1), the target's own step with everything else
        held, so that a slower step makes speculation look better.
        """
        gamma, costs = self.point.gamma, self.costs(self.point.gamma)
        shifts = (1 - SHIFT, 1 + SHIFT)
        moved = _joined([_scaled(costs, name, by) for name in _INPUTS for by in shifts], 1)
        ends = moved.step_s / speedup.token_s(self.priced.figures, gamma, moved)
        found = [
            (label, float(low), float(high))
            for label, (low, high) in zip(_INPUTS.values(), ends.reshape(-1, 2), strict=True)
        ]
        less, more = (
            float(costs.step_s / speedup.token_s(round_figures(self._accepting(by)), gamma, costs))
            for by in shifts
        )
        found.append(("acceptance", less, more))
        rows = [(label, low, high) for label, low, high in found if abs(high - low) > 1e-9]
        return sorted(rows, key=lambda row: abs(row[2] - row[1]))

    def _accepting(self, factor: float) -> Acceptance:
        """Return the acceptance with every A_i times a factor, at most 1."""
        own = self.priced.acceptance
        return dataclasses.replace(
            own,
            unconditional=np.minimum(own.unconditional * factor, 1.0),
            concentration=np.full(len(own.weight), np.inf),
            recorded=None,
        )


def _joined(columns: Sequence[RoundCosts], rows: int) -> RoundCosts:
    """Join costs of rows `(rows,)`, or the same for all of them, to a grid (rows, columns)."""
    together: dict[str, Any] = {
        name: np.stack([np.broadcast_to(getattr(one, name), (rows,)) for one in columns], axis=1)
        for name in ("step_s", "draft_step_s", "draft_call_s", "overhead_s")
    }
    verify = [np.broadcast_to(one.verify_s, (rows, one.verify_s.shape[-1])) for one in columns]
    return dataclasses.replace(columns[0], verify_s=np.stack(verify, axis=1), **together)


def _scaled(costs: RoundCosts, name: str, factor: float) -> RoundCosts:
    return dataclasses.replace(costs, **{name: factor * getattr(costs, name)})


_INPUTS = {
    "verify_s": "verify pass",
    "draft_step_s": "draft step",
    "draft_call_s": "fixed cost of drafting",
    "overhead_s": "overhead of a round",
    "step_s": "plain step",
}


def curves(scenario: Scenario) -> Curves:
    """Make the curves of a scenario at its operating point.

    >>> from specplan.scenarios.load import load
    >>> curves(load("toy-20ms")).speedup_by_gamma()[:4].round(3).tolist()
    [1.0, 1.25, 1.25, 1.172]
    """
    point = operating_point(scenario)
    return Curves(scenario, point, Priced(scenario, point.context_tokens))


def crossover(x: Floats, ratio: Floats) -> float | None:
    """Find where a falling ratio passes 1, by linear interpolation; None where it does not.

    >>> crossover(np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.2, 0.8]))
    2.5
    """
    below = np.flatnonzero((ratio[:-1] > 1) & (ratio[1:] <= 1))
    if not len(below):
        return None
    i = int(below[0])
    return float(x[i] + (ratio[i] - 1) / (ratio[i] - ratio[i + 1]) * (x[i + 1] - x[i]))
