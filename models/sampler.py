"""Monte Carlo of the real algorithm: draft a block, keep a prefix, correct at the first rejection.

Chen et al. 2023 (arXiv 2302.01318) Algorithm 2 with a seed, for a block whose position i has the
target law p_i and the draft law q_i whatever came before, so that the exact law of the token
committed at position i, given that the round commits one there, is p_i, and a χ² test applies.
Two wrong variants are kept for teaching; the test shows them failing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from specplan.models.law import Law, checked_law, output_law

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Rule = Literal["exact", "unchanged_target", "skip_rejected"]

LEAST_EXPECTED = 5.0
"""Cells with fewer expected counts are pooled, the usual bound for the χ² approximation."""

DRAFTS_AT_ONCE = 4_000_000
"""Drafts judged together: any number of rounds runs in one memory."""

MOST_DRAFTS = 1_000_000_000
"""Rounds × γ of one run, minutes of work; a law that is off by 1e-4 fails long before."""


@dataclass(frozen=True)
class Sample:
    """Counts from `rounds` simulated rounds of a block of γ drafts.

    tokens (γ+1, vocabulary): committed tokens by output position of the round; accepted_lengths
    (γ+1,): rounds that accepted exactly k drafts.
    """

    rounds: int
    tokens: NDArray[np.int64]
    accepted_lengths: NDArray[np.int64]

    @property
    def tokens_per_round(self) -> float:
        """Committed tokens / rounds."""
        return float(self.tokens.sum() / self.rounds)


@dataclass(frozen=True)
class ChiSquare:
    """A χ² statistic, its degrees of freedom, and the chance of a larger one under the law."""

    statistic: float
    freedom: int
    p_value: float


def sample_rounds(
    p: ArrayLike,
    q: ArrayLike,
    bonus: ArrayLike,
    *,
    rounds: int,
    seed: int,
    rule: Rule = "exact",
    lenience: float = 1.0,
) -> Sample:
    """Run `rounds` rounds of a block: p, q (γ, vocabulary) by position, bonus law (vocabulary,).

    `exact` keeps the contiguous accepted prefix, then draws from the residual at the first
    rejection or from `bonus` after none. `unchanged_target` draws from p instead of the residual.
    `skip_rejected` leaves a rejected token out and goes on accepting later drafts.
    Raises ValueError for values that are no laws, fewer than one round or more than `MOST_DRAFTS`.

    >>> sample = sample_rounds([[0.6, 0.4]], [[0.6, 0.4]], [1.0, 0.0], rounds=1000, seed=1)
    >>> sample.accepted_lengths.tolist()
    [0, 1000]
    """
    if rounds < 1:
        raise ValueError(f"draws is {rounds} (at least 1)")
    law = output_law(np.atleast_2d(p), np.atleast_2d(q), lenience)
    last = checked_law(bonus, "bonus")
    gamma = len(law.draft)
    if rounds * gamma > MOST_DRAFTS:
        raise ValueError(
            f"draws is {rounds} of {gamma} drafts each (at most {MOST_DRAFTS // gamma} draws)"
        )
    rng = np.random.Generator(np.random.PCG64(seed))
    redraw = law.residual if rule == "exact" else law.target
    tokens = np.zeros((gamma + 1, last.size), dtype=np.int64)
    lengths = np.zeros(gamma + 1, dtype=np.int64)
    at_once = max(DRAFTS_AT_ONCE // gamma, 1)
    for done in range(0, rounds, at_once):
        drafts, accepted = _draft_and_judge(law, min(at_once, rounds - done), rng)
        if rule == "skip_rejected":
            part = _skipping(last, drafts, accepted, rng)
        else:
            part = _prefix(redraw, last, drafts, accepted, rng)
        tokens += part.tokens
        lengths += part.accepted_lengths
    return Sample(rounds, tokens, lengths)


def _draft_and_judge(
    law: Law, rounds: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    gamma = law.draft.shape[0]
    drafts = np.empty((rounds, gamma), dtype=np.int64)
    accepted = np.empty((rounds, gamma), dtype=np.bool_)
    for i in range(gamma):
        drafts[:, i] = _draw(law.draft[i], rounds, rng)
        accepted[:, i] = rng.random(rounds) < law.acceptance[i, drafts[:, i]]
    return drafts, accepted


def _prefix(
    redraw: NDArray[np.float64],
    bonus: NDArray[np.float64],
    drafts: NDArray[np.int64],
    accepted: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Sample:
    rounds, gamma = drafts.shape
    kept = np.logical_and.accumulate(accepted, axis=1).sum(axis=1)
    tokens = np.zeros((gamma + 1, bonus.size), dtype=np.int64)
    for i in range(gamma):
        tokens[i] += _count(drafts[kept > i, i], tokens.shape[1])
        rejections = int((kept == i).sum())
        if rejections:
            tokens[i] += _count(_draw(redraw[i], rejections, rng), tokens.shape[1])
    tokens[gamma] += _count(_draw(bonus, int((kept == gamma).sum()), rng), tokens.shape[1])
    return Sample(rounds, tokens, np.bincount(kept, minlength=gamma + 1))


def _skipping(
    bonus: NDArray[np.float64],
    drafts: NDArray[np.int64],
    accepted: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Sample:
    rounds, gamma = drafts.shape
    tokens = np.zeros((gamma + 1, bonus.size), dtype=np.int64)
    place = np.cumsum(accepted, axis=1) - 1
    for i in range(gamma):
        for j in range(i + 1):
            here = accepted[:, i] & (place[:, i] == j)
            tokens[j] += _count(drafts[here, i], tokens.shape[1])
    lengths = accepted.sum(axis=1)
    extra = _draw(bonus, rounds, rng)
    for j in range(gamma + 1):
        tokens[j] += _count(extra[lengths == j], tokens.shape[1])
    return Sample(rounds, tokens, np.bincount(lengths, minlength=gamma + 1))


def _draw(law: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    cumulative = np.cumsum(law)
    # Scaling by the last entry keeps a sum of 1 − 1e-16 from ever drawing a token of law 0.
    luck = rng.random(size) * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, luck, side="right"), dtype=np.int64)


def _count(tokens: NDArray[np.int64], vocabulary: int) -> NDArray[np.int64]:
    return np.asarray(np.bincount(tokens, minlength=vocabulary), dtype=np.int64)


def chi_square(counts: ArrayLike, laws: ArrayLike) -> ChiSquare:
    """Test `counts` (..., cells) against `laws` (..., cells), each row conditional on its total.

    χ² = Σ (observed − expected)²/expected over cells; cells below 5 expected are pooled within
    their row; an observed cell of law 0 refutes the law outright (p-value 0).

    >>> chi_square([30, 70], [0.5, 0.5]).statistic
    16.0
    """
    from scipy.special import chdtrc  # 0.1 s at import, needed only for tests

    statistic, freedom = 0.0, 0
    for observed, law in zip(np.atleast_2d(counts), np.atleast_2d(laws), strict=True):
        expected = law * observed.sum()
        if (observed[law == 0] > 0).any():
            return ChiSquare(float("inf"), freedom + 1, 0.0)
        rare = expected < LEAST_EXPECTED
        cells_seen = np.append(observed[~rare], observed[rare].sum())
        cells_due = np.append(expected[~rare], expected[rare].sum())
        if cells_due[-1] < LEAST_EXPECTED and cells_due.size > 1:
            cells_seen[-2] += cells_seen[-1]
            cells_due[-2] += cells_due[-1]
            cells_seen, cells_due = cells_seen[:-1], cells_due[:-1]
        if cells_due.size > 1:
            statistic += float(((cells_seen - cells_due) ** 2 / cells_due).sum())
            freedom += cells_due.size - 1
    return ChiSquare(statistic, freedom, float(chdtrc(freedom, statistic)) if freedom else 1.0)
