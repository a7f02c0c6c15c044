"""Temperature, top-k, top-p, min-p: by hand on four tokens, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.law import acceptance_probability
from specplan.models.sampling_rules import SamplingRules

LAW = [0.5, 0.25, 0.15, 0.1]


def test_neutral_rules_change_nothing() -> None:
    assert SamplingRules().apply(LAW) == pytest.approx(LAW, abs=0)


def test_temperature_is_a_power() -> None:
    # T = 1/2 squares: .25, .0625, .0225, .01 over their sum .345
    halved = SamplingRules(temperature=0.5).apply(LAW)
    assert halved == pytest.approx(np.array([0.25, 0.0625, 0.0225, 0.01]) / 0.345, abs=1e-12)


def test_temperature_zero_is_greedy() -> None:
    assert SamplingRules(temperature=0).apply(LAW).tolist() == [1, 0, 0, 0]
    assert SamplingRules(temperature=0).apply([0.2, 0.4, 0.4]).tolist() == [0, 1, 0]


def test_a_tiny_temperature_does_not_underflow() -> None:
    assert SamplingRules(temperature=1e-4).apply(LAW) == pytest.approx([1, 0, 0, 0], abs=1e-12)


def test_top_k_keeps_ties_with_the_kth() -> None:
    assert SamplingRules(top_k=2).apply(LAW) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-12)
    assert SamplingRules(top_k=1).apply([0.4, 0.4, 0.2]).tolist() == [0.5, 0.5, 0]
    assert SamplingRules(top_k=9).apply(LAW) == pytest.approx(LAW, abs=0)


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    assert SamplingRules(top_p=0.75).apply(LAW) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-12)
    assert SamplingRules(top_p=0.76).apply(LAW)[2] > 0
    assert SamplingRules(top_p=1e-9).apply(LAW).tolist() == [1, 0, 0, 0]
    # .1 + .7 + .1 falls one rounding short of .9 in floating point, and still reaches it
    assert np.count_nonzero(SamplingRules(top_p=0.9).apply([0.1, 0.7, 0.1, 0.1])) == 3


def test_min_p_is_relative_to_the_largest() -> None:
    kept = SamplingRules(min_p=0.3).apply(LAW)  # threshold .15
    assert kept == pytest.approx(np.array([0.5, 0.25, 0.15, 0]) / 0.9, abs=1e-12)


def test_top_p_looks_at_what_top_k_left() -> None:
    # top-k 3 leaves .5 .25 .15 = .5556 .2778 .1667; .55 is reached by the first alone
    assert SamplingRules(top_k=3, top_p=0.55).apply(LAW).tolist() == [1, 0, 0, 0]
    assert np.count_nonzero(SamplingRules(top_p=0.55).apply(LAW)) == 2


def test_rules_change_the_acceptance_that_engines_see() -> None:
    p, q = [0.6, 0.3, 0.1], [0.5, 0.1, 0.4]
    greedy = SamplingRules(temperature=0)
    assert float(acceptance_probability(greedy.apply(p), greedy.apply(q))) == 1
    both = SamplingRules(top_k=2)
    # p → 2/3, 1/3, 0; q → 5/9, 0, 4/9
    assert float(acceptance_probability(both.apply(p), both.apply(q))) == pytest.approx(5 / 9)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"temperature": -1.0}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, r"temperature is inf \(finite"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"min_p": 2.0}, "min_p is 2"),
    ],
)
def test_rules_outside_their_range_are_refused(rules: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SamplingRules(**rules)  # type: ignore[arg-type]


@given(
    st.lists(st.floats(1e-6, 1), min_size=1, max_size=20),
    st.floats(0, 3),
    st.integers(0, 25),
    st.floats(0.01, 1),
    st.floats(0, 1),
)
def test_the_result_is_a_law_that_keeps_the_order(
    weights: list[float], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    law = np.array(weights) / sum(weights)
    shaped = SamplingRules(temperature, top_k, top_p, min_p).apply(law)
    assert float(shaped.sum()) == pytest.approx(1, abs=1e-12)
    assert shaped[law.argmax()] > 0
    kept = shaped > 0
    if kept.any() and (~kept).any() and temperature > 0.05:
        assert law[kept].min() >= law[~kept].max()
