"""What a simulated run leaves in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results import store
from specplan.scenarios.load import to_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from specplan.sim.records import Run

PARTS = ("samples.parquet", "spans.parquet")
GAPS = "gaps.parquet"


def write_run(folder: Path, run: Run, figures: Mapping[str, Any]) -> None:
    """Write a run: enough to report it later, and to run it again.

    `scenario.yaml` as resolved, `requests.parquet` (one row a request), `samples.parquet` (batch,
    queue and KV blocks over time), `spans.parquet` (phases of the first engine steps),
    `gaps.parquet` (how often which gap between chunks), `summary.json`.
    """
    (folder / "scenario.yaml").write_text(to_yaml(run.scenario), encoding="utf-8")
    if run.requests:  # a streamed run keeps none
        store.write_table(folder / "requests.parquet", run.requests)
    for part, columns in zip(PARTS, (run.samples, run.spans), strict=True):
        store.write_table(folder / part, columns)
    store.write_table(folder / GAPS, gap_columns(run))
    store.write_json(folder / store.MARK, figures)


def gap_columns(run: Run) -> dict[str, NDArray[Any]]:
    """Gaps between chunks that occurred, ascending: `gap_s`, the mean of its bin, and `count`."""
    kept = run.itl.counts > 0
    counts = run.itl.counts[kept]
    return {"gap_s": run.itl.sums_s[kept] / np.maximum(counts, 1), "count": counts}
