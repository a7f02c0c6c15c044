"""Figures of simulated runs, one function each; several runs are drawn in their own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from specplan.results import metrics
from specplan.results.figures import layout
from specplan.results.palette import PHASES, SCENARIOS
from specplan.results.timeline import gpu_names
from specplan.sim.state import PHASES as PHASE_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from specplan.results.recorded import Recorded

    Floats = NDArray[np.float64]

# A distribution is drawn through these quantiles, finer in the tail, for any number of requests.
QUANTILES = np.concatenate([np.linspace(0, 0.98, 197), np.linspace(0.981, 1.0, 39)])
MARKED = (0.5, 0.9, 0.99)
LATENCIES = {
    "ttft": "time to first token (ms)",
    "tpot": "time per output token (ms)",
    "itl": "gap between chunks (ms)",
    "e2el": "end-to-end latency (ms)",
}
LONGEST_SERIES = 1500
GANTT_ROUNDS = 24


def latency_ecdf(runs: Sequence[Recorded], metric: str) -> go.Figure:
    """Draw the share of requests (of gaps, for ITL) that are done within a latency."""
    figure = go.Figure(layout=layout(LATENCIES[metric], "share within", 360))
    for index, run in enumerate(runs):
        x = 1e3 * _quantiles(run, metric, QUANTILES)
        colour = SCENARIOS[index % len(SCENARIOS)]
        figure.add_scatter(
            x=x, y=QUANTILES, mode="lines", name=escape(run.name), line={"color": colour},
        )  # fmt: skip
        marks = 1e3 * _quantiles(run, metric, np.array(MARKED))
        figure.add_scatter(
            x=marks, y=MARKED, mode="markers+text", showlegend=False, marker={"color": colour},
            text=[f"p{100 * p:.0f} {v:.4g}" for p, v in zip(MARKED, marks, strict=True)],
            textposition="bottom right", textfont={"color": colour}, name="percentiles",
            cliponaxis=False,
        )  # fmt: skip
    figure.update_yaxes(range=[0, 1.04])
    figure.update_xaxes(rangemode="tozero")
    return figure


def _quantiles(run: Recorded, metric: str, at: Floats) -> Floats:
    if metric == "itl":
        if not len(run.gaps["gap_s"]):
            return np.full(len(at), np.nan)
        share = np.cumsum(run.gaps["count"]) / run.gaps["count"].sum()
        place = np.searchsorted(share, at, side="left")
        return np.asarray(run.gaps["gap_s"][np.minimum(place, len(share) - 1)])
    values = metrics.latencies(run)[f"{metric}_s"]
    values = values[np.isfinite(values)]
    return np.quantile(values, at) if len(values) else np.full(len(at), np.nan)


def gpu_phases(runs: Sequence[Recorded]) -> go.Figure:
    """Draw what share of the run each GPU spent in each phase."""
    rows, shares = [], []
    for run in runs:
        for gpu, phases in run.figures["utilisation"].items():
            rows.append(f"{escape(run.name)}, {gpu}" if len(runs) > 1 else gpu)
            shares.append(phases)
    figure = go.Figure(layout=layout("share of the run", "", 140 + 34 * len(rows)))
    for phase in metrics.PHASES:
        figure.add_bar(
            y=rows, x=[share[phase] for share in shares], name=phase, orientation="h",
            marker={"color": PHASES[phase]},
        )  # fmt: skip
    figure.update_layout(barmode="stack", xaxis={"range": [0, 1], "tickformat": ".0%"})
    figure.update_yaxes(autorange="reversed")
    return figure


def gantt(run: Recorded) -> go.Figure:
    """Draw who held which GPU when, over the first engine steps of the run."""
    spans = run.spans
    figure = go.Figure(layout=layout("time from the first step (ms)", "", 300))
    if not len(spans["start_s"]):
        return figure
    order = np.argsort(spans["start_s"], kind="stable")[: 6 * GANTT_ROUNDS]
    begun = float(spans["start_s"][order[0]])
    gpus = gpu_names(run.scenario, spans)
    rows = [gpus[i] for i in order]
    for phase in sorted({int(spans["phase"][i]) for i in order}):
        here = [(i, row) for i, row in zip(order, rows, strict=True) if spans["phase"][i] == phase]
        name = PHASE_NAMES[phase]
        figure.add_bar(
            y=[row for _, row in here],
            x=[1e3 * (spans["end_s"][i] - spans["start_s"][i]) for i, _ in here],
            base=[1e3 * (spans["start_s"][i] - begun) for i, _ in here],
            orientation="h", name=name, marker={"color": PHASES[name]},
            customdata=[int(spans["sequences"][i]) for i, _ in here],
            hovertemplate=f"{name}, %{{customdata}} sequences<br>%{{x:.4g}} ms<extra></extra>",
        )  # fmt: skip
    figure.update_layout(barmode="overlay", bargap=0.3)
    figure.update_yaxes(autorange="reversed", categoryorder="category ascending")
    return figure


def over_time(runs: Sequence[Recorded], column: str, title: str) -> go.Figure:
    """Draw a sampled count over time, summed over the replicas: running, waiting, kv_blocks."""
    figure = go.Figure(layout=layout("time (s)", title, 340))
    for index, run in enumerate(runs):
        time_s, value = summed(run, column)
        figure.add_scatter(
            x=time_s, y=value, mode="lines", name=escape(run.name),
            line={"color": SCENARIOS[index % len(SCENARIOS)], "shape": "hv", "width": 1.5},
        )  # fmt: skip
    figure.update_yaxes(rangemode="tozero")
    return figure


def summed(run: Recorded, column: str) -> tuple[Floats, Floats]:
    """Sum a sampled column over the replicas, thinned: times `(n,)` and values `(n,)`."""
    samples = run.samples
    order = np.argsort(samples["time_s"], kind="stable")
    time_s, replica = samples["time_s"][order], samples["replica"][order]
    value = samples[column][order].astype(np.float64)
    # A replica's contribution changes by its new value minus its last one.
    change = value.copy()
    for number in np.unique(replica):
        own = replica == number
        change[own] = np.diff(value[own], prepend=0.0)
    total = np.cumsum(change)
    step = max(1, len(total) // LONGEST_SERIES)
    return time_s[::step], total[::step]


def gap_steps(run: Recorded) -> go.Figure | None:
    """Draw the way from the closed form to the simulated mean TPOT; None without one."""
    found = run.figures.get("closed_form", {})
    names = ("closed_form_alone_s", "clipping_s", "batch_growth_s", "prefill_s", "rest_s")
    if "simulated_s" not in found:
        return None
    figure = go.Figure(layout=layout("", "time per output token (ms)", 380))
    figure.add_waterfall(
        x=["closed form,<br>alone", "clipping", "batch growth", "prefill", "rest", "simulated"],
        y=[*(1e3 * found[name] for name in names), 1e3 * found["simulated_s"]],
        measure=["absolute", *["relative"] * 4, "total"],
        increasing={"marker": {"color": PHASES["waste"]}},
        decreasing={"marker": {"color": PHASES["prefill"]}},
        totals={"marker": {"color": PHASES["verify"]}},
        connector={"line": {"color": "#7F7F7F"}},
        texttemplate="%{delta:.3g}", textposition="outside", cliponaxis=False,
    )  # fmt: skip
    return figure
