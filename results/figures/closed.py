"""Figures of the closed form of one scenario, one function each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.closed_curves import SHIFT, crossover
from specplan.results.figures.layout import Figure, Trace, across, layout
from specplan.results.figures.maps import heat_map, staircase
from specplan.results.figures.palette import (
    BREAK_EVEN,
    HIGHER,
    LOWER,
    PHASES,
    PLAIN,
    PLATEAU,
    SCENARIOS,
    filled,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.models.speedup import Prediction
    from specplan.results.closed_curves import Curves
    from specplan.scenarios.extrapolated import Band

AS_GOOD = 0.97  # γ whose speedup is within 3 % of the best are called as good
GAMMA = "γ, drafted tokens a round"
AS_SET = {
    "type": "scatter", "mode": "markers", "name": "as set",
    "marker": {"symbol": "circle-open", "size": 14, "color": BREAK_EVEN, "line": {"width": 2}},
}  # fmt: skip


def speedup_by_gamma(curves: Curves) -> Figure:
    """Draw the speedup over γ, the band of γ within 3 % of the best, and the γ that is set.

    A border marks where the acceptance is no longer stated but continued by a rule, within a band.
    """
    x, y = curves.gammas, curves.speedup_by_gamma()
    good = x[y >= AS_GOOD * y.max()]
    band = {
        "type": "rect", "x0": good.min() - 0.5, "x1": good.max() + 0.5, "y0": 0, "y1": 1,
        "yref": "y domain", "fillcolor": PLATEAU, "opacity": 0.35, "line": {"width": 0},
        "name": "within 3 % of the best", "showlegend": True,
    }  # fmt: skip
    look = layout(
        GAMMA, "speedup (x)", 380,
        xaxis={"dtick": 1}, yaxis={"rangemode": "tozero"}, shapes=[band, across(y=1.0)],
    )  # fmt: skip
    known = x <= curves.stated
    traces: list[Trace] = [
        {
            "type": "scatter", "x": x[known], "y": y[known], "mode": "lines+markers",
            "name": "closed form", "line": {"color": SCENARIOS[0]},
        }
    ]  # fmt: skip
    if not known.all():
        last = int(x[known][-1])
        traces.append(
            {
                "type": "scatter", "x": x[last:], "y": y[last:], "mode": "lines+markers",
                "name": "acceptance extrapolated", "line": {"color": SCENARIOS[0], "dash": "dot"},
                "marker": {"symbol": "circle-open"},
            }
        )  # fmt: skip
        if curves.band is not None:
            traces.append(_band(curves.band, last, float(y[last])))
        look["shapes"].append(across(x=last, colour=BREAK_EVEN, text="stated | extrapolated"))
        look["margin"]["t"] = 56
    gamma = curves.point.gamma
    if gamma in x:
        here = y[x == gamma]
        traces.append({**AS_SET, "x": [gamma], "y": here, "name": f"as set, γ = {gamma}"})
    return {"data": traces, "layout": look}


def _band(band: Band, last: int, known: float) -> Trace:
    """Fill between both ends of an extrapolation, from the last speedup that is known."""
    around = np.append(last, band.gamma)
    ends = np.vstack([[known, known], band.speedup])
    return {
        "type": "scatter", "x": [*around.tolist(), *around[::-1].tolist()],
        "y": [*ends[:, 0], *ends[::-1, 1]], "fill": "toself", "mode": "lines", "opacity": 0.3,
        "line": {"width": 0, "color": SCENARIOS[0]}, "name": "band of the extrapolation",
        "hoverinfo": "skip",
    }  # fmt: skip


def speedup_by_draft_step(curves: Curves) -> Figure:
    """Draw the speedup over γ × draft step with the break-even border and the present draft.

    The draft step goes to three times the present one, or on to where the γ that is set breaks
    even, as far as `FARTHEST` times the present one.
    """
    factors, at = curves.draft_factors(), curves.break_even_factors()
    gammas, present_ms = curves.gammas, 1e3 * curves.draft_step_s
    half = float(np.diff(gammas).min()) / 2
    along, over = staircase(at, gammas[1:], 0.0, float(factors[-1]), half)
    figure = heat_map(
        gammas, factors * present_ms, curves.speedup_by_draft_step(factors),
        (over, along * present_ms), x=GAMMA, y="draft step (ms)", xaxis=_ticks(gammas),
    )  # fmt: skip
    figure["data"].append({**AS_SET, "x": [curves.point.gamma], "y": [present_ms]})
    return figure


def speedup_by_batch(curves: Curves) -> Figure:
    """Draw the speedup over running batch × γ, break-even and the best γ of each batch."""
    batches, gammas = curves.batches(), curves.gammas
    tpot, plain = curves.by_batch(batches, gammas)
    z = (plain[:, None] / tpot).T
    rim = (batches[0] ** 1.5 / batches[1] ** 0.5, batches[-1] ** 1.5 / batches[-2] ** 0.5)
    at = np.array([_slower_from(batches, row, rim) for row in z[1:]])
    half = float(np.diff(gammas).min()) / 2
    powers = 2.0 ** np.arange(0, np.log2(batches[-1]) + 1e-9, 1 if batches[-1] < 100 else 2)
    figure = heat_map(
        batches, gammas, z, staircase(at, gammas[1:], *rim, half),
        x="running batch on one replica", y=GAMMA,
        xaxis={"type": "log", "tickvals": powers}, yaxis=_ticks(gammas),
    )  # fmt: skip
    line = {"type": "scatter", "x": batches, "y": gammas[np.argmax(z, axis=0)], "mode": "lines"}
    figure["data"] += [
        # White under black is seen on every colour.
        {**line, "name": "", "showlegend": False, "hoverinfo": "skip",
         "line": {"color": "#FFFFFF", "width": 6, "shape": "hvh"}},
        {**line, "name": "best γ",
         "line": {"color": BREAK_EVEN, "dash": "dot", "width": 2, "shape": "hvh"}},
    ]  # fmt: skip
    return figure


def _ticks(gammas: NDArray[np.int64]) -> dict[str, Any]:
    """Mark every γ, or every second one where they would be too close at 400 px."""
    return {"tickvals": gammas[:: 1 if len(gammas) <= 8 else 2]}


def _slower_from(
    batches: NDArray[np.float64], speedups: NDArray[np.float64], rim: tuple[float, float]
) -> float:
    """Batch at which a γ changes sides, from which on it is slower; the rim where it never does."""
    at = crossover(batches, speedups) or crossover(batches, 1 / speedups)
    return at or rim[int(speedups[0] > 1)]


def latency_throughput(curves: Curves) -> Figure:
    """Draw tokens/s of one user against tokens/s of a replica, with and without speculation."""
    batches = curves.batches()
    tpot, plain = curves.by_batch(batches, curves.scenario.gamma)
    zero: Any = {"rangemode": "tozero"}
    look = layout("tokens/s for one user", "tokens/s of one replica", xaxis=zero, yaxis=zero)
    traces: list[Trace] = [
        {
            "type": "scatter", "x": 1 / seconds, "y": batches / seconds, "mode": "lines+markers",
            "name": name, "customdata": batches, "line": {"color": colour}, "marker": {"size": 5},
            "hovertemplate": "batch %{customdata}<br>%{x:.4g} tokens/s a user<br>"
            "%{y:.5g} tokens/s a replica<extra></extra>",
        }
        for name, seconds, colour in (
            ("plain decoding", plain, PLAIN),
            (f"speculation, γ = {curves.scenario.gamma}", tpot, SCENARIOS[0]),
        )
    ]  # fmt: skip
    at = crossover(batches, plain / tpot)
    if at is not None:
        crossing_s = float(np.interp(at, batches, tpot))
        traces.append(
            {
                "type": "scatter", "x": [1 / crossing_s], "y": [at / crossing_s],
                "mode": "markers+text", "name": "crossover", "text": [f"batch {at:.0f}"],
                "textposition": "top right",
                "marker": {"symbol": "x", "size": 12, "color": BREAK_EVEN},
            }
        )  # fmt: skip
    return {"data": traces, "layout": look}


def waterfall(prediction: Prediction) -> Figure:
    """Draw where a token's time goes, beside a plain decode step."""
    wasted = float(prediction.wasted_draft_s_per_token)
    parts = (
        ("draft, kept", float(prediction.draft_s_per_token) - wasted, PHASES["draft"]),
        ("draft, thrown away", wasted, PHASES["waste"]),
        ("verify", float(prediction.verify_s_per_token), PHASES["verify"]),
        ("overhead", float(prediction.overhead_s_per_token), PHASES["overhead"]),
    )
    rows = ["speculation", "plain decoding"]
    bars = [(name, [seconds * 1e3, 0.0], colour) for name, seconds, colour in parts if seconds > 0]
    bars.append(("plain step", [0.0, float(prediction.baseline_tpot_s) * 1e3], PLAIN))
    look = layout("ms per output token", "", 320, yaxis={"autorange": "reversed"}, barmode="stack")
    traces = [
        {"type": "bar", "y": rows, "x": x, "name": name, "orientation": "h",
         "marker": filled(colour)}
        for name, x, colour in bars
    ]  # fmt: skip
    return {"data": traces, "layout": look}


def tornado(curves: Curves) -> Figure:
    """Draw how far each input moves the speedup when it is 20 % lower or higher."""
    rows = curves.tornado()
    now = float(curves.speedup_as_set())
    names = [name for name, _, _ in rows]
    look = layout(
        "speedup (x)", "", 120 + 44 * len(rows), shapes=[across(x=1.0)], barmode="overlay"
    )
    traces = [
        {
            "type": "bar", "y": names, "x": [value - now for value in values], "base": now,
            "orientation": "h", "name": label, "marker": filled(colour), "customdata": values,
            "hovertemplate": "%{y}: %{customdata:.4g}x<extra></extra>",
        }
        for label, values, colour in (
            (f"{100 * SHIFT:.0f} % lower", [low for _, low, _ in rows], LOWER),
            (f"{100 * SHIFT:.0f} % higher", [high for _, _, high in rows], HIGHER),
        )
    ]  # fmt: skip
    return {"data": traces, "layout": look}
