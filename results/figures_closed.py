"""Figures of the closed form of one scenario, one function each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from specplan.models.rounds import tokens_per_round_variance
from specplan.results.closed_curves import DEEPEST, SHIFT, crossover
from specplan.results.figures import across, heat_map, layout
from specplan.results.intervals import wilson
from specplan.results.palette import BREAK_EVEN, PHASES, PLAIN, SCENARIOS

if TYPE_CHECKING:
    from specplan.models.speedup import Prediction
    from specplan.results.closed_curves import Curves

PLATEAU = 0.97  # γ whose speedup is within 3 % of the best are called as good


def speedup_by_gamma(curves: Curves) -> go.Figure:
    """Draw the speedup over γ, the band of γ within 3 % of the best, and the γ that is set.

    A border marks where the acceptance is no longer stated but continued by a rule, within a band.
    """
    x, y = curves.gammas, curves.speedup_by_gamma()
    good = x[y >= PLATEAU * y.max()]
    band = {
        "type": "rect", "x0": good.min() - 0.5, "x1": good.max() + 0.5, "y0": 0, "y1": 1,
        "yref": "y domain", "fillcolor": SCENARIOS[4], "opacity": 0.25, "line": {"width": 0},
        "name": "within 3 % of the best", "showlegend": True,
    }  # fmt: skip
    figure = go.Figure(
        layout=layout(
            "γ, drafted tokens a round", "speedup (x)", 380,
            xaxis={"dtick": 1}, yaxis={"rangemode": "tozero"}, shapes=[band, across(y=1.0)],
        )
    )  # fmt: skip
    known = x <= curves.stated
    figure.add_scatter(
        x=x[known], y=y[known], mode="lines+markers", name="closed form",
        line={"color": SCENARIOS[0]},
    )  # fmt: skip
    if not known.all():
        last = int(x[known][-1])
        figure.add_scatter(
            x=x[last:], y=y[last:], mode="lines+markers", name="acceptance extrapolated",
            line={"color": SCENARIOS[0], "dash": "dot"}, marker={"symbol": "circle-open"},
        )  # fmt: skip
        if curves.band is not None:
            around, edges = np.append(last, curves.band.gamma), curves.band.speedup
            ends = np.vstack([[y[last], y[last]], edges])
            figure.add_scatter(
                x=[*around, *around[::-1]], y=[*ends[:, 0], *ends[::-1, 1]], fill="toself",
                mode="lines", line={"width": 0, "color": SCENARIOS[0]}, opacity=0.3,
                name="band of the extrapolation", hoverinfo="skip",
            )  # fmt: skip
        border = across(x=last, colour=BREAK_EVEN, text="stated | extrapolated")
        figure.update_layout(shapes=[*figure.layout.shapes, border], margin={"t": 56})
    if curves.point.gamma in x:
        place = int(np.flatnonzero(x == curves.point.gamma)[0])
        figure.add_scatter(
            x=[x[place]], y=[y[place]], mode="markers", name=f"as set, γ = {x[place]}",
            marker={"symbol": "circle-open", "size": 14, "color": BREAK_EVEN, "line": {"width": 2}},
        )  # fmt: skip
    return figure


def speedup_by_draft_step(curves: Curves) -> go.Figure:
    """Draw the speedup over γ × draft step with the break-even contour and the present draft."""
    costs = curves.costs(max(curves.point.gamma, 1))
    present = float(np.mean(costs.draft_step_s))
    factors = np.linspace(0.0, 3.0, 31)
    z = curves.speedup_by_draft_step(factors)
    figure = heat_map(
        curves.gammas, factors * present * 1e3, z, "γ, drafted tokens a round", "draft step (ms)"
    )
    figure.add_scatter(
        x=[curves.point.gamma], y=[present * 1e3], mode="markers", name="as set",
        marker={"symbol": "circle-open", "size": 14, "color": BREAK_EVEN, "line": {"width": 2}},
    )  # fmt: skip
    return figure


def speedup_by_batch(curves: Curves) -> go.Figure:
    """Draw the speedup over running batch × γ, break-even and the best γ of each batch."""
    batches = curves.batches()
    tpot, plain = curves.by_batch(batches, curves.gammas)
    z = (plain[:, None] / tpot).T
    figure = heat_map(
        batches, curves.gammas, z, "running batch on one replica", "γ, drafted tokens a round"
    )
    figure.add_scatter(
        x=batches, y=curves.gammas[np.argmax(z, axis=0)], mode="lines", name="best γ",
        line={"color": "#000000", "dash": "dot", "width": 2, "shape": "hvh"},
    )  # fmt: skip
    powers = 2.0 ** np.arange(0, np.log2(batches[-1]) + 1e-9, 1 if batches[-1] < 100 else 2)
    figure.update_xaxes(type="log", tickvals=powers)
    figure.update_yaxes(dtick=1)
    return figure


def latency_throughput(curves: Curves) -> go.Figure:
    """Draw tokens/s of one user against tokens/s of a replica, with and without speculation."""
    batches = curves.batches()
    tpot, plain = curves.by_batch(batches, curves.scenario.gamma)
    from_zero = {"rangemode": "tozero"}
    figure = go.Figure(
        layout=layout(
            "tokens/s for one user", "tokens/s of one replica", xaxis=from_zero, yaxis=from_zero
        )
    )
    for name, seconds, colour in (
        ("plain decoding", plain, PLAIN),
        (f"speculation, γ = {curves.scenario.gamma}", tpot, SCENARIOS[0]),
    ):
        figure.add_scatter(
            x=1 / seconds, y=batches / seconds, mode="lines+markers", name=name,
            customdata=batches, line={"color": colour}, marker={"size": 5},
            hovertemplate="batch %{customdata}<br>%{x:.4g} tokens/s a user<br>"
            "%{y:.5g} tokens/s a replica<extra></extra>",
        )  # fmt: skip
    at = crossover(batches, plain / tpot)
    if at is not None:
        crossing_s = float(np.interp(at, batches, tpot))
        figure.add_scatter(
            x=[1 / crossing_s], y=[at / crossing_s], mode="markers+text", name="crossover",
            text=[f"batch {at:.0f}"], textposition="top right",
            marker={"symbol": "x", "size": 12, "color": BREAK_EVEN},
        )  # fmt: skip
    return figure


def waterfall(prediction: Prediction) -> go.Figure:
    """Draw where a token's time goes, beside a plain decode step."""
    wasted = float(prediction.wasted_draft_s_per_token)
    parts = (
        ("draft, kept", float(prediction.draft_s_per_token) - wasted, PHASES["draft"]),
        ("draft, thrown away", wasted, PHASES["waste"]),
        ("verify", float(prediction.verify_s_per_token), PHASES["verify"]),
        ("overhead", float(prediction.overhead_s_per_token), PHASES["overhead"]),
    )
    rows = ["speculation", "plain decoding"]
    look = layout("ms per output token", "", 320, yaxis={"autorange": "reversed"})
    figure = go.Figure(layout={**look, "barmode": "stack"})
    for name, seconds, colour in parts:
        figure.add_bar(
            y=rows, x=[seconds * 1e3, 0.0], name=name, orientation="h", marker={"color": colour},
        )  # fmt: skip
    figure.add_bar(
        y=rows, x=[0.0, float(prediction.baseline_tpot_s) * 1e3], name="plain step",
        orientation="h", marker={"color": PLAIN},
    )  # fmt: skip
    return figure


