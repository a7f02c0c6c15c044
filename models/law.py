"""The law of one position: target law p, draft law q, and what accept/reject makes of them.

Sources: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192: Algorithm 1, Theorem 3.5, Appendices
A.1, A.5); Chen et al. 2023 (arXiv 2302.01318: Algorithm 2). p and q are the laws *after*
temperature, top-k, top-p and min-p (`models.sampling_rules`): the rule preserves those, not the
raw softmax. The last axis is the vocabulary; leading axes broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SUM_TOLERANCE = 1e-6
"""How far a law may sum from 1: float32 softmax over 10^5 tokens stays within it."""

NO_REJECTION = 1e-14
"""Rejected mass below this is rounding of p = q: no residual exists."""

Correction = Literal["residual", "unchanged_target", "none"]
"""What is drawn after a rejection; only `residual` gives the target law back."""


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
        wrong = np.atleast_1d(sums)[np.atleast_1d(off)][0]
        raise ValueError(f"{name} sums to {wrong:.9g} (a law sums to 1)")
    return law


def checked_pair(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p and q as broadcast float64 laws over one vocabulary.

    Raises ValueError for values that are no laws, or for two vocabulary sizes.
    """
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

    With lenience l: Σ min(p/l, q) (Appendix A.5). p, q (..., vocabulary); returns (...).
    Raises ValueError for values that are no laws.

    >>> float(acceptance_probability([0.6, 0.3, 0.1], [0.5, 0.25, 0.25]))
    0.85
    """
    target, draft = checked_pair(p, q)
    beta = np.minimum(target / checked_lenience(lenience), draft).sum(axis=-1)
    # A sum of thousands of terms may pass 1 by rounding; a probability may not.
    return np.asarray(np.minimum(beta, 1.0))


def independent_matching(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Chance that a draw from p equals an independent draw from q: Σ p q. Returns (...).

    What "sample from both and compare" accepts: less than β, even when the laws are equal.

    >>> round(float(independent_matching([0.6, 0.3, 0.1], [0.6, 0.3, 0.1])), 12)
    0.46
    """
    target, draft = checked_pair(p, q)
    return np.asarray((target * draft).sum(axis=-1))


@dataclass(frozen=True)
class Law:
    """What one position's accept/reject step does; arrays as `output_law` documents them."""

    target: NDArray[np.float64]
    draft: NDArray[np.float64]
    lenience: float
    acceptance: NDArray[np.float64]
    accepted_mass: NDArray[np.float64]
    beta: NDArray[np.float64]
    rejected_mass: NDArray[np.float64]
    residual: NDArray[np.float64]
    correction: NDArray[np.float64]
    output: NDArray[np.float64]

    @property
    def total_variation(self) -> NDArray[np.float64]:
        """Distance of the output law from the target law: ½ Σ |output − p|. Shape (...)."""
        return np.asarray(0.5 * np.abs(self.output - self.target).sum(axis=-1))

    @property
    def largest_error(self) -> NDArray[np.float64]:
        """Largest change of one token's probability: max |output − p|. Shape (...)."""
        return np.asarray(np.abs(self.output - self.target).max(axis=-1))


def output_law(
    p: ArrayLike, q: ArrayLike, lenience: float = 1.0, correction: Correction = "residual"
) -> Law:
    """Return the exact law of the token that one accept/reject step commits.

    acceptance(x) = min(1, p/(l q)); accepted mass = min(q, p/l); β = its sum; residual =
    max(0, p − q)/Σ max(0, p − q); output = accepted mass + (1 − β)·correction
    (Leviathan Algorithm 1; the proof of Appendix A.1 is output = p at l = 1 with the residual).
    `correction` is the law drawn from after a rejection: the residual (right), `unchanged_target`
    (p again: wrong) or `none` (the rejected token is skipped: output = accepted mass/β, wrong).

    p, q and every array of the result (..., vocabulary), β (...). NaN marks what does not exist:
    the acceptance of a token that is never proposed (q = 0), and the residual at p = q.
    Raises ValueError for values that are no laws, or when `none` leaves nothing (β = 0).

    >>> law = output_law([0.6, 0.3, 0.1], [0.5, 0.25, 0.25])
    >>> [round(float(x), 12) for x in law.residual]
    [0.666666666667, 0.333333333333, 0.0]
    >>> [round(float(x), 12) for x in law.output]
    [0.6, 0.3, 0.1]
    """
    target, draft = checked_pair(p, q)
    raised = target / checked_lenience(lenience)
    proposed = draft > 0
    acceptance = np.full(draft.shape, np.nan)
    np.divide(raised, draft, out=acceptance, where=proposed)
    acceptance = np.minimum(acceptance, 1.0)
    accepted = np.minimum(draft, raised)
    beta = np.minimum(accepted.sum(axis=-1), 1.0)
    # Σ max(0, q − p/l), not 1 − β: exactly 0 where nothing can be rejected, no cancellation.
    rejected = np.maximum(draft - raised, 0.0).sum(axis=-1)
    rejected = np.where(rejected < NO_REJECTION, 0.0, rejected)
    residual = _residual(target, draft)
    redrawn = np.broadcast_to(target, residual.shape) if correction != "residual" else residual
    if correction == "none":
        if (beta == 0).any():
            raise ValueError("β is 0: skipping every rejected token commits nothing (β above 0)")
        output = accepted / beta[..., None]
        redrawn = np.full_like(residual, np.nan)
    else:
        output = accepted + np.where(
            rejected[..., None] > 0, rejected[..., None] * np.nan_to_num(redrawn), 0.0
        )
    return Law(
        target, draft, lenience, acceptance, accepted, beta, rejected, residual, redrawn, output
    )


def _residual(target: NDArray[np.float64], draft: NDArray[np.float64]) -> NDArray[np.float64]:
    """max(0, p − q) normalised; NaN where p = q."""
    excess = np.maximum(target - draft, 0.0)
    mass = excess.sum(axis=-1, keepdims=True)
    residual = np.full(excess.shape, np.nan)
    np.divide(excess, mass, out=residual, where=mass >= NO_REJECTION)
    return residual
