"""Files that people have at hand and that hold no acceptance: why, and what would do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.documents import Record

# Keys that tell a kind of document, what it is, what to bring instead.
_KEYS: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"case", "requests", "median_us"}),
        "vllm bench forward: times of passes, no acceptance",
        "`specplan calibrate` reads round costs from it",
    ),
    (
        frozenset({"avg_latency", "latencies"}),
        "vllm bench latency: whole-batch latencies, no acceptance",
        "a result of `vllm bench serve`",
    ),
    (
        frozenset({"elapsed_time", "total_num_tokens"}),
        "vllm bench throughput: total throughput, no acceptance",
        "a result of `vllm bench serve`",
    ),
    (
        frozenset({"sample_batch_tokens", "sample_steps_per_sec"}),
        "a DSpark cost table of SGLang: step rates, no acceptance",
        "`specplan calibrate` reads round costs from it",
    ),
    (
        frozenset({"bias_seconds", "theta_seconds"}),
        "a DSpark cost table of SGLang: step times, no acceptance",
        "`specplan calibrate` reads round costs from it",
    ),
    (
        frozenset({"num_speculative_tokens"}),
        "a --speculative-config of vLLM: what was asked for, not what was accepted",
        "the log or /metrics of a server that ran with it",
    ),
    (
        frozenset({"schema_version", "engine_kwargs"}),
        "LLMServingSim's description of a run: no measurement in it",
        "requests.jsonl beside it",
    ),
    (
        frozenset({"apiVersion", "kind"}),
        "a Kubernetes manifest: no measurement in it",
        "the report of the run",
    ),
    (
        frozenset({"api", "load", "server"}),
        "a configuration of inference-perf: no measurement in it",
        "its *_lifecycle_metrics.json",
    ),
    (
        frozenset({"target", "workload"}),
        "a scenario of specplan",
        "`specplan acceptance convert` takes it",
    ),
    (
        frozenset({"results", "scenario", "version"}),
        "an llm-d benchmark report: latencies only, it has no field for acceptance",
        "/metrics or the log of the engine it ran",
    ),
)
_TEXT: tuple[tuple[bytes, str, str], ...] = (
    (
        b"Metric,avg,",
        "aiperf's CSV: rounded to two decimals and without the histogram",
        "profile_export_aiperf.json beside it",
    ),
    (
        b"t,prompt_throughput,",
        "LLMServingSim's time series: throughput only, no acceptance",
        "requests.jsonl beside it",
    ),
    (
        b"Metric                           vLLM",
        "LLMServingSim's comparison table: no acceptance",
        "requests.jsonl beside it",
    ),
)


def refusal(records: Sequence[Record], file: str) -> Fault:
    """Return why these objects are refused: known without acceptance, or of no known kind."""
    for record in records:
        for known, wrong, right in _KEYS:
            if known <= record.value.keys():
                return Fault(wrong, right, file, record.line)
    keys = ", ".join(list(records[0].value)[:4]) if records else ""
    wrong = f"an object of no known kind (keys: {keys})" if keys else "JSON without any object"
    return Fault(wrong, KNOWN, file, records[0].line if records else 1)


KNOWN = (
    "vLLM /metrics, log, bench serve; SGLang bench, log, /generate; trtllm-bench; llama.cpp log "
    "or timings; aiperf, genai-perf; golden acceptance lengths; AMUSD traces"
)


def refused_text(head: bytes, file: str) -> Fault | None:
    """Return why a text that begins like this is refused, None where it is not known."""
    for start, wrong, right in _TEXT:
        if head.startswith(start):
            return Fault(wrong, right, file, 1)
    return None
