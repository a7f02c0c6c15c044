"""Diagnoses: the identities of MODEL.md §3, contradictions, and changes that do what they say."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specplan.models.break_even import break_even_output_tokens, inferred_gamma, pays_from_gamma
from specplan.models.diagnosis import Measured, diagnose

times = st.floats(1e-3, 1.0)


@given(times, st.floats(1.0, 20.0), st.floats(1.0, 9.0), st.integers(1, 12))
def test_speedup_times_round_cost_is_the_tokens(
    step_s: float, ratio: float, tokens: float, gamma: int
) -> None:
    assume(tokens <= gamma + 1)
    found = diagnose(Measured(step_s, ratio * step_s, tokens, gamma))
    assert found.speedup * found.break_even_tokens == pytest.approx(tokens)
    assert found.never_pays == (found.break_even_tokens > gamma + 1)
    assert found.ceiling_speedup == pytest.approx((gamma + 1) / ratio)
    # A perfect draft is the ceiling, so a speedup above it is a contradiction.
    assert found.speedup <= (found.ceiling_speedup or 0) * (1 + 1e-9)


@given(times, st.floats(1.0, 6.0), st.integers(1, 8))
def test_the_break_even_acceptance_breaks_even(step_s: float, ratio: float, gamma: int) -> None:
    assume(1.001 < ratio <= gamma + 1)
    found = diagnose(Measured(step_s, ratio * step_s, 1.0, gamma))
    assert found.break_even_rate is not None
    assert found.break_even_alpha is not None
    assert 1 + gamma * found.break_even_rate == pytest.approx(ratio)
    powers = sum(found.break_even_alpha**i for i in range(gamma + 1))
    assert powers == pytest.approx(ratio, rel=1e-6)


def test_a_round_shorter_than_a_step_is_impossible() -> None:
    found = diagnose(Measured(10e-3, 8e-3, 2.0, 3))
    assert [one.code for one in found.warnings] == ["impossible_round"]
    assert "8 ms" in found.warnings[0].says
    assert "10 ms" in found.warnings[0].says


def test_tokens_above_gamma_plus_one_are_impossible() -> None:
    found = diagnose(Measured(10e-3, 12e-3, 3.5, 2))
    assert [one.code for one in found.warnings] == ["impossible_tokens"]


def test_phases_must_sum_to_the_round() -> None:
    short = diagnose(Measured(10e-3, 40e-3, 2.0, 1, draft_s=0.0, verify_s=10e-3))
    assert [one.code for one in short.warnings] == ["phase_sum_mismatch"]
    assert "30 ms (75 %) unexplained" in short.warnings[0].says
    long = diagnose(Measured(10e-3, 20e-3, 2.5, 2, draft_s=15e-3, verify_s=12e-3))
    assert "do they overlap" in long.warnings[0].says
    assert diagnose(Measured(10e-3, 20e-3, 2.5, 2, 8e-3, 12e-3)).warnings == ()


def test_a_verify_pass_is_no_cheaper_than_a_plain_step() -> None:
    found = diagnose(Measured(10e-3, 20e-3, 2.5, 2, draft_s=12e-3, verify_s=8e-3))
    assert [one.code for one in found.warnings] == ["impossible_verify"]
    assert "8 ms would be cheaper than a plain step of 10 ms" in found.warnings[0].says


@pytest.mark.parametrize(
    ("draft_s", "verify_s", "cause"),
    [
        (20e-3, 12e-3, "draft"),
        (2e-3, 30e-3, "verify"),
        (2e-3, 11e-3, "overhead"),
        (None, None, "unknown"),
        (25e-3, None, "draft"),
    ],
)
def test_the_largest_part_above_a_plain_step_decides(
    draft_s: float | None, verify_s: float | None, cause: str
) -> None:
    assert diagnose(Measured(10e-3, 35e-3, 2.0, 4, draft_s, verify_s)).cause == cause


def test_a_cheap_round_that_loses_lacks_acceptance() -> None:
    assert diagnose(Measured(10e-3, 12e-3, 1.1, 4)).cause == "acceptance"
    assert diagnose(Measured(10e-3, 12e-3, 1.3, 4)).cause == "none"


@given(times, st.floats(1.1, 4.0), st.floats(0.05, 0.9), st.integers(2, 8))
def test_the_changes_named_would_make_it_pay(
    step_s: float, ratio: float, share: float, gamma: int
) -> None:
    tokens = 1 + (ratio - 1) * share  # loses, and could be made to pay
    assume(ratio < gamma + 1 and tokens < ratio * 0.99)
    round_s = ratio * step_s
    draft_s = round_s * 0.3
    found = diagnose(Measured(step_s, round_s, tokens, gamma, draft_s, round_s - draft_s))
    number = r"[0-9.e+-]+"
    wanted = re.search(rf"τ from {number} to ({number})", found.changes[0])
    assert wanted
    assert float(wanted[1]) * step_s / round_s == pytest.approx(1, rel=1e-3)
    shorter = re.search(rf"to ({number}) ms", found.changes[1])
    assert shorter
    assert tokens * step_s / (1e-3 * float(shorter[1])) == pytest.approx(1, rel=1e-3)


def test_what_pays_needs_no_change() -> None:
    assert diagnose(Measured(10e-3, 15e-3, 2.0, 3)).changes == ()


@pytest.mark.parametrize(
    ("values", "says"),
    [((0.0, 1.0, 2.0), "plain step takes 0.0 s"), ((1.0, -1.0, 2.0), "a round takes -1.0 s"),
     ((1.0, 1.0, 0.5), "τ is 0.5")],
)  # fmt: skip
def test_impossible_numbers_are_refused(values: tuple[float, float, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Measured(*values)


@given(times, st.floats(0.1, 60.0), st.floats(0.0, 2.0))
def test_pays_from_gamma_is_the_first_that_pays(step_s: float, fixed: float, draft: float) -> None:
    assume(abs(draft - 1) > 0.01)
    exact = (fixed - 1) / (1 - draft)  # where a perfect draft breaks even
    assume(abs(exact - round(exact)) > 1e-6 and abs(fixed + draft - 2) > 1e-6)
    found = pays_from_gamma(step_s, fixed * step_s, draft * step_s)
    pays = [gamma for gamma in range(1, 8000) if gamma + 1 > fixed + gamma * draft]
    assert found == (pays[0] if pays else None)


def test_output_length_that_makes_up_for_a_later_first_token() -> None:
    assert break_even_output_tokens(10, 10, 5, 4) == 1
    assert break_even_output_tokens(10, 20, 5, 6) is None


@pytest.mark.parametrize(("tau", "rate"), [(1.0, 0.5), (3.0, 0.0), (3.0, 1.5)])
def test_no_gamma_from_nothing(tau: float, rate: float) -> None:
    with pytest.raises(ValueError, match="imply no γ"):
        inferred_gamma(tau, rate)
