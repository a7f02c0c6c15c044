"""Costs against hand-computed values."""

import numpy as np
import pytest

from specplan.models.cost import Cost, constant, linear

# SpecDecode-Bench predictor.py (arXiv 2601.11580), Llama-3.1-8B on one H100.
SPECDECODE_BENCH = linear(5.886e-3, 0.0, 2.101e-5, 3.926e-8)


def test_constant_costs_the_same_for_every_pass() -> None:
    assert constant(0.1).seconds([1, 7], 3, 900).tolist() == [0.1, 0.1]


def test_linear_sums_its_four_terms() -> None:
    # 1 + 2·10 + 4·3·10 + .5·10·6 + 3·7 (prompt positions cost what decode positions cost)
    assert linear(1.0, 2.0, 3.0, 0.5).seconds(10, 4, 6, 7) == 1 + 20 + 120 + 30 + 21


def test_published_predictor_by_hand() -> None:
    # 5.886 ms + 21.01 us · 4 + 39.26 ns · 1000
    assert SPECDECODE_BENCH.seconds(1, 4, 1000) == pytest.approx(0.0060093, rel=1e-12)


@pytest.mark.parametrize("priced", [constant(0.1), linear(0.1, 0.2, 0.3, 0.4).composed(1.0, 2.0)])
def test_no_work_costs_nothing(priced: Cost) -> None:
    assert priced.seconds(0, 5, 100) == 0.0
    assert priced.seconds(3, 0, 100) == 0.0


def test_prefill_alone_is_work() -> None:
    assert linear(1.0, 0.0, 0.5).seconds(0, 0, 0, 4) == 3.0


def test_floor_before_overhead() -> None:
    priced = linear(0.0, per_token_s=1.0).composed(launch_floor_s=3.0, overhead_s=0.5)
    assert priced.seconds(1, [1, 3, 8]).tolist() == [3.5, 3.5, 8.5]


def test_composing_twice() -> None:
    twice = constant(1.0).composed(2.0, 0.25).composed(1.5, 0.5)
    assert (twice.launch_floor_s, twice.overhead_s) == (2.0, 0.75)


def test_broadcasts() -> None:
    assert SPECDECODE_BENCH.seconds(np.ones((5, 1, 1)), np.ones((4, 1)), np.ones(3)).shape == (
        5,
        4,
        3,
    )


def test_refuses_what_cannot_be_a_duration() -> None:
    with pytest.raises(ValueError, match=r"per_token_s is -1 \(a finite duration, 0 or more\)"):
        linear(1.0, per_token_s=-1)
    with pytest.raises(ValueError, match="duration_s is nan"):
        constant(float("nan"))
    with pytest.raises(ValueError, match="overhead_s is -1"):
        constant(1.0).composed(overhead_s=-1)
    with pytest.raises(ValueError, match="cost kind 'cubic' does not exist"):
        Cost("cubic", np.zeros(1))
    with pytest.raises(ValueError, match="provenance 'guessed' does not exist"):
        constant(1.0, provenance="guessed")
