"""The curves of the closed form that a report draws: over γ, draft cost, batch, and each input."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models import speedup
from specplan.scenarios.closed_form import operating_point
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.models.acceptance import Acceptance
    from specplan.models.round_costs import RoundCosts
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.schema import Scenario

    Floats = NDArray[np.float64]

DEEPEST = 12  # γ beyond this is not drawn
SHIFT = 0.2  # what a tornado moves each input by


@dataclass(frozen=True, eq=False)
class Curves:
    """A scenario made ready to be evaluated at any γ, batch and cost."""

    scenario: Scenario
    point: OperatingPoint
    priced: Priced

    @property
    def gammas(self) -> NDArray[np.int64]:
        """γ = 0 … as deep as the acceptance is stated, up to `DEEPEST`; a tree has its own only."""
        if self.scenario.speculation.method == "tree":
            return np.array([0, self.scenario.gamma])
        return np.arange(min(self.priced.positions, DEEPEST) + 1)

    def costs(self, gamma: int, batch: float | None = None) -> RoundCosts:
        """Seconds of the passes at a batch, the operating point's unless another is given."""
        return self.priced.costs(self.point.batch if batch is None else batch, gamma)

    def at(self, gamma: int, costs: RoundCosts) -> speedup.Prediction:
        """Evaluate the closed form at γ under given costs."""
        return speedup.predict(self.priced.acceptance, gamma, costs)

    def speedup_by_gamma(self) -> Floats:
        """Speedup `(γ,)` at the operating point."""
        return np.array([float(self.at(int(g), self.costs(int(g))).speedup) for g in self.gammas])

    def speedup_by_draft_step(self, factors: Floats) -> Floats:
        """Speedup `(factors, γ)` with the draft step multiplied by each factor."""
        found = []
        for g in self.gammas:
            costs = self.costs(int(g))
            scaled = dataclasses.replace(costs, draft_step_s=costs.draft_step_s * factors)
            found.append(np.broadcast_to(self.at(int(g), scaled).speedup, factors.shape))
        return np.stack(found, axis=-1)

    def batches(self, count: int = 25) -> Floats:
        """Batch sizes 1 … `max_num_seqs`, evenly spaced on a logarithmic scale."""
        return np.unique(np.geomspace(1, self.scenario.scheduler.max_num_seqs, count).round())

    def by_batch(self, batches: Floats, gamma: int) -> tuple[Floats, Floats]:
        """Seconds per output token `(batches,)` of one request, at γ and without speculation."""
        found = [self.at(gamma, self.costs(gamma, float(b))) for b in batches]
        tpot, plain = ([float(getattr(p, name)) for p in found] for name in _TPOT)
        return np.array(tpot), np.array(plain)

    def tornado(self) -> list[tuple[str, float, float]]:
        """Speedup with one input `SHIFT` lower and `SHIFT` higher: (input, low, high), widest last.

        The acceptance moves as every A_i (capped at 1), the target's own step with everything else
        held, so that a slower step makes speculation look better.
        """
        gamma, costs = self.point.gamma, self.costs(self.point.gamma)
        found: list[tuple[str, float, float]] = []
        for name, label in _INPUTS.items():
            less, more = (
                float(self.at(gamma, _scaled(costs, name, factor)).speedup)
                for factor in (1 - SHIFT, 1 + SHIFT)
            )
            found.append((label, less, more))
        less, more = (
            float(speedup.predict(self._accepting(factor), gamma, costs).speedup)
            for factor in (1 - SHIFT, 1 + SHIFT)
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


def _scaled(costs: RoundCosts, name: str, factor: float) -> RoundCosts:
    return dataclasses.replace(costs, **{name: factor * getattr(costs, name)})


_TPOT = ("tpot_s", "baseline_tpot_s")
_INPUTS = {
    "verify_s": "verify pass",
    "draft_step_s": "draft step",
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
