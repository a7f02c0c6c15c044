"""What acceptance figures mean: every conversion between them.

Symbols (MODEL.md §2): a_i conditional, A_i = Π_{j≤i} a_j unconditional, S = Σ A_i
accepted per round, τ = 1 + S tokens per round (with the bonus token), α the iid acceptance with
the same τ.
Per-position arrays keep positions 1..γ on their last axis; everything else broadcasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models.geometric import geometric_root, geometric_sum
from specplan.models.law import acceptance_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""How far sums of probabilities may be off 1 and lists may rise before they are refused."""


def probabilities(values: ArrayLike, name: str) -> Floats:
    """Return values as float64 once each is known to lie in [0, 1].

    Raises ValueError naming the first value outside.

    >>> probabilities(0.5, "alpha")
    array(0.5)
    """
    array = np.asarray(values, dtype=np.float64)
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise ValueError(f"{name} is {float(array[outside].flat[0])}; a probability lies in [0, 1]")
    return array


def unconditional_from_conditional(conditional: ArrayLike) -> Floats:
    """A_i = Π_{j≤i} a_j: chance that positions 1..i are all accepted (MODEL.md §2).

    conditional (..., γ) → (..., γ). Raises ValueError outside [0, 1].

    >>> unconditional_from_conditional([0.85, 0.78, 0.72, 0.65]).round(3).tolist()
    [0.85, 0.663, 0.477, 0.31]
    """
    conditional = probabilities(conditional, "conditional acceptance")
    return np.cumprod(conditional, axis=-1, dtype=np.float64)


def checked_unconditional(unconditional: ArrayLike) -> Floats:
    """Return the list (..., γ) once it is known to be probabilities that never rise.

    A_i ≤ A_{i−1} because position i is accepted only after i−1. Raises ValueError naming it.

    >>> checked_unconditional([0.7, 0.74])
    Traceback (most recent call last):
    ...
    ValueError: unconditional acceptance rises from 0.7 to 0.74 at position 2; \
it cannot rise, since position 2 needs position 1 (a list that rises is conditional)
    """
    array = np.atleast_1d(probabilities(unconditional, "unconditional acceptance"))
    rising = np.diff(array, axis=-1) > ROUNDING
    if rising.any():
        where = np.argwhere(rising)[0]
        position = int(where[-1]) + 1
        row = array[tuple(where[:-1])]
        raise ValueError(
            f"unconditional acceptance rises from {row[position - 1]:g} to {row[position]:g} "
            f"at position {position + 1}; it cannot rise, since position {position + 1} needs "
            f"position {position} (a list that rises is conditional)"
        )
    return array


def conditional_from_unconditional(unconditional: ArrayLike) -> Floats:
    """a_i = A_i / A_{i−1}, A_0 = 1; 0 at positions that are never reached (MODEL.md §2).

    unconditional (..., γ) → (..., γ). Raises ValueError when the list rises or leaves [0, 1].

    >>> conditional_from_unconditional([0.707, 0.453, 0.307, 0.253]).round(3).tolist()
    [0.707, 0.641, 0.678, 0.824]
    """
    array = checked_unconditional(unconditional)
    before = np.concatenate([np.ones_like(array[..., :1]), array[..., :-1]], axis=-1)
    ratio: Floats = np.divide(array, before, out=np.zeros_like(array), where=before > 0)
    return ratio


def unconditional_from_alpha(alpha: ArrayLike, gamma: int) -> Floats:
    """A_i = α^i for i = 1..γ (Leviathan et al. 2023, Definition 3.1).

    alpha (...) → (..., γ). Raises ValueError outside [0, 1].

    >>> unconditional_from_alpha(0.5, 3).tolist()
    [0.5, 0.25, 0.125]
    """
    powers = np.arange(1, checked_gamma(gamma) + 1)
    unconditional: Floats = probabilities(alpha, "alpha")[..., None] ** powers
    return unconditional


def checked_gamma(gamma: int) -> int:
    """Return γ once it is known to be a whole number ≥ 0; raises ValueError otherwise."""
    if isinstance(gamma, bool) or gamma != int(gamma) or gamma < 0:
        raise ValueError(f"gamma is {gamma!r}; it is a whole number of draft tokens, 0 or more")
    return int(gamma)


def first_positions(lists: Floats, gamma: int | None) -> Floats:
    """Cut lists (..., positions) to (..., γ); None keeps all. Raises ValueError when too short."""
    if gamma is None:
        return lists
    if checked_gamma(gamma) > lists.shape[-1]:
        raise ValueError(
            f"acceptance is known for {lists.shape[-1]} draft positions and gamma is {gamma}; "
            f"give {gamma} positions or name a rule to extrapolate"
        )
    return lists[..., :gamma]


