"""`specplan sweep`: a grid as a table, a Parquet file and an interactive page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.tables import columns, heading, milliseconds, number, times
from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.load import load
from specplan.sim.axes import parse_axes, size
from specplan.sim.sweep import Grid, predict_grid, simulate_grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis

WAYS = ("closed-form", "simulate")
LARGEST = {"closed-form": 20_000_000, "simulate": 5_000}  # more needs --yes
SHOWN_ROWS, SHOWN_COLUMNS = 20, 9


def sweep_answer(
    name: str,
    sets: Sequence[str],
    vary: Sequence[str],
    *,
    by: str,
    workers: int,
    yes: bool,
    output: Path | None,
    force: bool,
) -> Answer:
    """Compute a grid, and write `grid.parquet` and `grid.html` when `output` is given.

    Raises ScenarioError for a bad axis, a point that is no valid scenario, a grid above the limit
    without `yes`, or a folder that cannot be written; all before the work starts.
    """
    if by not in WAYS:
        close = nearest(by, WAYS)
        hint = f"did you mean `{close}`?" if close else " or ".join(WAYS)
        raise ScenarioError(Fault(f"`--by {by}` is not a way to compute a point", hint))
    axes = parse_axes(vary)
    count = size(axes)
    if count > LARGEST[by] and not yes:
        wrong = f"{count:,} points are more than {LARGEST[by]:,}"
        raise ScenarioError(Fault(wrong, "fewer values, or --yes to compute them all"))
    if output is not None:
        store.check_folder(output, force=force)
    scenario = load(name, [*sets, *[f"{axis.path}={axis.values[0]}" for axis in axes]])
    begun = time.perf_counter()
    grid = _compute(name, sets, axes, by, workers)
    spent = time.perf_counter() - begun
    value = {
        "scenario_name": scenario.name,
        "by": by,
        "points": count,
        "axes": {axis.column: list(axis.values) for axis in axes},
        **_highlights(grid),
    }
    notes = [f"{count:,} points in {spent:.2f} s"]
    if output is not None:
        _write(output, grid, scenario, value, force=force)
        notes.append(f"written to {output}: grid.html (open it in a browser), grid.parquet")
    if count <= 10_000:
        value["columns"] = {key: values.tolist() for key, values in grid.columns.items()}
    return Answer(value, _text(scenario, grid, by), notes)


def _compute(name: str, sets: Sequence[str], axes: list[Axis], by: str, workers: int) -> Grid:
    if by == "closed-form":
        return predict_grid(name, sets, axes)
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from specplan.results.progress import reporting

    # Not fork: numba's threads and the terminal's state do not survive one.
    with (
        ProcessPoolExecutor(min(workers, size(axes)), mp_context=get_context("spawn")) as executor,
        reporting("simulating") as progress,
    ):
        grid = simulate_grid(name, sets, axes, metrics.summary, executor, progress)
    return _with_speedup(grid)


def _with_speedup(grid: Grid) -> Grid:
    """Add the speedup in mean TPOT over γ = 0 on the same luck, where γ = 0 is among the points."""
    place = next((i for i, axis in enumerate(grid.axes) if axis.path == "speculation.gamma"), None)
    if place is None or "0" not in grid.axes[place].values:
        return grid
    tpot = grid.figure("mean_tpot_ms")
    plain = np.take(tpot, [grid.axes[place].values.index("0")], axis=place)
    return Grid(grid.axes, {**grid.columns, "speedup": (plain / tpot).reshape(-1)})


def _judged(grid: Grid) -> str:
    return "speedup" if "speedup" in grid.columns else "mean_tpot_ms"


def _highlights(grid: Grid) -> dict[str, Any]:
    """Find the best point, and how much of the grid is faster than plain decoding."""
    figure = _judged(grid)
    values = grid.columns[figure]
    if not np.isfinite(values).any():
        return {"best": None}
    pick = np.nanargmax if figure == "speedup" else np.nanargmin
    best = int(pick(values))
    found: dict[str, Any] = {
        "best": {
            **{axis.column: grid.columns[axis.column][best].item() for axis in grid.axes},
            figure: float(values[best]),
        }
    }
    if figure == "speedup":
        proposing = grid.columns.get("gamma", grid.columns.get("speculation.gamma")) > 0
        faster = values[proposing] > 1
        found["share_faster"] = float(np.mean(faster)) if len(faster) else 0.0
    return found


def _text(scenario: Scenario, grid: Grid, by: str) -> Group:
    figure = _judged(grid)
    found = _highlights(grid)
    parts: list[RenderableType] = [Text(_sentence(scenario, found, grid), style="bold")]
    if len(grid.axes) == 1:
        parts += [Text(), _list(grid, by)]
    elif len(grid.axes) == 2:
        parts += [*_matrix(grid, figure)]
    else:
        parts += [Text(), _best_points(grid)]
    return Group(*parts)


def _sentence(scenario: Scenario, found: dict[str, Any], grid: Grid) -> str:
    if found["best"] is None:
        return f"{scenario.name}: no point has a figure"
    place = ", ".join(
        f"{axis.path} {_written(axis, found['best'][axis.column])}" for axis in grid.axes
    )
    if "share_faster" not in found:
        return f"{scenario.name}: least TPOT {found['best']['mean_tpot_ms']:.4g} ms at {place}"
    share = found["share_faster"]
    return (
        f"{scenario.name}: largest speedup {times(found['best']['speedup'])} at {place}; "
        f"{100 * share:.0f} % of the points that speculate are faster than plain decoding"
    )


def _written(axis: Axis, value: float | str) -> str:
    if isinstance(value, str):
        return value
    return milliseconds(value) if axis.column == axis.path + "_s" else f"{value:.6g}"


def _words(figure: str) -> str:
    return {"speedup": "Speedup (x)", "mean_tpot_ms": "Mean TPOT (ms)"}.get(figure, figure)


def _list(grid: Grid, by: str) -> RenderableType:
    axis = grid.axes[0]
    shown = _thinned(len(axis), SHOWN_ROWS)
    wanted = (
        ("speedup", "tpot_s", "round_cost_ratio", "tokens_per_round")
        if by == "closed-form"
        else ("speedup", "mean_tpot_ms", "mean_ttft_ms", "output_throughput", "acceptance_length")
    )
    names = [name for name in wanted if name in grid.columns]
    return columns(
        (axis.path, *names),
        [
            (
                _written(axis, grid.columns[axis.column][i].item()),
                *[_cell(name, float(grid.columns[name][i])) for name in names],
            )
            for i in shown
        ],
    )


def _cell(name: str, value: float) -> str:
    return milliseconds(value) if name.endswith("_s") else number(value)


def _matrix(grid: Grid, figure: str) -> Iterator[RenderableType]:
    """Two fields: the one with fewer values across."""
    down, across = (0, 1) if len(grid.axes[1]) <= len(grid.axes[0]) else (1, 0)
    values = grid.figure(figure) if down == 0 else grid.figure(figure).T
    rows, heads = (
        _thinned(len(grid.axes[down]), SHOWN_ROWS),
        _thinned(len(grid.axes[across]), SHOWN_COLUMNS),
    )

    def labels(axis: Axis, shown: NDArray[np.intp]) -> list[str]:
        at = axis.table_values
        return [_written(axis, at[i].item()).removesuffix(" ms") for i in shown]

    units = {axis: " (ms)" if axis.column == axis.path + "_s" else "" for axis in grid.axes}
    across_name, down_name = (grid.axes[i].path + units[grid.axes[i]] for i in (across, down))
    yield heading(f"{_words(figure)}: {across_name} across, {down_name} down")
    yield columns(
        ("", *labels(grid.axes[across], heads)),
        [
            (label, *[f"{values[i, j]:.3g}" for j in heads])
            for label, i in zip(labels(grid.axes[down], rows), rows, strict=True)
        ],
    )


def _best_points(grid: Grid) -> RenderableType:
    figure = _judged(grid)
    values = grid.columns[figure]
    order = np.argsort(-values if figure == "speedup" else values, kind="stable")[:10]
    return columns(
        (_words(figure), *[axis.path for axis in grid.axes]),
        [
            (
                number(float(values[i])),
                *[_written(axis, grid.columns[axis.column][i].item()) for axis in grid.axes],
            )
            for i in order
        ],
    )


def _thinned(count: int, most: int) -> NDArray[np.intp]:
    """Pick at most `most` of `count` indices, ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _write(
    output: Path, grid: Grid, scenario: Scenario, value: dict[str, Any], *, force: bool
) -> None:
    from specplan.results.sweep_page import grid_page
    from specplan.scenarios.load import to_yaml

    with store.new_folder(output, force=force) as folder:
        (folder / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
        store.write_table(folder / "grid.parquet", grid.columns)
        (folder / "grid.html").write_text(
            grid_page(grid, scenario.name, value["by"]), encoding="utf-8"
        )
        store.write_json(folder / store.MARK, value)
