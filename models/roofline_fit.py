"""Two numbers that bend a roofline to measurements: how slow the work, and the launch floor.

A stack that launches its kernels one by one costs what its host takes, however little the GPUs do;
one that replays graphs costs the roofline at its own efficiencies. So a pass takes
max(slowdown · work + latencies, floor).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.calibration import WILD_TABLE, ScatterError, UndeterminedError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: Passes whose work differs by less than this share tell slow work and a floor apart by noise only.
LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class RooflineFit:
    """max(slowdown · work + latencies, floor): `floor_s` is 0 where no pass lies on a floor.

    `residuals` (points,) are fitted/measured − 1.
    """

    slowdown: float
    floor_s: float
    residuals: tuple[float, ...]

    @property
    def points(self) -> int:
        """Count the measured passes."""
        return len(self.residuals)

    @property
    def worst(self) -> float:
        """The largest relative residual."""
        return max(map(abs, self.residuals))

    @property
    def median(self) -> float:
        """The median of the absolute relative residuals."""
        return float(np.median(np.abs(self.residuals)))

    def trust(self) -> str:
        """Say how far the fit may be trusted."""
        if self.points == 2 and self.worst < 1e-9:
            return "exact through 2 passes: no pass is left to check it"
        return (
            f"{self.points} passes for 2 unknowns, median residual {100 * self.median:.1f} %, "
            f"worst {100 * self.worst:.1f} %"
        )


def fit_roofline(work_s: ArrayLike, fixed_s: ArrayLike, measured_s: ArrayLike) -> RooflineFit:
    """Fit slowdown and floor by least relative squares; all arguments (points,), in seconds.

    `work_s` is what grows with the work by the roofline, `fixed_s` its latencies. The passes with
    the least work lie on the floor, the others on the roofline; every such split is tried.

    Raises UndeterminedError for fewer than two passes or passes of one amount of work, ScatterError
    when the root mean square of the residuals is above 25 %, ValueError for times not above 0.

    >>> fit = fit_roofline([0.004, 0.008, 0.02], 0.001, [0.015, 0.015, 0.031])
    >>> round(fit.slowdown, 9), round(fit.floor_s, 9)
    (1.5, 0.015)
    """
    work, fixed, measured = np.broadcast_arrays(
        np.atleast_1d(np.asarray(work_s, dtype=np.float64)),
        np.asarray(fixed_s, dtype=np.float64),
        np.asarray(measured_s, dtype=np.float64),
    )
    wrong = ~(np.isfinite(measured) & (measured > 0))
    if wrong.any():
        raise ValueError(f"a measured time is {measured[wrong][0]:g} s (finite and above 0)")
    if measured.size < 2:
        raise UndeterminedError(
            f"{measured.size} pass is measured and two unknowns are wanted, slow work and launch "
            "floor (another batch, context or number of GPUs)"
        )
    if work.max() < (1 + LEAST_SPREAD) * work.min():
        raise UndeterminedError(
            f"the work of all {measured.size} passes is {1e3 * work.min():.4g} to "
            f"{1e3 * work.max():.4g} ms by the roofline: slow work and a launch floor look alike "
            "(another batch, context or number of GPUs)"
        )
    order = np.argsort(work + fixed, kind="stable")
    tried = [_split(work, fixed, measured, order, on_floor) for on_floor in range(measured.size)]
    best = min(tried, key=lambda fit: round(sum(r * r for r in fit.residuals), 15))
    spread = float(np.sqrt(np.mean(np.square(best.residuals))))
    if spread > WILD_TABLE:
        worst = np.argsort(-np.abs(best.residuals))[:3]
        shown = "; ".join(
            f"{1e3 * measured[i]:.4g} ms where the roofline has {1e3 * (work + fixed)[i]:.4g}, "
            f"{100 * best.residuals[i]:+.0f} %"
            for i in worst
        )
        raise ScatterError(
            f"{measured.size} passes scatter by {100 * spread:.0f} % around the best roofline, "
            f"worst: {shown} (passes of one system, and the model and GPUs they ran on)"
        )
    return best


def _split(
    work: Floats, fixed: Floats, measured: Floats, order: NDArray[np.int64], on_floor: int
) -> RooflineFit:
    """Fit with the `on_floor` passes of least work on the floor and the others on the roofline."""
    floor_rows, busy = order[:on_floor], order[on_floor:]
    share, left = work[busy] / measured[busy], 1 - fixed[busy] / measured[busy]
    slowdown = max(float(share @ left / (share @ share)), 0.0)
    inverse = 1 / measured[floor_rows]
    floor_s = float(inverse.sum() / (inverse @ inverse)) if on_floor else 0.0
    residuals = np.maximum(slowdown * work + fixed, floor_s) / measured - 1
    return RooflineFit(slowdown, floor_s, tuple(map(float, residuals)))
