"""`trtllm-bench --report_json`: averages over requests, made counts again.

Every iteration counts as a drafting one, the context pass too, which drafts nothing
(tensorrt_llm/bench/dataclasses/reporting.py): iterations = output − accepted, so a request has
iterations − 1 rounds. TensorRT-LLM's own forced number of accepted tokens is τ − 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "trtllm-bench"


def matches(record: Record) -> bool:
    """Return whether the object is a report of trtllm-bench."""
    return "request_info" in record.value and "performance" in record.value


def read(record: Record) -> Evidence:
    """Return the evidence of one report."""
    engine = record.record("engine")
    info = record.record("request_info")
    requests = info.count("num_requests") if info else None
    if not requests:
        raise record.fault("request_info.num_requests", "0 requests", "a run with requests")
    version = engine.text("version") if engine else ""
    base = Evidence(
        Source(record.file, KIND, line=record.line, engine=f"TensorRT-LLM {version}".strip()),
        model=engine.text("model") if engine else "",
        latency=_latency(record, requests),
        warnings=missing_note(record),
    )
    stats = record.record("decoding_stats")
    if stats is None:
        return replace(base, gamma=0)
    output = info.number("avg_output_length") if info else None
    drafted = _average(stats, "num_draft_tokens_percentiles")
    accepted = _average(stats, "num_accepted_draft_tokens_percentiles")
    if not output or drafted is None or accepted is None:
        raise stats.fault("num_draft_tokens_percentiles", "averages are absent", "average")
    iterations = output - accepted
    if iterations <= 1:
        raise stats.fault(
            "num_accepted_draft_tokens_percentiles.average",
            f"{accepted:g} accepted of {output:g} output tokens",
            "fewer than the output: each round emits one token of its own",
        )
    gamma = round(drafted / iterations)
    rounds = requests * (iterations - 1)
    told = _average(stats, "acceptance_length_percentiles")
    return checked(
        replace(
            base,
            method=stats.text("mode"),
            gamma=gamma or None,
            drafting_rounds=rounds,
            drafted_tokens=gamma * rounds,
            accepted_tokens=requests * accepted,
            acceptance_length=1 + requests * accepted / rounds,
            rounding=0.005,
            warnings=(
                *base.warnings,
                f"the report's acceptance length {told:.3f} is a mean over requests and counts "
                "the context pass as a round; here it is rebuilt from counts without it",
            )
            if told
            else base.warnings,
        )
    )


def _average(stats: Record, name: str) -> float | None:
    inner = stats.record(name)
    return inner.count("average") if inner else None


def _latency(record: Record, requests: float) -> Latency:
    info, speed = record.record("request_info"), record.record("performance")
    stream = record.record("streaming_metrics")
    return Latency(
        token_s=stream.seconds("avg_tpot_ms") if stream else None,
        ttft_s=stream.seconds("avg_ttft_ms") if stream else None,
        e2e_s=speed.seconds("avg_request_latency_ms") if speed else None,
        concurrency=info.count("avg_num_concurrent_requests") if info else None,
        requests=requests,
        prompt_tokens=info.count("avg_input_length") if info else None,
        output_tokens=info.count("avg_output_length") if info else None,
        output_tokens_per_s=speed.seconds("system_output_throughput_tok_s", unit_s=1.0)
        if speed
        else None,
        duration_s=speed.seconds("total_latency_ms") if speed else None,
    )
