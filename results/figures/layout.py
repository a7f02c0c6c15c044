"""What every figure shares: its form, its axes, and how it is sent to a page.

A figure is a dict as plotly.js takes it, `{"data": traces, "layout": …}`. Plotly's own classes
check each property on its way in, which costs a figure 5 ms; the tests do it instead.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.figures.palette import FONT, PLAIN, SCENARIOS, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from specplan.sim.axes import Axis

Figure = dict[str, Any]
Trace = dict[str, Any]


def layout(
    x: str,
    y: str,
    height: int = 420,
    *,
    xaxis: Mapping[str, Any] | None = None,
    yaxis: Mapping[str, Any] | None = None,
    shapes: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """Give the look every figure shares: titles with units, room at 400 px, no decoration."""
    axis = {
        "showline": True,
        "linecolor": TEXT,
        "gridcolor": "#E5E5E5",
        "zeroline": False,
        "automargin": True,
    }
    return {
        "hovermode": "closest",
        "font": {"family": FONT, "size": 14, "color": TEXT},
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
        "xaxis": {**axis, "title": {"text": x, "font": {"size": 15}}, **(xaxis or {})},
        "yaxis": {**axis, "title": {"text": y, "font": {"size": 15}}, **(yaxis or {})},
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
        **more,
    }


def packed(part: Any) -> Any:
    """Turn arrays of a figure into what plotly.js decodes, base64 for fractions: small and fast.

    >>> packed({"x": np.array([1, 2]), "y": np.array([0.5])})
    {'x': [1, 2], 'y': {'dtype': 'f8', 'bdata': 'AAAAAAAA4D8='}}
    """
    if isinstance(part, dict):
        return {key: packed(value) for key, value in part.items()}
    if isinstance(part, np.ndarray):
        if part.dtype.kind != "f":
            return part.tolist()
        shape = {"shape": ", ".join(map(str, part.shape))} if part.ndim > 1 else {}
        code = b64encode(np.ascontiguousarray(part).tobytes()).decode()
        return {"dtype": part.dtype.str[1:], "bdata": code, **shape}
    return [packed(value) for value in part] if isinstance(part, (list, tuple)) else part


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
) -> Figure:
    """Speedup over one field, one curve a name, the largest marked, plain decoding at 1.

    Each curve is `(values of the axis,)`.
    """
    x = axis_numbers(axis)
    traces: list[Trace] = []
    for index, (name, y) in enumerate(curves):
        colour = SCENARIOS[index % len(SCENARIOS)]
        best = int(np.nanargmax(y))
        traces += [
            {
                "type": "scatter", "x": x, "y": y, "name": escape(name), "mode": "lines+markers",
                "line": {"color": colour}, "marker": {"size": 5},
            },
            {
                "type": "scatter", "x": x[best : best + 1], "y": y[best : best + 1],
                "mode": "markers", "showlegend": False, "name": "largest",
                "marker": {"color": colour, "size": 13, "symbol": "star"},
            },
        ]  # fmt: skip
    look = layout(
        axis_title(axis), f"{what} (x)",
        yaxis={"rangemode": "tozero"}, shapes=[across(y=1.0, text="plain decoding")],
    )  # fmt: skip
    return {"data": traces, "layout": look}
