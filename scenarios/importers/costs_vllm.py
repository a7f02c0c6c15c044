"""`vllm bench forward` (passes in µs), and why `latency` and `throughput` hold no pass.

The format is that of vllm/benchmarks/forward: query_len = 1 + draft tokens, kv_len includes the
query, and the drafter is in the time unless it was run with --exclude-drafter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.documents import Record

KIND = "vllm-bench-forward"
_NOTES = (
    "the drafter is in these times unless --exclude-drafter was given; sampling, rejection and CPU "
    "overhead are not",
    "contexts are means over the requests of a case",
)


def is_case(record: Record) -> bool:
    """Return whether the object is one case of `vllm bench forward`."""
    return {"case", "requests", "median_us"} <= record.value.keys()


def read_forward(records: Sequence[Record]) -> PassTimes:
    """Return one pass a case; cases that mix widths are left out and named.

    Raises ScenarioError: no case is uniform, or a time is not positive.
    """
    passes, mixed = [], []
    for record in records:
        requests = record.records("requests")
        widths = [one.count("query_len") or 0.0 for one in requests]
        contexts = [(one.count("kv_len") or 0.0) for one in requests]
        seconds = record.seconds("median_us", unit_s=1e-6)
        if not requests or len(set(widths)) != 1 or widths[0] < 1 or seconds is None:
            mixed.append(record.text("case"))
            continue
        cached = sum(contexts) / len(contexts) - widths[0]
        passes.append(Pass(len(requests), widths[0], max(cached, 0.0), seconds))
    file = records[0].file
    left_out = (f"cases of several widths left out: {', '.join(mixed)}",) if mixed else ()
    return checked(PassTimes(file, KIND, tuple(passes), (*_NOTES, *left_out)), file)


def refuse_totals(record: Record) -> None:
    """Refuse results that hold only totals, with what to bring instead.

    Raises ScenarioError for `vllm bench latency` and `vllm bench throughput`.
    """
    keys = record.value.keys()
    if {"avg_latency", "latencies"} <= keys:
        latency = record.seconds("avg_latency", unit_s=1.0) or 0.0
        raise ScenarioError(
            Fault(
                f"vllm bench latency: {latency:.4g} s for a whole batch, and neither its size nor "
                "the output length is in the file",
                f'state them: --point "gamma=… batch=… tpot={1e3 * latency:.4g}/LENGTH ms", or '
                "better the difference of two output lengths, which leaves the prefill out",
                record.file,
                record.line,
            )
        )
    if {"elapsed_time", "total_num_tokens"} <= keys:
        raise ScenarioError(
            Fault(
                "vllm bench throughput: prompt and output tokens added up, at an unknown batch",
                "a result of `vllm bench serve` with and without speculation, or of `vllm bench "
                "forward`",
                record.file,
                record.line,
            )
        )
