"""Tables: exact at the points, linear between, refused or extended outside; the public curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.cost import table

# Report C26: verify ms at width 1/2/3/5/8, batch 1 (MoE, each token costs 30 % of a step).
C26 = table([1], [1, 2, 3, 5, 8], [[8.47e-3, 13.49e-3, 15.64e-3, 20.67e-3, 28.13e-3]])
# Report C24 (ggml-org/llama.cpp#17034): totals relative to width 1, and the second curve.
C24_TOTALS = [1, 1.21, 1.42, 1.63, 1.87, 2.11, 2.34, 2.56]
C24_SECOND = [1, 1.3, 1.41, 1.45, 1.56, 1.67, 1.76, 1.88]

BATCHES, WIDTHS, CONTEXTS = [1, 4, 16], [1, 2, 8], [0, 1000]
# Linear in each axis, so that interpolation must reproduce it everywhere inside.
PLANE = (
    1.0
    + np.array(BATCHES)[:, None, None] * 0.1
    + np.array(WIDTHS)[None, :, None] * 0.01
    + np.array(CONTEXTS)[None, None, :] * 0.001
)


@given(
    st.floats(1, 16),
    st.floats(1, 8),
    st.floats(0, 1000),
)
def test_linear_data_is_reproduced_inside(batch: float, width: float, context: float) -> None:
    priced = table(BATCHES, WIDTHS, PLANE, CONTEXTS, outside="extend")
    expected = 1.0 + 0.1 * batch + 0.01 * width + 0.001 * context
    assert priced.seconds(batch, width, context) == pytest.approx(expected, rel=1e-12)


def test_between_measured_widths() -> None:
    assert C26.seconds(1, 4) == pytest.approx((15.64e-3 + 20.67e-3) / 2)


def test_report_c26_ceilings() -> None:
    step = C26.seconds(1, 1)
    # a perfect, free draft: w tokens a round; τ 4.2 at γ 7 with a free draft
    assert 8 * step / C26.seconds(1, 8) == pytest.approx(2.41, rel=0.01)
    assert 5 * step / C26.seconds(1, 5) == pytest.approx(2.05, rel=0.01)
    assert 4.2 * step / C26.seconds(1, 8) == pytest.approx(1.265, rel=0.01)


def test_report_c24_totals_and_the_curve_per_token() -> None:
    priced = table([1], range(1, 9), [C24_TOTALS])
    assert priced.seconds(1, 8) / priced.seconds(1, 1) == pytest.approx(2.56, rel=0.01)
    assert float(table([1], range(1, 9), [C24_SECOND]).seconds(1, 8)) == 1.88
    per_token = [1, 0.605, 0.473, 0.408, 0.374, 0.351, 0.334, 0.32]
    with pytest.raises(ValueError, match=r"takes 1000 ms and width 2 605 ms \(times of whole"):
        table([1], range(1, 9), [per_token])


def test_padding_takes_the_next_captured_batch() -> None:
    padded = table([1, 8, 32], [1, 5], [[1, 2], [3, 4], [5, 6]], pads_batch=True)
    assert padded.seconds([1, 2, 8, 9, 32], 1).tolist() == [1, 3, 3, 5, 5]
    assert padded.seconds(3, 3) == 3.5  # width is still interpolated


def test_padding_up_to_the_smallest_captured_batch() -> None:
    padded = table([4, 8], [1], [[3], [4]], pads_batch=True)
    assert padded.seconds(1, 1) == 3


def test_outside_is_refused_with_the_bounds() -> None:
    says = r"batch 2, width 3 is outside the cost table: batch 1 to 1, width 1 to 8"
    with pytest.raises(ValueError, match=says):
        C26.seconds(2, 3)
    with pytest.raises(ValueError, match="width 9 is outside"):
        C26.seconds(1, [2, 9])
    with pytest.raises(ValueError, match="context 2000 is outside"):
        table(BATCHES, WIDTHS, PLANE, CONTEXTS).seconds(1, 1, 2000)


def test_one_context_is_for_all() -> None:
    assert C26.seconds(1, 2, 10_000) == 13.49e-3


def test_rules_warn() -> None:
    held = table([1, 2], [1, 3], [[1, 2], [3, 4]], outside="hold")
    with pytest.warns(UserWarning, match="rule 'hold' is applied"):
        assert held.seconds(2, 5) == 4
    extended = table([1, 2], [1, 3], [[1, 2], [3, 4]], outside="extend")
    with pytest.warns(UserWarning, match="batch 4, width 5 is outside"):
        assert extended.seconds(4, 5) == 9  # 3 + 2·(4 - 2) + .5·(5 - 1)


def test_prompt_positions_widen_the_pass() -> None:
    assert C26.seconds(1, 1, prefill_tokens=2) == 15.64e-3


def test_bad_tables_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"the batch axis goes from 4 to 2 \(strictly increasing\)"
    ):
        table([1, 4, 2], [1], [[1], [1], [1]])
    with pytest.raises(ValueError, match="a hole or a time that is not positive"):
        table([1], [1, 2], [[1, float("nan")]])
    with pytest.raises(ValueError, match="a hole or a time that is not positive"):
        table([1], [1, 2], [[0, 1]])
    with pytest.raises(
        ValueError, match=r"shape \(1, 3, 1\) \(batch × width × context = \(1, 2, 1\)"
    ):
        table([1], [1, 2], [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"rule 'guess' does not exist \(one of refuse, hold"):
        table([1], [1], [[1]], outside="guess")
    with pytest.raises(ValueError, match="the width axis is"):
        table([1], [-1, 2], [[1, 2]])
    with pytest.raises(ValueError, match="the batch axis has shape"):
        table([], [1], [])


@given(st.floats(1.0, 16.0), st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([0.0, 10.0, 700.0]))
def test_the_edges_belong_to_the_table_at_every_mean_batch(
    batch: float, width: float, context: float
) -> None:
    values = np.ones((2, 3, 2)) * np.array([1.0, 2.0, 3.0])[:, None]
    priced = table([1, 16], [1, 2, 3], values, [0, 700]).seconds(batch, width, context)
    assert float(priced) == pytest.approx(width)
