"""Extrapolation: recorded curves, engines' padding rules, and what a regression may never do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.acceptance import (
    alpha_from_tokens_per_round,
    tokens_per_round_from_alpha,
)
from specplan.models.extrapolation import (
    Rule,
    extrapolate,
    isotonic,
    unconditional_from_curve,
)

# SemiAnalysisAI/InferenceX golden_al_distribution @843c6254: τ at γ 1..8
GOLDEN = {
    "glm-5.2 mtp": [1.84, 2.5, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06],
    "kimi-k2.5 eagle3": [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77],
    "kimi-k2.5 eagle3 off": [1.8, 2.33, 2.75, 3.06, 3.25, 3.43, 3.46, 3.51],
    "kimi-k3 dspark": [1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88],
    "kimi-k3 block": [1.85, 2.51, 3.0, 3.36, 3.62, 3.75, 3.84, 4.0],
    "minimax-m3 eagle3": [1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74],
    "minimax-m3 eagle3 off": [1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06],
    "minimax-m3 gqa": [1.79, 2.39, 2.78, 3.02, 3.21, 3.3, 3.52, 3.51],
    "minimax-m3 gqa off": [1.83, 2.46, 2.97, 3.29, 3.72, 3.76, 3.75, 3.93],
    "qwen3.5 mtp": [1.93, 2.73, 3.39, 3.97, 4.41, 4.8, 5.04, 5.21],
    "qwen3.5 mtp off": [1.92, 2.7, 3.33, 3.83, 4.2, 4.48, 4.73, 4.71],
}
RULES: list[Rule] = ["last_ratio", "plateau", "iid", "zero"]
lists = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda a: np.cumprod(a).tolist())


@pytest.mark.parametrize("curve", GOLDEN.values(), ids=GOLDEN)
def test_iid_from_gamma_1_overestimates_every_recorded_curve(curve: list[float]) -> None:
    iid = extrapolate([curve[0] - 1], 8, "iid")
    assert_allclose(iid.tokens_per_round[1], tokens_per_round_from_alpha(curve[0] - 1, 8))
    assert 1.08 < iid.tokens_per_round[1] / curve[7] < 1.41
    assert "overestimated" in iid.warnings[0]


@pytest.mark.parametrize("curve", GOLDEN.values(), ids=GOLDEN)
@pytest.mark.parametrize("measured", [3, 4])
def test_band_from_a_few_positions_holds_gamma_8(curve: list[float], measured: int) -> None:
    known = unconditional_from_curve(range(1, measured + 1), curve[:measured])
    low, middle, high = extrapolate(known.unconditional, 8, "plateau").tokens_per_round
    # .05: each γ of these curves is a run of its own, printed to 2 digits
    assert low - 0.05 <= curve[7] <= high + 0.05
    assert abs(middle / curve[7] - 1) < 0.11


def held_out(measured: int, rule: Rule) -> np.ndarray:
    """Relative error of τ at γ 8 from the first γ, curve by curve."""
    known = [
        unconditional_from_curve(range(1, measured + 1), c[:measured]) for c in GOLDEN.values()
    ]
    tau = [extrapolate(one.unconditional, 8, rule).tokens_per_round[1] for one in known]
    return np.array(tau) / [curve[7] for curve in GOLDEN.values()] - 1


@pytest.mark.parametrize("measured", [2, 3, 4, 5])
def test_plateau_is_the_rule_that_holds_out_best(measured: int) -> None:
    errors = {rule: np.sqrt(np.mean(held_out(measured, rule) ** 2)) for rule in RULES}
    assert errors["plateau"] <= min(errors.values()) + 1e-9
    assert errors["plateau"] < 0.09


def test_the_band_holds_nearly_every_held_out_curve() -> None:
    held = 0
    for curve in GOLDEN.values():
        for measured in (2, 3, 4, 5):
            known = unconditional_from_curve(range(1, measured + 1), curve[:measured])
            low, _, high = extrapolate(known.unconditional, 8, "plateau").tokens_per_round
            held += low <= curve[7] <= high
    assert held >= 42  # of 44


@pytest.mark.parametrize("curve", GOLDEN.values(), ids=GOLDEN)
@pytest.mark.parametrize("measured", [1, 2, 3, 4, 5])
def test_one_tau_spread_iid_overestimates_every_recorded_curve(
    curve: list[float], measured: int
) -> None:
    alpha = float(alpha_from_tokens_per_round(curve[measured - 1], measured))
    spread = alpha ** np.arange(1, measured + 1)
    low, middle, high = extrapolate(spread, 8, "iid", sum_only=True).tokens_per_round
    assert low <= curve[7] + 0.05
    assert curve[7] < middle <= high
    # A never rises: no further position is accepted more often than the mean of those before
    assert high == pytest.approx(1 + 8 * (curve[measured - 1] - 1) / measured)


def test_recorded_curves_that_fall_are_pooled_and_said_so() -> None:
    # minimax-m3 eagle3 thinking_off: 3.59 at γ 5, 3.57 at γ 6
    curve = unconditional_from_curve(range(1, 9), GOLDEN["minimax-m3 eagle3 off"])
    assert_allclose(curve.increments[5], -0.02, atol=1e-9)
    # .41 and .48 pool to .445; −.02, .28, .21 to .47/3, below the .18 before
    assert_allclose(
        curve.unconditional, [0.84, 0.68, 0.445, 0.445, 0.18, *[0.47 / 3] * 3], atol=1e-9
    )
    assert curve.pooled.tolist() == [False, False, True, True, False, True, True, True]
    assert_allclose(1 + curve.unconditional.sum(), 4.06, atol=1e-9)


def test_second_position_from_two_rates() -> None:
    # reports.json D07: rate .88 at one draft; .80 or .5 at two
    for rate, unconditional in ((0.8, 0.72), (0.5, 0.12)):
        curve = unconditional_from_curve([1, 2], [1 + 0.88, 1 + 2 * rate])
        assert_allclose(curve.unconditional, [0.88, unconditional], atol=1e-9)


def test_gaps_between_measured_gammas() -> None:
    # vLLM P-EAGLE blog, HumanEval: τ 3.02 at γ 3 and 3.94 at γ 7
    curve = unconditional_from_curve([3, 7], [3.02, 3.94])
    assert_allclose(curve.unconditional, [2.02 / 3] * 3 + [0.92 / 4] * 4, atol=1e-9)


def test_list_shorter_than_gamma_by_named_rule() -> None:
    # reports.json D11: conditional .85, .3 for four drafts
    assert_allclose(extrapolate([0.85, 0.255], 4, "zero").tokens_per_round[1], 2.105, atol=1e-3)
    assert_allclose(
        extrapolate([0.85, 0.255], 4, "last_ratio").tokens_per_round[1], 2.2045, atol=1e-3
    )


@given(lists, st.integers(0, 12), st.sampled_from(RULES))
def test_extrapolation_keeps_what_was_measured(
    known: list[float], positions: int, rule: Rule
) -> None:
    got = extrapolate(known, positions, rule)
    for values in (got.unconditional, got.low, got.high):
        assert len(values) == positions
        assert_allclose(values[: len(known)], known[:positions])
        assert (np.diff(values) <= 1e-12).all()
        assert ((values >= 0) & (values <= 1)).all()
    assert (got.low <= got.unconditional + 1e-12).all()
    assert (got.unconditional <= got.high + 1e-12).all()


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=8))
def test_isotonic_regression_is_the_closest_list(rates: list[float]) -> None:
    fitted = isotonic(rates)
    assert (np.diff(fitted) <= 1e-12).all()
    assert ((fitted >= 0) & (fitted <= 1)).all()
    # No step towards any other list that never rises comes closer (convex problem).
    distance = np.sum((fitted - rates) ** 2)
    for ones in range(len(rates) + 1):
        other = np.r_[np.ones(ones), np.zeros(len(rates) - ones)]
        nearer = fitted + 1e-4 * (other - fitted)
        assert np.sum((nearer - rates) ** 2) >= distance - 1e-12


@given(lists)
def test_curve_of_a_list_gives_it_back(known: list[float]) -> None:
    curve = unconditional_from_curve(range(1, len(known) + 1), 1 + np.cumsum(known))
    assert_allclose(curve.unconditional, known, atol=1e-9)
    assert not curve.pooled.any()


@pytest.mark.parametrize(
    ("gamma", "tau", "message"),
    [
        ([1, 1], [1.5, 1.6], r"gamma is \[1, 1\]"),
        ([0, 1], [1.0, 1.6], r"gamma is \[0, 1\]"),
        ([2], [3.5], "tokens per round is 3.5 at gamma 2"),
        ([1, 2], [1.5], "one of each"),
    ],
)
def test_curves_that_cannot_be_are_refused(
    gamma: list[int], tau: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        unconditional_from_curve(gamma, tau)


def test_flat_end_is_warned_of() -> None:
    assert "never falls again" in extrapolate([0.6, 0.3, 0.3], 5, "last_ratio").warnings[0]
    falling = extrapolate([0.9, 0.5], 5, "iid").warnings
    assert "acceptance falls with depth" in falling[0]
