"""Rounds cut from a record of single tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.recorded import rounds_of_tokens

flags = st.lists(st.integers(0, 1), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("proposed", "gamma", "rounds"),
    [
        ([1, 1, 1, 0, 1, 0], 3, [3, 1]),  # three kept and the target's own, one kept and its own
        ([1, 1, 1, 0, 1, 0], 1, [1, 1, 1]),
        ([0, 0, 0], 4, [0, 0, 0]),
        ([1, 1, 1, 1], 3, [3]),  # the bonus token, whatever its flag
        ([0, 1, 1], 2, [0]),  # the last round is cut short
    ],
)
def test_rounds_by_hand(proposed: list[int], gamma: int, rounds: list[int]) -> None:
    assert rounds_of_tokens(proposed, gamma) == rounds


@given(flags, st.integers(1, 8))
def test_rounds_fill_the_record_and_a_larger_gamma_needs_no_more(
    proposed: list[int], gamma: int
) -> None:
    record = [*proposed, 0]
    rounds = rounds_of_tokens(record, gamma)
    made = sum(kept + 1 for kept in rounds)
    assert len(record) - gamma <= made <= len(record)
    assert max(rounds) <= gamma


def test_a_record_without_a_whole_round_is_refused() -> None:
    with pytest.raises(ValueError, match="a record of 2 tokens holds no whole round at gamma 4"):
        rounds_of_tokens([1, 1], 4)
