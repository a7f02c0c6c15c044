"""A run as a report needs it: just simulated, or read from its folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specplan.results import metrics, store
from specplan.results.runs import GAPS, PARTS, gap_columns
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

    Columns = dict[str, NDArray[Any]]

MOST_DIFFERENCES = 2  # fields in the label of a run; more would be read by nobody
_TOLD_ELSEWHERE = {"name", "description", "record", "measured"}
_GAMMA = {"speculation.gamma", "speculation.method"}


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


def told_apart(runs: Sequence[Recorded]) -> list[Recorded]:
    """Label runs whose scenarios have one name by what differs between them.

    That is γ where it alone tells them apart, else a few fields; else they are numbered.
    """
    alike: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        alike.setdefault(run.name, []).append(index)
    labelled = list(runs)
    for name, places in alike.items():
        if len(places) > 1:
            labels = _differences([runs[place].scenario for place in places])
            for place, label in zip(places, labels, strict=True):
                labelled[place] = replace(runs[place], label=f"{name}{label}")
    return labelled


def _differences(scenarios: Sequence[Scenario]) -> list[str]:
    """Say of each scenario what sets it apart: γ alone, a few fields, γ among more, a number."""
    stated = [dict(leaves(scenario.resolved())) for scenario in scenarios]
    paths = dict.fromkeys(path for one in stated for path in one)
    differing = [
        path
        for path in paths
        if path not in _TOLD_ELSEWHERE and len({one.get(path) for one in stated}) > 1
    ]
    labels = [", ".join(f"{path} {one.get(path, 'unset')}" for path in differing) for one in stated]
    gammas = [f"γ = {scenario.gamma}" for scenario in scenarios]
    by_gamma = len(set(gammas)) == len(scenarios)
    fields = 0 < len(differing) <= MOST_DIFFERENCES and len(set(labels)) == len(scenarios)
    if by_gamma and (set(differing) <= _GAMMA or not fields):
        return [f", {gamma}" for gamma in gammas]
    if fields:
        return [f", {label}" for label in labels]
    return [f" ({number})" for number in range(1, len(scenarios) + 1)]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Flatten what a scenario sets to (path, value), without its record and what was measured."""
    elsewhere = path in {"record", "measured"}
    if isinstance(value, dict) and not elsewhere:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif not elsewhere:
        text = f"{value}"
        yield path, text if len(text) <= 200 else f"{text[:200]} … ({len(value)} values)"


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
    store.check_unchanged(folder)
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
