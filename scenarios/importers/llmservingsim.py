"""LLMServingSim's recordings of vLLM: requests.jsonl with two clocks.

`arrival_time` is Unix time, the `_ts` stamps are monotonic: `queued_ts` is the arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.importers.evidence import Evidence, Latency, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.documents import Record

KIND = "llmservingsim"
_STAMPS = ("queued_ts", "first_token_ts", "last_token_ts")


def matches(record: Record) -> bool:
    """Return whether the object is one request of the recording."""
    return {*_STAMPS, "output_toks"} <= record.value.keys()


def read(records: Sequence[Record]) -> Evidence:
    """Return the latencies of the recording, without acceptance."""
    first = records[0]
    ttft, e2e, gaps, prompt, output = 0.0, 0.0, [], 0.0, 0.0
    for record in records:
        queued, begun, ended = (record.number(name) for name in _STAMPS)
        tokens = record.count("output_toks") or 0
        if queued is None or begun is None or ended is None or not queued <= begun <= ended:
            raise record.fault(
                "queued_ts", "stamps out of order", "queued_ts ≤ first_token_ts ≤ last_token_ts"
            )
        ttft += begun - queued
        e2e += ended - queued
        prompt += record.count("input_toks") or 0
        output += tokens
        if tokens > 1:
            gaps.append((ended - begun) / (tokens - 1))
    many = len(records)
    return Evidence(
        Source(first.file, KIND, f"{many} requests", first.line, "vLLM"),
        latency=Latency(
            ttft_s=ttft / many,
            e2e_s=e2e / many,
            token_s=sum(gaps) / len(gaps) if gaps else None,
            requests=many,
            prompt_tokens=prompt / many,
            output_tokens=output / many,
        ),
        dropped=("arrival_time: another clock (Unix time) than the _ts stamps",),
        warnings=("the recording holds no acceptance",),
    )
