"""Which input moves the answer most, and which measurement would pay most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.intervals import t_interval
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from specplan.results.planning.loads import Planner
    from specplan.scenarios.schema import Scenario
    from specplan.sim.looks import Capacity, Look

    Floats = NDArray[np.float64]

STEP = 0.1
FACTORS = (1 - STEP, 1 + STEP)
RUNS = 4  # each paired with the run that was not moved, on the same luck
# How far an input is usually off, by where it is from: our assumption, shown with the answer.
UNCERTAINTY = {
    "measured": 0.03,
    "fitted": 0.1,
    "analytical": 0.1,
    "datasheet": 0.2,
    "assumed": 0.3,
}
COSTS = (
    "target.round",
    "target.step",
    "target.prefill",
    "draft.step",
    "draft.per_round",
    "draft.prefill",
)
LENGTHS = ("workload.prompt_tokens", "workload.output_tokens")


@dataclass(frozen=True)
class Swing:
    """What ±10 % of one input do to the rate per replica, relative, and what it is known by.

    An end is None where the input leaves the engine no steady state at the load it was moved at:
    then all that is known is that the rate is lost. `noise` is the half width of the 95 % interval
    of the distance between the two ends.
    """

    field: str
    lower: float | None
    higher: float | None
    evidence: str
    noise: float = 0.0

    @property
    def within_noise(self) -> bool:
        """Whether these runs cannot tell the two ends apart.

        >>> Swing("draft.transfer", 0.002, 0.003, "assumed", noise=0.004).within_noise
        True
        """
        return self.steady and self.width <= self.noise

    @property
    def steady(self) -> bool:
        """Whether both ends have a steady state."""
        return self.lower is not None and self.higher is not None

    @property
    def width(self) -> float:
        """Size of the bar; without a steady state at one end, twice the other side: at least."""
        known = [end for end in (self.lower, self.higher) if end is not None]
        if len(known) == 2:
            return abs(known[1] - known[0])
        return 2 * abs(known[0]) if known else 0.0

    @property
    def at_stake(self) -> float:
        """How far this input may put the answer off, its swing at the usual error of its kind.

        At most 1, for no rate falls by more than all of it; a lower bound unless `steady`.

        >>> round(Swing("draft.step", 0.05, -0.05, "assumed").at_stake, 9)
        0.15
        """
        return min(1.0, self.width / (2 * STEP) * UNCERTAINTY[self.evidence])

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sort key: what takes the steady state away, then what is at stake, noise last."""
        return (not self.steady, not self.within_noise, self.at_stake)


def tornado(planner: Planner, scenario: Scenario, capacity: Capacity) -> list[Swing]:
    """Move every input by ±10 % at the capacity and see what that does to it; the largest first.

    Inputs that take the steady state away come before all others, those that these runs cannot
    tell from no effect after them.

    Linear: Δ ln rate = −Δ ln(worst figure)/(d ln figure/d ln rate), on the same seeds; the slope is
    that between the two ends of the capacity. Empty where it has none. The noise is that of the
    figure, paired by seed; the slope counts as known.
    """
    met, missed = capacity.met, capacity.missed
    if met is None or missed is None or not missed.stable:
        return []
    planner.ask("what the rate depends on")
    worst, planner = missed.worst, planner.shorter(2)
    base = planner.look(scenario, met.load, RUNS)
    if not float(base.ratios[:, worst].mean()) > 0:
        return []
    rise = np.log(missed.means[worst] / met.means[worst]) if met.means[worst] > 0 else 0.0
    slope = float(rise / np.log(missed.load / met.load))
    if not slope > 0:
        return []
    swings = []
    for field in inputs(scenario):
        moved = [_ratios(planner, scaled(scenario, field, f), base, worst) for f in FACTORS]
        ends = [_moved(float(r.mean()), slope) if np.isfinite(r).all() else None for r in moved]
        noise = 0.0
        if None not in ends:
            noise = t_interval(moved[1] - moved[0]).half_width / slope
        swings.append(Swing(field, ends[0], ends[1], evidence_of(scenario, field), noise))
    told = [s for s in swings if s.width > 1e-4 or not s.steady]
    return sorted(told, key=lambda s: (not s.steady, not s.within_noise, s.width), reverse=True)


