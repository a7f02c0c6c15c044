"""Warm-up, requests without an answer, classes: counted, judged and said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results import metrics
from specplan.results.warmup import counted, cut, mser5
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = ["speculation.method=none", "target.round=10 ms", "target.step=10 ms"]


def test_mser_counts_places_among_completed_requests(make_run: Callable[..., Any]) -> None:
    latency = np.concatenate([np.full(50, 9.0), np.tile([0.0, 1.0], 75)])
    run = make_run(200, sets=("workload.warmup=mser",))
    run.requests["finish_s"] = run.requests["arrival_s"] + latency
    assert cut(run).requests == 50
    # Ten aborted requests in the beginning: the same completed ones are cut, so ten places later.
    run = make_run(210, sets=("workload.warmup=mser",))
    run.requests["finish_s"] = run.requests["arrival_s"] + np.concatenate([np.zeros(10), latency])
    run.requests["status"][:10] = 1
    assert mser5(latency) == 50
    assert int(np.argmax(counted(run))) == 60


def test_mser_finds_the_ramp_of_a_closed_loop() -> None:
    # 64 clients begin at once: the first answers wait for all prompts, later ones for few.
    sets = [
        *PLAIN,
        "workload={arrivals: {streams: 64}, requests: 3000, prompt_tokens: 1000}",
        "workload.output_tokens={uniform: [1, 60]}",
        "workload.warmup=mser",
        "target.prefill={per_token: 20 us}",
        "scheduler={max_num_seqs: 64, max_num_batched_tokens: 2048}",
    ]
    run = simulate(load("toy-20ms", sets))
    dropped = cut(run).requests
    assert 30 <= dropped <= 600
    figures = metrics.summary(run)
    assert figures["warmup"]["rule"] == "mser"
    assert figures["warmup_requests"] == dropped
    assert figures["completed"] == 3000 - dropped


def test_the_warm_up_is_shown(specplan_cli: Callable[..., Any]) -> None:
    said = specplan_cli("simulate", "toy-20ms", "--set", "workload.warmup={fraction: 0.25}")
    assert "Warm-up: the first 250 requests are left out" in said.out
    assert "workload.warmup: fraction" in said.out


def test_requests_that_never_fit_are_counted_and_explained(
    specplan_cli: Callable[..., Any],
) -> None:
    sets = [
        *PLAIN,
        "workload={arrivals: {rate: 1/s}, requests: 40, prompt_tokens: {choice: [10, 900]}}",
        "workload.output_tokens=5",
        "target.prefill={per_token: 10 us}",
        "kv_cache={blocks: 20}",
    ]
    said = specplan_cli("simulate", "toy-20ms", "--json", *[w for s in sets for w in ("--set", s)])
    figures = said.json
    run = simulate(load("toy-20ms", sets))
    long = int((run.requests["prompt_tokens"] == 900).sum())
    assert 0 < long < 40
    assert (figures["rejected"], figures["failed"], figures["aborted"]) == (long, long, 0)
    assert figures["completed"] == 40 - long
    (reason,) = figures["failures"]
    assert "320 tokens of KV cache" in reason
    assert "900 tokens" in reason
    text = specplan_cli("simulate", "toy-20ms", *[w for s in sets for w in ("--set", s)])
    assert "can never fit" in text.out


def test_clients_that_give_up_are_counted_and_explained() -> None:
    sets = [*PLAIN, "workload={arrivals: {rate: inf}, requests: 3, output_tokens: 100}"]
    run = simulate(load("toy-20ms", [*sets, "workload.timeout=1500 ms"]))
    figures = metrics.summary(run)  # one after the other, 1 s each: the second is cut off
    assert (figures["completed"], figures["aborted"], figures["failed"]) == (1, 2, 2)
    assert "2 were given up by their clients after 1.5 s" in figures["failures"][0]


def test_each_class_is_judged_by_its_own_objectives() -> None:
    # Every request is alone: TTFT 10 ms, TPOT 10 ms. Chat may take 20 ms a token, code 5 ms.
    classes = (
        "{chat: {weight: 3, slo: {tpot: 20 ms}}, "
        "code: {weight: 1, output_tokens: 4, slo: {tpot: 5 ms}}}"
    )
    sets = [
        *PLAIN,
        "workload={arrivals: {interval: 1 s}, requests: 100, output_tokens: 10}",
        f"workload.classes={classes}",
    ]
    run = simulate(load("toy-20ms", sets))
    figures = metrics.summary(run)
    chat, code = figures["classes"]["chat"], figures["classes"]["code"]
    assert chat["completed"] + code["completed"] == 100
    assert chat["completed"] == int((run.requests["cls"] == 0).sum())
    assert code["total_output_tokens"] == 4 * code["completed"]
    assert code["request_goodput"] == 0
    assert chat["request_goodput"] == pytest.approx(chat["request_throughput"])
    assert figures["request_goodput"] == pytest.approx(chat["completed"] / figures["duration"])
    assert code["mean_tpot_ms"] == pytest.approx(10)


def test_classes_fall_back_to_the_scenarios_objectives() -> None:
    sets = [
        *PLAIN,
        "workload={arrivals: {interval: 1 s}, requests: 60, output_tokens: 10}",
        "workload.classes={a: {slo: {tpot: 5 ms}}, b: {}}",
        "slo={tpot: 50 ms}",
    ]
    figures = metrics.summary(simulate(load("toy-20ms", sets)))
    b = figures["classes"]["b"]
    assert figures["request_goodput"] == pytest.approx(b["completed"] / figures["duration"])


def test_the_keys_of_a_vllm_bench_result() -> None:
    figures = metrics.summary(simulate(load("toy-20ms", ["workload.requests=20"])))
    # vllm/benchmarks/serve.py 0.33.0: what every result file has.
    names = [
        "backend", "num_prompts", "request_rate", "burstiness", "max_concurrency", "duration",
        "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "request_goodput", "output_throughput", "total_token_throughput",
        "spec_decode_acceptance_rate", "spec_decode_acceptance_length", "spec_decode_num_drafts",
        "spec_decode_draft_tokens", "spec_decode_accepted_tokens",
    "spec_decode_per_position_acceptance_rates", "max_output_tokens_per_s",
    "max_concurrent_requests",
    ]  # fmt: skip
    names += [
        f"{statistic}_{metric}_ms"
        for statistic in ("mean", "median", "std", "p99")
        for metric in ("ttft", "tpot", "itl", "e2el")
    ]
    assert set(names) <= figures.keys()
