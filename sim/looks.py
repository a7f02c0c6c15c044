"""What a search knows of loads: replications at one load, and the two ends of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95  # of the interval of one look
SAME_LOAD = 1e-9  # standard deviation of the control below which it is rounding: a trace


@dataclass(frozen=True, eq=False)
class Look:
    """What replications say at one load.

    `ratios (runs, objectives)` are figures over limits, inf without a steady state; `control
    (runs,)` is a quantity of each run with expectation 0 (by which share more it happened to be
    offered), on which the ratios are regressed: control variates (Law, Simulation Modeling and
    Analysis, 5th ed., § 11.4). A control that is the same in every run, as under a trace, explains
    nothing and is left alone. Raises ValueError for a ratio below 0.
    """

    load: float
    ratios: Floats
    control: Floats

    def __post_init__(self) -> None:
        if (self.ratios < 0).any():
            raise ValueError(f"a ratio of {self.ratios.min():g} is below 0")

    @cached_property
    def _fit(self) -> tuple[Floats, Floats]:
        """Mean ratios and half widths, with what the control explains taken out."""
        from scipy.special import stdtrit

        runs, ratios = self.ratios.shape[0], self.ratios
        x = self.control - self.control.mean()
        spread = float(x @ x)
        helped = runs >= 4 and spread > runs * SAME_LOAD**2
        mean: Floats = ratios.mean(axis=0)
        if not np.isfinite(mean).all() or runs < 2:
            return mean, np.full(ratios.shape[1], np.inf)
        residual = ratios - mean
        scale, freedom = 1 / runs, runs - 1
        slope = x @ ratios / spread if helped else np.zeros_like(mean)
        adjusted = mean - slope * self.control.mean()
        if helped and (adjusted >= 0).all():  # a line that leads below 0 does not hold there
            residual = residual - np.outer(x, slope)
            mean = adjusted
            scale, freedom = 1 / runs + float(self.control.mean()) ** 2 / spread, runs - 2
        error = np.sqrt((residual**2).sum(axis=0) / freedom * scale)
        return mean, float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error

    @property
    def means(self) -> Floats:
        """Mean ratio of each objective."""
        return self._fit[0]

    @property
    def half_widths(self) -> Floats:
        """Half width of each ratio's 95 % interval (Student's t over replications)."""
        return self._fit[1]

    @property
    def stable(self) -> bool:
        """Whether every replication had a steady state."""
        return bool(np.isfinite(self.ratios).all())

    @property
    def met(self) -> bool:
        """Whether every interval lies at or below its limit."""
        return bool(np.all(self.means + self.half_widths <= 1))

    @property
    def missed(self) -> bool:
        """Whether an interval lies above its limit, or a replication had no steady state."""
        return not self.stable or bool(np.any(self.means - self.half_widths > 1))

    @property
    def worst(self) -> int:
        """Index of the objective that is furthest beyond its limit, or closest to it."""
        return int(np.argmax(self.means))


@dataclass(frozen=True, eq=False)
class Capacity:
    """The largest load met for sure, the smallest missed for sure, and every look on the way.

    `met` is None when not even an idle system meets the limits (`missed` is then that look);
    `missed` is None when no load that was tried is too much.
    """

    met: Look | None
    missed: Look | None
    looks: tuple[Look, ...]
    tolerance: float

    @property
    def load(self) -> float:
        """Largest load that is met for sure; 0 when none is."""
        return self.met.load if self.met else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true capacity lies: above what is met, below what is missed."""
        return self.load, self.missed.load if self.missed else float("inf")

    @property
    def estimate(self) -> float:
        """Middle of the interval (geometric); the end that exists where the other does not."""
        low, high = self.interval
        return float(np.sqrt(low * high)) if low and np.isfinite(high) else low

    @property
    def resolved(self) -> bool:
        """Whether the interval is inside the tolerance."""
        low, high = self.interval
        return high <= low * (1 + self.tolerance) * (1 + 1e-9)
