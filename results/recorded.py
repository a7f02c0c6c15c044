"""A run as a report needs it: just simulated, or read from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specplan.results import metrics, store
from specplan.results.runs import GAPS, PARTS, gap_columns
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

    Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Recorded:
    """The scenario, figures and rows of one run.

    `gaps` holds `gap_s` and `count` of the gaps between chunks, ascending.
    """

    scenario: Scenario
    figures: dict[str, Any]
    requests: Columns
    samples: Columns
    spans: Columns
    gaps: Columns
    label: str = ""

    @property
    def name(self) -> str:
        """What figures call the run: its label, or the name of its scenario."""
        return self.label or self.scenario.name


def record(run: Run, figures: dict[str, Any] | None = None) -> Recorded:
    """Keep of a run what a report draws."""
    return Recorded(
        run.scenario,
        metrics.summary(run) if figures is None else figures,
        run.requests,
        run.samples,
        run.spans,
        gap_columns(run),
    )


def read_run(folder: Path) -> Recorded:
    """Read a run folder written by `simulate -o`.

    Raises ScenarioError when it is missing, holds something else, or lacks a part.
    """
    if not folder.is_dir():
        raise ScenarioError(Fault("no such folder", "a folder written by -o", str(folder)))
    figures = store.read_summary(folder)
    needed = ["scenario.yaml", "requests.parquet", *PARTS, GAPS]
    missing = [part for part in needed if not (folder / part).is_file()]
    if missing or "output_throughput" not in figures:
        lacking = f"lacks {', '.join(missing)}" if missing else "holds no figures of a simulation"
        raise ScenarioError(
            Fault(
                f"is not the folder of one run: it {lacking}",
                "`simulate -o`, without --no-requests",
                str(folder),
            )
        )
    try:
        tables = {
            part: store.read_table(folder / part) for part in ("requests.parquet", *PARTS, GAPS)
        }
    except (OSError, ValueError) as error:
        raise ScenarioError(
            Fault(f"cannot be read: {getattr(error, 'strerror', None) or error}", "", str(folder))
        ) from error
    return Recorded(
        load(folder / "scenario.yaml"),
        figures,
        tables["requests.parquet"],
        tables[PARTS[0]],
        tables[PARTS[1]],
        tables[GAPS],
    )
