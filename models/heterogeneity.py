"""Requests that differ: the α of single requests as a Beta law, and its quadrature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import alpha_from_tokens_per_round, tokens_per_round_from_alpha

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BETA_NODES = 48
"""Gauss–Jacobi nodes for a Beta law of α: exact for polynomials in α up to degree 95."""
HALVINGS = 48
"""Of [0, 1], where the mean of α is looked for: down to 4e-15."""


def beta_nodes(
    alpha: float, concentration: float, nodes: int = BETA_NODES
) -> tuple[Floats, Floats]:
    """Return nodes (nodes,) and weights (nodes,) of α ~ Beta(ακ, (1−α)κ): Gauss–Jacobi quadrature.

    Golub & Welsch 1969: eigenvalues of the Jacobi recurrence matrix; the weights sum to 1 by
    construction, so no Beta function is evaluated and large κ stays exact.

    >>> nodes, weights = beta_nodes(0.8, 10)
    >>> (weights @ nodes).round(12), (weights @ nodes**2).round(12)  # α and α² + α(1−α)/(κ+1)
    (np.float64(0.8), np.float64(0.654545454545))
    """
    if np.isinf(concentration) or alpha in (0.0, 1.0):
        return np.array([alpha]), np.array([1.0])
    b, a = alpha * concentration - 1, (1 - alpha) * concentration - 1
    k = np.arange(1, nodes, dtype=np.float64)
    twice = 2 * k + a + b
    diagonal = np.concatenate([[(b - a) / (a + b + 2)], (b**2 - a**2) / (twice * (twice + 2))])
    # At k = 1 the factors k+a+b and 2k+a+b−1 are equal and cancel: dividing them is 0/0 at κ = 1.
    ratio = np.ones_like(k)
    ratio[1:] = (k[1:] + a + b) / (twice[1:] - 1)
    square = 4 * k * (k + a) * (k + b) * ratio / (twice**2 * (twice + 1))
    matrix = np.diag(diagonal) + np.diag(np.sqrt(square), 1) + np.diag(np.sqrt(square), -1)
    values, vectors = np.linalg.eigh(matrix)
    return np.clip((values + 1) / 2, 0, 1), vectors[0] ** 2


def mean_alpha(
    acceptance_length: float, gamma: int, concentration: float, draft_probability: float = 1.0
) -> float:
    """Return the mean of α over requests whose tokens per round, pooled over rounds, are τ at γ.

    Requests of small E need more rounds, so E is harmonic: 1/Σ w/E(α_w) = 1 + h(τ − 1) with h the
    share of rounds that draft. The iid α of τ would give another τ. Raises ValueError unless
    1 ≤ τ ≤ γ + 1.

    >>> round(mean_alpha(1.442695, 1, 2), 5)  # uniform α at γ 1: 1/ln 2
    0.5
    """
    alpha_from_tokens_per_round(acceptance_length, gamma)  # refuses τ outside [1, γ + 1]
    low, high, wanted = 0.0, 1.0, 1 + draft_probability * (acceptance_length - 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        nodes, weights = beta_nodes(middle, concentration)
        tokens = 1 + draft_probability * (tokens_per_round_from_alpha(nodes, gamma) - 1)
        low, high = (middle, high) if 1 / (weights / tokens).sum() < wanted else (low, middle)
    return high
