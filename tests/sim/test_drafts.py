"""Kinds of draft and of acceptance, each against its formula."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.acceptance import Acceptance
from specplan.models.round_costs import round_costs
from specplan.models.rounds import finite_output, generation_s_moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

N = 60
MANY = ("workload.requests=4000", f"workload.output_tokens={N}")


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and 4.5 standard errors."""
    return float(values.mean()), 4.5 * float(values.std(ddof=1)) / np.sqrt(len(values))


def assert_mean(values: np.ndarray, exact: float) -> None:
    """The mean of independent values agrees with theory."""
    mean, error = interval(np.asarray(values, np.float64))
    assert mean == pytest.approx(exact, abs=max(error, 1e-9))


def test_tree_keeps_the_sum_over_its_nodes(run: Callable[..., Run]) -> None:
    """Full tree of width 2, depth 3, ranks .6 and .2: A = .8, .64, .512 (Sequoia, Theorem 3.1)."""
    done = run(
        "speculation.method=tree",
        "speculation.gamma=null",
        "speculation.tree={width: 2, depth: 3}",
        "speculation.acceptance={ranks: [0.6, 0.2]}",
        *MANY,
    )
    law = np.array([0.8, 0.64, 0.512])
    exact = finite_output(law, 3, N)
    assert_mean(done.requests["rounds"], float(exact.rounds))
    # Σ over nodes of the product of ranks on the path: 2 nodes, 4 nodes, 8 nodes.
    ranks = (0.6, 0.2)
    nodes = sum(np.prod(path) for depth in (1, 2, 3) for path in product(ranks, repeat=depth))
    assert nodes == pytest.approx(law.sum())


def test_width_of_a_pruned_tree(run: Callable[..., Run]) -> None:
    """Nodes 2 + 1 + 1 on three levels: 4 drafted tokens and a pass of 5, whatever the depth."""
    done = run(
        "speculation.method=tree",
        "speculation.gamma=null",
        "speculation.tree={nodes: [[0], [1], [0, 0], [0, 0, 0]]}",
        "speculation.acceptance={ranks: [1.0, 0.0]}",
        "target.round={linear: {base: 10 ms, per_token: 1 ms}}",
        "draft.step={linear: {base: 2 ms, per_token: 0.1 ms}}",
        "workload.output_tokens=4",
        "workload.requests=2",
    )
    # Levels read 1, then 2, then 1 nodes: 2.1 + 2.2 + 2.1 ms of draft, then 10 + 5 ms.
    assert done.requests["finish_s"][0] == pytest.approx(0.0064 + 0.015)
    assert done.requests["drafted_tokens"].tolist() == [4, 4]
    assert done.requests["accepted_tokens"].tolist() == [3, 3]


def test_one_pass_draft_costs_one_step(run: Callable[..., Run]) -> None:
    done = run("speculation.method=one_pass", "speculation.gamma=2", *MANY).requests
    costs = round_costs(0.1, 0.1, 0.02, one_pass=True)
    first, second = generation_s_moments([0.5, 0.25], 2, N, costs)
    spent_s = done["finish_s"] - done["arrival_s"]
    assert_mean(spent_s, float(first))
    assert_mean(spent_s**2, float(second))


@pytest.mark.parametrize("hit", [0.0, 0.3, 1.0])
def test_ngram_rounds_that_find_nothing_cost_a_plain_step(
    run: Callable[..., Run], hit: float
) -> None:
    done = run(
        "speculation.method=ngram",
        "draft.step=0 ms",
        "target.round=130 ms",
        f"speculation.draft_probability={hit}",
        *MANY,
    )
    exact = finite_output([0.5, 0.25], 2, N, hit)
    assert_mean(done.requests["rounds"], float(exact.rounds))
    assert_mean(done.requests["drafted_tokens"], float(exact.drafted_tokens))
    first, _ = generation_s_moments([0.5, 0.25], 2, N, round_costs(0.1, 0.13, 0.0), hit)
    assert_mean(done.requests["finish_s"] - done.requests["arrival_s"], float(first))


def test_extra_draft_step_after_a_full_round(run: Callable[..., Run]) -> None:
    done = run("speculation.extra_draft_step=true", "speculation.acceptance={alpha: 0.8}", *MANY)
    costs = round_costs(0.1, 0.1, 0.02, extra_draft_step=True)
    first, second = generation_s_moments([0.8, 0.64], 2, N, costs)
    spent_s = done.requests["finish_s"] - done.requests["arrival_s"]
    assert_mean(spent_s, float(first))
    assert_mean(spent_s**2, float(second))


def test_extra_draft_step_of_a_perfect_draft(run: Callable[..., Run]) -> None:
    """γ 2, α 1, 7 tokens: rounds of 3, 3, 1; the second drafts 3 times, the last not at all."""
    done = run(
        "speculation.extra_draft_step=true",
        "speculation.acceptance={alpha: 1}",
        "workload.output_tokens=7",
        "workload.requests=2",
    )
    assert done.requests["finish_s"][0] == pytest.approx(0.14 + 0.16 + 0.1)


def stopped(kept: np.ndarray, if_accepted: float, if_rejected: float) -> tuple[float, float]:
    """E[drafted], E[kept] of one full round, by going through every way it can go."""
    gamma = len(kept) - 1
    drafted = accepted = 0.0
    for k, chance in enumerate(kept):
        going = chance
        for depth in range(1, gamma + 1):
            stop = if_accepted if depth <= k else if_rejected
            ends = going if depth == gamma else going * stop
            drafted += ends * depth
            accepted += ends * min(k, depth)
            going -= ends
    return drafted, accepted


