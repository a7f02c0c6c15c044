"""`specplan sweep`: a grid as a table, a Parquet file and an interactive page."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.progress import reporting
from specplan.results.sweep.text import extrapolation_notes, grid_text, highlights
from specplan.scenarios.batch import batch_notes, gamma_notes
from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.load import load
from specplan.sim.executors import cluster, local
from specplan.sim.ledger import Ledger, is_ledger
from specplan.sim.sweep import Grid, at, check_ends, predict_grid, simulate_grid, simulate_point
from specplan.sim.vectorised import one_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from specplan.scenarios.schema import Scenario
    from specplan.sim.design import Design

WAYS = ("closed-form", "simulate")
LARGEST = {"closed-form": 20_000_000, "simulate": 5_000}  # more needs --yes
LARGEST_CALLS = 20_000  # closed forms that are no part of a larger call; more needs --yes
SECONDS_PER_CALL = 1e-2  # one closed form with its scenario
SECONDS_PER_POINT = 1e-6  # one more point of a vectorised closed form
PILOT_REQUESTS = 200
LEDGER = "ledger.sqlite"
LARGEST_CSV = 200_000
INTERRUPTED = 130


@dataclass(frozen=True)
class Means:
    """How a sweep is computed: `by` closed-form or simulate, on processes or a Dask cluster."""

    by: str = "closed-form"
    workers: int = 1
    cluster: str | None = None
    yes: bool = False


def sweep_answer(
    scenario: Scenario,
    design: Design,
    means: Means,
    output: Path | None,
    *,
    resume: bool = False,
    force: bool = False,
) -> Answer:
    """Compute a grid; `output` gets `grid.parquet`, `grid.csv`, `grid.html` and the ledger.

    While a simulated sweep runs, every finished point is in `output`.ledger.sqlite; `resume`
    computes only what that (or the ledger of a finished folder) does not hold. Raises ScenarioError
    for a point that is no valid scenario, a grid above the limit without `yes`, a folder that
    cannot be written, a ledger of another scenario or version; all before the work starts.
    """
    check_size(scenario, design, means)
    with _ledger(scenario, means, output, resume=resume, force=force) as ledger:
        try:
            grid = compute(scenario, design, means, ledger)
        except KeyboardInterrupt:
            if ledger is None:
                raise
            return _interrupted(ledger, design)
        value = {
            "scenario_name": scenario.name,
            "by": means.by,
            "points": len(design),
            "axes": {axis.column: list(axis.values) for axis in design.fields},
            **highlights(grid),
        }
        if output is not None:
            _write(output, grid, scenario, value, ledger, force=force or resume)
    varied = [one.path for one in design.fields]
    notes = [f"{len(design):,} points", *batch_notes(scenario, varied)]
    notes += gamma_notes(scenario, varied)
    notes += extrapolation_notes(scenario, grid)
    if ledger is not None:  # it is in the folder now
        ledger.path.unlink(missing_ok=True)
    if output is not None:
        notes.append(f"written to {output}: grid.html (open it in a browser), grid.parquet")
    if len(design) <= 10_000:
        value["columns"] = {key: values.tolist() for key, values in grid.columns.items()}
    return Answer(value, grid_text(grid), notes)


def _interrupted(ledger: Ledger, design: Design) -> Answer:
    done = len(ledger.known())
    if done:
        goes_on = f"{done:,} of {len(design):,} points are in {ledger.path}; --resume goes on"
    else:
        ledger.remove()
        goes_on = "no point was finished, nothing was written"
    value = {"interrupted": True, "points": len(design), "points_done": done}
    return Answer(value, "", [f"interrupted; {goes_on}"], exit_code=INTERRUPTED)


def compute(scenario: Scenario, design: Design, means: Means, ledger: Ledger | None) -> Grid:
    """Compute the grid by the means asked for, with a progress bar at a terminal."""
    with ExitStack() as stack:
        progress = stack.enter_context(reporting("sweeping"))
        if means.by == "closed-form":
            return predict_grid(scenario, design, progress)
        workers = (
            cluster(means.cluster) if means.cluster else local(min(means.workers, len(design)))
        )
        executor = stack.enter_context(workers)
        grid = simulate_grid(scenario, design, metrics.summary, executor, ledger, progress)
    return with_speedup(grid)


def swept_base(name_or_path: str, sets: Sequence[str], design: Design) -> Scenario:
    """Load what a sweep varies; a base that only the varied fields complete has the first point's.

    Raises ScenarioError as `scenarios.load.load`.
    """
    try:
        return load(name_or_path, sets)
    except ScenarioError as alone:
        try:
            return load(name_or_path, [*sets, *next(iter(design.points()))])
        except ScenarioError:  # the first point does not mend it
            raise alone from None


def check_size(scenario: Scenario, design: Design, means: Means) -> None:
    """Refuse what is not a way, and a grid above the limit without `yes`; say how long it takes.

    Raises ScenarioError, also when an end of a field is not a valid scenario.
    """
    if means.by not in WAYS:
        close = nearest(means.by, WAYS)
        hint = f"did you mean `{close}`?" if close else " or ".join(WAYS)
        raise ScenarioError(Fault(f"`--by {means.by}` is not a way to compute a point", hint))
    if means.cluster and means.by != "simulate":
        raise ScenarioError(Fault("--cluster computes simulations", "--by simulate with it"))
    check_ends(scenario, design)
    first = at(scenario, next(iter(design.points())))
    many = means.by == "closed-form" and _calls(design) > LARGEST_CALLS
    if (len(design) > LARGEST[means.by] or many) and not means.yes:
        lasts = _words(_seconds(first, design, means))
        most = f"{LARGEST[means.by]:,}"
        if many:
            most = f"{LARGEST_CALLS:,} that cannot be computed in one call"
        wrong = f"{len(design):,} points are more than {most}; they take about {lasts}"
        raise ScenarioError(Fault(wrong, "fewer values, or --yes to compute them all"))


def _calls(design: Design) -> int:
    """Count the closed forms of a grid: one a combination of fields that cannot be arrays."""
    return prod(len(group[0]) for group in design.groups if not one_call(group))


def _seconds(first: Scenario, design: Design, means: Means) -> float:
    """Estimate the length of a sweep from a short simulation of its first point."""
    if means.by == "closed-form":
        return _calls(design) * SECONDS_PER_CALL + len(design) * SECONDS_PER_POINT
    asked = first.workload.requests or PILOT_REQUESTS
    pilot = at(first, [f"workload.requests={min(asked, PILOT_REQUESTS)}"])
    simulate_point(pilot, metrics.summary)  # the first call compiles
    begun = time.perf_counter()
    simulate_point(pilot, metrics.summary)
    each = (time.perf_counter() - begun) * max(1.0, asked / PILOT_REQUESTS)
    return len(design) * each / means.workers


def _words(seconds: float) -> str:
    """Say a length of time roughly.

    >>> _words(4.2), _words(300.0), _words(9000.0)
    ('4 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def with_speedup(grid: Grid) -> Grid:
    """Add the speedup in mean TPOT over γ = 0 on the same luck, where γ = 0 is among the points."""
    place = next((i for i, axis in enumerate(grid.axes) if axis.path == "speculation.gamma"), None)
    if place is None or "0" not in grid.axes[place].values or "mean_tpot_ms" not in grid.columns:
        return grid
    tpot = grid.figure("mean_tpot_ms")
    plain = np.take(tpot, [grid.axes[place].values.index("0")], axis=place)
    return replace(grid, columns={**grid.columns, "speedup": (plain / tpot).reshape(-1)})


def ledger_path(output: Path) -> Path:
    """Where the ledger of a sweep lies while it runs: beside the folder it will become part of."""
    return output.with_name(f"{output.name}.{LEDGER}")


@contextmanager
def _ledger(
    scenario: Scenario, means: Means, output: Path | None, *, resume: bool, force: bool
) -> Iterator[Ledger | None]:
    """Open the ledger of a simulated sweep into a folder; refuse one of something else."""
    if output is None:
        if resume:
            raise ScenarioError(Fault("--resume without -o FOLDER", "the folder to go on with"))
        yield None
        return
    path, finished = ledger_path(output), output / LEDGER
    store.check_folder(output, force=force or (resume and finished.is_file()))
    if means.by == "closed-form":
        yield None
        return
    if path.exists() and not resume:
        if not force:
            wrong = f"an unfinished sweep is in {path}"
            raise ScenarioError(Fault(wrong, "--resume to go on, --force to begin again"))
        if not is_ledger(path):
            wrong = "is in the way and no ledger of a sweep, so --force leaves it alone"
            raise ScenarioError(Fault(wrong, "another -o FOLDER", str(path)))
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if resume and finished.is_file() and not path.exists():
        with Ledger(finished, scenario) as old:
            old.copy_to(path)
    with Ledger(path, scenario) as ledger:
        yield ledger


def _write(
    output: Path,
    grid: Grid,
    scenario: Scenario,
    value: dict[str, Any],
    ledger: Ledger | None,
    *,
    force: bool,
) -> None:
    from specplan.results.sweep.page import grid_page
    from specplan.scenarios.load import to_yaml

    with store.new_folder(output, force=force) as folder:
        (folder / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
        store.write_table(folder / "grid.parquet", grid.columns)
        if len(grid.design) <= LARGEST_CSV:
            grid.to_pandas().to_csv(folder / "grid.csv", index=False)
        (folder / "grid.html").write_text(
            grid_page(grid, scenario.name, value["by"]), encoding="utf-8"
        )
        store.write_json(folder / store.MARK, value)
        if ledger is not None:
            ledger.copy_to(folder / LEDGER)
