"""One round in the long run, for every γ at once: what the speedup of a grid is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.acceptance import Acceptance
from specplan.models.conversions import checked_unconditional, probabilities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def tokens_per_synchronized_round(
    unconditional: ArrayLike, batch: ArrayLike
) -> tuple[Floats, Floats]:
    """Tokens per round of the slowest and the fastest of `batch` independent sequences.

    1 + Σ A_i^b and 1 + Σ (1 − (1 − A_i)^b): an engine that keeps its batch in step (padded, no
    ragged commit) advances by the first. unconditional (..., γ), batch (...) → two arrays (...).

    >>> [float(x.round(6)) for x in tokens_per_synchronized_round([0.8, 0.64, 0.512, 0.4096], 2)]
    [2.479516, 4.243684]
    """
    lists = checked_unconditional(unconditional)
    size = np.asarray(batch, dtype=np.float64)[..., None]
    return 1 + (lists**size).sum(axis=-1), 1 + (1 - (1 - lists) ** size).sum(axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class RoundFigures:
    """Long-run figures of one round for every γ = 0..positions, on the last axis.

    - tokens: E, committed tokens; variance: of that number
    - drafting: share of rounds that propose
    - fully_accepted: share of rounds that propose and keep every token
    """

    tokens: Floats
    variance: Floats
    drafting: Floats
    fully_accepted: Floats


def round_figures(
    acceptance: Acceptance | ArrayLike, draft_probability: ArrayLike = 1.0
) -> RoundFigures:
    """Figures of a round for γ = 0..positions, from lists (..., positions) or an Acceptance.

    With several laws a *round* belongs to law l with chance ∝ w_l/E_l: requests with small E have
    more rounds, so tokens = 1/Σ w_l/E_l. `draft_probability` goes with lists only.

    >>> round_figures([0.5, 0.25]).tokens.tolist()
    [1.0, 1.5, 1.75]
    """
    if not isinstance(acceptance, Acceptance):
        return _figures(checked_unconditional(acceptance), np.asarray(draft_probability, float))
    laws = acceptance.spread()
    single = _figures(laws.unconditional, laws.draft_probability)
    share = laws.weight[:, None] / single.tokens
    tokens = 1 / share.sum(axis=0)
    share = share * tokens
    square = (share * (single.variance + single.tokens**2)).sum(axis=0)
    return RoundFigures(
        tokens,
        np.maximum(square - tokens**2, 0.0),
        (share * single.drafting).sum(axis=0),
        (share * single.fully_accepted).sum(axis=0),
    )


def _figures(lists: Floats, draft_probability: Floats) -> RoundFigures:
    chance = probabilities(draft_probability, "draft_probability")[..., None]
    positions = lists.shape[-1]
    lead = np.broadcast_shapes(lists.shape[:-1], chance.shape[:-1])
    tokens, square, full = (np.empty((*lead, positions + 1)) for _ in range(3))
    tokens[..., 0], square[..., 0], full[..., 0] = 1.0, 1.0, 0.0
    np.multiply(chance, lists, out=full[..., 1:])
    if positions > full[..., 0].size:
        tokens[..., 1:] = full[..., 1:]
        square[..., 1:] = (2 * np.arange(1, positions + 1) + 1) * full[..., 1:]
        np.cumsum(tokens, axis=-1, out=tokens)
        np.cumsum(square, axis=-1, out=square)
    else:  # few positions of many points: faster than cumsum along the short axis, equal to the bit
        for gamma in range(1, positions + 1):
            kept = full[..., gamma]
            np.add(tokens[..., gamma - 1], kept, out=tokens[..., gamma])
            np.add(square[..., gamma - 1], (2 * gamma + 1) * kept, out=square[..., gamma])
    # Rounding may leave −1e-16 where the true variance is 0 (every token accepted, or none).
    variance = np.maximum(square - tokens**2, 0.0)
    return RoundFigures(tokens, variance, chance * (np.arange(positions + 1) > 0), full)
