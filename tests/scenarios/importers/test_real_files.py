"""Every file of ../shared/data/{acceptance,engine,constructed}: what it says, or why it is refused.

Expectations are typed in from the files themselves (read by eye), their READMEs and
../shared/cases/published.json, not from our own output.
"""

from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.recognise import read_file

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="../shared/data (real files, never copied here) is absent"
)

GOLDEN = {  # file: (model, condition, τ of K = 1 … 8)
    "glm5.2_mtp": [
        ("glm-5.2-fp8", "thinking_on", [1.84, 2.50, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06]),
    ],
    "kimik2.5_eagle3": [
        ("kimi-k2.5-nvfp4", "thinking_on", [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77]),
        ("kimi-k2.5-nvfp4", "thinking_off", [1.80, 2.33, 2.75, 3.06, 3.25, 3.43, 3.46, 3.51]),
    ],
    "kimik3_dspark": [
        ("kimi-k3", "thinking_on", [1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88]),
    ],
    "kimik3_dspark_probabilistic_sample_method_block_rejection_sample_method": [
        ("kimi-k3", "thinking_on", [1.85, 2.51, 3.00, 3.36, 3.62, 3.75, 3.84, 4.00]),
    ],
    "minimaxm3_eagle3": [
        ("minimax-m3", "thinking_on", [1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74]),
        ("minimax-m3", "thinking_off", [1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06]),
    ],
    "minimaxm3_eagle3_gqa": [
        ("minimax-m3", "thinking_on", [1.79, 2.39, 2.78, 3.02, 3.21, 3.30, 3.52, 3.51]),
        ("minimax-m3", "thinking_off", [1.83, 2.46, 2.97, 3.29, 3.72, 3.76, 3.75, 3.93]),
    ],
    "qwen3.5_mtp": [
        (
            "qwen3.5-397b-a17b-nvfp4",
            "thinking_on",
            [1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21],
        ),
        (
            "qwen3.5-397b-a17b-nvfp4",
            "thinking_off",
            [1.92, 2.70, 3.33, 3.83, 4.20, 4.48, 4.73, 4.71],
        ),
    ],
}
SGLANG = {  # file: (τ, requests, output tokens, TPOT in ms) of the printed tables
    "DeepSeek-V3_1": (2.61, 10, 2784, 25.04),
    "DeepSeek-V3_2_2": (2.46, 10, 2784, 9.09),
    "DeepSeek-V3_2_3": (3.27, 10, 4220, 10.99),
    "DeepSeek-V3_2_4": (3.26, 2048, 1032734, 49.18),
    "DeepSeek-V3_2_5": (3.26, 2048, 2097152, 36.31),
    "GLM-5_1_6": (3.48, 10, 4220, 7.54),
    "GLM-5_1_7": (3.50, 1000, 500251, 38.73),
    "Qwen3_5_10": (3.12, 10, 4220, 3.96),
    "Qwen3_5_11": (3.31, 1000, 500251, 26.16),
}
SECONDS_VARIANT = {  # (prompt tokens, concurrency): median TPOT in seconds, as the file has it
    (1024, 4): 0.021372462615488082,
    (1024, 8): 0.024733149263215813,
    (1024, 16): 0.033614915054966145,
    (1024, 32): 0.0428536575302247,
    (1024, 48): 0.07293010080658544,
    (1024, 64): 0.08786178177119944,
    (4096, 4): 0.028220024289871297,
    (4096, 8): 0.03156808598011028,
    (4096, 16): 0.06929355874422968,
    (4096, 32): 0.12375299659682307,
    (4096, 48): 0.18143960808616455,
    (4096, 64): 0.20849344938054798,
    (8192, 4): 0.03971204980767852,
    (8192, 8): 0.06200530890404709,
    (8192, 16): 0.11806020186847355,
    (8192, 32): 0.20522470716533697,
    (8192, 48): 0.2124836036539453,
    (8192, 64): 0.21091479159832938,
    (16384, 4): 0.057871198794973176,
    (16384, 8): 0.10391118122250076,
    (16384, 16): 0.19960321788859414,
    (16384, 32): 0.2035442293716932,
    (16384, 48): 0.2098695820373461,
    (16384, 64): 0.21121964006736055,
}
INFERENCE_PERF = {  # requests, request latency s, TTFT s, output tokens: means of `successes`
    "stage_0": (60, 0.480482, 0.0311273, 63.15),
    "stage_1": (1884, 0.546745, 0.0298369, 62.364119),
    "stage_2": (3707, 0.679552, 0.0349433, 62.386296),
    "stage_3": (5531, 1.021272, 0.0505486, 62.325438),
    "stage_4": (7355, 3.844011, 2.6165346, 62.399320),
    "stage_5": (9178, 4.161168, 2.9370845, 62.327631),
    "stage_6": (11002, 4.143005, 2.9432443, 62.390202),
    "summary": (38717, 3.132265, 2.0417374, 62.367384),
}
REFUSED = {
    "constructed/aiperf_0.13.0/profile_export_aiperf.csv": "profile_export_aiperf.json beside it",
    "constructed/sglang_dspark_sps_additive_table.json": "DSpark cost table",
    "constructed/sglang_dspark_sps_table.json": "DSpark cost table",
    "constructed/vllm_bench_forward.json": "times of passes, no acceptance",
    "constructed/vllm_bench_latency.json": "whole-batch latencies, no acceptance",
    "constructed/vllm_bench_throughput.json": "total throughput, no acceptance",
    "constructed/vllm_speculative_config_variants.json": "what was asked for",
    "engine/inference_perf/config.yaml": "a configuration of inference-perf",
    "engine/inference_perf/vllm/manifests.yaml": "a Kubernetes manifest",
    "engine/llmd_benchmark_report/br_v0_2_1_example.yaml": "no field for acceptance",
    "engine/llmservingsim_vllm/RTX4090_Llama-3.1-8B/meta.json": "requests.jsonl beside it",
    "engine/llmservingsim_vllm/RTX4090_Llama-3.1-8B/summary.txt": "requests.jsonl beside it",
    "engine/llmservingsim_vllm/RTX4090_Llama-3.1-8B/timeseries.csv": "throughput only",
    "engine/llmservingsim_vllm/RTXPRO6000_Llama-3.1-8B/meta.json": "requests.jsonl beside it",
    "engine/llmservingsim_vllm/RTXPRO6000_Llama-3.1-8B/summary.txt": "requests.jsonl beside it",
    "engine/llmservingsim_vllm/RTXPRO6000_Llama-3.1-8B/timeseries.csv": "throughput only",
    **{
        f"engine/inference_perf/vllm/{stage}_prometheus_metrics.json": "mixes in other traffic"
        for stage in INFERENCE_PERF
    },
}
# Pooled over the file: kind, γ, rounds with a draft, accepted tokens, τ; None is not stated.
COUNTS = {
    # 829 steps, 1485 of 2487 accepted, 2.7913 token-weighted (2.8112 is the mean over requests)
    "constructed/aiperf_0.13.0/profile_export.jsonl": ("aiperf", 3, 829, 1485, 2.7913),
    "constructed/aiperf_0.13.0/profile_export_aiperf.json": ("aiperf", 3, 829, 1485, 2.7913),
    # 4027 + 4058 and 12245 + 12269 drafts; 7506 + 7629 and 22914 + 23096 accepted
    "constructed/vllm0.33_metrics_dp2_created.before.prom": ("vllm-metrics", 4, 8085, 15135, 2.872),
    "constructed/vllm0.33_metrics_dp2_created.after.prom": (
        "vllm-metrics",
        4,
        24514,
        46010,
        2.8769,
    ),
    "constructed/vllm0.33_metrics_single.prom": ("vllm-metrics", 4, 12275, 22916, 2.8669),
    # 170 rounds, 185 correct of 510; the response's own 2.0941 counts the token of the prefill
    "constructed/sglang_generate_response_0.5.23.json": (
        "sglang-response",
        3,
        170,
        185,
        1 + 185 / 170,
    ),
    # 40 requests of 216.55 tokens, 129.95 accepted: 40 · (86.6 − 1) rounds
    "constructed/trtllm_bench_report.json": ("trtllm-bench", 3, 3424, 5198, 1 + 5198 / 3424),
}
ELSEWHERE = {
    "acceptance/amusd/humaneval_sample.json",
    "acceptance/llamacpp_inventivehq/inventivehq-5060ti-1080ti.json",
    "constructed/sglang_bench_serving.jsonl",
    "constructed/sglang_decode_batch.log",
    "constructed/vllm0.33_specdecoding.log",
    "engine/guidellm/guidellm_report_v2.json",
    "engine/llmservingsim_vllm/RTX4090_Llama-3.1-8B/requests.jsonl",
    "engine/llmservingsim_vllm/RTXPRO6000_Llama-3.1-8B/requests.jsonl",
}


