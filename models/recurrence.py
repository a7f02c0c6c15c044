"""Linear recurrences x_i = u_i + Σ_j w_j x_{i−j} for whole arrays, a block at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BLOCK = 64
"""Values found by one matrix product; the recurrence itself is stepped once, over one block."""


def linear_recurrence(weights: Floats, inputs: Floats, history: Floats) -> Floats:
    """Solve x_i = inputs_i + Σ_{j=1..J} weights_{j−1} x_{i−j} for i = 0..N−1.

    weights (..., J), inputs (..., N), history (..., J) = x_{−J}..x_{−1}; leading axes broadcast.
    → (..., N). Within a block x = K u + K W h: K the impulse response, W the reach of the history.

    >>> linear_recurrence(np.ones(2), np.zeros(6), np.ones(2)).tolist()  # Fibonacci
    [2.0, 3.0, 5.0, 8.0, 13.0, 21.0]
    """
    order, length = weights.shape[-1], inputs.shape[-1]
    lead = np.broadcast_shapes(weights.shape[:-1], inputs.shape[:-1], history.shape[:-1])
    if order >= BLOCK:  # a block as long as the order costs its cube: one value at a time is less
        return _stepped(weights, np.broadcast_to(inputs, (*lead, length)), history)
    response = _response(weights)
    rows, columns = np.arange(BLOCK)[:, None], np.arange(order)
    reach = np.where(
        rows[:order] <= columns, weights[..., np.minimum(rows[:order] - columns, 0) - 1], 0.0
    )
    carry = response[..., :order] @ reach
    known = np.broadcast_to(history, (*lead, order))
    solved = [known]
    for start in range(0, length, BLOCK):
        given = np.broadcast_to(inputs, (*lead, length))[..., start : start + BLOCK, None]
        size = given.shape[-2]
        found = response[..., :size, :size] @ given + carry[..., :size, :] @ known[..., None]
        solved.append(found[..., 0])
        known = np.concatenate([known, found[..., 0]], axis=-1)[..., -order:]
    return np.concatenate(solved, axis=-1)[..., order:]


def _stepped(weights: Floats, inputs: Floats, history: Floats) -> Floats:
    """Solve the recurrence value by value; inputs (..., N) have all the leading axes."""
    order, length = weights.shape[-1], inputs.shape[-1]
    values = np.empty((*inputs.shape[:-1], order + length))
    values[..., :order] = history
    backwards = np.ascontiguousarray(weights[..., ::-1])
    for i in range(length):
        reached = np.einsum("...j,...j->...", backwards, values[..., i : i + order])
        values[..., order + i] = inputs[..., i] + reached
    return values[..., order:]


def _response(weights: Floats) -> Floats:
    """Lower triangular K (..., BLOCK, BLOCK): K_ik = effect of the input k on the value i."""
    order = weights.shape[-1]
    impulse = np.zeros((*weights.shape[:-1], BLOCK))
    impulse[..., 0] = 1.0
    for i in range(1, BLOCK):
        back = min(i, order)
        impulse[..., i] = (weights[..., :back] * impulse[..., i - back : i][..., ::-1]).sum(axis=-1)
    lag = np.arange(BLOCK)[:, None] - np.arange(BLOCK)
    return np.where(lag >= 0, impulse[..., np.maximum(lag, 0)], 0.0)
