"""Rounds: exact figures from theory and published recursions, and brute force over every path."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.acceptance import (
    Acceptance,
    accepted_law,
    unconditional_from_alpha,
    unconditional_from_conditional,
)
from specplan.models.long_run import round_figures, tokens_per_synchronized_round
from specplan.models.round_costs import RoundCosts, round_costs
from specplan.models.rounds import (
    finite_output,
    generation_s_moments,
    mean_rounds,
    tokens_per_round,
    tokens_per_round_variance,
)

chance = st.floats(0, 1)
unconditional_lists = st.lists(chance, min_size=1, max_size=5).map(
    lambda values: np.cumprod(values).tolist()
)


def test_mean_rounds_of_the_toy_scenario() -> None:
    # issue 2: gamma 2, alpha .5, n = 1, 2, 3, 10, 128
    output = finite_output([0.5, 0.25], 2, [1, 2, 3, 10, 128])
    assert_allclose(output.rounds, [1, 1.5, 2, 6.041015625, 73.46938775510203], rtol=1e-13)


@pytest.mark.parametrize(
    ("alpha", "gamma", "draft_s", "n", "rounds", "steps", "cost", "sd"),
    [  # published.json finite-*: boundary rule min(gamma, left − 1), verify = one target step
        (0.8, 5, 0.1, 1, 1.0, 0.0, 1.0, 0.0),
        (0.8, 5, 0.1, 6, 2.0, 7.0, 2.7, 1.0807),
        (0.8, 5, 0.1, 64, 17.85398, 85.204067, 26.374387, 3.314),
        (0.8, 5, 0.1, 128, 35.201539, 171.941859, 52.395724, 4.6972),
        (0.7, 3, 0.05, 64, 25.688702, 74.697374, 29.423571, 2.8334),
        (0.6, 4, 0.2, 128, 55.984741, 219.601696, 99.90508, 8.0901),
    ],
    ids=[
        *("finite-a0.8-g5-N1", "finite-a0.8-g5-N6", "finite-a0.8-g5-N64", "finite-a0.8-g5-N128"),
        *("finite-a0.7-g3-N64", "finite-a0.6-g4-N128"),
    ],
)
def test_published_finite_outputs(
    alpha: float,
    gamma: int,
    draft_s: float,
    n: int,
    rounds: float,
    steps: float,
    cost: float,
    sd: float,
) -> None:
    lists = unconditional_from_alpha(alpha, gamma)
    output = finite_output(lists, gamma, n)
    assert_allclose([output.rounds, output.draft_steps()], [rounds, steps], atol=1e-5)
    mean, square = generation_s_moments(lists, gamma, n, round_costs(1.0, 1.0, draft_s))
    assert_allclose(mean, cost, atol=1e-5)
    assert_allclose(np.sqrt(np.maximum(square - mean**2, 0)), sd, atol=1e-4)


@pytest.mark.parametrize(
    ("alpha", "draft_s", "gamma", "n", "cost"),
    [  # published.json dsi-si-exact: speculative inference of the DSI simulator
        (0.9, 0.1, 5, 1000, 320.512929),
        (0.8, 0.1, 5, 100, 41.011389),
        (0.5, 0.25, 1, 100, 83.444444),
        (0.9, 0.5, 1, 100, 79.058169),
        (0.1, 0.9, 1, 100, 172.066116),
    ],
)
def test_dsi_simulator_exactly(
    alpha: float, draft_s: float, gamma: int, n: int, cost: float
) -> None:
    lists = unconditional_from_alpha(alpha, gamma)
    mean, _ = generation_s_moments(lists, gamma, n, round_costs(1.0, 1.0, draft_s))
    assert_allclose(mean, cost, atol=1e-4)


@pytest.mark.parametrize(
    ("alpha", "gamma", "mean", "variance"),
    [  # published.json variance
        (0.8, 5, 3.68928, 3.864093),
        (0.7, 3, 2.533, 1.534911),
        (0.6, 4, 2.3056, 1.962609),
        (0.9, 10, 6.861894, 14.252066),
    ],
)
def test_variance_of_the_capped_geometric(
    alpha: float, gamma: int, mean: float, variance: float
) -> None:
    lists = unconditional_from_alpha(alpha, gamma)
    assert_allclose(tokens_per_round(lists), mean, rtol=1e-5)
    assert_allclose(tokens_per_round_variance(lists), variance, rtol=1e-5)


def test_batch_in_step_advances_by_its_slowest() -> None:
    # published.json sync-batch-min: alpha .8, gamma 4
    lists = unconditional_from_alpha(0.8, 4)
    slowest, fastest = tokens_per_synchronized_round(lists, [1, 2, 4, 8, 16, 32])
    assert_allclose(slowest, [3.3616, 2.479516, 1.674239, 1.201434, 1.028963, 1.000793], atol=1e-5)
    assert_allclose(fastest, [3.3616, 4.243684, 4.803389, 4.981736, 4.999772, 5.0], atol=1e-5)


def test_minimum_variance_schedule() -> None:
    # published.json synthetic-al: conditional 1, 1, .5, 0 has tau 3.5 and variance .25
    assert_allclose(tokens_per_round([1, 1, 0.5, 0]), 3.5, atol=1e-9)
    assert_allclose(tokens_per_round_variance([1, 1, 0.5, 0]), 0.25, atol=1e-9)


def test_round_costs_to_the_letter() -> None:
    costs = round_costs(1.0, [1.5, 2.0], 0.25, overhead_s=0.125, extra_draft_step=True)
    # T + o; d + V(2) + o; 2d + V(3) + o
    assert_allclose(costs.by_proposals(2), [1.125, 1.875, 2.625])
    assert_allclose(costs.by_proposals(0), [1.0])  # the baseline pays no overhead
    one_pass = round_costs(1.0, [1.5, 2.0], 0.25, one_pass=True)
    assert_allclose(one_pass.by_proposals(2), [1.0, 1.75, 2.25])


def brute_force(
    lists: list[float], gamma: int, n: int, costs: RoundCosts, hit: float
) -> np.ndarray:
    """Every path of rounds with its probability: [(probability, rounds, drafted, seconds)]."""
    by_proposals, extra = costs.by_proposals(gamma), float(costs.extra_draft_step_s)
    finished, paths = [], [(1.0, n, 0, 0, 0.0)]
    while paths:
        probability, left, rounds, drafted, seconds = paths.pop()
        if left == 0:
            finished.append((probability, rounds, drafted, seconds))
            continue
        g = min(gamma, left - 1)
        for k, share in enumerate(accepted_law(np.array(lists[:g]))):
            cost = by_proposals[g] + (extra if k == g > 0 and left - k - 1 >= 2 else 0)
            paths.append(
                (probability * hit * share, left - k - 1, rounds + 1, drafted + g, seconds + cost)
            )
        missed = seconds + by_proposals[0]
        paths.append((probability * (1 - hit), left - 1, rounds + 1, drafted, missed))
    return np.array(finished).T


@settings(max_examples=40)
@given(unconditional_lists, st.integers(0, 6), chance, st.booleans(), st.booleans())
def test_recursion_equals_enumeration_of_every_path(
    lists: list[float], n: int, hit: float, one_pass: bool, extra: bool
) -> None:
    gamma = len(lists)
    verify = np.linspace(1.1, 1.9, gamma)
    costs = round_costs(
        1.0, verify, 0.3, overhead_s=0.05, one_pass=one_pass, extra_draft_step=extra
    )
    share, rounds, drafted, seconds = brute_force(lists, gamma, n, costs, hit)
    output = finite_output(lists, gamma, n, hit)
    assert_allclose(share.sum(), 1, rtol=1e-12)
    assert_allclose(output.rounds, share @ rounds, rtol=1e-12)
    assert_allclose(output.drafted_tokens, share @ drafted, rtol=1e-12, atol=1e-12)
    assert_allclose(output.accepted_tokens, n - share @ rounds, rtol=1e-9, atol=1e-12)
    moments = generation_s_moments(lists, gamma, n, costs, hit)
    assert_allclose(moments, [share @ seconds, share @ seconds**2], rtol=1e-12, atol=1e-12)
    steps = output.draft_steps(one_pass=one_pass, extra_draft_step=extra)
    verify_free = round_costs(1.0, 0.0, 1.0, one_pass=one_pass, extra_draft_step=extra)
    drafting, _ = generation_s_moments(lists, gamma, n, verify_free, hit)
    assert_allclose(
        drafting, steps + output.rounds - output.drafting_rounds, rtol=1e-12, atol=1e-12
    )


@given(unconditional_lists, unconditional_lists, st.integers(1, 40))
def test_more_acceptance_never_needs_more_rounds(
    one: list[float], other: list[float], n: int
) -> None:
    gamma = min(len(one), len(other))
    low, high = np.minimum(one[:gamma], other[:gamma]), np.maximum(one[:gamma], other[:gamma])
    assert finite_output(high, gamma, n).rounds <= finite_output(low, gamma, n).rounds + 1e-9


@given(unconditional_lists, st.integers(1, 60))
def test_bounds_of_finite_outputs(lists: list[float], n: int) -> None:
    gamma = len(lists)
    output = finite_output(lists, gamma, n)
    assert np.ceil(n / (gamma + 1)) - 1e-9 <= output.rounds <= n + 1e-9
    assert output.drafted_tokens >= output.accepted_tokens - 1e-9
    # Wald with clipping: the last round may stop short, so n/E is a lower bound.
    assert output.rounds >= n / tokens_per_round(lists) - 1e-9


def test_certain_acceptance_and_certain_rejection() -> None:
    assert_allclose(finite_output([1, 1, 1], 3, [1, 4, 5, 8, 9]).rounds, [1, 1, 2, 2, 3])
    assert_allclose(finite_output([0, 0, 0], 3, [1, 4, 9]).rounds, [1, 4, 9])
    assert_allclose(finite_output([0.5], 0, 7).rounds, 7)
    assert_allclose(finite_output([0.5], 1, 0).rounds, 0)


def test_laws_are_averaged_over_requests() -> None:
    parts = [Acceptance.from_alpha(0.5, 3), Acceptance.from_alpha(0.9, 3, draft_probability=0.6)]
    mixed = Acceptance.mixture([0.25, 0.75], parts)
    singles = [finite_output(p, 3, [1, 7, 30]).rounds for p in parts]
    assert_allclose(
        finite_output(mixed, 3, [1, 7, 30]).rounds, 0.25 * singles[0] + 0.75 * singles[1]
    )
    costs = round_costs([1.0, 2.0], 1.2, 0.1)
    squares = [generation_s_moments(p, 3, 7, costs)[1] for p in parts]
    assert_allclose(
        generation_s_moments(mixed, 3, 7, costs)[1], 0.25 * squares[0] + 0.75 * squares[1]
    )


def test_long_run_of_laws_is_the_limit_of_long_outputs() -> None:
    parts = [Acceptance.from_alpha(0.5, 3), Acceptance.from_alpha(0.9, 3, draft_probability=0.6)]
    mixed = Acceptance.mixture([0.25, 0.75], parts)
    figures, n = round_figures(mixed), 4000
    long = finite_output(mixed, 3, n)
    assert_allclose(n / long.rounds, figures.tokens[3], rtol=1e-3)
    assert_allclose(figures.tokens[3], mixed.tokens_per_round(3), rtol=1e-12)
    assert_allclose(long.drafting_rounds / long.rounds, figures.drafting[3], rtol=1e-3)
    assert_allclose(long.catch_up_rounds / long.rounds, figures.fully_accepted[3], rtol=2e-3)


@given(unconditional_lists, chance)
def test_figures_of_a_round_by_definition(lists: list[float], hit: float) -> None:
    figures = round_figures(lists, hit)
    for gamma in range(len(lists) + 1):
        law = hit * accepted_law(np.array(lists[:gamma]))
        law[0] += 1 - hit
        committed = np.arange(1, gamma + 2)
        mean = law @ committed
        assert_allclose(figures.tokens[gamma], mean, rtol=1e-12)
        assert_allclose(figures.variance[gamma], law @ (committed - mean) ** 2, atol=1e-12)
        assert 1 <= figures.tokens[gamma] <= gamma + 1 + 1e-12


def test_everything_broadcasts() -> None:
    lists = unconditional_from_alpha(np.array([0.2, 0.5, 0.8])[:, None], 3)  # (3, 1, 3)
    costs = round_costs(1.0, 1.0, np.array([0.1, 0.2]))  # (2,)
    mean, square = generation_s_moments(lists, 3, 10, costs)
    assert mean.shape == square.shape == (3, 2)
    for (i, alpha), (j, draft_s) in itertools.product(
        enumerate((0.2, 0.5, 0.8)), enumerate((0.1, 0.2))
    ):
        one, _ = generation_s_moments(
            unconditional_from_alpha(alpha, 3), 3, 10, round_costs(1.0, 1.0, draft_s)
        )
        assert_allclose(mean[i, j], one, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: finite_output([0.5], 1, 2.5), "output_tokens is 2.5"),
        (lambda: finite_output([0.5], 1, -1), "output_tokens is -1"),
        (lambda: finite_output([0.5], 2, 3), "known for 1 draft positions and gamma is 2"),
        (lambda: tokens_per_round([0.5, 0.6]), "rises from 0.5 to 0.6"),
        (lambda: round_costs(0.0, 1.0, 0.1), "step_s is 0; it is finite and above 0"),
        (lambda: round_costs(1.0, 1.0, -0.1), "draft_step_s is -0.1; it is finite and 0 or more"),
        (lambda: round_costs(1.0, np.inf, 0.1), "verify_s is inf"),
        (lambda: round_costs(1.0, [1.0, 1.1], 0.1).by_proposals(3), "verify_s has 2 entries"),
    ],
)
def test_bad_input_is_refused_with_its_value(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.integers(0, 40),
    st.floats(0, 1),
)
def test_mean_rounds_are_those_of_the_whole_recursion(
    conditional: list[float], n: int, hit: float
) -> None:
    law = Acceptance.from_unconditional(unconditional_from_conditional(conditional), hit)
    gamma = len(conditional)
    assert_allclose(mean_rounds(law, gamma, n), finite_output(law, gamma, n).rounds, rtol=1e-12)


def test_drafting_beyond_the_output_is_clipped() -> None:
    """γ = 400 and γ = n − 1 are the same rounds of an output of n tokens (MODEL.md §1)."""
    lists = unconditional_from_alpha(0.9, 400)
    costs = round_costs(0.1, 0.1, 0.02, overhead_s=0.01)
    for n in (1, 2, 7):
        gamma = max(n - 1, 1)
        deep, near = (finite_output(lists, g, n) for g in (400, gamma))
        assert (deep.rounds, deep.drafted_tokens) == (near.rounds, near.drafted_tokens)
        assert mean_rounds(lists, 400, n) == pytest.approx(float(near.rounds), rel=1e-12)
        seconds = [generation_s_moments(lists, g, n, costs)[0] for g in (400, gamma)]
        assert seconds[0] == seconds[1]
    assert float(generation_s_moments(lists, 400, 1, costs)[0]) == pytest.approx(0.11)
