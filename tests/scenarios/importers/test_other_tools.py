"""Kinds without a real file at hand: keys from the defining code (FORMATS.md A6 to A11)."""

import json
from pathlib import Path

import pytest

from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.block import speculation
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.pool import groups
from specplan.scenarios.importers.recognise import read_file
from specplan.scenarios.load import load


def read(tmp_path: Path, *documents: object) -> list[Evidence]:
    path = tmp_path / "given"
    path.write_text("\n".join(json.dumps(document) for document in documents))
    return read_file(path)


def test_genai_perf_summary(tmp_path: Path) -> None:
    metric = {"unit": "ms", "avg": 12.0, "p99": 20.0, "min": 1.0, "max": 30.0, "std": 2.0}
    (found,) = read(
        tmp_path,
        {
            "request_throughput": {"unit": "requests/sec", "avg": 2.87},
            "time_to_first_token": {**metric, "avg": 40.0},
            "inter_token_latency": metric,
            "request_latency": {**metric, "avg": 900.0},
            "output_sequence_length": {"unit": "tokens", "avg": 96.0},
            "input_config": {"model": ["m"]},
        },
    )
    assert found.source.kind == "genai-perf"
    assert found.latency.token_s == pytest.approx(12e-3)
    assert found.latency.round_s is None  # genai-perf does not tell chunks from tokens
    assert not found.says_acceptance


def test_aiperf_without_speculation_and_with_an_odd_unit(tmp_path: Path) -> None:
    summary = {"aiperf_version": "0.13.0", "request_latency": {"unit": "ms", "avg": 9.0}}
    (found,) = read(tmp_path, summary)
    assert "no spec_decode_* metrics" in found.warnings[0]
    with pytest.raises(ScenarioError, match=r"'fortnights' \(a unit of time"):
        read(tmp_path, {"request_latency": {"unit": "fortnights", "avg": 9.0}})


def test_aiperf_failed_and_contradictory(tmp_path: Path) -> None:
    base = {"request_latency": {"unit": "ms", "avg": 9.0}}
    with pytest.raises(ScenarioError, match="request_count: 0 requests completed"):
        read(tmp_path, {**base, "request_count": {"unit": "requests", "avg": 0.0}})
    spec = {
        **base,
        "total_spec_decode_steps": {"unit": "count", "avg": 829.0},
        "total_draft_tokens": {"unit": "tokens", "avg": 2487.0},
        "total_accepted_draft_tokens": {"unit": "tokens", "avg": 1485.0},
    }
    wrong = {"spec_decode_token_weighted_acceptance_length": {"unit": "ratio", "avg": 1.79}}
    with pytest.raises(ScenarioError, match=r"1\.79, but 1 \+ accepted / steps is 2\.791"):
        read(tmp_path, {**spec, **wrong})
    histogram = {"pooled_spec_decode_acceptance_histogram": {"0": 181, "1": 156, "3": 345}}
    with pytest.raises(ScenarioError, match="682 rounds, but total_spec_decode_steps is 829"):
        read(tmp_path, {**spec, **histogram})


def test_aiperf_warm_up_is_dropped(tmp_path: Path) -> None:
    acceptance = {"acceptance_histogram": {"0": 2, "3": 2}, "num_spec_tokens": 3}

    def record(phase: str) -> dict[str, object]:
        return {
            "metadata": {"benchmark_phase": phase, "was_cancelled": False},
            "metrics": {},
            "spec_decode_acceptance": acceptance,
        }

    (found,) = read(tmp_path, record("warmup"), record("profiling"))
    assert found.drafting_rounds == 4
    assert found.dropped == ("1 warm-up or cancelled requests",)


SGLANG = {
    "backend": "sglang",
    "completed": 10,
    "total_input_tokens": 100,
    "total_output_tokens": 1010,
    "mean_tpot_ms": 7.54,
    "mean_itl_ms": 7.80,
    "accept_length": 2.5,
    "server_info": {"speculative_num_steps": 3, "speculative_num_draft_tokens": 4},
}


def test_sglang_rounds_are_made_from_tokens(tmp_path: Path) -> None:
    (found,) = read(tmp_path, SGLANG)
    assert (found.gamma, found.drafting_rounds, found.accepted_tokens) == (3, 400, 600)


def test_sglang_tree(tmp_path: Path) -> None:
    """--speculative-eagle-topk above 1: 8 candidates, depth 3."""
    server = {**SGLANG["server_info"], "speculative_eagle_topk": 4}  # type: ignore[dict-item]
    (found,) = read(
        tmp_path, {**SGLANG, "server_info": {**server, "speculative_num_draft_tokens": 8}}
    )
    assert (found.gamma, found.tree, found.tree_nodes) == (3, True, 7)
    assert "a tree" in found.warnings[-1]


