"""Figures of a run under the names of `vllm bench serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.results import metrics
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

# A result file of `vllm bench serve` 0.33, percentiles 50, 90, 95, 99 (../shared/FORMATS.md A3).
VLLM_KEYS = {
    "backend", "num_prompts", "request_rate", "burstiness", "max_concurrency", "duration",
    "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
    "request_goodput", "output_throughput", "total_token_throughput",
    "spec_decode_acceptance_rate", "spec_decode_acceptance_length", "spec_decode_num_drafts",
    "spec_decode_draft_tokens", "spec_decode_accepted_tokens",
    "spec_decode_per_position_acceptance_rates", "max_output_tokens_per_s",
    "max_concurrent_requests",
    *(f"{s}_{m}_ms" for s in ("mean", "median", "std", "p50", "p90", "p95", "p99")
      for m in ("ttft", "tpot", "itl", "e2el")),
}  # fmt: skip


def test_keys_are_those_of_vllm_bench_serve(make_run: Callable[..., Run]) -> None:
    figures = metrics.summary(make_run())
    assert set(figures) >= VLLM_KEYS
    assert {f"mean_{m}_ms_ci95" for m in ("ttft", "tpot", "itl", "e2el")} <= set(figures)


def test_peaks_and_positions_of_known_streams() -> None:
    """Four streams of 125 ms rounds that keep all of γ = 2: 4 · 3 tokens eight times a second.

    An output of 31 takes ten rounds of 3 and the last token; the next request starts at its end.
    """
    sets = [
        "speculation.acceptance.alpha=1",
        "draft.step=0 ms",
        "target.round=125 ms",
        "target.step=125 ms",
        "workload.output_tokens=31",
        "workload.arrivals.streams=4",
        "scheduler.max_num_seqs=4",
        "workload.requests=40",
    ]
    figures = metrics.summary(simulate(load("toy-20ms", sets)))
    assert figures["max_concurrent_requests"] == 4
    assert figures["max_output_tokens_per_s"] == 4 * 3 * 8
    assert figures["spec_decode_per_position_acceptance_rates"] == [1.0, 1.0]
    assert figures["mean_queue_ms"] == 0
    assert figures["spec_decode_num_drafts"] == 40 * 10


def test_positions_are_shares_of_the_rounds_that_drafted(make_run: Callable[..., Run]) -> None:
    """100 rounds kept none, 200 one and 100 two: 3/4 the first, 1/4 the second."""
    found = metrics.summary(make_run(200))["spec_decode_per_position_acceptance_rates"]
    assert found == [0.75, 0.25]


def test_what_was_not_kept_has_no_peak() -> None:
    run = simulate(load("toy-20ms", ["workload.requests=20"]), keep_requests=False)
    assert metrics.summary(run)["max_concurrent_requests"] is None


def test_definitions(make_run: Callable[..., Run]) -> None:
    figures = metrics.summary(make_run(200))
    assert figures["mean_ttft_ms"] == pytest.approx(100)
    assert figures["mean_e2el_ms"] == pytest.approx(200)
    assert figures["mean_tpot_ms"] == pytest.approx(100 / 3)  # (E2EL − TTFT)/(n − 1)
    assert figures["mean_itl_ms"] == pytest.approx(100)
    assert figures["std_itl_ms"] == pytest.approx(0, abs=1e-5)
    assert figures["max_itl_ms"] == pytest.approx(100)
    assert figures["output_throughput"] == pytest.approx(20)
    assert figures["request_throughput"] == pytest.approx(5)
    assert figures["acceptance_length"] == 2.0  # 1 + 400/400
    assert figures["acceptance_rate"] == pytest.approx(2 / 3)
    assert figures["spec_decode_acceptance_rate"] == pytest.approx(
        200 / 3
    )  # vLLM's is a percentage
    assert figures["tokens_per_round"] == 2.0
    assert figures["request_rate"] == "inf"
    assert figures["max_concurrency"] == 1
    assert figures["utilisation"]["replica0"] == pytest.approx(
        {"prefill": 0, "draft": 0.25, "verify": 0.5, "overhead": 0, "idle": 0.25}
    )


def test_little_holds_on_both_sides(make_run: Callable[..., Run]) -> None:
    sides = metrics.summary(make_run())["little"]
    assert sides["mean_running"] == pytest.approx(1)
    assert sides["throughput_times_service"] == pytest.approx(1)


def test_interval_of_equal_values_has_no_width(make_run: Callable[..., Run]) -> None:
    low, high = metrics.summary(make_run(200))["mean_ttft_ms_ci95"]
    assert low == pytest.approx(100)
    assert high == pytest.approx(100)


def test_few_requests_give_no_interval(make_run: Callable[..., Run]) -> None:
    assert metrics.summary(make_run(20))["mean_ttft_ms_ci95"] is None


def test_saturated_run_has_no_steady_state_latency(make_run: Callable[..., Run]) -> None:
    figures = metrics.summary(make_run(200, saturated=True))
    assert figures["mean_ttft_ms"] is None
    assert figures["p99_e2el_ms"] is None
    assert figures["mean_tpot_ms_ci95"] is None
    assert "served at" in figures["saturated_reason"]
    assert figures["output_throughput"] == pytest.approx(20)


def test_goodput_counts_requests_that_meet_every_limit(make_run: Callable[..., Run]) -> None:
    late = {"first_token_s": 0.2 * np.arange(200) + np.where(np.arange(200) % 4 == 0, 0.15, 0.1)}
    run = make_run(200, ("slo.ttft=120 ms", "slo.e2el=1 s"), requests=late)
    assert metrics.summary(run)["request_goodput"] == pytest.approx(5 * 3 / 4)


def test_no_objective_no_goodput(make_run: Callable[..., Run]) -> None:
    assert metrics.summary(make_run())["request_goodput"] is None


def test_one_token_outputs_have_no_tpot(make_run: Callable[..., Run]) -> None:
    n = 10
    arrival = 0.2 * np.arange(n)
    single = {"output_tokens": np.ones(n, np.int64), "rounds": np.ones(n, np.int64),
              "finish_s": arrival + 0.1}  # fmt: skip
    figures = metrics.summary(make_run(n, requests=single))
    assert figures["mean_tpot_ms"] is None
    assert figures["mean_ttft_ms"] == pytest.approx(100)


def test_plain_decoding_has_no_acceptance(make_run: Callable[..., Run]) -> None:
    run = make_run(10, kept_rounds=np.zeros(3, np.int64), drafted_tokens=0, accepted_tokens=0)
    figures = metrics.summary(run)
    assert figures["acceptance_length"] is None
    assert figures["spec_decode_acceptance_rate"] is None
    assert figures["tokens_per_round"] == 1.0


def test_nothing_completed_is_not_zero_latency(make_run: Callable[..., Run]) -> None:
    figures = metrics.summary(make_run(5, requests={"status": np.full(5, 2)}, duration_s=0.0))
    assert figures["completed"] == 0
    assert figures["failed"] == 5
    assert figures["mean_ttft_ms"] is None
