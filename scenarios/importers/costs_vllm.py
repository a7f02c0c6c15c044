"""`vllm bench forward`: passes in µs.

The format is that of vllm/benchmarks/forward: query_len = 1 + draft tokens, kv_len includes the
query, and the drafter is in the time unless it was run with --exclude-drafter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
