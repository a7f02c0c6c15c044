"""Tokens per round, and finite outputs exactly, by recursion on the tokens left.

One round with `left` tokens to go proposes g = min(γ, left − 1), keeps the k ≤ g accepted ones and
commits k + 1 (MODEL.md §1). With chance 1 − draft_probability it proposes nothing and commits 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.acceptance import Acceptance
from specplan.models.conversions import (
    accepted_law,
    at_index,
    checked_gamma,
    checked_unconditional,
    first_positions,
    probabilities,
)
from specplan.models.recurrence import linear_recurrence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from specplan.models.round_costs import RoundCosts

    Floats = NDArray[np.float64]


def tokens_per_round(
    unconditional: ArrayLike, gamma: int | None = None, draft_probability: ArrayLike = 1.0
) -> Floats:
    """E = 1 + h Σ_{i≤γ} A_i, the bonus token included (MODEL.md §2; h = draft_probability).

    unconditional (..., positions) → (...). Raises ValueError on a list that rises or is too short.

    >>> tokens_per_round([0.707, 0.453, 0.307, 0.253]).round(3)  # vLLM logged 2.72
    np.float64(2.72)
    """
    lists = first_positions(checked_unconditional(unconditional), gamma)
    chance = probabilities(draft_probability, "draft_probability")
    tokens: Floats = 1 + chance * lists.sum(axis=-1)
    return tokens


def tokens_per_round_variance(
    unconditional: ArrayLike, gamma: int | None = None, draft_probability: ArrayLike = 1.0
) -> Floats:
    """Var = Σ_{i=1..γ+1} (2i − 1) P(X ≥ i) − E², P(X ≥ i + 1) = h A_i (MODEL.md §2).

    unconditional (..., positions) → (...). Raises ValueError on a list that rises or is too short.

    >>> tokens_per_round_variance([1, 1, 0.5, 0])  # minimum-variance schedule of τ = 3.5
    np.float64(0.25)
    """
    lists = first_positions(checked_unconditional(unconditional), gamma)
    kept = probabilities(draft_probability, "draft_probability")[..., None] * lists
    odd = 2 * np.arange(1, lists.shape[-1] + 1) + 1
    variance: Floats = 1 + (odd * kept).sum(axis=-1) - (1 + kept.sum(axis=-1)) ** 2
    return variance


@dataclass(frozen=True, slots=True, eq=False)
class FiniteOutput:
    """Exact expectations for one request of `output_tokens`; all arrays share one shape.

    accepted = output_tokens − rounds, as a round commits accepted + 1; drafted − accepted is waste.
    `drafting_rounds` propose at least one token; `catch_up_rounds` keep all they proposed and leave
    2 tokens or more, so that the draft has to ingest its own last token before it drafts again.
    """

    output_tokens: NDArray[np.int64]
    rounds: Floats
    drafting_rounds: Floats
    catch_up_rounds: Floats
    drafted_tokens: Floats
    accepted_tokens: Floats

    def draft_steps(self, *, one_pass: bool = False, extra_draft_step: bool = False) -> Floats:
        """Draft passes: one a drafted token (one a drafting round if `one_pass`), plus the extras.

        `extra_draft_step`: one more for each catch-up round.
        """
        steps = self.drafting_rounds if one_pass else self.drafted_tokens
        return steps + self.catch_up_rounds if extra_draft_step else steps


def finite_output(
    acceptance: Acceptance | ArrayLike,
    gamma: int,
    output_tokens: ArrayLike,
    draft_probability: ArrayLike = 1.0,
    proposed: ArrayLike = (),
) -> FiniteOutput:
    """Exact expected rounds and tokens of requests that rounds take from 0 to n tokens.

    rounds(L) = 1 + Σ_k P(k | g) rounds(L − k − 1), g = min(γ, L − 1) (MODEL.md §1, §3); not n/E.
    acceptance: lists (..., positions) or an Acceptance (mean over its requests); output_tokens
    (...) whole numbers ≥ 0. With a prefill that commits the first token, pass n − 1. proposed
    (γ+1,): mean tokens proposed by a drafting round that may propose 0..γ; empty: all of them.

    >>> finite_output([0.5, 0.25], 2, [1, 2, 3, 10, 128]).rounds.round(12).tolist()
    [1.0, 1.5, 2.0, 6.041015625, 73.469387755102]
    """
    lengths = _whole(output_tokens)
    laws = _lists(acceptance, gamma, draft_probability, lengths)
    gamma = laws[0].shape[-1]
    most = np.arange(gamma + 1, dtype=np.float64)
    found = np.asarray(proposed, dtype=np.float64)[: gamma + 1] if np.size(proposed) else most
    unit = np.ones(gamma + 1)
    # One row a count: rounds, drafting rounds, catch-up rounds, drafted tokens.
    spent = np.stack([unit, np.minimum(most, 1), 0 * unit, found])
    extra = np.array([0.0, 0.0, 1.0, 0.0])
    lead = laws[0].ndim - 2
    spent = spent.reshape(4, *(1,) * lead, gamma + 1)
    means, _ = _moments(laws, spent, extra.reshape(4, *(1,) * lead), int(lengths.max(initial=0)))
    rounds, drafting, caught_up, drafted = (at_index(row, lengths) for row in means)
    n = np.broadcast_to(lengths, rounds.shape)
    accepted = n - rounds
    return FiniteOutput(n, rounds, drafting, caught_up, drafted, accepted)


def mean_rounds(acceptance: Acceptance | ArrayLike, gamma: int, output_tokens: int) -> float:
    """Exact expected rounds of one request, without the other counts of `finite_output`.

    The round that ends a request leaves 0 tokens and adds no more rounds, clipped or not, so
    x(L) = 1 + Σ_{k≤γ} P(k) x(L − k − 1) with x = 0 below 1: one linear recurrence.

    >>> mean_rounds([0.5, 0.25], 2, 10)
    6.041015625
    """
    left = _whole(output_tokens)
    lists, chance, weight = _lists(acceptance, gamma, 1.0, left)
    commits = chance[..., None] * accepted_law(lists)
    commits[..., 0] += 1 - chance
    rounds = linear_recurrence(commits, np.ones(int(left)), np.zeros(commits.shape[-1]))
    return float(rounds[..., -1] @ weight) if left else 0.0


def generation_s_moments(
    acceptance: Acceptance | ArrayLike,
    gamma: int,
    output_tokens: ArrayLike,
    costs: RoundCosts,
    draft_probability: ArrayLike = 1.0,
) -> tuple[Floats, Floats]:
    """Exact first and second moment of the seconds one request decodes: (E[S], E[S²]), each (...).

    m(L) = Σ P(branch)(c + m(L')), s(L) = Σ P(branch)(c² + 2 c m(L') + s(L')) over the branches of
    one round (MODEL.md §3). For random lengths average both moments over the shares of the lengths.
    Where proposals vary in length, a branch costs the mean over them: E[S] stays exact.
    The extra draft step is charged after a fully accepted round that leaves 2 tokens or more: with
    fewer nothing is drafted any more. (With draft_probability < 1 it is charged even if none of the
    later rounds proposes.)

    >>> from specplan.models.round_costs import round_costs
    >>> costs = round_costs(step_s=0.1, verify_s=0.1, draft_step_s=0.02)
    >>> [float(x.round(9)) for x in generation_s_moments([0.5, 0.25], 2, 2, costs)]
    [0.17, 0.0314]
    """
    lengths = _whole(output_tokens)
    laws = _lists(acceptance, gamma, draft_probability, lengths)
    longest = int(lengths.max(initial=0))
    seconds = costs.by_proposals(laws[0].shape[-1])
    means, squares = _moments(laws, seconds, costs.extra_draft_step_s, longest)
    return at_index(means, lengths), at_index(squares, lengths)


def _lists(
    acceptance: Acceptance | ArrayLike,
    gamma: int,
    draft_probability: ArrayLike,
    lengths: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats]:
    """Return lists (..., laws, γ), draft probability (..., laws) and weight (laws,).

    γ is cut to what the longest output can draft, as deeper is clipped in every round. A γ of 1
    stays: its rounds cost the overhead of drafting even where nothing is drafted.
    """
    reach = min(checked_gamma(gamma), max(int(lengths.max(initial=0)), 1))
    if isinstance(acceptance, Acceptance):
        laws = acceptance.truncated(gamma).truncated(reach).spread()
        return laws.unconditional, laws.draft_probability, laws.weight
    lists = first_positions(checked_unconditional(acceptance), gamma)[..., None, :reach]
    chance = probabilities(draft_probability, "draft_probability")[..., None]
    return lists, chance, np.ones(1)


def _moments(
    laws: tuple[Floats, Floats, Floats], round_s: Floats, extra_s: Floats, longest: int
) -> tuple[Floats, Floats]:
    """Moments (..., longest+1) of the cost of 0..longest tokens, averaged over the laws."""
    lists, chance, weight = laws
    gamma = lists.shape[-1]
    cost, extra = round_s[..., None, :], extra_s[..., None]
    lead = np.broadcast_shapes(lists.shape[:-1], chance.shape, cost.shape[:-1], extra.shape)
    mean, square = np.zeros((*lead, 1)), np.zeros((*lead, 1))
    # g = min(γ, left − 1), and a fully accepted round leaves 2 tokens or more only from γ + 3 on.
    clipped = min(gamma + 2, longest)
    for left in range(1, clipped + 1):
        g = min(gamma, left - 1)
        chances, spent, spent_2 = _branches(lists[..., :g], chance, cost, np.zeros(1))
        back, back_2 = (past[..., ::-1][..., : g + 1] for past in (mean, square))
        new = spent.sum(axis=-1) + (chances * back).sum(axis=-1)
        new_2 = spent_2 + (2 * spent * back + chances * back_2).sum(axis=-1)
        mean = np.append(mean, np.broadcast_to(new, lead)[..., None], axis=-1)
        square = np.append(square, np.broadcast_to(new_2, lead)[..., None], axis=-1)
    if longest > clipped:  # from here on every round is like the others
        chances, spent, spent_2 = _branches(lists, chance, cost, extra)
        constant = np.broadcast_to(spent.sum(axis=-1)[..., None], (*lead, longest - clipped))
        past, past_2 = (known[..., -gamma - 1 :] for known in (mean, square))
        mean = np.concatenate([mean, linear_recurrence(chances, constant, past)], axis=-1)
        windows = np.lib.stride_tricks.sliding_window_view(mean[..., 2:-1], gamma + 1, axis=-1)
        crossed = (windows @ spent[..., ::-1, None])[..., 0]
        inputs = spent_2[..., None] + 2 * crossed
        square = np.concatenate([square, linear_recurrence(chances, inputs, past_2)], axis=-1)
    return np.moveaxis(mean, -2, -1) @ weight, np.moveaxis(square, -2, -1) @ weight


def _branches(
    lists: Floats, chance: Floats, cost: Floats, extra: Floats
) -> tuple[Floats, Floats, Floats]:
    """Ways a round that may propose g tokens can end, by the tokens it commits, 1..g + 1.

    Chance (..., g+1), chance × cost (..., g+1), and Σ chance × cost² (...).
    """
    g = lists.shape[-1]
    drafted = chance[..., None] * accepted_law(lists)
    plain = np.zeros(g + 1)
    plain[0] = 1.0
    missed = (1 - chance)[..., None] * plain
    seconds = cost[..., g, None] + extra[..., None] * (np.arange(g + 1) == g) * (g > 0)
    plain_s = cost[..., :1]
    spent = drafted * seconds + missed * plain_s
    spent_2 = (drafted * seconds**2 + missed * plain_s**2).sum(axis=-1)
    return drafted + missed, spent, spent_2


def _whole(output_tokens: ArrayLike) -> NDArray[np.int64]:
    lengths = np.asarray(output_tokens)
    bad = ~((lengths >= 0) & (lengths == np.floor(lengths)))
    if bad.any():
        raise ValueError(
            f"output_tokens is {lengths[bad].flat[0]:g}; it is a whole number, 0 or more"
        )
    return lengths.astype(np.int64)
