"""The law of one position: target law p, draft law q, and what the accept/reject rule makes of them.

Sources: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192: Algorithm 1, Theorem 3.5, Appendix A.1 and
A.5); Chen et al. 2023 (arXiv 2302.01318: Algorithm 2). p and q are the laws *after* temperature,
top-k, top-p and min-p (`models.sampling_rules`): the rule preserves those, not the raw softmax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SUM_TOLERANCE = 1e-6
"""How far a law may sum from 1: float32 softmax over 10^5 tokens stays within it."""

NO_REJECTION = 1e-14
"""Rejected mass below this is rounding of p = q: no residual exists."""


def checked_law(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as float64 laws over the last axis.

    Raises ValueError when an entry is negative or not finite, or a law does not sum to 1.

    >>> checked_law([0.6, 0.3, 0.1], "p")
    array([0.6, 0.3, 0.1])
    """
    law = np.asarray(values, dtype=np.float64)
    if law.ndim == 0 or law.shape[-1] == 0:
        raise ValueError(f"{name} has no tokens (a list of probabilities, one a token)")
    if not np.isfinite(law).all():
        raise ValueError(f"{name} contains {law[~np.isfinite(law)][0]} (probabilities are finite)")
    if (law < 0).any():
        raise ValueError(f"{name} contains {law[law < 0][0]:g} (probabilities are at least 0)")
    sums = law.sum(axis=-1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        raise ValueError(f"{name} sums to {np.atleast_1d(sums)[np.atleast_1d(off)][0]:.9g} (1)")
    return law


def checked_pair(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p and q as broadcast float64 laws over one vocabulary (the last axis)."""
    target, draft = checked_law(p, "p"), checked_law(q, "q")
    if target.shape[-1] != draft.shape[-1]:
        raise ValueError(
            f"p has {target.shape[-1]} tokens and q has {draft.shape[-1]} (one vocabulary for both;"
            " a token the draft lacks has q = 0)"
        )
    target, draft = np.broadcast_arrays(target, draft)
    return target, draft


def checked_lenience(lenience: float) -> float:
    """Return `lenience` when it lies in (0, 1], else raise ValueError."""
    if not 0 < lenience <= 1:
        raise ValueError(f"lenience is {lenience:g} (above 0, at most 1; 1 is the exact rule)")
    return lenience


def acceptance_probability(
    p: ArrayLike, q: ArrayLike, lenience: float = 1.0
) -> NDArray[np.float64]:
    """Chance that a token drawn from q is accepted: β = Σ min(p, q), Leviathan Theorem 3.5.

    With lenience l: Σ min(p/l, q) (Appendix A.5). p, q (..., vocabulary), leading axes broadcast;
    returns (...). Raises ValueError for values that are no laws.

    >>> float(acceptance_probability([0.6, 0.3, 0.1], [0.5, 0.25, 0.25]))
    0.85
    """
    target, draft = checked_pair(p, q)
    beta = np.minimum(target / checked_lenience(lenience), draft).sum(axis=-1)
    # A sum of thousands of terms may pass 1 by rounding; a probability may not.
    return np.asarray(np.minimum(beta, 1.0))