@pytest.mark.parametrize(("if_accepted", "if_rejected"), [(0.0, 1.0), (0.2, 0.5), (1.0, 0.0)])
def test_confidence_stop(run: Callable[..., Run], if_accepted: float, if_rejected: float) -> None:
    """Requests of γ + 1 tokens: their first round is full; the others are not looked at."""
    done = run(
        "speculation.gamma=4",
        "speculation.acceptance={alpha: 0.7}",
        f"speculation.confidence_stop={{if_accepted: {if_accepted}, if_rejected: {if_rejected}}}",
        "workload.output_tokens=3000",
        "workload.requests=40",
    ).requests
    law = np.array([0.3, 0.21, 0.147, 0.1029, 0.2401])  # .7^k·.3, and .7^4
    drafted, kept = stopped(law, if_accepted, if_rejected)
    # 3000 tokens a request: its last rounds, which are clipped, weigh less than a part in 500.
    for name, exact in (("drafted_tokens", drafted), ("accepted_tokens", kept)):
        mean, error = interval(done[name] / done["rounds"])
        assert mean == pytest.approx(exact, abs=error + exact / 500)


def test_mixture_of_kinds_of_request(run: Callable[..., Run]) -> None:
    done = run(
        "speculation.acceptance={mixture: [{weight: 3, alpha: 0.2}, {weight: 1, alpha: 0.9}]}",
        *MANY,
    ).requests
    lists = [np.array([0.2, 0.04]), np.array([0.9, 0.81])]
    exact = [float(finite_output(one, 2, N).rounds) for one in lists]
    assert_mean(done["rounds"], 0.75 * exact[0] + 0.25 * exact[1])
    slow = done["rounds"] > sum(exact) / 2  # the two kinds are ten standard deviations apart
    assert_mean(slow, 0.75)


def test_classes_with_acceptance_of_their_own(run: Callable[..., Run]) -> None:
    done = run(
        "workload.classes={code: {weight: 1, acceptance: {alpha: 0.9}}, "
        "chat: {weight: 3, acceptance: {alpha: 0.2}, draft_probability: 0.5}}",
        "workload.requests=8000",
        f"workload.output_tokens={N}",
    ).requests
    code, chat = done["rounds"][done["cls"] == 0], done["rounds"][done["cls"] == 1]
    assert_mean(done["cls"], 0.75)
    assert_mean(code, float(finite_output([0.9, 0.81], 2, N).rounds))
    assert_mean(chat, float(finite_output([0.2, 0.04], 2, N, 0.5).rounds))


def test_requests_that_differ(run: Callable[..., Run]) -> None:
    """α ~ Beta(ακ, (1 − α)κ): the mean of rounds is a mean over requests, τ a ratio of sums."""
    done = run(
        "speculation.acceptance={alpha: 0.6, concentration: 4}",
        "workload.requests=8000",
        f"workload.output_tokens={N}",
    )
    acceptance = Acceptance.from_alpha(0.6, 2, 1.0, 4.0)
    assert_mean(done.requests["rounds"], float(finite_output(acceptance, 2, N).rounds))
    # By quadrature over the Beta density B(2.4, 1.6): E[n/τ(α)] over tokens is harmonic in τ.
    grid = (np.arange(200_000) + 0.5) / 200_000
    density = grid**1.4 * (1 - grid) ** 0.6
    exact = 1 / np.average(1 / (1 + grid + grid**2), weights=density)
    assert float(acceptance.tokens_per_round(2)) == pytest.approx(exact, rel=1e-3)
    # Clipping: the last round of a request is at most as long as what is left.
    seen = done.requests["output_tokens"].sum() / done.rounds
    assert seen == pytest.approx(exact, rel=0.03)
    assert seen != pytest.approx(1 + 0.6 + np.average(grid**2, weights=density), rel=0.03)


def test_recorded_lengths_are_replayed(run: Callable[..., Run]) -> None:
    """Each request goes through the record in order from a place of its own, round by round."""
    record = [0, 3, 1, 2, 0, 1, 3, 3, 0, 2]
    done = run(
        "speculation.gamma=3",
        f"speculation.acceptance={{recorded: {record}}}",
        "workload.output_tokens=21",
        "workload.requests=3000",
    ).requests

    def rounds(begin: int) -> int:
        left, made = 21, 0
        while left:
            left -= min(record[(begin + made) % len(record)], left - 1, 3) + 1
            made += 1
        return made

    ways = np.array([rounds(begin) for begin in range(len(record))])
    seen, expected = np.bincount(done["rounds"]), np.bincount(ways) / len(record)
    assert_mean(done["rounds"], ways.mean())
    assert len(seen) == len(expected)
    assert seen / 3000 == pytest.approx(expected, abs=4.5 * np.sqrt(0.25 / 3000))


def test_recorded_lengths_at_a_smaller_gamma(run: Callable[..., Run]) -> None:
    done = run(
        "speculation.gamma=2",
        "speculation.acceptance={recorded: [4, 4, 4], at_gamma: 4}",
        "workload.output_tokens=9",
        "workload.requests=2",
    ).requests
    assert done["rounds"].tolist() == [3, 3]
