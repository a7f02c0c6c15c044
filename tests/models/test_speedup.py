"""Predict: the seed cases, the papers' tables, and laws over whole grids."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.acceptance import Acceptance, unconditional_from_alpha
from specplan.models.round_costs import round_costs
from specplan.models.speedup import Prediction, predict

alphas = st.floats(0, 1)


def iid(alpha: float, gamma: int, draft_s: float) -> Prediction:
    """Return the prediction in units of one target step, with verify = one step (Leviathan)."""
    positions = max(gamma, 1)
    return predict(
        unconditional_from_alpha(alpha, positions), gamma, round_costs(1.0, 1.0, draft_s)
    )


def test_toy_20ms() -> None:
    toy = predict([0.5, 0.25], 2, round_costs(0.1, 0.1, 0.02), output_tokens=128)
    assert_allclose(toy.tokens_per_round, 1.75, rtol=1e-12)
    assert_allclose(toy.round_s, 0.140, rtol=1e-12)
    assert_allclose(toy.tpot_s, 0.080, rtol=1e-12)
    assert_allclose(toy.speedup, 1.25, rtol=1e-12)
    assert_allclose(toy.round_cost_ratio, 1.4, rtol=1e-12)
    assert_allclose(toy.break_even_draft_step_s, (1.75 * 0.1 - 0.1) / 2, rtol=1e-12)
    # α + α² = .4
    assert_allclose(toy.break_even_alpha, (np.sqrt(2.6) - 1) / 2, rtol=1e-12)
    assert_allclose(toy.speedup_perfect_draft, 3 * 0.1 / 0.14, rtol=1e-12)
    assert_allclose(toy.speedup_free_draft, 1.75, rtol=1e-12)
    assert_allclose(toy.target_reads_per_token, 1 / 1.75, rtol=1e-12)
    assert_allclose(toy.operations_factor, 3 / 1.75, rtol=1e-12)
    assert_allclose(toy.rounds, 73.46938775510203, rtol=1e-12)
    assert_allclose(toy.generation_s, toy.rounds * 0.1 + toy.draft_steps * 0.02, rtol=1e-12)
    assert_allclose(toy.baseline_generation_s, 12.8, rtol=1e-12)
    # .4 of the 2 drafts of a round are rejected: 2 − .75 = 1.25 of 2
    assert_allclose(toy.wasted_draft_s_per_token, 1.25 * 0.02 / 1.75, rtol=1e-12)
    assert_allclose([toy.best_gamma, toy.best_gamma_speedup], [1, 1.25], rtol=1e-12)


def test_toy_50ms_is_slower_than_plain_decoding() -> None:
    toy = predict([0.5, 0.25], 2, round_costs(0.1, 0.1, 0.05))
    assert_allclose(toy.tpot_s, 0.2 / 1.75, rtol=1e-12)
    assert_allclose(toy.tpot_s, 0.1142857, atol=1e-7)
    assert_allclose(toy.speedup, 0.875, rtol=1e-12)
    assert_allclose(toy.round_cost_ratio, 2.0, rtol=1e-12)
    assert_allclose(toy.break_even_alpha, (np.sqrt(5) - 1) / 2, rtol=1e-12)  # α + α² = 1


@pytest.mark.parametrize(
    ("alpha", "gamma", "operations", "tokens"),
    [  # Leviathan et al. 2023, Table 1
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
    ids=["lev-t1-1", "lev-t1-2", "lev-t1-3", "lev-t1-4", "lev-t1-5", "lev-t1-6"],
)
def test_leviathan_table_1(alpha: float, gamma: int, operations: float, tokens: float) -> None:
    row = iid(alpha, gamma, 0.0)
    assert_allclose(row.operations_factor, operations, atol=5e-3)
    assert_allclose(row.speedup, tokens, atol=5e-3)


@pytest.mark.parametrize(
    ("gamma", "alpha", "draft", "printed", "formula"),
    [  # Leviathan et al. 2023, Table 4 (App. A.3): Theorem 3.8
        (7, 0.75, 0.02, 3.2, 3.157499),
        (7, 0.80, 0.04, 3.3, 3.25089),
        (7, 0.62, 0.02, 2.3, 2.258001),
        (5, 0.68, 0.04, 2.4, 2.346699),
        (3, 0.71, 0.11, 2.0, 1.933843),
        (5, 0.65, 0.02, 2.4, 2.401509),
        (3, 0.74, 0.11, 2.0, 2.02468),
        (5, 0.53, 0.02, 1.9, 1.891365),
        (3, 0.55, 0.04, 1.8, 1.802567),
        (3, 0.56, 0.11, 1.6, 1.540764),
        (3, 0.20, 0.0, 1.25, 1.248),  # §4.2, bigram draft
        (1, 0.80, 0.1, 1.64, 1.6363636363636365),  # Corollary 3.9
        (8, 0.75, 0.015, 3.3, 3.303269),  # App. A.5
        (8, 0.80, 0.015, 3.9, 3.865099),
        (8, 0.87, 0.015, 4.9, 4.906977),
    ],
    ids=[
        *("lev-t4-1", "lev-t4-2", "lev-t4-4", "lev-t4-5", "lev-t4-6", "lev-t4-7", "lev-t4-9"),
        *("lev-t4-10", "lev-t4-11", "lev-t4-12", "lev-eq1-bigram", "lev-cor39"),
        *("lev-a5-lenience-t0 1", "lev-a5-lenience-t0 3", "lev-a5-lenience-t0 4"),
    ],
)
def test_leviathan_theorem_3_8(
    gamma: int, alpha: float, draft: float, printed: float, formula: float
) -> None:
    row = iid(alpha, gamma, draft)
    assert_allclose(row.speedup, formula, atol=1e-6)
    assert_allclose(row.speedup, printed, atol=0.07)


def test_best_gamma_of_leviathan() -> None:
    # published.json lev-gamma-opt: argmax of Theorem 3.8, one call for the whole list
    alpha = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.8, 0.8, 0.8, 0.8, 0.9, 0.9])
    draft = np.array([0.05, 0.05, 0.05, 0.05, 0.05, 0.01, 0.02, 0.1, 0.2, 0.01, 0.1])
    lists = unconditional_from_alpha(alpha, 40)
    grid = predict(lists, 0, round_costs(1.0, 1.0, draft))
    assert grid.best_gamma.tolist() == [3, 4, 6, 8, 13, 14, 11, 6, 4, 24, 10]
    expected = [
        1.6304,
        1.9213,
        2.3529,
        3.0921,
        4.6741,
        4.2316,
        3.8167,
        2.4696,
        1.8676,
        7.4856,
        3.4309,
    ]
    assert_allclose(grid.best_gamma_speedup, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("draft", "break_even"),
    [
        (0.5961, [0.5961, 0.7009, 0.7627, 0.8034, 0.8322]),  # reports.json C01
        (0.3465, [0.3465, 0.4711, 0.5569, 0.619, 0.666]),  # C13
    ],
)
def test_break_even_alpha_of_reports(draft: float, break_even: list[float]) -> None:
    gamma = np.arange(1, 6)
    grid = predict(np.zeros(5), gamma, round_costs(1.0, 1.0, draft))
    assert_allclose(grid.break_even_alpha, break_even, atol=2e-4)


def test_no_acceptance_pays_when_drafting_costs_a_step_each() -> None:
    # C01: c = 1 breaks even only at α = 1, c = 2 never
    grid = predict(np.full(3, 0.9), 3, round_costs(1.0, 1.0, np.array([1.0, 2.0])))
    assert_allclose(grid.break_even_alpha, [1.0, np.nan], equal_nan=True)
    assert grid.speedup[1] < 1
    dear = predict(np.full(3, 0.1), 3, round_costs(1.0, 2.5, 0.0))
    assert np.isnan(dear.break_even_draft_step_s)


def test_perfect_draft_of_chen_2023() -> None:
    # published.json chen-t1: 14.1 ms target, 1.8 ms draft, gamma 4
    chen = predict(np.full(4, 1.0), 4, round_costs(14.1e-3, 14.1e-3, 1.8e-3))
    assert_allclose([chen.speedup, chen.speedup_perfect_draft], 3.30986, atol=1e-5)


def test_reports_with_flat_verify() -> None:
    assert_allclose(iid(0.7, 4, 5 / 30).speedup, 1.664, rtol=5e-3)  # C52
    assert_allclose(iid(0.7, 4, 1.5 / 30).speedup, 2.311, rtol=5e-3)
    assert_allclose(iid(0.8, 4, 0.1).speedup, 2.4011, rtol=1e-3)  # D13
    assert_allclose(iid(0.0, 13, 1.5 / 30).speedup, 0.6061, atol=1e-3)  # D22
    assert_allclose(iid(0.81293, 5, 15.175 / 25.458).speedup, 0.955, atol=1e-3)  # C01
    assert_allclose(iid(1.0, 5, 15.175 / 25.458).speedup, 1.507, atol=1e-3)


def test_extra_step_and_verify_ratio_reproduce_amusd() -> None:
    # published.json amusd-trace-humaneval0: 1.24 measured, 1.449 without both
    counts = np.array([5, 4, 2, 3, 2, 58])
    acceptance = Acceptance.from_histogram(counts)
    step_s, verify_s, draft_s = 22.251e-3, 26.628e-3, 11.69e-3
    honest = predict(acceptance, 5, round_costs(step_s, verify_s, draft_s, extra_draft_step=True))
    naive = predict(acceptance, 5, round_costs(step_s, step_s, draft_s))
    assert_allclose(naive.speedup, 1.449, atol=2e-3)
    assert_allclose(honest.speedup, 1.24, rtol=5e-3)
    # 58 of 74 rounds were fully accepted: 5 + 58/74 draft steps a round
    assert_allclose(honest.round_s, (5 + 58 / 74) * draft_s + verify_s, rtol=1e-12)


def test_one_pass_drafting_moves_the_best_gamma_out() -> None:
    # published.json p-eagle-al: one draft pass for all γ moves the optimum from 3 to 7
    lists = unconditional_from_alpha(0.7, 7)
    chain = predict(lists, 7, round_costs(1.0, 1.0, 0.15))
    one_pass = predict(lists, 7, round_costs(1.0, 1.0, 0.15, one_pass=True))
    assert chain.best_gamma == 3
    assert one_pass.best_gamma == 7


@settings(max_examples=60)
@given(
    st.lists(alphas, min_size=1, max_size=6),
    st.integers(0, 6),
    st.floats(0, 2),
    st.floats(1, 3),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
    st.floats(0.01, 1),
)
def test_laws_of_every_prediction(
    values: list[float],
    gamma: int,
    draft: float,
    verify: float,
    overhead: float,
    one_pass: bool,
    extra: bool,
    hit: float,
) -> None:
    lists = np.cumprod(values)
    gamma = min(gamma, len(values))
    costs = round_costs(
        1.0, verify, draft, overhead_s=overhead, one_pass=one_pass, extra_draft_step=extra
    )
    got = predict(lists, gamma, costs, draft_probability=hit)
    assert 1 <= got.tokens_per_round <= 1 + hit * gamma + 1e-9
    assert_allclose(got.speedup * got.tpot_s, 1.0, rtol=1e-12)
    parts = got.draft_s_per_token + got.verify_s_per_token + got.overhead_s_per_token
    assert_allclose(parts, got.tpot_s, rtol=1e-12)
    assert -1e-12 <= got.wasted_draft_s_per_token <= got.draft_s_per_token + 1e-12
    assert got.best_gamma_speedup >= np.maximum(1.0, got.speedup - 1e-12)
    assert got.speedup_free_draft >= got.speedup - 1e-12
    if gamma == 0:
        assert got.speedup == got.tpot_s == got.round_s == got.operations_factor == 1
        assert np.isnan(got.break_even_alpha)
        assert np.isnan(got.break_even_draft_step_s)
    if np.isfinite(got.break_even_draft_step_s):
        level = round_costs(
            1.0,
            verify,
            got.break_even_draft_step_s,
            overhead_s=overhead,
            one_pass=one_pass,
            extra_draft_step=extra,
        )
        assert_allclose(predict(lists, gamma, level, draft_probability=hit).speedup, 1, rtol=1e-9)
    if np.isfinite(got.break_even_alpha):
        level_lists = unconditional_from_alpha(got.break_even_alpha, len(values))
        even = predict(level_lists, gamma, costs, draft_probability=hit)
        assert_allclose(even.speedup, 1, rtol=1e-9)


@given(alphas, alphas, st.integers(1, 8), st.floats(0, 0.99))
def test_speedup_rises_with_acceptance_and_crosses_one_at_break_even(
    low: float, high: float, gamma: int, draft: float
) -> None:
    low, high = min(low, high), max(low, high)
    assert iid(low, gamma, draft).speedup <= iid(high, gamma, draft).speedup + 1e-12
    even = float(iid(low, gamma, draft).break_even_alpha)
    assert_allclose(iid(even, gamma, draft).speedup, 1, rtol=1e-9)


def test_a_grid_is_one_call_and_equals_its_points() -> None:
    gamma = np.arange(5)[:, None, None]
    draft = np.array([0.0, 0.1, 0.6])[:, None]
    alpha = np.array([0.0, 0.3, 0.8, 1.0])
    lists = unconditional_from_alpha(alpha, 4)
    verify = 1 + 0.1 * np.arange(4)
    grid = predict(
        lists,
        gamma,
        round_costs(1.0, verify, draft, overhead_s=0.02, extra_draft_step=True),
        draft_operations_ratio=0.05,
        output_tokens=9,
    )
    names = [f.name for f in fields(Prediction)]
    assert {getattr(grid, name).shape for name in names} == {(5, 3, 4)}
    for g, i, j in np.ndindex(5, 3, 4):
        costs = round_costs(1.0, verify, draft[i, 0], overhead_s=0.02, extra_draft_step=True)
        point = predict(lists[j], g, costs, draft_operations_ratio=0.05, output_tokens=9)
        for name in names:
            one = getattr(point, name)
            assert_allclose(getattr(grid, name)[g, i, j], one, rtol=1e-12, atol=1e-15)


def test_finite_output_of_one_token_is_one_plain_step() -> None:
    one = predict([0.9, 0.8], 2, round_costs(0.1, 0.15, 0.02), output_tokens=1)
    assert_allclose([one.rounds, one.draft_steps, one.generation_s], [1, 0, 0.1], rtol=1e-12)
    without = predict([0.9, 0.8], 2, round_costs(0.1, 0.15, 0.02))
    assert np.isnan([without.rounds, without.draft_steps, without.generation_s]).all()


def test_requests_that_differ_are_weighted_by_tokens() -> None:
    parts = [Acceptance.from_alpha(alpha, 5) for alpha in (0.5, 0.9)]
    mixed = predict(Acceptance.mixture([0.5, 0.5], parts), 5, round_costs(1.0, 1.0, 0.0))
    assert_allclose(mixed.tokens_per_round, 2.772553, atol=1e-5)  # published.json hetero-alpha


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: predict([0.5], 2.5, round_costs(1.0, 1.0, 0.1)), "gamma is 2.5"),
        (lambda: predict([0.5], -1, round_costs(1.0, 1.0, 0.1)), "gamma is -1"),
        (lambda: predict([0.5], 2, round_costs(1.0, 1.0, 0.1)), "known for 1 draft positions"),
        (lambda: predict([0.5, 0.6], 2, round_costs(1.0, 1.0, 0.1)), "rises from 0.5 to 0.6"),
        (
            lambda: predict([0.5, 0.4, 0.3], 3, round_costs(1.0, [1.0, 1.1], 0.1)),
            "verify_s has 2 entries and gamma is 3",
        ),
    ],
)
def test_bad_input_is_refused_with_its_value(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
