"""Fits against published rows, against known coefficients, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.calibration import (
    ScatterError,
    UndeterminedError,
    fit_passes,
    fit_round,
)


def test_specbundle_two_rows_give_verify_and_draft() -> None:
    # Issue 5: Llama-3.1-8B, batch 1, tok/s and τ at γ 3 and 5.
    fit = fit_round([3, 5], [2.8981 / 404.25, 3.5164 / 446.64])
    assert 1e3 * fit.verify_s == pytest.approx(6.113, abs=5e-4)
    assert 1e3 * fit.draft_s == pytest.approx(0.352, abs=5e-4)
    assert fit.verify_error_s is None
    assert "no point is left to check it" in fit.trust()


def test_specbundle_70b_two_rows_predict_the_four_that_were_held_out() -> None:
    # published.json, specbundle-llama33-70b-bs8: γ, τ, tok/s of 8 streams; tolerance 4 %.
    rows = [
        (3, 2.666, 1194.09),
        (7, 3.191, 1267.87),
        (5, 3.067, 1282.79),
        (3, 2.926, 1290.11),
        (5, 3.437, 1426.37),
        (7, 3.674, 1407.81),
    ]
    gamma, tau, speed = np.array(rows).T
    round_s = 8 * tau / speed
    assert_allclose(1e3 * round_s, [17.86, 20.13, 19.13, 18.14, 19.27, 20.87], atol=0.01)
    fit = fit_round(gamma[:2], round_s[:2])
    predicted = 8 * tau[2:] / fit.round_s(gamma[2:])
    assert_allclose(predicted, speed[2:], rtol=0.04)
    # Its γ of 5 beats 7 in both halves, as measured.
    assert predicted[0] > 8 * 3.191 / fit.round_s(7)


@given(
    st.floats(1e-4, 1e-1),
    st.floats(1e-5, 1e-2),
    st.lists(st.integers(1, 16), min_size=2, max_size=8, unique=True),
)
def test_rounds_on_a_line_are_solved_exactly(
    verify_s: float, draft_s: float, gamma: list[int]
) -> None:
    fit = fit_round(gamma, verify_s + draft_s * np.array(gamma))
    assert_allclose([fit.verify_s, fit.draft_s], [verify_s, draft_s], rtol=1e-6)
    assert_allclose(fit.residuals, 0, atol=1e-9)


def test_standard_errors_are_those_of_weighted_least_squares() -> None:
    gamma, times = np.array([1.0, 2.0, 3.0, 5.0]), np.array([10.0, 11.2, 11.9, 14.3])
    fit = fit_round(gamma, times)
    # numpy.polyfit with weights 1/σ and cov=True scales by χ²/(n − 2), as the fit does.
    coefficients, covariance = np.polyfit(gamma, times, 1, w=1 / times, cov=True)
    assert_allclose([fit.draft_s, fit.verify_s], coefficients, rtol=1e-9)
    errors = np.array([fit.draft_error_s, fit.verify_error_s], dtype=np.float64)
    assert_allclose(errors, np.sqrt(np.diag(covariance)))


def test_one_draft_length_is_no_fit() -> None:
    with pytest.raises(UndeterminedError, match="only γ = 3 is measured and two unknowns"):
        fit_round([3, 3], [7e-3, 7.1e-3])
    with pytest.raises(UndeterminedError, match="no round of a known γ"):
        fit_round([], [])


def test_wild_points_are_refused_with_their_residuals() -> None:
    with pytest.raises(ScatterError, match=r"γ = 2: 30 ms, .*% \(points of one system"):
        fit_round([1, 2, 3, 4], [10e-3, 30e-3, 11e-3, 12e-3])
    with pytest.raises(ScatterError, match="a draft step would cost -1 ms"):
        fit_round([1, 3], [10e-3, 8e-3])
    with pytest.raises(ValueError, match="a measured time is 0 s"):
        fit_round([1, 3], [0.0, 8e-3])


# SpecDecode-Bench predictor.py (arXiv 2601.11580): seconds for Llama-3.1-8B on an H100.
BASE, PER_TOKEN, PER_CONTEXT = 5.88590713e-3, 2.10103129e-5, 3.92645679e-8


def test_published_coefficients_come_back_from_their_own_times() -> None:
    batch, width, context = (
        axis.ravel() for axis in np.meshgrid([1, 8, 32, 128], [1, 4, 6], [200, 800], indexing="ij")
    )
    times = BASE + PER_TOKEN * batch * width + PER_CONTEXT * batch * context
    fit = fit_passes(batch, width, context, times)
    assert_allclose([fit.base_s, fit.per_token_s, fit.per_context_token_s],
                    [BASE, PER_TOKEN, PER_CONTEXT], rtol=1e-6)  # fmt: skip
    assert fit.per_sequence_s == pytest.approx(0, abs=1e-12)
    assert fit.worst < 1e-9
    assert fit.notes == ()


@given(
    st.tuples(*[st.floats(1e-7, 1e-2)] * 3),
    st.lists(st.integers(1, 64), min_size=2, max_size=5, unique=True),
)
def test_terms_that_the_points_determine_are_found(
    terms: tuple[float, float, float], batches: list[int]
) -> None:
    batch = np.repeat(batches, 3)
    width = np.tile([1, 2, 8], len(batches))
    times = terms[0] + terms[1] * batch + terms[2] * batch * width
    fit = fit_passes(batch, width, 0, times)
    predicted = fit.base_s + fit.per_sequence_s * batch + fit.per_token_s * batch * width
    assert_allclose(predicted, times, rtol=1e-6)


def test_what_the_points_cannot_tell_apart_is_said() -> None:
    only_width_1 = fit_passes([1, 8, 64], 1, 0, [6e-3, 6.2e-3, 7.5e-3])
    assert "sequences and positions grow together" in only_width_1.notes[0]
    one_place = fit_passes([8, 8], 1, 0, [6e-3, 6.1e-3])
    assert one_place.base_s == pytest.approx(6.05e-3, rel=1e-3)
    assert "the cost per position is unknown" in one_place.notes[0]
    one_context = fit_passes([1, 8], [1, 1], [100, 100], [6e-3, 6.2e-3])
    assert any("cost of cached tokens is unknown" in note for note in one_context.notes)


def test_two_points_for_two_unknowns_leave_nothing_to_check() -> None:
    fit = fit_passes([1, 8], 1, 0, [6e-3, 6.7e-3])
    assert (fit.points, fit.unknowns) == (2, 2)
    assert fit.trust() == "exact through 2 points: no point is left to check it"


def test_a_term_that_comes_out_at_zero_is_not_exact() -> None:
    # 128 steps of 19.04 ms over 64 tokens of cache; 5 positions cost as much as 8 (llama-bench)
    fit = fit_passes([1, 1, 1], [1, 5, 8], [64, 0, 0], [19.04e-3, 41.08e-3, 41.11e-3])
    assert (fit.points, fit.unknowns, fit.per_context_token_s) == (3, 3, 0)
    assert fit.worst > 0.1
    assert fit.trust().startswith("3 points for 3 unknowns, median residual")
    assert fit_passes([8], 1, 0, [6e-3]).trust().startswith("exact through 1 point:")


def test_scattered_passes_are_refused_with_the_worst_of_them() -> None:
    with pytest.raises(ScatterError, match=r"4 passes scatter by \d+ % .* batch 2"):
        fit_passes([1, 2, 4, 8], 1, 0, [10e-3, 1e-3, 30e-3, 5e-3])
    with pytest.raises(UndeterminedError, match="no pass is measured"):
        fit_passes([], [], [], [])
    with pytest.raises(ValueError, match="a measured time is -1 s"):
        fit_passes([1], 1, 0, [-1.0])
