"""γ that moves by request: the long run of Hugging Face's heuristic schedule as a Markov chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import checked_unconditional

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveGamma:
    """Long run over rounds of a γ that moves.

    - share (positions+1,): share of rounds at each γ = 0..positions
    - mean_gamma: E[γ], draft tokens a round; tokens_per_round: E[τ], so seconds per token are
      (E[γ]·d + E[V] + overhead)/E[τ]
    """

    share: Floats
    mean_gamma: float
    tokens_per_round: float


def adaptive_gamma(
    unconditional: ArrayLike, *, increase: int = 2, decrease: int = 1, lowest: int = 1
) -> AdaptiveGamma:
    """Solve γ → γ + increase after a fully accepted round, else → max(lowest, γ − decrease).

    transformers 4.49 `candidate_generator.py`, `num_assistant_tokens_schedule: heuristic`. The list
    (positions,) also caps γ at its length: give enough positions for a cap that is never felt.
    Raises ValueError unless 1 ≤ lowest ≤ positions and both moves are 1 or more.

    >>> chain = adaptive_gamma(0.8 ** np.arange(1, 200))
    >>> round(chain.mean_gamma, 4), round(chain.tokens_per_round, 5)
    (5.4483, 3.67324)
    """
    lists = checked_unconditional(unconditional)
    positions = len(lists)
    if not 1 <= lowest <= positions or increase < 1 or decrease < 1:
        raise ValueError(
            f"lowest is {lowest}, increase {increase}, decrease {decrease} with {positions} "
            f"positions; each is 1 or more and lowest at most the positions"
        )
    gammas = np.arange(lowest, positions + 1)
    states = np.arange(len(gammas))
    full = lists[gammas - 1]
    moves = np.zeros((len(gammas), len(gammas)))
    moves[states, np.minimum(states + increase, states[-1])] += full
    moves[states, np.maximum(states - decrease, 0)] += 1 - full
    # Stationary: share·(P − I) = 0 and Σ share = 1; one equation of the first is redundant.
    system = moves.T - np.eye(len(gammas))
    system[-1] = 1.0
    own = np.linalg.solve(system, np.eye(len(gammas))[-1])
    tokens = 1 + np.cumsum(lists)
    share = np.zeros(positions + 1)
    share[gammas] = own
    return AdaptiveGamma(share, float(own @ gammas), float(own @ tokens[gammas - 1]))
