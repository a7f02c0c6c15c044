"""The interactive page of a sweep."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from specplan.results.export import Section, page
from specplan.results.figures.layout import Figure, speedup_lines
from specplan.results.figures.maps import speedup_map

if TYPE_CHECKING:
    from specplan.sim.sweep import Grid

SIDE = 200  # cells of a heat map along one side; more cannot be told apart and only weigh
SLICES = 24


def grid_page(grid: Grid, name: str, by: str) -> str:
    """Build the page: speedup over one field as a line, over two as a map with its 1.0 contour."""
    simulated = by == "simulate"
    what = "simulated" if simulated else "closed form"
    if simulated and "speedup" not in grid.columns:
        sentence = "Time per output token; vary speculation.gamma from 0 to see the speedup."
    else:
        sentence = (
            "Above 1 speculation is faster than plain decoding; the black line is break-even."
        )
    figure = sweep_figure(grid)
    return page(
        f"Sweep of {name}",
        f"{int(np.prod(grid.shape)):,} points, {what}",
        [
            Section(
                "Speedup" if "speedup" in grid.columns else "Time per token",
                (sentence,),
                figure=figure,
            )
        ],
    )


def sweep_figure(grid: Grid) -> Figure:
    """Draw the grid: the first axis is x, the second y, and a menu goes through the others."""
    column = "speedup" if "speedup" in grid.columns else "mean_tpot_ms"
    values = grid.figure(column)
    if len(grid.axes) == 1:
        return speedup_lines(grid.axes[0], [(column, values)], column)
    kept = [
        np.arange(n) if n <= SIDE else np.linspace(0, n - 1, SIDE).astype(int)
        for n in grid.shape[:2]
    ]
    values = values[np.ix_(*kept, *[np.arange(n) for n in grid.shape[2:]])]
    thinned = [axis.taken(where) for axis, where in zip(grid.axes[:2], kept, strict=True)]
    slices = []
    for place in list(product(*[range(n) for n in grid.shape[2:]]))[:SLICES]:
        label = ", ".join(
            f"{axis.path} {axis.values[i]}" for axis, i in zip(grid.axes[2:], place, strict=True)
        )
        slices.append((label, values[(slice(None), slice(None), *place)].T))
    return speedup_map(thinned[0], thinned[1], slices)