@pytest.mark.parametrize(
    # reports.json C35: steps, top-k, drafts; a tree of 3 nodes is at most 3 levels deep
    ("steps", "drafts", "nodes", "gamma"),
    [(3, 8, 7, 3), (7, 16, 15, 7), (8, 60, 59, 8), (8, 4, 3, 3), (3, 1, None, 3)],
)
def test_a_tree_becomes_a_block(
    tmp_path: Path, steps: int, drafts: int, nodes: int | None, gamma: int
) -> None:
    server = {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": 8,
        "speculative_num_draft_tokens": drafts,
    }
    (found,) = read(tmp_path, {**SGLANG, "server_info": server})
    assert (found.gamma, found.tree_nodes) == (gamma, nodes)
    block = speculation(found)
    if nodes is None:  # its width is not stated: no tree can be
        assert (block["method"], block["gamma"]) == ("draft_model", gamma)
        return
    assert block["method"] == "tree"
    scenario = load("toy-20ms", [f"speculation={json.dumps(block)}"])
    assert (scenario.gamma, scenario.verify_width) == (gamma, nodes + 1)
    assert float(predict(scenario).tokens_per_round) == pytest.approx(2.5)


def test_trees_of_different_sizes_are_not_pooled(tmp_path: Path) -> None:
    server = {"speculative_num_steps": 3, "speculative_eagle_topk": 3}
    runs = [
        {**SGLANG, "server_info": {**server, "speculative_num_draft_tokens": drafts}}
        for drafts in (4, 8)
    ]
    assert len(groups(read(tmp_path, *runs))) == 2


def test_sglang_without_speculation_is_a_baseline(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {**SGLANG, "accept_length": None})
    assert (found.gamma, found.acceptance_length) == (0, None)
    assert found.latency.token_s == pytest.approx(7.54e-3)


def test_sglang_accept_length_above_the_verify_width(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"acceptance length 4\.5 is above γ \+ 1 = 4"):
        read(tmp_path, {**SGLANG, "accept_length": 4.5})


def test_sglang_one_batch(tmp_path: Path) -> None:
    """bench_one_batch_server: acc_length −1 is a run without speculation."""
    row = {"batch_size": 4, "input_len": 512, "output_len": 101, "latency": 1.2, "last_ttft": 0.2}
    plain, spec = read(tmp_path, {**row, "acc_length": -1.0}, {**row, "acc_length": 2.61})
    assert plain.gamma == 0
    assert plain.latency.token_s == pytest.approx(0.01)
    assert spec.acceptance_length == 2.61
    assert spec.latency.concurrency == 4


def test_sglang_response_contradicts_itself(tmp_path: Path) -> None:
    meta = {"spec_verify_ct": 170, "spec_num_correct_drafts": 185, "completion_tokens": 356}
    meta["spec_correct_drafts_histogram"] = [70, 41, 33, 27]  # type: ignore[assignment]
    with pytest.raises(ScenarioError, match="holds 188 tokens in 171 rounds, not 185 in 170"):
        read(tmp_path, {"meta_info": meta})


def test_sglang_gauges_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.prom"
    path.write_text('sglang:spec_accept_length{model_name="m"} 2.61\n')
    with pytest.raises(ScenarioError, match=r"last interval only \(now 2\.61\)"):
        read_file(path)


def test_llamacpp_timings_of_several_responses(tmp_path: Path) -> None:
    """llama.cpp#12603: 347 drafted, 65 accepted, 200 predicted: 134 rounds after the first."""
    spec = {"timings": {"predicted_n": 200, "predicted_ms": 11082.606,
                        "draft_n": 347, "draft_n_accepted": 65}}  # fmt: skip
    plain = {"timings": {"predicted_n": 200, "predicted_ms": 9000.0}}
    (found,) = read(tmp_path, spec, plain)
    assert found.drafting_rounds == 134
    assert found.acceptance_length == pytest.approx(199 / 134)
    assert found.latency.round_s == pytest.approx(11.082606 / 134)
    assert found.dropped == ("1 response without a draft",)
    (alone,) = read(tmp_path, plain)
    assert alone.gamma == 0
    assert alone.latency.token_s == pytest.approx(0.045)


