"""aiperf and genai-perf: summaries `{metric: {unit, avg, …}}` and aiperf's request records.

`inter_token_latency` is per token, `inter_chunk_latency` per round; of the two acceptance
lengths the token-weighted one is the ratio of counts, the other a mean over requests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.importers import vllm_request
from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked, tail_rates

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

_SECONDS = {"ms": 1e-3, "sec": 1.0, "s": 1.0, "us": 1e-6, "ns": 1e-9}
_POOLED = "pooled_spec_decode_acceptance_histogram"


def is_summary(record: Record) -> bool:
    """Return whether the object is a summary of aiperf or genai-perf."""
    metrics = ("request_latency", "time_to_first_token", "request_throughput")
    return any(
        isinstance(metric := record.value.get(name), dict) and "avg" in metric and "unit" in metric
        for name in metrics
    )


def is_request(record: Record) -> bool:
    """Return whether the object is one line of aiperf's profile_export.jsonl."""
    metadata = record.value.get("metadata")
    return isinstance(metadata, dict) and isinstance(record.value.get("metrics"), dict)


def read_summary(record: Record) -> Evidence:
    """Return the evidence of a summary."""
    requests = _statistic(record, "request_count", "avg")
    if requests == 0:
        raise record.fault("request_count", "0 requests completed", "a run with requests")
    version = record.text("aiperf_version")
    source = Source(
        record.file,
        "aiperf" if version else "genai-perf",
        where="summary",
        line=record.line,
        engine=f"aiperf {version}" if version else "",
    )
    base = Evidence(source, model=_model(record), latency=_latency(record, requests))
    rounds = _statistic(record, "total_spec_decode_steps", "avg")
    if rounds is None:
        note = "no spec_decode_* metrics: the server sent no acceptance with its responses"
        return replace(base, warnings=(*missing_note(record), note))
    return checked(_with_acceptance(record, base, rounds))


def _with_acceptance(record: Record, base: Evidence, rounds: float) -> Evidence:
    drafted = _statistic(record, "total_draft_tokens", "avg")
    accepted = _statistic(record, "total_accepted_draft_tokens", "avg")
    histogram = record.histogram(_POOLED)
    if not rounds or accepted is None:
        raise record.fault("total_spec_decode_steps", f"{rounds:g} rounds", "rounds with a draft")
    tau = 1 + accepted / rounds
    told = _statistic(record, "spec_decode_token_weighted_acceptance_length", "avg")
    if told is not None and abs(told - tau) > 0.005:
        raise record.fault(
            "spec_decode_token_weighted_acceptance_length",
            f"{told:g}, but 1 + accepted / steps is {tau:.4g}",
            "the two must agree",
        )
    gamma = max(len(histogram) - 1, round(drafted / rounds) if drafted else 0) or None
    if histogram and sum(histogram) != rounds:
        raise record.fault(
            _POOLED,
            f"{sum(histogram):g} rounds, but total_spec_decode_steps is {rounds:g}",
            "the two must agree",
        )
    return replace(
        base,
        gamma=gamma,
        drafting_rounds=rounds,
        drafted_tokens=drafted,
        accepted_tokens=accepted,
        unconditional=tail_rates(histogram) if histogram else (),
        histogram=histogram,
        acceptance_length=tau,
        dropped=("spec_decode_acceptance_length: a mean over requests, not weighted by rounds",),
        warnings=missing_note(record),
    )


def read_requests(records: list[Record]) -> list[Evidence]:
    """Return the evidence of aiperf's request records; warm-up and cancelled requests dropped."""
    kept, dropped = [], 0
    for record in records:
        metadata = record.record("metadata")
        phase = metadata.text("benchmark_phase") if metadata else ""
        if phase not in ("", "profiling") or (metadata and metadata.value.get("was_cancelled")):
            dropped += 1
        else:
            kept.append(record)
    note = (f"{dropped} warm-up or cancelled requests",) if dropped else ()
    found = vllm_request.read(kept, kind="aiperf")
    if not found and records:
        source = Source(records[0].file, "aiperf", f"{len(kept)} requests", records[0].line)
        note = (*note, "no request carries spec_decode_acceptance")
        found = [Evidence(source)]
    return [replace(evidence, dropped=note) for evidence in found]


def _statistic(record: Record, metric: str, statistic: str) -> float | None:
    inner = record.record(metric)
    return inner.count(statistic) if inner else None


def _latency(record: Record, requests: float | None) -> Latency:
    return Latency(
        round_s=_mean_s(record, "inter_chunk_latency"),
        token_s=_mean_s(record, "inter_token_latency"),
        ttft_s=_mean_s(record, "time_to_first_token"),
        e2e_s=_mean_s(record, "request_latency"),
        requests=requests,
        prompt_tokens=_statistic(record, "input_sequence_length", "avg"),
        output_tokens=_statistic(record, "output_sequence_length", "avg"),
        output_tokens_per_s=_statistic(record, "output_token_throughput", "avg"),
    )


def _mean_s(record: Record, metric: str) -> float | None:
    inner = record.record(metric)
    if inner is None or inner.value.get("avg") is None:
        return None
    unit = inner.text("unit")
    if unit not in _SECONDS:
        raise inner.fault("unit", f"{unit!r}", f"a unit of time: {', '.join(_SECONDS)}")
    return inner.seconds("avg", unit_s=_SECONDS[unit])


def _model(record: Record) -> str:
    config = record.value.get("input_config")
    models = config.get("models") if isinstance(config, dict) else None
    items = models.get("items") if isinstance(models, dict) else None
    first = items[0] if isinstance(items, list) and items else None
    name = first.get("name") if isinstance(first, dict) else None
    return name if isinstance(name, str) else ""
