"""Figures of a sweep: speedup over one field, over two, with plain decoding at 1.0."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from specplan.results.palette import BREAK_EVEN, FONT, PLAIN, SCENARIOS, SPEEDUP_SCALE, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from specplan.sim.axes import Axis

TICKS = (1 / 16, 1 / 8, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 8, 16)


def layout(
    x: str,
    y: str,
    height: int = 420,
    *,
    xaxis: Mapping[str, Any] | None = None,
    yaxis: Mapping[str, Any] | None = None,
    shapes: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Give the look every figure shares: titles with units, room at 400 px, no decoration.

    What a figure adds to its axes and its lines across go in here: plotly takes them at once, while
    each `update_xaxes` or `add_hline` later costs it several milliseconds.
    """
    axis = {
        "showline": True,
        "linecolor": TEXT,
        "gridcolor": "#E5E5E5",
        "zeroline": False,
        "automargin": True,
    }
    return {
        # A full template costs 14 ms a figure to check and 7 kB to carry; "none" costs neither.
        "template": "none",
        "hovermode": "closest",
        "font": {"family": FONT, "size": 14, "color": TEXT},
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
        "xaxis": {**axis, "title": {"text": x}, **(xaxis or {})},
        "yaxis": {**axis, "title": {"text": y}, **(yaxis or {})},
        "shapes": list(shapes),
        "legend": {
            "orientation": "h",
            "yref": "container",
            "yanchor": "bottom",
            "y": 0,
            "x": 0,
            "traceorder": "normal",
        },
        "hoverlabel": {"font": {"family": FONT}},
    }


def across(
    *, x: float | None = None, y: float | None = None, colour: str = PLAIN, text: str = ""
) -> dict[str, Any]:
    """Draw a dashed line through a figure at one x or one y, with a word at its end.

    >>> line = across(y=1.0)
    >>> line["xref"], line["y0"]
    ('x domain', 1.0)
    """
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y}
    if x is not None:
        ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"}
    label = {"label": {"text": text, "textposition": "end", "textangle": 0}} if text else {}
    return {"type": "line", "line": {"color": colour, "dash": "dash"}, **ends, **label}


def axis_title(axis: Axis) -> str:
    """Name a varied field with the unit its numbers are drawn in.

    >>> from specplan.sim.axes import parse_axis
    >>> axis_title(parse_axis("draft.step=5ms..50ms:10"))
    'draft.step (ms)'
    """
    units = {"_s": " (ms)", "_bytes": " (GiB)", "_per_s": " (1/s)"}
    unit = next((says for tail, says in units.items() if axis.column == axis.path + tail), "")
    return escape(axis.path) + unit


def axis_numbers(axis: Axis) -> NDArray[Any]:
    """Values of a varied field in the unit of `axis_title`; text where they are names."""
    if axis.numbers is None:
        return np.array([escape(value) for value in axis.values])
    if axis.column == axis.path + "_s":
        return axis.numbers * 1e3
    if axis.column == axis.path + "_bytes":
        return axis.numbers / 2**30
    return axis.numbers


def speedup_lines(
    axis: Axis, curves: Sequence[tuple[str, NDArray[np.float64]]], what: str = "speedup"
) -> go.Figure:
    """Speedup over one field, one curve a name, the largest marked, plain decoding at 1.

    Each curve is `(values of the axis,)`.
    """
    x = axis_numbers(axis)
    figure = go.Figure(layout=layout(axis_title(axis), f"{what} (x)"))
    for index, (name, y) in enumerate(curves):
        colour = SCENARIOS[index % len(SCENARIOS)]
        figure.add_scatter(
            x=x, y=y, name=escape(name), mode="lines+markers",
            line={"color": colour}, marker={"size": 5},
        )  # fmt: skip
        best = int(np.nanargmax(y))
        figure.add_scatter(
            x=x[best : best + 1], y=y[best : best + 1], mode="markers", showlegend=False,
            marker={"color": colour, "size": 13, "symbol": "star"}, name="largest",
        )  # fmt: skip
    figure.add_hline(y=1.0, line={"color": PLAIN, "dash": "dash"}, annotation_text="plain decoding")
    figure.update_yaxes(rangemode="tozero")
    return figure


def speedup_map(
    x_axis: Axis, y_axis: Axis, slices: Sequence[tuple[str, NDArray[np.float64]]]
) -> go.Figure:
    """Speedup over two fields as a heat map with the break-even contour at 1.0.

    Colour is the logarithm of the speedup, so that twice as slow is as far from white as twice as
    fast. Each slice is `(values of y, values of x)`; a menu chooses between several.
    """
    x, y = axis_numbers(x_axis), axis_numbers(y_axis)
    figure = go.Figure(layout=layout(axis_title(x_axis), axis_title(y_axis), height=520))
    reach = _reach([z for _, z in slices])
    for index, (_, z) in enumerate(slices):
        _add_map(figure, x, y, z, reach, visible=index == 0)
    if len(slices) > 1:
        figure.update_layout(updatemenus=[_menu([name for name, _ in slices])])
    if x_axis.numbers is None or len(x_axis) <= 16:
        figure.update_xaxes(tickmode="array", tickvals=x)
    return figure


def heat_map(
    x: NDArray[Any], y: NDArray[Any], z: NDArray[np.float64], x_title: str, y_title: str
) -> go.Figure:
    """Speedup `(y, x)` as a heat map with the break-even contour, as `speedup_map` draws it."""
    figure = go.Figure(layout=layout(x_title, y_title, height=480))
    _add_map(figure, x, y, z, _reach([z]), visible=True)
    return figure


def _reach(maps: Sequence[NDArray[np.float64]]) -> float:
    """Largest |log2 speedup| that the colours span, between 1.07x and 16x."""
    farthest = [float(np.nanmax(np.abs(np.log2(np.maximum(z, 1e-9))))) for z in maps]
    return min(max([0.1, *farthest]), 4.0)


def _add_map(
    figure: go.Figure,
    x: NDArray[Any],
    y: NDArray[Any],
    z: NDArray[np.float64],
    reach: float,
    *,
    visible: bool,
) -> None:
    ticks = [v for v in TICKS if abs(np.log2(v)) <= reach]
    figure.add_heatmap(
        x=x, y=y, z=np.log2(np.maximum(z, 1e-9)).astype(np.float32),
        customdata=z.astype(np.float32), visible=visible, name="speedup",
        zmin=-reach, zmax=reach, colorscale=[list(stop) for stop in SPEEDUP_SCALE],
        colorbar={
            "title": {"text": "speedup (x)", "side": "right"}, "tickvals": np.log2(ticks),
            "ticktext": [f"{v:g}" for v in ticks], "thickness": 14,
        },
        hovertemplate="%{xaxis.title.text} %{x}<br>%{yaxis.title.text} %{y}<br>"
        "speedup %{customdata:.4g}x<extra></extra>",
    )  # fmt: skip
    # γ = 0 is 1.0x by definition: a line along it would say nothing.
    even = (z == 1).all(axis=0, keepdims=True) | (z == 1).all(axis=1, keepdims=True)
    figure.add_contour(
        x=x, y=y, z=np.where(even, np.nan, z).astype(np.float32), visible=visible,
        name="break-even, 1.0x", showlegend=True, showscale=False,
        contours={"start": 1.0, "end": 1.0, "coloring": "none", "showlabels": True},
        line={"color": BREAK_EVEN, "width": 3, "smoothing": 0}, hoverinfo="skip",
    )  # fmt: skip


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