def only(path: str) -> Evidence:
    (found,) = read_file(DATA / path)
    return found


def test_no_file_is_forgotten() -> None:
    there = {
        path.relative_to(DATA).as_posix()
        for folder in ("acceptance", "engine", "constructed")
        for path in (DATA / folder).rglob("*")
        if path.is_file()
    }
    golden = {f"acceptance/inferencex_golden_al/{name}.yaml" for name in GOLDEN}
    consoles = {f"engine/sglang_bench_console/{name}.txt" for name in SGLANG}
    perf = {f"engine/inference_perf/vllm/{name}_lifecycle_metrics.json" for name in INFERENCE_PERF}
    variant = {_variant(*key) for key in SECONDS_VARIANT}
    known = {*REFUSED, *COUNTS, *ELSEWHERE, *golden, *consoles, *perf, *variant}
    assert there == known


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_refused(path: str) -> None:
    with pytest.raises(ScenarioError, match=REFUSED[path]) as caught:
        read_file(DATA / path)
    (fault,) = caught.value.faults
    assert fault.file.endswith(path)
    assert fault.line


@pytest.mark.parametrize("path", sorted(COUNTS))
def test_counts(path: str) -> None:
    found = only(path)
    kind, gamma, rounds, accepted, tau = COUNTS[path]
    assert (found.source.kind, found.gamma) == (kind, gamma)
    assert found.drafting_rounds == pytest.approx(rounds)
    assert found.accepted_tokens == pytest.approx(accepted)
    assert found.acceptance_length == pytest.approx(tau, abs=5e-5)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_golden_acceptance_lengths(name: str) -> None:
    found = read_file(DATA / "acceptance" / "inferencex_golden_al" / f"{name}.yaml")
    wanted = [
        (model, condition, gamma, tau)
        for model, condition, lengths in GOLDEN[name]
        for gamma, tau in enumerate(lengths, start=1)
    ]
    assert [(e.model, e.label, e.gamma, e.acceptance_length) for e in found] == wanted
    assert all(e.method in {"mtp", "eagle3", "dspark"} for e in found)


