"""guidellm reports: latencies of each benchmark; they hold no acceptance.

`time_per_output_token_ms` includes the first token; `inter_token_latency_ms` does not and is
what other tools call TPOT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "guidellm"


def matches(record: Record) -> bool:
    """Return whether the object is a guidellm report."""
    benchmarks = record.value.get("benchmarks")
    return isinstance(benchmarks, list) and any(
        isinstance(one, dict) and isinstance(one.get("metrics"), dict) for one in benchmarks
    )


def read(record: Record) -> list[Evidence]:
    """Return the latencies of every benchmark of the report."""
    metadata = record.record("metadata")
    version = metadata.text("guidellm_version") if metadata else ""
    found, dropped = [], []
    for benchmark in record.records("benchmarks"):
        metrics = benchmark.record("metrics")
        if metrics is None:
            continue
        requests = _successful(metrics, "request_latency", "count")
        if not requests:
            dropped.append(f"{benchmark.path}: 0 requests succeeded")
            continue
        source = Source(
            record.file, KIND, benchmark.path, record.line, f"guidellm {version}".strip()
        )
        found.append(
            Evidence(
                source,
                latency=_latency(metrics, requests),
                dropped=("time_per_output_token_ms: includes the first token",),
                warnings=(*missing_note(record), "guidellm does not report acceptance"),
            )
        )
    if not found:
        raise record.fault(
            "benchmarks", "; ".join(dropped) or "empty", "a benchmark with successful requests"
        )
    return found


def _successful(metrics: Record, metric: str, statistic: str) -> float | None:
    inner = metrics.record(metric)
    done = inner.record("successful") if inner else None
    return done.count(statistic) if done else None


def _seconds(metrics: Record, metric: str, unit_s: float) -> float | None:
    inner = metrics.record(metric)
    done = inner.record("successful") if inner else None
    if done is None or not done.count("count"):
        return None
    return done.seconds("mean", unit_s=unit_s)


def _latency(metrics: Record, requests: float) -> Latency:
    return Latency(
        token_s=_seconds(metrics, "inter_token_latency_ms", 1e-3),
        ttft_s=_seconds(metrics, "time_to_first_token_ms", 1e-3),
        e2e_s=_seconds(metrics, "request_latency", 1.0),
        concurrency=_successful(metrics, "request_concurrency", "mean"),
        requests=requests,
        prompt_tokens=_successful(metrics, "prompt_token_count", "mean"),
        output_tokens=_successful(metrics, "output_token_count", "mean"),
        output_tokens_per_s=_successful(metrics, "output_tokens_per_second", "mean"),
    )
