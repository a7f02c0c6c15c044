"""The geometric sum Σ_{i=1..γ} α^i and its inverse: the one equation that §2 has to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

NEWTON_STEPS = 100
"""Far above need (about 8 from the starting bound): reaching it would be a bug, so it raises."""
BISECTIONS = 54
"""Halvings of [0, 1] down to the rounding of a double."""


def geometric_sum(alpha: ArrayLike, gamma: ArrayLike) -> Floats:
    """Σ_{i=1..γ} α^i = α(1 − α^γ)/(1 − α), γ at α = 1; exact to rounding next to α = 1.

    alpha in [0, 1] and gamma ≥ 0 broadcast.

    >>> geometric_sum([0.0, 0.5, 1.0], 2).tolist()
    [0.0, 0.75, 2.0]
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    gamma = np.asarray(gamma, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = alpha * np.expm1(gamma * np.log(alpha)) / (alpha - 1)
    total = np.where(alpha == 1, gamma, total)
    return np.where((alpha == 0) | (gamma == 0), 0.0, total)


def geometric_root(total: ArrayLike, gamma: ArrayLike, last: ArrayLike = 1.0) -> Floats:
    """Solve Σ_{i=1..γ−1} α^i + last·α^γ = total for α in [0, 1]; broadcasts.

    Needs 0 ≤ last ≤ 1 and 0 ≤ total ≤ γ − 1 + last (not checked: totals beyond give the nearest
    end; γ = 0 gives 0). The sum is convex and rises in α, so Newton from an upper bound falls onto
    the root. Bounds: Σ_{i≤n} α^i ≥ α, and ≥ n α^{(n+1)/2} (arithmetic above geometric mean).

    >>> geometric_root([0.75, 2.0], 2).tolist()
    [0.5, 1.0]
    """
    total, gamma, last = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (total, gamma, last))
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        full = np.where(last == 1, gamma, gamma - 1)
        share = np.where(full > 0, np.clip(total / full, 0, 1), 1.0)
        alpha = np.where(full > 0, np.minimum(np.clip(total, 0, 1), share ** (2 / (full + 1))), 1.0)
        alpha = np.where((gamma == 0) | (total <= 0), 0.0, alpha)
        for _ in range(NEWTON_STEPS):
            power = alpha**gamma
            value = geometric_sum(alpha, gamma)
            slope = (1 + value - (gamma + 1) * power) / (1 - alpha)
            slope = np.where(1 - alpha < 1e-9, gamma * (gamma + 1) / 2, slope)
            value = value - (1 - last) * power
            slope = slope - (1 - last) * gamma * power / alpha
            step = np.where(alpha > 0, (value - total) / slope, 0.0)
            alpha = np.clip(alpha - step, 0, 1)
            # Convergence is quadratic: after a step of 1e-10 the error is at rounding.
            if not (np.abs(step) > 1e-10).any():
                root: Floats = alpha
                return root
    raise ArithmeticError("Newton did not settle on the geometric root; please report this input")


def weighted_root(total: ArrayLike, gamma: ArrayLike, weights: ArrayLike) -> Floats:
    """Solve Σ_{i≤γ} weights_i α^i = total for α in [0, 1] by bisection; total and γ broadcast.

    weights (positions,) ≥ 0, 0 beyond. Needs 0 ≤ total ≤ Σ_{i≤γ} weights_i (not checked: totals
    beyond give the nearest end).

    >>> float(weighted_root(0.75, 2, [1.0, 1.0]).round(12))
    0.5
    """
    rows = np.asarray(weights, dtype=np.float64)
    powers = np.arange(1, rows.size + 1)
    target, depth = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64)[..., None] for x in (total, gamma))
    )
    used = rows * (powers <= depth)
    low, high = np.zeros(target.shape), np.ones(target.shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = (used * middle**powers).sum(axis=-1, keepdims=True) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Floats = np.where(target > 0, high, 0.0)[..., 0]
    return found
