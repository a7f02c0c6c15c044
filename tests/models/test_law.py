"""The accept/reject rule: seed cases of MODEL.md §3, Leviathan's identities, and the laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.law import (
    acceptance_probability,
    checked_law,
    independent_matching,
    output_law,
)


@st.composite
def laws(draw: st.DrawFn, count: int = 2) -> list[np.ndarray]:
    """`count` laws over one vocabulary, zeros and point masses included."""
    size = draw(st.integers(1, 12))
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    drawn = []
    for _ in range(count):
        weights = np.array(draw(st.lists(weight, min_size=size, max_size=size)))
        if weights.sum() == 0:
            weights[draw(st.integers(0, size - 1))] = 1.0
        drawn.append(weights / weights.sum())
    return drawn


def test_seed_case_of_model_3() -> None:
    law = output_law([0.6, 0.3, 0.1], [0.5, 0.25, 0.25])
    assert law.acceptance == pytest.approx([1, 1, 0.4], abs=1e-12)
    assert float(law.beta) == pytest.approx(0.85, abs=1e-12)
    assert law.residual == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-12)
    assert law.output == pytest.approx([0.6, 0.3, 0.1], abs=1e-12)


def test_seed_case_replacing_the_residual_by_p() -> None:
    law = output_law([0.6, 0.3, 0.1], [0.5, 0.25, 0.25], correction="unchanged_target")
    assert law.output == pytest.approx([0.59, 0.295, 0.115], abs=1e-12)
    assert float(law.largest_error) == pytest.approx(0.015, abs=1e-12)


def test_seed_case_p_equals_q() -> None:
    law = output_law([0.6, 0.3, 0.1], [0.6, 0.3, 0.1])
    assert float(law.beta) == pytest.approx(1, abs=1e-12)
    assert float(law.rejected_mass) == 0
    assert np.isnan(law.residual).all()
    assert law.output == pytest.approx([0.6, 0.3, 0.1], abs=1e-12)
    matching = independent_matching([0.6, 0.3, 0.1], [0.6, 0.3, 0.1])
    assert float(matching) == pytest.approx(0.46, abs=1e-12)


def test_leviathan_beta_and_lenience() -> None:
    # published.json lev-beta: arXiv 2211.17192v2, Def 3.2, Lemma 3.3, A.5
    p, q = [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]
    assert float(acceptance_probability(p, q)) == pytest.approx(0.7, abs=1e-12)
    assert float(acceptance_probability(p, q, 0.5)) == pytest.approx(1.0, abs=1e-12)
    d_lk = np.abs(np.array(p) - (np.array(p) + np.array(q)) / 2).sum()
    assert d_lk == pytest.approx(0.3, abs=1e-12)


def test_a_token_that_is_never_proposed_comes_only_from_the_residual() -> None:
    law = output_law([0.6, 0.4, 0.0], [0.0, 0.3, 0.7])
    assert np.isnan(law.acceptance[0])
    assert law.acceptance[1:] == pytest.approx([1, 0])
    assert law.accepted_mass == pytest.approx([0, 0.3, 0])
    assert law.output == pytest.approx([0.6, 0.4, 0.0], abs=1e-12)


def test_disjoint_laws_accept_nothing_and_still_give_p() -> None:
    law = output_law([1.0, 0.0], [0.0, 1.0])
    assert float(law.beta) == 0
    assert law.residual == pytest.approx([1, 0])
    assert law.output == pytest.approx([1, 0])
    with pytest.raises(ValueError, match="β is 0"):
        output_law([1.0, 0.0], [0.0, 1.0], correction="none")


def test_skipping_a_rejected_token_commits_the_accepted_mass() -> None:
    law = output_law([0.6, 0.3, 0.1], [0.5, 0.25, 0.25], correction="none")
    assert law.output == pytest.approx(np.array([0.5, 0.25, 0.1]) / 0.85, abs=1e-12)


def test_leading_axes_broadcast() -> None:
    p = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0]])
    beta = acceptance_probability(p, [0.5, 0.25, 0.25])
    assert beta == pytest.approx([0.85, 0.5], abs=1e-12)
    assert output_law(p, [0.5, 0.25, 0.25]).output == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize(
    ("p", "q", "says"),
    [
        ([0.6, 0.3], [0.5, 0.25, 0.25], "p sums to 0.9"),
        ([0.6, 0.3, 0.2], [0.5, 0.25, 0.25], "p sums to 1.1"),
        ([0.6, 0.5, -0.1], [0.5, 0.25, 0.25], "p contains -0.1"),
        ([0.6, float("nan"), 0.4], [0.5, 0.25, 0.25], "p contains nan"),
        ([0.6, 0.3, 0.1], [0.5, float("inf"), 0.25], "q contains inf"),
        ([0.6, 0.4], [0.5, 0.25, 0.25], "p has 2 tokens and q has 3"),
        ([], [], "p has no tokens"),
    ],
)
def test_what_is_no_law_is_refused(p: list[float], q: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        acceptance_probability(p, q)


@pytest.mark.parametrize("lenience", [0.0, -1.0, 1.5, float("nan")])
def test_lenience_outside_its_range_is_refused(lenience: float) -> None:
    with pytest.raises(ValueError, match="lenience is"):
        output_law([1.0], [1.0], lenience)


@given(laws())
def test_the_output_law_is_the_target_law(pair: list[np.ndarray]) -> None:
    p, q = pair
    law = output_law(p, q)
    assert law.output == pytest.approx(p, abs=1e-12)
    assert float(law.beta + law.rejected_mass) == pytest.approx(1, abs=1e-12)
    # Leviathan Lemma 3.3: β = 1 − D_LK = 1 − ½ Σ |p − q|
    assert float(law.beta) == pytest.approx(1 - 0.5 * np.abs(p - q).sum(), abs=1e-12)


@given(laws(), st.floats(0.05, 1.0))
def test_lenience_accepts_more_and_keeps_leviathans_bound(
    pair: list[np.ndarray], lenience: float
) -> None:
    p, q = pair
    law = output_law(p, q, lenience)
    assert float(law.beta) >= float(acceptance_probability(p, q)) - 1e-12
    assert float(law.output.sum()) == pytest.approx(1, abs=1e-9)
    assert (law.output <= p / lenience + 1e-12).all()


@given(laws())
def test_independent_matching_never_accepts_more(pair: list[np.ndarray]) -> None:
    p, q = pair
    assert float(independent_matching(p, q)) <= float(acceptance_probability(p, q)) + 1e-12


@given(laws(3))
def test_total_variation_of_the_shortcut_is_what_it_redraws(triple: list[np.ndarray]) -> None:
    p, q, _ = triple
    law = output_law(p, q, correction="unchanged_target")
    # min(p, q) + (1 − β) p instead of p: the error is (1 − β)(p − residual)
    exact = output_law(p, q)
    if exact.rejected_mass > 0:
        error = float(exact.rejected_mass) * (p - exact.residual)
        assert law.output - p == pytest.approx(error, abs=1e-12)


def test_a_float32_softmax_is_a_law() -> None:
    logits = np.random.default_rng(1).normal(size=128_000).astype(np.float32)
    softmax = np.exp(logits) / np.exp(logits).sum(dtype=np.float32)
    assert checked_law(softmax, "p").dtype == np.float64
