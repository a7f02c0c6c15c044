"""Predicted against measured as a figure, and the page around it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from specplan.results.export import Section, page
from specplan.results.figures.layout import Figure, Trace, layout
from specplan.results.figures.palette import PLAIN, SCENARIOS
from specplan.results.validation.points import BRIEF
from specplan.results.validation.shown import (
    HEADER,
    TOTALS,
    misses,
    point_row,
    total_rows,
    verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.validation.points import Point


def predicted_against_measured(points: Sequence[Point]) -> Figure:
    """Draw predicted points over measured ones on logarithmic axes, one colour for what was given.

    Points keep the unit of their source, so only the distance from the diagonal can be compared.
    """
    tested = [point for point in points if point.tested]
    traces: list[Trace] = []
    for colour, (given, says) in zip(SCENARIOS, BRIEF.items(), strict=False):
        chosen = [point for point in tested if point.given == given]
        if not chosen:
            continue
        reading = [point.high - point.measured for point in chosen]
        traces.append(
            {
                "type": "scatter", "x": [point.measured for point in chosen],
                "y": [point.predicted for point in chosen],
                "error_x": {"type": "data", "array": reading, "thickness": 1, "width": 0},
                "customdata": [
                    [escape(f"{p.scenario}: {p.series.name}, {p.label}"), 100 * p.error]
                    for p in chosen
                ],
                "mode": "markers", "marker": {"color": colour, "size": 8}, "name": says,
                "hovertemplate": "%{customdata[0]}<br>measured %{x:.4g}, predicted %{y:.4g}<br>"
                "%{customdata[1]:+.1f} %<extra></extra>",
            }
        )  # fmt: skip
    ends = [value for point in tested for value in (point.measured, point.predicted)]
    low, high = min(ends, default=1.0) / 1.2, max(ends, default=1.0) * 1.2
    for factor, dash, name in (
        (1.0, "solid", "equal"),
        (1.1, "dot", "10 % off"),
        (1 / 1.1, "dot", ""),
    ):
        traces.append(
            {
                "type": "scatter", "x": [low, high], "y": [low * factor, high * factor],
                "mode": "lines", "hoverinfo": "skip", "name": name, "showlegend": bool(name),
                "line": {"color": PLAIN, "dash": dash, "width": 1},
            }
        )  # fmt: skip
    log: Any = {"type": "log"}
    look = layout("measured, in the unit of its source", "predicted, in the same unit", 620,
                  xaxis=log, yaxis=log)  # fmt: skip
    return {"data": traces, "layout": look}


def accuracy_page(points: Sequence[Point]) -> str:
    """Build one self-contained page: the plot, the totals, the misses, every point."""
    totals = total_rows(points)
    verdict = ". ".join(f"{name}: {says}" for name, says in verdicts(points))
    rows = [
        (point.scenario, point.series.name, *point_row(point), point.source) for point in points
    ]
    header = ("scenario", "series", *HEADER[:-1], "outside", "source")
    return page(
        "Predicted against measured",
        f"{verdict}." if verdict else "No sweep and no effect to judge.",
        [
            Section("Every predicted point", figure=predicted_against_measured(points)),
            Section("Totals", table=(TOTALS, *totals)),
            Section("Misses, with the likely cause", table=(("point", "cause"), *misses(points))),
            Section("All rows", table=(header, *rows)),
        ],
    )