def acceptance_by_position(curves: Curves) -> go.Figure:
    """Draw conditional and unconditional acceptance by draft position, pooled over requests."""
    lists = pooled(curves)[: max(curves.point.gamma, DEEPEST)]
    x = np.arange(1, len(lists) + 1)
    before = np.concatenate([[1.0], lists[:-1]])
    conditional = np.divide(lists, before, out=np.full(len(lists), np.nan), where=before > 0)
    axes: Any = {"xaxis": {"dtick": 1}, "yaxis": {"range": [0, 1.02]}}
    figure = go.Figure(layout=layout("draft position", "share accepted", 360, **axes))
    for name, y, colour, dash in (
        ("unconditional, of all rounds that draft", lists, SCENARIOS[0], "solid"),
        ("conditional, of those that came so far", conditional, SCENARIOS[1], "dash"),
    ):
        figure.add_scatter(
            x=x, y=y, mode="lines+markers", name=name, line={"color": colour, "dash": dash},
            error_y=_counted_error(curves, y, conditional=name.startswith("conditional")),
        )  # fmt: skip
    return figure


def _counted_error(curves: Curves, shares: np.ndarray, *, conditional: bool) -> dict[str, Any]:
    """Wilson's 95 % interval of each share, where the acceptance was stated as counted rounds."""
    reached = curves.counted
    if reached is None:
        return {}
    trials = reached[:-1] if conditional else np.full(len(reached) - 1, reached[0])
    here = min(len(trials), len(shares))
    low, high = wilson(shares[:here], trials[:here])
    return {"array": high - shares[:here], "arrayminus": shares[:here] - low, "thickness": 1.5}