def _ratios(planner: Planner, changed: Scenario | None, base: Look, worst: int) -> Floats:
    """Return the worst figure of each run over its mean in the runs that were not moved, `(runs,)`.

    Runs whose scenario could not be changed are those; inf without a steady state.
    """
    look = base if changed is None else planner.look(changed, base.load, RUNS)
    found: Floats = look.ratios[:, worst] / float(base.ratios[:, worst].mean())
    return found


def _moved(ratio: float, slope: float) -> float:
    """Relative change of the rate that brings a figure that grew by `ratio` back to its limit.

    >>> round(_moved(1.21, 2.0), 9), _moved(0.0, 2.0)
    (-0.090909091, inf)
    """
    return ratio ** (-1 / slope) - 1 if ratio > 0 else float("inf")


def inputs(scenario: Scenario) -> Iterator[str]:
    """Name the inputs that can be scaled: the terms of costs, acceptance, overheads, lengths."""
    data = scenario.resolved()
    for block in COSTS:
        cost = _at(data, block)
        if _seconds(cost) > 0:  # a bare duration
            yield block
        yield from (f"{block}.{leaf}" for leaf in _terms(cost))
    if scenario.gamma:
        yield "speculation.acceptance"
        yield from (f for f in ("speculation.overhead", "draft.transfer") if _positive(data, f))
    yield from (
        f
        for f in LENGTHS
        if getattr(scenario, f.split(".")[1]).kind in ("fixed", "lognormal")
        and getattr(scenario, f.split(".")[1]).mean() > 1
    )


def _terms(block: Any) -> Iterator[str]:
    if not isinstance(block, dict):
        return
    for key, value in block.items():
        if key in ("constant", "overhead", "launch_floor") and _seconds(value) > 0:
            yield key
        if key == "linear":
            yield from (f"linear.{name}" for name, term in value.items() if _seconds(term) > 0)


def scaled(scenario: Scenario, field: str, factor: float) -> Scenario | None:
    """Scale one input; acceptance moves the chance of a rejection, 1 − a. None where it cannot."""
    data = scenario.resolved()
    try:
        if field == "speculation.acceptance":
            return _with_acceptance(scenario, factor)
        if field in LENGTHS:
            lengths = getattr(scenario, field.split(".")[1])
            if lengths.kind == "fixed":
                return override(scenario, [f"{field}={max(1, round(lengths.fixed * factor))}"])
            return override(scenario, [f"{field}.lognormal.mean={lengths.lognormal.mean * factor}"])
        seconds = _seconds(_at(data, field)) * factor
        return override(scenario, [f"{field}={seconds:.12g} s"])
    except ScenarioError:
        return None


def _with_acceptance(scenario: Scenario, factor: float) -> Scenario | None:
    """Scale the conditional acceptance at every position, at most to 1."""
    law = scenario.acceptance(scenario.gamma)
    if len(law.weight) > 1 or np.isfinite(law.concentration).any() or not scenario.gamma:
        return None
    conditional = law.unconditional[0].copy()
    conditional[1:] = np.divide(
        conditional[1:],
        conditional[:-1],
        out=np.zeros_like(conditional[1:]),
        where=conditional[:-1] > 0,
    )
    moved = ", ".join(f"{min(1.0, a * factor):.9g}" for a in conditional)
    return override(scenario, [f"speculation.acceptance={{conditional: [{moved}]}}"])


def evidence_of(scenario: Scenario, field: str) -> str:
    """Tell where an input is from: its block, else the record, else assumed."""
    data = scenario.resolved()
    block = ".".join(field.split(".")[:2])
    stated = _at(data, block)
    if isinstance(stated, dict) and stated.get("evidence") in UNCERTAINTY:
        return str(stated["evidence"])
    record = scenario.record.evidence
    if isinstance(record, dict):
        for name in (field, block, field.split(".", maxsplit=1)[0]):
            word = str(record.get(name, "")).partition(":")[0].strip()
            if word in UNCERTAINTY:
                return word
    return "assumed"


def _at(data: Any, path: str) -> Any:
    for key in path.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _positive(data: Any, path: str) -> bool:
    return _seconds(_at(data, path)) > 0


def _seconds(value: Any) -> float:
    from specplan.scenarios.units import UnitError, parse_duration

    try:
        return parse_duration(value) if value is not None else 0.0
    except (UnitError, TypeError):
        return 0.0
