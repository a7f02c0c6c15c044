"""Maps of the speedup over two fields, with the border where it is 1.0."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.figures.layout import Figure, Trace, axis_numbers, axis_title, layout
from specplan.results.figures.palette import BREAK_EVEN, SPEEDUP_SCALE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from specplan.sim.axes import Axis

    Floats = NDArray[np.float64]

TICKS = (1 / 16, 1 / 8, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 8, 16)
EVEN = "break-even, 1.0x"


def speedup_map(x_axis: Axis, y_axis: Axis, slices: Sequence[tuple[str, Floats]]) -> Figure:
    """Speedup over two fields as a heat map with the break-even contour at 1.0.

    Each slice is `(values of y, values of x)`; a menu chooses between several.
    """
    x, y = axis_numbers(x_axis), axis_numbers(y_axis)
    look = layout(axis_title(x_axis), axis_title(y_axis), height=520)
    reach = _reach([z for _, z in slices])
    traces: list[Trace] = []
    for index, (_, z) in enumerate(slices):
        shown = {"visible": index == 0}
        traces += [{**_cells(x, y, z, reach), **shown}, {**_contour(x, y, z), **shown}]
    if len(slices) > 1:
        look["updatemenus"] = [_menu([name for name, _ in slices])]
    if x_axis.numbers is None or len(x_axis) <= 16:
        look["xaxis"] |= {"tickmode": "array", "tickvals": x}
    return {"data": traces, "layout": look}


def heat_map(
    x: NDArray[Any], y: NDArray[Any], z: Floats, border: tuple[Floats, Floats], /, **look: Any
) -> Figure:
    """Speedup `(y, x)` as a heat map with a border where it is 1.0, as `staircase` makes it.

    `look` goes to `layout`. A border that lies outside the map is left out, of the legend, too.
    The axes end with the cells: left to itself, plotly.js makes room for the border beyond them.
    """
    traces = [_cells(x, y, z, _reach([z]))]
    if len(border[0]):
        traces.append(
            {
                "type": "scatter", "x": border[0], "y": border[1], "mode": "lines", "name": EVEN,
                "line": {"color": BREAK_EVEN, "width": 3}, "hoverinfo": "skip",
            }
        )  # fmt: skip
    drawn = layout(height=480, showlegend=True, **look)
    for axis, middles in (("xaxis", x), ("yaxis", y)):
        drawn[axis]["range"] = _rims(middles, logarithmic=drawn[axis].get("type") == "log")
    return {"data": traces, "layout": drawn}


def _rims(middles: NDArray[Any], *, logarithmic: bool) -> list[float]:
    """Where the first cell begins and the last one ends, as an axis of plotly.js takes it.

    >>> _rims(np.array([0, 1, 2]), logarithmic=False)
    [-0.5, 2.5]
    """
    at = np.log10(middles) if logarithmic else np.asarray(middles, dtype=np.float64)
    if len(at) == 1:
        return [float(at[0]) - 0.5, float(at[0]) + 0.5]
    return [float(1.5 * at[0] - 0.5 * at[1]), float(1.5 * at[-1] - 0.5 * at[-2])]


def staircase(
    at: Floats, places: NDArray[Any], low: float, high: float, half: float = 0.5
) -> tuple[Floats, Floats]:
    """Join where rows of cells cross 1.0 to one line: (along the rows, across them).

    at: the crossing of each row, at or beyond `low` or `high` where the row lies on one side;
    places, half: the middles of the rows and half their width. Both parts are empty where all rows
    lie on one side.

    >>> along, over = staircase(np.array([3.0, 9.0]), np.array([1, 2]), 0.0, 5.0)
    >>> along.tolist(), over.tolist()
    ([3.0, 3.0, 5.0, nan, 5.0], [0.5, 1.5, 1.5, nan, 2.5])
    """
    along, over = [], []
    held = np.clip(at, low, high)
    for crossing, place in zip(held.tolist(), places.tolist(), strict=True):
        # At the rim the map itself ends: a line along it would be no border.
        gap = [] if low < crossing < high else [np.nan]
        along += [crossing, *gap, crossing]
        over += [place - half, *gap, place + half]
    if len(set(held)) < 2 and not low < held[0] < high:
        return np.array([]), np.array([])
    return np.array(along), np.array(over)


def _reach(maps: Sequence[Floats]) -> float:
    """Largest |log2 speedup| that the colours span, between 1.07x and 16x."""
    farthest = [float(np.nanmax(np.abs(np.log2(np.maximum(z, 1e-9))))) for z in maps]
    return min(max([0.1, *farthest]), 4.0)


def _cells(x: NDArray[Any], y: NDArray[Any], z: Floats, reach: float) -> Trace:
    """Colour by the logarithm: twice as slow is as far from white as twice as fast."""
    ticks = [v for v in TICKS if abs(np.log2(v)) <= reach]
    return {
        "type": "heatmap", "x": x, "y": y,
        "z": np.log2(np.maximum(z, 1e-9)).astype(np.float32), "customdata": z.astype(np.float32),
        "name": "speedup", "zmin": -reach, "zmax": reach,
        "colorscale": [list(stop) for stop in SPEEDUP_SCALE],
        "colorbar": {
            "title": {"text": "speedup (x)", "side": "right"}, "tickvals": np.log2(ticks),
            "ticktext": [f"{v:g}" for v in ticks], "thickness": 14,
        },
        "hovertemplate": "%{xaxis.title.text} %{x}<br>%{yaxis.title.text} %{y}<br>"
        "speedup %{customdata:.4g}x<extra></extra>",
    }  # fmt: skip


def _contour(x: NDArray[Any], y: NDArray[Any], z: Floats) -> Trace:
    # γ = 0 is 1.0x by definition: a line along it would say nothing.
    even = (z == 1).all(axis=0, keepdims=True) | (z == 1).all(axis=1, keepdims=True)
    told = np.where(even, np.nan, z)
    return {
        "type": "contour", "x": x, "y": y, "z": told.astype(np.float32), "name": EVEN,
        "showlegend": bool((told < 1).any() and (told > 1).any()), "showscale": False,
        "contours": {"start": 1.0, "end": 1.0, "coloring": "none", "showlabels": True},
        "line": {"color": BREAK_EVEN, "width": 3, "smoothing": 0}, "hoverinfo": "skip",
    }  # fmt: skip


def _menu(names: Sequence[str]) -> dict[str, Any]:
    buttons = [
        {
            "label": escape(name),
            "method": "restyle",
            "args": [{"visible": [place // 2 == index for place in range(2 * len(names))]}],
        }
        for index, name in enumerate(names)
    ]
    return {"buttons": buttons, "x": 1.0, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
