"""Two numbers that bend a roofline to measurements: how slow the work, how slow the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from specplan.models.roofline import Roofline

#: A system of equations worse conditioned than this does not tell the two apart.
WORST_CONDITION = 100.0


def fitted_scales(
    shapes: list[Roofline], work_s: ArrayLike, measured_s: ArrayLike
) -> tuple[float, float]:
    """Fit (work, fixed) for `Roofline.scaled`: least relative squares, neither below zero.

    One row a measured pass: its roofline, the seconds of its work by that roofline (priced with
    `shape.scaled(work=1, fixed=0)`) and the measured seconds.

    Raises ValueError for fewer than two rows, times that are not positive, and rows too much alike
    to tell work from launch (batches or tensor-parallel sizes must differ).
    """
    work = np.asarray(work_s, dtype=np.float64)
    measured = np.asarray(measured_s, dtype=np.float64)
    if len(shapes) < 2:
        raise ValueError(f"{len(shapes)} rows cannot fit two numbers (two rows or more)")
    if not np.all(measured > 0):
        raise ValueError(f"measured times are {measured.tolist()} (above 0 s)")
    fixed = np.array([shape.fixed_s for shape in shapes])
    rows = np.column_stack([work / measured, fixed / measured])
    condition = np.linalg.cond(rows / np.linalg.norm(rows, axis=0))
    if condition > WORST_CONDITION:
        raise ValueError(
            f"the rows are too much alike, condition number {condition:.0f} "
            f"(at most {WORST_CONDITION:.0f}: other batches, contexts or tensor-parallel sizes)"
        )
    from scipy.optimize import nnls

    scales, _ = nnls(rows, np.ones(len(shapes)))
    return float(scales[0]), float(scales[1])
