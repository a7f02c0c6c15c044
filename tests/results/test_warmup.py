"""Warm-up: the part of a run that no latency counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.results import metrics
from specplan.results.warmup import counted, mser5

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run


@pytest.mark.parametrize(
    ("rule", "cut"),
    [("{requests: 30}", 30), ("{time: 4 s}", 20), ("{fraction: 0.1}", 20)],
)
def test_rules(make_run: Callable[..., Run], rule: str, cut: int) -> None:
    """Arrivals every 0.2 s: 4 s are 20 requests, a tenth of 200 are 20."""
    run = make_run(200, (f"workload.warmup={rule}",))
    assert int((~counted(run)).sum()) == cut


def test_warm_up_leaves_the_latencies(make_run: Callable[..., Run]) -> None:
    slow_start = 0.2 * np.arange(200) + np.where(np.arange(200) < 30, 5.0, 0.1)
    run = make_run(
        200,
        ("workload.warmup={requests: 30}",),
        requests={"first_token_s": slow_start, "finish_s": slow_start + 0.1},
    )
    figures = metrics.summary(run)
    assert figures["mean_ttft_ms"] == pytest.approx(100)
    assert figures["completed"] == 170
    assert figures["warmup_requests"] == 30
    assert figures["output_throughput"] == pytest.approx(170 * 4 / 34)  # the last 34 of 40 s


def test_mser5_keeps_a_stationary_series() -> None:
    assert mser5(np.tile([1.0, 2.0, 3.0, 2.0, 1.0], 100)) == 0


def test_mser5_cuts_a_transient() -> None:
    series = np.concatenate([np.linspace(10, 1, 100), np.tile([0.9, 1.1], 450)])
    assert 80 <= mser5(series) <= 105