def test_llamacpp_chained_methods_are_kept_apart(tmp_path: Path) -> None:
    """llama.cpp#23269: ngram-mod 4 drafts in 800 calls, draft-mtp 796 drafts in 796 calls."""
    path = tmp_path / "server.log"
    path.write_text(
        "[53409] 5.05.552.782 I statistics ngram-mod: #calls(b,g,a) = 11 800 4, #gen drafts = 4, "
        "#acc drafts = 4, #gen tokens = 256, #acc tokens = 47, dur(b,g,a) = 0.340, 2.107, 1.102 "
        "ms\n[53409] 5.05.552.787 I statistics draft-mtp: #calls(b,g,a) = 11 796 796, #gen "
        "drafts = 796, #acc drafts = 694, #gen tokens = 1585, #acc tokens = 1252, dur(b,g,a) = "
        "0.008, 33271.024, 1.264 ms\n"
    )
    ngram, mtp = read_file(path)
    assert (ngram.method, ngram.drafting_rounds, ngram.draftless_rounds) == ("ngram-mod", 4, 796)
    assert mtp.acceptance_length == pytest.approx(1 + 1252 / 796)
    assert mtp.latency.draft_step_s == pytest.approx(33.271024 / 1585)


def test_llamacpp_old_request_lines_use_the_eval_time(tmp_path: Path) -> None:
    """llama.cpp#23269: 192 tokens, 128 of 187 accepted: 63 rounds after the first token."""
    path = tmp_path / "server.log"
    path.write_text(
        "prompt eval time =    1773.75 ms /    62 tokens (   28.61 ms per token)\n"
        "       eval time =   15000.17 ms /   192 tokens (   78.13 ms per token)\n"
        "draft acceptance rate = 0.68449 (  128 accepted /   187 generated)\n"
    )
    (found,) = read_file(path)
    assert found.drafting_rounds == 192 - 1 - 128
    assert found.latency.token_s == pytest.approx(15.00017 / 192)


TRTLLM = {
    "engine": {"model": "m", "version": "1.2.1"},
    "request_info": {"num_requests": 10, "avg_output_length": 101.0},
    "performance": {"avg_request_latency_ms": 900.0},
    "streaming_metrics": None,
    "decoding_stats": None,
}


def test_trtllm_without_speculation_or_requests(tmp_path: Path) -> None:
    (found,) = read(tmp_path, TRTLLM)
    assert found.gamma == 0
    assert found.latency.e2e_s == pytest.approx(0.9)
    with pytest.raises(ScenarioError, match="0 requests"):
        read(tmp_path, {**TRTLLM, "request_info": {"num_requests": 0}})


def test_trtllm_counts_without_the_context_pass(tmp_path: Path) -> None:
    """51 iterations of which one is the context pass: 50 rounds, 50 accepted, τ 2.0 not 1.98."""
    stats = {
        "mode": "Eagle3",
        "num_draft_tokens_percentiles": {"average": 153.0},
        "num_accepted_draft_tokens_percentiles": {"average": 50.0},
        "acceptance_length_percentiles": {"average": 101 / 51},
    }
    (found,) = read(tmp_path, {**TRTLLM, "decoding_stats": stats})
    assert (found.gamma, found.drafting_rounds) == (3, 500)
    assert found.acceptance_length == 2.0
    assert "1.980 is a mean over requests" in found.warnings[0]


def test_inference_perf_failed(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="0 requests succeeded"):
        read(tmp_path, {"load_summary": {}, "successes": {"count": 0}, "failures": {"count": 9}})


def test_llmservingsim_clocks_out_of_order(tmp_path: Path) -> None:
    row = {"queued_ts": 5.0, "first_token_ts": 4.0, "last_token_ts": 6.0, "output_toks": 3}
    with pytest.raises(ScenarioError, match="stamps out of order"):
        read(tmp_path, row)


def test_unknown_objects_beside_known_ones_are_said(tmp_path: Path) -> None:
    (found,) = read(tmp_path, SGLANG, {"hello": 1})
    assert found.dropped == ("1 objects of no known kind (line 2)",)


def test_llamacpp_requests_without_rounds_are_not_counted_in(tmp_path: Path) -> None:
    """0 of 90 accepted at mean len 1.00: in how many rounds? Left out, and said."""
    path = tmp_path / "server.log"
    path.write_text(
        "draft acceptance = 0.98444 (  886 accepted /   900 generated), mean len =  4.94\n"
        "draft acceptance = 0.00000 (    0 accepted /    90 generated), mean len =  1.00\n"
    )
    (found,) = read_file(path)  # lemonade-sdk/llamacpp-rocm#129 has the first line
    assert (found.drafting_rounds, found.drafted_tokens) == (225, 900)
    assert found.acceptance_length == pytest.approx(4.94, abs=0.005)
    assert found.dropped == ("1 requests whose lines do not tell their rounds: 0 of 90 accepted",)
