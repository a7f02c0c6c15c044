"""What a simulated run leaves in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.results import store
from specplan.scenarios.load import to_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from specplan.sim.records import Run


def write_run(folder: Path, run: Run, figures: Mapping[str, Any]) -> None:
    """Write `scenario.yaml`, `requests.parquet` (one row a request) and `summary.json`.

    `samples.parquet` holds batch, queue and KV blocks over time.
    """
    (folder / "scenario.yaml").write_text(to_yaml(run.scenario), encoding="utf-8")
    store.write_table(folder / "requests.parquet", run.requests)
    store.write_table(folder / "samples.parquet", run.samples)
    store.write_json(folder / store.MARK, figures)
