"""Figures over several seeds: means, and Student's t intervals across replications."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.intervals import Interval, t_interval
from specplan.results.progress import reporting
from specplan.sim.executors import local
from specplan.sim.replications import replicate, seeds_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from specplan.scenarios.schema import Scenario

    Figures = Mapping[str, Any]

# Figures of a run that get an interval: what varies from seed to seed.
VARYING = ("_ms", "throughput", "goodput", "acceptance_length", "acceptance_rate", "per_round")


@dataclass(frozen=True)
class Replications:
    """How many seeds, and how many processes simulate them."""

    count: int
    workers: int = os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class Replicated:
    """Figures of scenarios on the seeds that are complete: `rows[scenario][seed]`."""

    seeds: tuple[int, ...]
    rows: tuple[tuple[Figures, ...], ...]
    interrupted: bool

    def values(self, which: int, key: str) -> list[float]:
        """One figure of one scenario on every seed; NaN where a run has none."""
        found = [row.get(key) for row in self.rows[which]]
        return [nan if value is None else float(value) for value in found]


def replicated(scenarios: Sequence[Scenario], how: Replications) -> Replicated:
    """Simulate scenarios on the same seeds; Ctrl-C keeps the seeds that all have finished."""
    seeds = seeds_from(scenarios[0].seed, how.count)
    done: dict[tuple[int, int], Figures] = {}
    interrupted = False
    total = len(seeds) * len(scenarios)
    try:
        with (
            reporting(f"simulating {how.count} seeds") as progress,
            local(min(how.workers, total)) as executor,
        ):
            for which, seed, figures in replicate(scenarios, seeds, metrics.summary, executor):
                done[which, seed] = figures
                progress(len(done), total)
    except KeyboardInterrupt:
        interrupted = True
    places = range(len(scenarios))
    whole = tuple(seed for seed in seeds if all((which, seed) in done for which in places))
    rows = tuple(tuple(done[which, seed] for seed in whole) for which in places)
    if interrupted and not whole:
        raise KeyboardInterrupt
    return Replicated(whole, rows, interrupted)


def aggregated(found: Replicated, which: int = 0) -> dict[str, Any]:
    """Merge the figures of one scenario under their own names: means over the seeds.

    A figure that varies has its 95 % interval across seeds as `FIGURE_ci95`, [low, high], null for
    one seed. A latency is null when any seed has no steady state; `saturated_seeds` counts those.
    """
    rows = found.rows[which]
    figures = {key: _merged([row[key] for row in rows]) for key in rows[0]}
    for key in list(figures):
        if key.endswith(VARYING):
            figures[f"{key}_ci95"] = _ends(found.values(which, key))
    figures["seed"] = found.seeds[0]
    figures["saturated_seeds"] = sum(bool(row["saturated"]) for row in rows)
    figures["saturated_reason"] = next(filter(None, (r["saturated_reason"] for r in rows)), None)
    figures["interrupted"] = found.interrupted
    figures["replications"] = {
        "count": len(rows),
        "seeds": list(found.seeds),
        "figures": {key: found.values(which, key) for key in rows[0] if key.endswith(VARYING)},
    }
    return figures


def _merged(values: Sequence[Any]) -> Any:
    """Merge one figure of several runs: the mean, any of truths, the same text."""
    first = values[0]
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, dict):
        return {key: _merged([value[key] for value in values]) for key in first}
    if all(isinstance(value, int | float) for value in values):
        mean = float(np.mean(values))
        return int(mean) if isinstance(first, int) and mean.is_integer() else mean
    return first if all(value == first for value in values) else None


def _ends(values: Sequence[float]) -> list[float] | None:
    return t_interval(np.asarray(values)).ends()


def difference(found: Replicated, key: str, a: int = 0, b: int = 1) -> Interval:
    """Interval of figure(B) − figure(A) across seeds: both ran on the luck of each seed."""
    ours, theirs = (np.asarray(found.values(which, key)) for which in (b, a))
    return t_interval(ours - theirs)


def replicate_answer(
    scenario: Scenario, how: Replications, output: Path | None, *, force: bool
) -> Answer:
    """Simulate `scenario` on consecutive seeds from its own; write its folder if `output` is given.

    The folder holds `scenario.yaml`, `summary.json` and `replications.parquet`, one row a seed.
    Raises ScenarioError for a folder that exists or cannot be written, before simulating.
    """
    from rich.console import Group
    from rich.text import Text

    from specplan.results.simulation import console_lines, remarks
    from specplan.scenarios.load import to_yaml

    if output is not None:
        store.check_folder(output, force=force)
    found = replicated([scenario], how)
    figures = aggregated(found)
    value = {**figures, "scenario": scenario.resolved()}
    notes = []
    if found.interrupted:
        notes.append(f"interrupted: {len(found.seeds)} of {how.count} seeds were complete by then")
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            (folder / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
            columns = {
                key: np.array(values) for key, values in figures["replications"]["figures"].items()
            }
            seeds = np.array(found.seeds)
            store.write_table(folder / "replications.parquet", {"seed": seeds, **columns})
            store.write_json(folder / store.MARK, value)
        notes.append(f"written to {output}")
    text = Group(
        Text("\n".join(console_lines(figures))),
        Text(_words(found, figures)),
        *[Text(sentence) for sentence in remarks(figures)],
    )
    return Answer(value, text, notes, exit_code=130 if found.interrupted else 0)


def _words(found: Replicated, figures: Figures) -> str:
    seeds = found.seeds
    says = f"Means of {len(seeds)} replications (seeds {seeds[0]} to {seeds[-1]})"
    if len(seeds) > 1:
        says += "; ± is Student's 95 % interval across them"
    if figures["saturated_seeds"]:
        says += f". {figures['saturated_seeds']} were saturated: {figures['saturated_reason']}"
    return says + "."