def tokens_per_round_from_alpha(alpha: ArrayLike, gamma: ArrayLike) -> Floats:
    """E = (1 − α^{γ+1})/(1 − α), γ+1 at α = 1 (Leviathan et al. 2023, Eq. 1).

    alpha and gamma broadcast. Raises ValueError when α is outside [0, 1].

    >>> tokens_per_round_from_alpha(0.5, 2).tolist()
    1.75
    """
    return 1 + geometric_sum(probabilities(alpha, "alpha"), gamma)


def alpha_from_tokens_per_round(tokens_per_round: ArrayLike, gamma: ArrayLike) -> Floats:
    """Solve E(α, γ) = τ for α: the iid acceptance with the same tokens per round (bonus included).

    Broadcasts. Raises ValueError unless 1 ≤ τ ≤ γ + 1.

    >>> float(alpha_from_tokens_per_round(3.301, 4).round(3))
    0.791
    """
    tau, draft = np.broadcast_arrays(
        np.asarray(tokens_per_round, dtype=np.float64), np.asarray(gamma, dtype=np.float64)
    )
    outside = ~((tau >= 1 - ROUNDING) & (tau <= draft + 1 + ROUNDING))
    if outside.any():
        raise ValueError(
            f"tokens per round is {tau[outside].flat[0]:g} at gamma {draft[outside].flat[0]:g}; "
            f"with the bonus token it lies between 1 and gamma + 1 = {draft[outside].flat[0] + 1:g}"
        )
    return geometric_root(tau - 1, draft)


def conditional_from_pq(pairs: Sequence[tuple[ArrayLike, ArrayLike]]) -> Floats:
    """a_i = β_i = Σ_x min(p_i(x), q_i(x)) per position (Leviathan et al. 2023, Theorem 3.5).

    pairs: γ pairs of laws (tokens,) → (γ,). Raises ValueError when a law is negative, does not sum
    to one, or p and q have different lengths.

    >>> conditional_from_pq([([0.6, 0.3, 0.1], [0.5, 0.25, 0.25])]).round(12).tolist()
    [0.85]
    """
    found = []
    for position, (p, q) in enumerate(pairs, start=1):
        try:
            found.append(float(acceptance_probability(p, q)))
        except ValueError as error:
            raise ValueError(f"position {position}: {error}") from None
    return np.array(found)


def unconditional_from_histogram(rounds_by_accepted: ArrayLike) -> Floats:
    """A_i = (rounds that accepted ≥ i)/(all rounds), from counts of rounds by accepted k = 0..γ.

    rounds_by_accepted (..., γ+1) → (..., γ). Raises ValueError on negative or all-zero counts.

    >>> unconditional_from_histogram([5, 4, 2, 3, 2, 58]).round(4).tolist()  # AMUSD, HumanEval 0
    [0.9324, 0.8784, 0.8514, 0.8108, 0.7838]
    """
    counts = np.asarray(rounds_by_accepted, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts.sum(axis=-1) > 0).all()):
        raise ValueError(
            "a histogram of accepted lengths needs finite counts of 0 or more, not all 0; "
            f"got {counts.tolist()}"
        )
    reached = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    unconditional: Floats = reached[..., 1:] / reached[..., :1]
    return unconditional


def accepted_law(unconditional: ArrayLike) -> Floats:
    """P(k accepted) = A_k − A_{k+1} for k = 0..γ, with A_0 = 1 and A_{γ+1} = 0.

    unconditional (..., γ) → (..., γ+1), sums to 1.

    >>> accepted_law([0.5, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    """
    array = np.asarray(unconditional, dtype=np.float64)
    edge = np.ones_like(array[..., :1]) if array.shape[-1] else np.ones((*array.shape[:-1], 1))
    padded = np.concatenate([edge, array, np.zeros_like(edge)], axis=-1)
    law: Floats = padded[..., :-1] - padded[..., 1:]
    return law


def at_index(table: Floats, index: ArrayLike) -> Floats:
    """Pick table[..., index]: the last axis at index (...), which broadcasts with the leading axes.

    >>> at_index(np.array([10.0, 20.0, 30.0]), [2, 0]).tolist()
    [30.0, 10.0]
    """
    where = np.asarray(index, dtype=np.intp)
    if where.ndim == 0:
        return table[..., int(where)]
    lead = np.broadcast_shapes(table.shape[:-1], where.shape)
    full = np.broadcast_to(table, (*lead, table.shape[-1]))
    return np.take_along_axis(full, np.broadcast_to(where, lead)[..., None], axis=-1)[..., 0]