def test_golden_line_numbers() -> None:
    found = read_file(DATA / "acceptance" / "inferencex_golden_al" / "glm5.2_mtp.yaml")
    assert (found[0].source.line, found[7].source.line) == (12, 19)


@pytest.mark.parametrize("name", sorted(SGLANG))
def test_sglang_console(name: str) -> None:
    found = only(f"engine/sglang_bench_console/{name}.txt")
    tau, requests, output, tpot_ms = SGLANG[name]
    assert found.acceptance_length == tau
    assert found.drafting_rounds == pytest.approx((output - requests) / tau)
    assert found.latency.token_s == pytest.approx(tpot_ms / 1e3)
    assert found.latency.requests == requests


def test_sglang_jsonl_holds_the_same_runs() -> None:
    found = read_file(DATA / "constructed" / "sglang_bench_serving.jsonl")
    assert [e.acceptance_length for e in found] == [tau for tau, *_ in SGLANG.values()]
    assert {e.gamma for e in found} == {3}
    assert [e.source.line for e in found] == list(range(1, 10))


def test_sglang_itl_is_per_token() -> None:
    """FORMATS.md A7: GLM-5, accept length 3.48, ITL 7.80 ms: a round takes 27.14 ms."""
    found = only("engine/sglang_bench_console/GLM-5_1_6.txt")
    assert found.latency.round_s == pytest.approx(3.48 * 7.80e-3)


def _variant(prompt: int, concurrency: int) -> str:
    name = f"glm5_fp8_vllm_tp8_isl{prompt}_osl128_conc{concurrency}.json"
    return f"engine/bench_serving_seconds_variant/{name}"


@pytest.mark.parametrize(("prompt", "concurrency"), sorted(SECONDS_VARIANT))
def test_seconds_variant(prompt: int, concurrency: int) -> None:
    found = only(_variant(prompt, concurrency))
    latency = found.latency
    assert latency.statistic == "median"
    assert latency.token_s == SECONDS_VARIANT[prompt, concurrency]
    assert (latency.concurrency, latency.prompt_tokens) == (concurrency, prompt)
    assert latency.output_tokens == 128
    assert not found.says_acceptance


@pytest.mark.parametrize("stage", sorted(INFERENCE_PERF))
def test_inference_perf(stage: str) -> None:
    found = only(f"engine/inference_perf/vllm/{stage}_lifecycle_metrics.json")
    requests, latency_s, ttft_s, output = INFERENCE_PERF[stage]
    assert found.latency.requests == requests
    assert found.latency.ttft_s == pytest.approx(ttft_s, rel=1e-5)
    token_s = (latency_s - ttft_s) / (output - 1)
    assert found.latency.token_s == pytest.approx(token_s, rel=1e-4)


@pytest.mark.parametrize(
    ("gpu", "ttft_ms", "tpot_ms", "latency_ms"),
    [("RTX4090", 65456.6, 32.4, 86578.3), ("RTXPRO6000", 7097.2, 32.5, 28200.7)],
)
def test_llmservingsim(gpu: str, ttft_ms: float, tpot_ms: float, latency_ms: float) -> None:
    """The means of summary.txt, column vLLM, beside the recording."""
    latency = only(f"engine/llmservingsim_vllm/{gpu}_Llama-3.1-8B/requests.jsonl").latency
    assert latency.requests == 300
    assert latency.ttft_s == pytest.approx(ttft_ms / 1e3, abs=5e-5)
    assert latency.token_s == pytest.approx(tpot_ms / 1e3, abs=5e-5)
    assert latency.e2e_s == pytest.approx(latency_ms / 1e3, abs=5e-5)


