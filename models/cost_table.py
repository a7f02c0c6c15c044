"""Measured pass times over batch × width [× context]: interpolated inside, refused outside."""

# ruff: noqa: PLR0917 (the formula has the positional signature of all cost formulas)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Amount = float | NDArray[np.floating[Any]]

#: What happens outside the table, by name: nothing, the edge's value, the edge cell's slope.
OUTSIDE_RULES = ("refuse", "hold", "extend")
# Measured times a few percent apart are equal; a wider pass that is faster by more is an error.
NOISE = 0.05
# A width is positions over sequences: at a mean batch of 6.57, 3 comes out as 3.0000000000000004.
BELOW, ABOVE = 1.0 - 1e-12, 1.0 + 1e-12


def cell_index(axis: NDArray[np.float64], at: Amount) -> Any:
    """Find the lower corner of the cell that holds `at`, the nearest cell where none does.

    >>> int(cell_index(np.array([1.0, 4.0, 16.0]), 5.0))
    1
    """
    below = np.searchsorted(axis, at, side="right") - 1
    return np.minimum(np.maximum(below, 0), max(axis.size - 2, 0))


def cell_share(axis: NDArray[np.float64], at: Amount, low: Any, extend: float) -> Amount:
    """Say how far `at` lies between the corners of its cell: 0 … 1, or beyond when extending."""
    high = np.minimum(low + 1, axis.size - 1)
    span = axis[high] - axis[low]
    raw = (at - axis[low]) / (span + (span == 0.0))
    held = np.minimum(np.maximum(raw, 0.0), 1.0)
    share: Amount = held + extend * (raw - held) * (span > 0.0)
    return share


def table_seconds(
    coefficients: NDArray[np.float64],
    batch_axis: NDArray[np.float64],
    width_axis: NDArray[np.float64],
    context_axis: NDArray[np.float64],
    values: NDArray[np.float64],
    sequences: Amount,
    tokens: Amount,
    context_tokens: Amount,
    prefill_tokens: Amount,
) -> Amount:
    """Price a pass by multilinear interpolation; NaN outside a table that refuses; 0 without work.

    `coefficients` are the number of the rule in `OUTSIDE_RULES`, 1 where the engine pads the batch
    up to the next measured size (else 0), then 0 and NaN. Prompt positions widen the pass.
    """
    positions = tokens + prefill_tokens
    idle = positions <= 0.0
    batch = np.maximum(sequences, 1.0)
    width = positions / batch + idle * width_axis[0]
    context = context_tokens / batch
    padded = batch_axis[np.minimum(np.searchsorted(batch_axis, batch), batch_axis.size - 1)]
    at_batch = batch + coefficients[1] * (padded - batch)
    inside = (
        (at_batch >= batch_axis[0] * BELOW) & (batch <= batch_axis[-1] * ABOVE)
        & (width >= width_axis[0] * BELOW) & (width <= width_axis[-1] * ABOVE)
        & ((context >= context_axis[0] * BELOW) & (context <= context_axis[-1] * ABOVE)
           | (context_axis.size == 1))
    )  # fmt: skip
    extend = 1.0 * (coefficients[0] == 2.0)
    i, j = cell_index(batch_axis, at_batch), cell_index(width_axis, width)
    k = cell_index(context_axis, context)
    x = cell_share(batch_axis, at_batch, i, extend)
    y = cell_share(width_axis, width, j, extend)
    z = cell_share(context_axis, context, k, extend)
    i1, j1 = np.minimum(i + 1, batch_axis.size - 1), np.minimum(j + 1, width_axis.size - 1)
    k1 = np.minimum(k + 1, context_axis.size - 1)
    near = (1.0 - x) * ((1.0 - y) * values[i, j, k] + y * values[i, j1, k]) + x * (
        (1.0 - y) * values[i1, j, k] + y * values[i1, j1, k]
    )
    far = (1.0 - x) * ((1.0 - y) * values[i, j, k1] + y * values[i, j1, k1]) + x * (
        (1.0 - y) * values[i1, j, k1] + y * values[i1, j1, k1]
    )
    priced = (1.0 - z) * near + z * far
    known = inside | idle | (coefficients[0] > 0.0)
    # Looked up, not np.where: that would put a scalar on numba's heap.
    zero_or_nan = coefficients[3 - 1 * known]
    worked: Amount = priced * (positions > 0.0) + zero_or_nan
    return worked


def checked_axis(name: str, axis: ArrayLike) -> NDArray[np.float64]:
    """Check that an axis of a table is strictly increasing, finite and not negative.

    Raises ValueError with the name of the axis and the first value out of order.
    """
    points = np.asarray(axis, dtype=np.float64)
    if points.ndim != 1 or points.size == 0:
        raise ValueError(f"the {name} axis has shape {points.shape} (one or more points in a row)")
    if not np.all(np.isfinite(points)) or points[0] < 0:
        raise ValueError(f"the {name} axis is {points.tolist()} (finite numbers, 0 or more)")
    steps = np.diff(points)
    if np.any(steps <= 0):
        at = int(np.argmax(steps <= 0))
        raise ValueError(
            f"the {name} axis goes from {points[at]:g} to {points[at + 1]:g} (strictly increasing)"
        )
    return points


def checked_values(
    values: ArrayLike,
    batch: NDArray[np.float64],
    width: NDArray[np.float64],
    context: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Check measured seconds `(batch, width, context)`: complete, positive, not falling with width.

    Raises ValueError for a wrong shape, holes, times that are not positive, and a pass that gets
    more than 5 % faster with more positions: that is a cost per token, not a pass time.
    """
    times = np.asarray(values, dtype=np.float64)
    shape = (batch.size, width.size, context.size)
    if times.ndim == 2 and shape[2] == 1:
        times = times[:, :, np.newaxis]
    if times.shape != shape:
        raise ValueError(f"the table has shape {times.shape} (batch × width × context = {shape})")
    if not np.all(times > 0) or not np.all(np.isfinite(times)):
        raise ValueError("the table has a hole or a time that is not positive (seconds above 0)")
    falling = np.argwhere(times[:, 1:] < (1 - NOISE) * times[:, :-1])
    if falling.size:
        b, w, c = falling[0]
        raise ValueError(
            f"at batch {batch[b]:g} width {width[w]:g} takes {1e3 * times[b, w, c]:.4g} ms and "
            f"width {width[w + 1]:g} {1e3 * times[b, w + 1, c]:.4g} ms (times of whole passes; per "
            "token only in a column such as ms_per_token)"
        )
    return times
