"""Runs that keep no requests: the same sums, and quantiles as close as the sketch says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from specplan.results import metrics
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate
from specplan.sim.tally import Cut, Exact, Sketch, warmup_cut

SETS = [
    "workload={arrivals: {rate: 6/s}, requests: 10000, output_tokens: {uniform: [1, 30]}}",
    "target.round=10 ms",
    "target.step=10 ms",
    "draft.step=2 ms",
    "slo={ttft: 300 ms}",
]


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("workload.warmup={requests: 1000}",),
        ("workload.warmup={fraction: 0.1}",),
        ("workload.warmup={time: 100 s}",),
        ("workload.classes={chat: {weight: 3}, code: {output_tokens: 20}}",),
        ("workload.arrivals={streams: 3}",),
        ("cluster.replicas=2", "workload.arrivals={rate: 12/s}"),
        ("workload.timeout=1 s",),
    ],
)
def test_the_same_figures_with_and_without_rows(more: tuple[str, ...]) -> None:
    scenario = load("toy-20ms", [*SETS, *more])
    kept = metrics.summary(simulate(scenario))
    run = simulate(scenario, keep_requests=False)
    streamed = metrics.summary(run)
    assert run.requests == {}
    ranks = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    for key, value in kept.items():
        if key.split("_")[0] in ranks and not key.endswith("itl_ms"):
            # A distance in rank of less than 0.16 % at the median is no more than 10 % in value.
            assert streamed[key] == pytest.approx(value, rel=0.1)
        elif isinstance(value, float | list) and key != "failures":
            assert streamed[key] == pytest.approx(value, rel=1e-9), key
        elif key == "max_concurrent_requests":
            assert streamed[key] is None  # what was in flight at once takes the rows
        elif key not in ("quantile_rank_error", "classes", "little"):
            assert streamed[key] == value, key
    for name, figures in kept["classes"].items():
        for key in ("completed", "mean_ttft_ms", "request_goodput", "total_output_tokens"):
            assert streamed["classes"][name][key] == pytest.approx(figures[key], rel=1e-9)


def test_the_stated_error_holds() -> None:
    values = np.random.default_rng(1).lognormal(0, 2, 1_000_000)
    sketch, exact = Sketch(), Exact()
    for part in np.array_split(values, 61):
        sketch.add(part)
        exact.add(part)
    ordered = np.sort(values)
    for share in (0.01, 0.5, 0.9, 0.95, 0.99, 0.999):
        rank = np.searchsorted(ordered, sketch.quantiles([share])[0]) / len(values)
        assert abs(rank - share) <= sketch.rank_error(share)
    assert exact.rank_error(0.99) == 0
    assert sketch.mean() == pytest.approx(exact.mean(), rel=1e-12)
    assert sketch.std() == pytest.approx(exact.std(), rel=1e-12)


@given(arrays(np.float64, st.integers(0, 60), elements=st.floats(0, 1e4)), st.integers(1, 5))
def test_spread_does_not_depend_on_the_chunks(values: np.ndarray, chunks: int) -> None:
    sketch, exact = Sketch(), Exact()
    for part in np.array_split(values, chunks):
        sketch.add(part)
    exact.add(values)
    assert sketch.count == exact.count == len(values)
    if len(values):
        assert sketch.std() == pytest.approx(exact.std(), rel=1e-9, abs=1e-6)
        assert sketch.quantiles([1.0])[0] == pytest.approx(values.max())
    else:
        assert np.isnan(sketch.mean())
        assert np.isnan(sketch.quantiles([0.5])[0])


def test_mser_needs_the_rows() -> None:
    scenario = load("toy-20ms", ["workload.warmup=mser"])
    with pytest.raises(ScenarioError, match="not kept"):
        simulate(scenario, keep_requests=False)


def test_the_rules_in_numbers() -> None:
    def cut(rule: str) -> Cut:
        return warmup_cut(load("toy-20ms", [f"workload.warmup={rule}"]), 1001)

    assert cut("{requests: 7}") == Cut(requests=7)
    assert cut("{time: 3 s}") == Cut(time_s=3.0)
    assert cut("{fraction: 0.1}") == Cut(requests=101)
    assert warmup_cut(load("toy-20ms"), 1001) == Cut()


def test_gaps_before_the_warm_up_ends_do_not_count() -> None:
    # The first answer waits for nobody and the second batch of two takes longer per pass.
    sets = ["speculation.method=none", "workload.output_tokens=3", "workload.requests=10"]
    whole = simulate(load("toy-20ms", sets))
    later = simulate(load("toy-20ms", [*sets, "workload.warmup={requests: 4}"]))
    assert (whole.itl.count, later.itl.count) == (20, 12)
    assert metrics.summary(later)["mean_itl_ms"] == pytest.approx(100)
