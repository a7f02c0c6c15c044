"""Figures over load: how many requests keep their limits."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from specplan.results.figures.layout import Figure, Trace, across, layout
from specplan.results.figures.palette import BREAK_EVEN, PLAIN, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specplan.results.attainment import Attained

ASKED = 0.99


def slo_attainment(curves: Mapping[str, Sequence[Attained]]) -> Figure:
    """Draw the share of requests within their limits over the rate of a replica, with intervals.

    An interval ends at 0 and 1, beyond which there is no share.
    """
    look = layout(
        "requests/s that arrive at a replica", "share within the limits", 400,
        xaxis={"rangemode": "tozero"}, yaxis={"range": [0, 1.04], "tickformat": ".0%"},
        shapes=[across(y=ASKED, colour=BREAK_EVEN)],
    )  # fmt: skip
    coloured = [name for name in curves if name != "plain decoding"]
    traces: list[Trace] = []
    for name, points in curves.items():
        colour = PLAIN if name == "plain decoding" else SCENARIOS[coloured.index(name)]
        shares = np.array([point.share.mean for point in points])
        half = np.array([p.share.half_width if p.share.known else 0.0 for p in points])
        ends = {"array": np.minimum(half, 1 - shares), "arrayminus": np.minimum(half, shares)}
        traces.append(
            {
                "type": "scatter", "x": [point.rate for point in points],
                "y": shares, "name": escape(name),
                "error_y": {"type": "data", **ends, "thickness": 1},
                "mode": "lines+markers", "line": {"color": colour},
            }
        )  # fmt: skip
    return {"data": traces, "layout": look}
