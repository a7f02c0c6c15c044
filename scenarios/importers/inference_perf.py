"""inference-perf's lifecycle reports (kubernetes-sigs), in seconds; they hold no acceptance.

Its own time per output token counts empty chunks of the stream, so it is rebuilt as
(request latency − TTFT) / (output length − 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "inference-perf"


def matches(record: Record) -> bool:
    """Return whether the object is a report of inference-perf."""
    return {"load_summary", "successes", "failures"} <= record.value.keys()


def read(record: Record) -> Evidence:
    """Return the latencies of one stage.

    Raises ScenarioError: no request succeeded, or the summary is the one made from Prometheus,
    whose lengths are of other traffic.
    """
    successes = record.record("successes")
    count = successes.count("count") if successes else None
    if successes is None or not count:
        raise record.fault("successes.count", "0 requests succeeded", "a stage with requests")
    latency = successes.record("latency")
    if latency is None:
        raise record.fault(
            "successes.latency",
            "absent: this is the Prometheus summary, which mixes in other traffic of the cluster",
            "the lifecycle_metrics file of the same stage",
        )
    e2e_s = _mean_s(latency, "request_latency")
    ttft_s = _mean_s(latency, "time_to_first_token")
    output = _mean(successes, "output_len")
    token_s = None
    if e2e_s and ttft_s and output and output > 1 and e2e_s > ttft_s:
        token_s = (e2e_s - ttft_s) / (output - 1)
    load = record.record("load_summary")
    throughput = successes.record("throughput")
    return Evidence(
        Source(record.file, KIND, line=record.line),
        latency=Latency(
            token_s=token_s,
            ttft_s=ttft_s,
            e2e_s=e2e_s,
            requests=count,
            prompt_tokens=_mean(successes, "prompt_len"),
            output_tokens=output,
            output_tokens_per_s=throughput.count("output_tokens_per_sec") if throughput else None,
            duration_s=load.seconds("send_duration", unit_s=1.0) if load else None,
        ),
        dropped=("time_per_output_token, inter_token_latency: per chunk of the stream",),
        warnings=(*missing_note(record), "inference-perf does not report acceptance"),
    )


def _mean(owner: Record, name: str) -> float | None:
    inner = owner.record(name)
    return inner.count("mean") if inner else None


def _mean_s(owner: Record, name: str) -> float | None:
    inner = owner.record(name)
    return inner.seconds("mean", unit_s=1.0) if inner else None