def tokens_per_round(curves: Curves) -> go.Figure:
    """Draw the law of committed tokens of a round at the γ that is set."""
    lists = pooled(curves)[: curves.point.gamma]
    at_least = np.concatenate([[1.0], lists, [0.0]])
    share = at_least[:-1] - at_least[1:]
    x = np.arange(1, len(share) + 1)
    mean, spread = float(x @ share), float(tokens_per_round_variance(lists)) ** 0.5
    line = across(x=mean, colour=BREAK_EVEN, text=f"mean {mean:.3g} ± {spread:.2g}")
    look = layout(
        "tokens committed by a round", "share of rounds", 340,
        xaxis={"dtick": 1}, shapes=[line],
    )  # fmt: skip
    look["margin"]["t"] = 56  # the line's text stands above the plot, below the buttons
    figure = go.Figure(layout=look)
    figure.add_bar(x=x, y=share, marker={"color": SCENARIOS[0]}, name="rounds that draft")
    return figure


def tornado(curves: Curves) -> go.Figure:
    """Draw how far each input moves the speedup when it is 20 % lower or higher."""
    rows = curves.tornado()
    now = float(curves.at(curves.point.gamma, curves.costs(curves.point.gamma)).speedup)
    names = [name for name, _, _ in rows]
    height = 120 + 44 * len(rows)
    look = layout("speedup (x)", "", height, shapes=[across(x=1.0)])
    figure = go.Figure(layout={**look, "barmode": "overlay"})
    for label, values, colour in (
        (f"{100 * SHIFT:.0f} % lower", [low for _, low, _ in rows], SCENARIOS[5]),
        (f"{100 * SHIFT:.0f} % higher", [high for _, _, high in rows], SCENARIOS[0]),
    ):
        figure.add_bar(
            y=names, x=[value - now for value in values], base=now, orientation="h", name=label,
            marker={"color": colour}, customdata=values,
            hovertemplate="%{y}: %{customdata:.4g}x<extra></extra>",
        )  # fmt: skip
    return figure


def pooled(curves: Curves) -> np.ndarray:
    """A_i of a round that drafts, `(positions,)`: laws weighted by their share of the rounds."""
    laws = curves.priced.acceptance.spread()
    rounds = laws.weight / (1 + laws.draft_probability * laws.unconditional.sum(axis=1))
    drafting = rounds * laws.draft_probability
    if drafting.sum() == 0:
        return np.zeros(laws.positions)
    return np.asarray(drafting @ laws.unconditional / drafting.sum())