def test_guidellm() -> None:
    """Means of `successful`: ITL 1.1508 ms, TTFT 11.4812 ms, two requests each."""
    first, second = read_file(DATA / "engine" / "guidellm" / "guidellm_report_v2.json")
    assert first.latency.token_s == pytest.approx(1.1508464813232422e-3)
    assert first.latency.ttft_s == pytest.approx(11.481165885925293e-3)
    assert (first.latency.requests, second.latency.requests) == (2, 2)
    assert first.source.engine == "guidellm 0.8.0.dev18"


def test_amusd_trace() -> None:
    """published.json amusd-trace-humaneval0: τ 5.2568, draft 11.69 ms, verify 26.628 ms."""
    greedy, serial, parallel = read_file(DATA / "acceptance" / "amusd" / "humaneval_sample.json")
    assert greedy.gamma == 0
    assert greedy.latency.token_s == pytest.approx(22.251e-3, rel=1e-4)
    assert serial.gamma == 5
    assert serial.histogram == (5, 4, 2, 3, 2, 58)
    assert serial.acceptance_length == pytest.approx(5.2568, abs=5e-5)
    wanted = [0.9324, 0.8784, 0.8514, 0.8108, 0.7838]
    assert serial.unconditional == pytest.approx(wanted, abs=5e-5)
    assert serial.latency.draft_step_s == pytest.approx(11.69e-3, rel=1e-3)
    assert serial.latency.verify_round_s == pytest.approx(26.628e-3, rel=1e-3)
    assert len(serial.recorded) == 74
    assert serial.recorded[:5] == (3, 5, 5, 5, 5)  # 4 6 6 6 6 with the bonus
    assert parallel.label == "amusd"


def test_inventivehq_collection() -> None:
    """Sums over the twelve records of gpu0, cuda, draft: 2889 tokens, 2103 of 3844 accepted."""
    path = DATA / "acceptance" / "llamacpp_inventivehq" / "inventivehq-5060ti-1080ti.json"
    found = {e.label: e for e in read_file(path)}
    assert len(found) == 18
    draft = found["gpu0 cuda draft_0_5b"]
    assert (draft.accepted_tokens, draft.drafted_tokens) == (2103, 3844)
    assert draft.drafting_rounds == 2889 - 12 - 2103
    ngram = found["gpu0 cuda ngram"]  # 8 drafted tokens in 2884 rounds: τ would hide that
    assert not ngram.says_acceptance
    assert "most rounds had no draft" in ngram.warnings[0]
    assert found["gpu0 cuda baseline"].gamma == 0
    assert "12 records without predicted_ms" in found["cpu cpu draft_0_5b"].dropped


def test_sglang_decode_log() -> None:
    """2.00/0.50 with a dot is 2025's formula, 2.61/0.54 and 2.55/0.52 are 0.5.23's: γ = 3."""
    found = only("constructed/sglang_decode_batch.log")
    assert found.gamma == 3
    assert found.acceptance_length == pytest.approx((2.00 + 8 * 2.61 + 8 * 2.55) / 17)


def test_vllm_log() -> None:
    """Six windows: 68,926 of 143,540 accepted, mean acceptance length 2.86 to 2.90 in each."""
    found = only("constructed/vllm0.33_specdecoding.log")
    assert (found.accepted_tokens, found.drafted_tokens) == (68926, 143540)
    assert found.acceptance_length == pytest.approx(2.873, abs=2e-3)
    assert found.unconditional == pytest.approx([0.782, 0.538, 0.349, 0.204], abs=1e-3)


def test_aiperf_summary_keeps_round_and_token_apart() -> None:
    """FORMATS.md A11: 3.50 ms a token, 9.63 ms a chunk at 2.79 tokens a round."""
    found = only("constructed/aiperf_0.13.0/profile_export_aiperf.json")
    assert found.latency.token_s == pytest.approx(3.50e-3, abs=5e-6)
    assert found.latency.round_s == pytest.approx(9.63e-3, abs=5e-6)
    assert found.histogram == (181, 156, 147, 345)


def test_aiperf_records_hold_single_requests() -> None:
    found = only("constructed/aiperf_0.13.0/profile_export.jsonl")
    assert found.histogram == (181, 156, 147, 345)
    assert len(found.request_lengths) == 24
    assert sum(found.request_lengths) / 24 == pytest.approx(2.8112, abs=5e-5)
    assert sum(found.recorded) == 1485
