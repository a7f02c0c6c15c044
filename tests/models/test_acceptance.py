"""Acceptance: known conversions from papers and engines, and laws every conversion obeys."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from specplan.models.acceptance import (
    Acceptance,
    accepted_law,
    alpha_from_tokens_per_round,
    conditional_from_pq,
    conditional_from_unconditional,
    tokens_per_round_from_alpha,
    unconditional_from_alpha,
    unconditional_from_conditional,
    unconditional_from_histogram,
)
from specplan.models.heterogeneity import beta_nodes

chance = st.floats(0, 1)
conditional_lists = st.lists(chance, min_size=1, max_size=8)


def test_worked_example_of_the_model_page() -> None:
    unconditional = unconditional_from_conditional([0.85, 0.78, 0.72, 0.65])
    assert_allclose(unconditional, [0.850, 0.663, 0.477, 0.310], atol=5e-4)
    assert_allclose(unconditional.sum(), 2.301, atol=5e-4)
    assert_allclose(unconditional.sum() / 4, 0.575, atol=5e-4)
    assert_allclose(alpha_from_tokens_per_round(3.301, 4), 0.791, atol=5e-4)
    # The two misreadings that the page warns of.
    assert_allclose(tokens_per_round_from_alpha(0.575, 4) / 3.301 - 1, -0.33, atol=5e-3)
    assert_allclose(4.301 / 3.301 - 1, 0.30, atol=5e-3)


@pytest.mark.parametrize(
    ("unconditional", "conditional"),
    [  # vLLM "SpecDecoding metrics" log lines: published.json vllm-log-perpos-1 and -3
        ([0.707, 0.453, 0.307, 0.253], [0.707, 0.640736, 0.677704, 0.824104]),
        ([0.723, 0.455, 0.291, 0.16], [0.723, 0.629322, 0.63956, 0.549828]),
    ],
)
def test_vllm_rates_per_position_are_unconditional(
    unconditional: list[float], conditional: list[float]
) -> None:
    assert_allclose(conditional_from_unconditional(unconditional), conditional, atol=5e-7)
    assert_allclose(unconditional_from_conditional(conditional), unconditional, atol=5e-6)


@pytest.mark.parametrize(
    ("tau", "gamma", "alpha", "within"),
    [
        (1 + 526 / 146, 5, 0.8927, 2e-3),  # reports.json C17: 526 of 730 drafts accepted, 5 a round
        (3.25, 5, 0.7449, 1e-3),  # D06, EAGLE#169
        (1 + 0.728 * 2, 2, 0.806, 1e-3),  # C29: block 3 is gamma 2
        (1 + 0.731 * 5, 5, 0.897, 1e-3),
        (6.4, 16, 0.856, 5e-3),  # C18
        (2.9, 4, 0.7236, 1e-4),  # published.json chen-t1: XSum nucleus, XSum greedy, HumanEval
        (3.036, 4, 0.7475, 1e-4),
        (3.716, 4, 0.851, 1e-4),
        (1.85, 1, 0.85, 1e-12),  # DeepSeek-V3 MTP, arXiv 2412.19437 §5.4.3
        (5.0, 4, 1.0, 1e-12),
        (1.0, 13, 0.0, 1e-12),  # D22: acceptance 0 at every position
    ],
)
def test_equivalent_alpha_of_reports(tau: float, gamma: int, alpha: float, within: float) -> None:
    assert_allclose(alpha_from_tokens_per_round(tau, gamma), alpha, atol=within)


def test_iid_prediction_over_gamma() -> None:
    # published.json golden-glm-5.2: iid from α = .84 at γ 1..8
    predicted = tokens_per_round_from_alpha(0.84, np.arange(1, 9))
    assert_allclose(predicted, [1.84, 2.546, 3.138, 3.636, 4.054, 4.406, 4.701, 4.949], atol=6e-4)


def test_pq_pairs_give_beta_per_position() -> None:
    # MODEL.md §3 seed case, and published.json lev-beta (Leviathan Theorem 3.5): 1 − D_LK = .7
    pairs = [([0.6, 0.3, 0.1], [0.5, 0.25, 0.25]), ([0.5, 0.3, 0.2], [0.2, 0.5, 0.3])]
    assert_allclose(conditional_from_pq(pairs), [0.85, 0.7], atol=1e-12)
    unconditional = unconditional_from_conditional(conditional_from_pq(pairs))
    assert_allclose(unconditional, [0.85, 0.595], atol=1e-12)


def test_histogram_of_amusd_humaneval_sample_0() -> None:
    # published.json amusd-trace-humaneval0: committed 1..6 in 5, 4, 2, 3, 2, 58 rounds
    unconditional = unconditional_from_histogram([5, 4, 2, 3, 2, 58])
    assert_allclose(unconditional, [0.9324, 0.8784, 0.8514, 0.8108, 0.7838], atol=5e-5)
    assert_allclose(
        Acceptance.from_histogram([5, 4, 2, 3, 2, 58]).tokens_per_round(), 5.2568, atol=5e-5
    )


def test_requests_that_differ_average_over_tokens_not_over_rounds() -> None:
    # published.json hetero-alpha (Jensen): .5 and .9 in equal shares at gamma 5
    parts = [Acceptance.from_alpha(alpha, 5) for alpha in (0.5, 0.9)]
    mixed = Acceptance.mixture([0.5, 0.5], parts)
    assert_allclose(mixed.tokens_per_round(), 2.772553, atol=1e-5)
    assert_allclose(np.mean([p.tokens_per_round() for p in parts]), 3.32717, atol=1e-5)
    assert_allclose(tokens_per_round_from_alpha(0.7, 5), 2.94117, atol=1e-5)


@pytest.mark.parametrize(("alpha", "kappa"), [(0.5, 2.0), (0.7, 1.0), (0.8, 8.0), (0.9, 300.0)])
def test_beta_quadrature_equals_integration(alpha: float, kappa: float) -> None:
    law = stats.beta(alpha * kappa, (1 - alpha) * kappa)

    def per_token(quantile: float) -> float:
        return float(1 / tokens_per_round_from_alpha(law.ppf(quantile), 4))

    inverse = integrate.quad(per_token, 0, 1, limit=400)[0]
    acceptance = Acceptance.from_alpha(alpha, 4, concentration=kappa)
    assert_allclose(acceptance.tokens_per_round(), 1 / inverse, rtol=1e-6)


@settings(max_examples=30)
@given(st.floats(0.01, 0.99), st.floats(0.05, 1e6))
def test_beta_quadrature_has_the_moments_of_the_law(alpha: float, kappa: float) -> None:
    nodes, weights = beta_nodes(alpha, kappa)
    assert_allclose(weights.sum(), 1, rtol=1e-12)
    assert_allclose(weights @ nodes, alpha, rtol=1e-9)
    variance = alpha * (1 - alpha) / (kappa + 1)
    assert_allclose(weights @ (nodes - alpha) ** 2, variance, rtol=1e-6, atol=1e-12)


def test_lists_of_single_requests_follow_the_beta_law() -> None:
    acceptance = Acceptance.from_alpha(0.7, 3, concentration=5.0)
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    lists = acceptance.request_lists(np.zeros(20_000, dtype=int), quantiles)
    assert_allclose(lists[:, 0].mean(), 0.7, atol=1e-4)
    assert_allclose(lists[:, 0].var(), 0.7 * 0.3 / 6, rtol=1e-3)
    assert_allclose(lists[:, 2], lists[:, 0] ** 3, rtol=1e-12)
    assert_allclose(
        1 / (1 / (1 + lists.sum(axis=1))).mean(), acceptance.tokens_per_round(), rtol=1e-4
    )


@given(conditional_lists)
def test_conditional_and_unconditional_invert_each_other(conditional: list[float]) -> None:
    unconditional = unconditional_from_conditional(conditional)
    back = conditional_from_unconditional(unconditional)
    # abs: underflow of tiny products loses the conditional, never the unconditional
    assert_allclose(unconditional_from_conditional(back), unconditional, rtol=1e-9, atol=1e-300)


@given(chance, st.integers(1, 64))
def test_alpha_inverts_tokens_per_round(alpha: float, gamma: int) -> None:
    tau = tokens_per_round_from_alpha(alpha, gamma)
    assert_allclose(tau, 1 + unconditional_from_alpha(alpha, gamma).sum(), rtol=1e-12)
    assert_allclose(alpha_from_tokens_per_round(tau, gamma), alpha, rtol=1e-9, atol=1e-12)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=9).filter(any))
def test_histogram_and_its_law_agree(counts: list[int]) -> None:
    law = accepted_law(unconditional_from_histogram(counts))
    assert_allclose(law, np.array(counts) / sum(counts), atol=1e-12)


def test_recorded_lengths_keep_their_law_and_their_order() -> None:
    acceptance = Acceptance.from_recorded([0, 2, 3, 1], positions=3)
    assert acceptance.recorded is not None
    assert acceptance.recorded.tolist() == [0, 2, 3, 1]
    assert acceptance.tokens_per_round() == 2.5
    cut = acceptance.truncated(2)
    assert cut.recorded is not None
    assert cut.recorded.tolist() == [0, 2, 2, 1]
    assert cut.tokens_per_round() == 2.25


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Acceptance.from_alpha(1.0000001, 2),
            r"alpha is 1.0000001; a probability lies in \[0, 1\]",
        ),
        (lambda: Acceptance.from_alpha(float("nan"), 2), "alpha is nan"),
        (lambda: Acceptance.from_alpha(0.5, -1), "gamma is -1"),
        (
            lambda: Acceptance.from_unconditional([0.7, 0.74, 0.78, 0.8]),  # reports.json D32
            "rises from 0.7 to 0.74 at position 2",
        ),
        (lambda: Acceptance.from_unconditional([0.5]).truncated(2), "known for 1 draft positions"),
        (lambda: alpha_from_tokens_per_round(0.4, 3), "tokens per round is 0.4 at gamma 3"),
        (lambda: alpha_from_tokens_per_round(5.0, 3), r"between 1 and gamma \+ 1 = 4"),
        (lambda: conditional_from_pq([([0.6, 0.3], [0.5, 0.5])]), "position 1: p sums to 0.9"),
        (lambda: conditional_from_pq([([1.0], [0.5, 0.5])]), "p has 1 tokens and q has 2"),
        (lambda: Acceptance.from_histogram([0, 0]), "not all 0"),
        (lambda: Acceptance.from_recorded([0, 5], 4), "recorded length is 5 at round 2"),
        (lambda: Acceptance.from_recorded([], 4), "at least one"),
        (lambda: Acceptance.from_unconditional([0.5], 1.5), "draft_probability is 1.5"),
        (lambda: Acceptance.from_alpha(0.5, 2, concentration=0.0), "concentration is 0"),
        (lambda: Acceptance.from_unconditional([0.5, 0.4], 1.0, 4.0), "needs an iid law"),
        (lambda: Acceptance.mixture([0.5, 0.4], [Acceptance.from_alpha(0.5, 2)] * 2), "sum to 0.9"),
        (lambda: Acceptance.mixture([1.0], []), "mixture of 0 parts"),
        (
            lambda: Acceptance.mixture([1.0], [Acceptance.from_recorded([1], 2)]),
            "cannot replay recorded",
        ),
    ],
)
def test_impossible_acceptance_is_refused_with_its_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make()
