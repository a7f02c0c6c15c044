"""A sweep in the terminal: one sentence, then a list, a matrix or the best points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results.tables import fitted, heading, milliseconds, number, times
from specplan.scenarios.extrapolated import ENDS, remarks
from specplan.scenarios.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis
    from specplan.sim.sweep import Grid

SHOWN_ROWS, SHOWN_COLUMNS = 20, 9
_TOLD = ("saturated", "preemptions")
_CLOSED = ("speedup", "tpot_s", "round_cost_ratio", "tokens_per_round")
_SIMULATED = ("speedup", "mean_tpot_ms", "mean_ttft_ms", "output_throughput", "acceptance_length")


def judged(grid: Grid) -> str:
    """Name the figure a grid is about."""
    return "speedup" if "speedup" in grid.columns else "mean_tpot_ms"


def highlights(grid: Grid) -> dict[str, Any]:
    """Find the best point, and how much of the grid is faster than plain decoding."""
    figure = judged(grid)
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
        proposing = grid.columns["gamma" if "gamma" in grid.columns else "speculation.gamma"] > 0
        faster = values[proposing] > 1
        found["share_faster"] = float(np.mean(faster)) if len(faster) else 0.0
    return found


def extrapolation_notes(scenario: Scenario, grid: Grid) -> list[str]:
    """Say which γ of a grid lie beyond the acceptance that is stated, and what speaks against."""
    names = [name for name in ("gamma", "speculation.gamma") if name in grid.columns]
    deepest = int(grid.columns[names[0]].max()) if names else scenario.deepest_gamma
    found = remarks(scenario, deepest)
    if found and grid.by == "closed-form":
        found[0] += ": columns _low and _high are the ends of its band"
    return found


def grid_text(grid: Grid) -> Group:
    """Lay a grid out for the terminal."""
    by = grid.by
    figure = judged(grid)
    found = highlights(grid)
    parts: list[RenderableType] = [Text(_sentence(found, grid), style="bold")]
    if len(grid.axes) == 1:
        parts += [Text(), _list(grid, by)]
    elif len(grid.axes) == 2:
        parts += [*_matrix(grid, figure)]
    else:
        parts += [Text(), _best_points(grid)]
    return Group(*parts)


def _sentence(found: dict[str, Any], grid: Grid) -> str:
    if found["best"] is None:
        return f"{grid.name}: no point has a figure"
    place = ", ".join(
        f"{axis.path} {_written(axis, found['best'][axis.column])}" for axis in grid.axes
    )
    if "share_faster" not in found:
        return f"{grid.name}: least TPOT {found['best']['mean_tpot_ms']:.4g} ms at {place}"
    share = found["share_faster"]
    return (
        f"{grid.name}: largest speedup {times(found['best']['speedup'])} at {place}; "
        f"{100 * share:.0f} % of the points that speculate are faster than plain decoding"
    )


def _written(axis: Axis, value: float | str) -> str:
    if isinstance(value, str):
        return value
    match axis.column.removeprefix(axis.path):
        case "_s":
            return milliseconds(value)
        case "_bytes":
            return format_bytes(value)
        case "_per_s":
            return f"{value:.6g}/s"
    return f"{value:.6g}"


def _words(figure: str) -> str:
    return {"speedup": "Speedup (x)", "mean_tpot_ms": "Mean TPOT (ms)"}.get(figure, figure)


def _list(grid: Grid, by: str) -> RenderableType:
    together = grid.design.groups[0]
    shown = _thinned(len(together[0]), SHOWN_ROWS)
    wanted = _CLOSED if by == "closed-form" else _SIMULATED
    names = [name for name in wanted if name in grid.columns]
    if by == "simulate":  # beside the first figure where they occur, so that no width drops them
        names[1:1] = [n for n in _TOLD if np.nan_to_num(grid.columns.get(n, np.zeros(1))).any()]
    return fitted(
        (*[axis.path for axis in together], *names),
        [
            (
                *[_written(axis, grid.columns[axis.column][i].item()) for axis in together],
                *[
                    _cell(name, float(grid.columns[name][i])) + _ends(grid, name, i)
                    for name in names
                ],
            )
            for i in shown
        ],
        keep=len(together) + 3,
    )


def _cell(name: str, value: float) -> str:
    if name == "saturated":
        return "yes" if value else "no"
    return milliseconds(value) if name.endswith("_s") else number(value)


def _ends(grid: Grid, name: str, point: int) -> str:
    """Give both ends of an extrapolated figure, where it is one."""
    ends = [grid.columns[f"{name}_{end}"][point] for end in ENDS if f"{name}_{end}" in grid.columns]
    return f" ({ends[0]:.3g}–{ends[1]:.3g})" if ends and np.isfinite(ends[0]) else ""


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
    yield fitted(
        ("", *labels(grid.axes[across], heads)),
        [
            (label, *[f"{values[i, j]:.3g}" for j in heads])
            for label, i in zip(labels(grid.axes[down], rows), rows, strict=True)
        ],
        keep=2,
    )


def _best_points(grid: Grid) -> RenderableType:
    figure = judged(grid)
    values = grid.columns[figure]
    order = np.argsort(-values if figure == "speedup" else values, kind="stable")[:10]
    return fitted(
        (_words(figure), *[axis.path for axis in grid.axes]),
        [
            (
                number(float(values[i])),
                *[_written(axis, grid.columns[axis.column][i].item()) for axis in grid.axes],
            )
            for i in order
        ],
        keep=1 + len(grid.axes),
    )


def _thinned(count: int, most: int) -> NDArray[np.intp]:
    """Pick at most `most` of `count` indices, ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))
