"""Figures of simulated runs, one function each; several runs are drawn in their own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results import metrics
from specplan.results.figures.layout import Figure, Trace, layout
from specplan.results.figures.palette import HIGHER, LOWER, PHASES, SCENARIOS, TEXT, filled
from specplan.results.tables import number
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
STEPS = {
    "closed form alone": "closed_form_alone_s",
    "clipping": "clipping_s",
    "batch growth": "batch_growth_s",
    "prefill": "prefill_s",
    "rest": "rest_s",
}
ROUNDING = 1e-9  # a step that is smaller, relative to the whole, is none
GANTT_SPANS = 48  # for each GPU that is drawn: a dozen rounds and more


def latency_ecdf(runs: Sequence[Recorded], metric: str) -> Figure:
    """Draw the share of requests (of gaps, for ITL) that are done within a latency.

    The percentiles of one run are written at its curve; of several, `marked` tells them.
    """
    drawn = [1e3 * _quantiles(run, metric, QUANTILES) for run in runs]
    farthest = np.nanmax([x[-1] for x in drawn]) if np.isfinite(drawn).any() else np.nan
    traces: list[Trace] = []
    for index, (run, x) in enumerate(zip(runs, drawn, strict=True)):
        colour = SCENARIOS[index % len(SCENARIOS)]
        marks = 1e3 * _quantiles(run, metric, np.array(MARKED))
        traces += [
            {
                "type": "scatter", "x": x, "y": QUANTILES, "mode": "lines",
                "name": escape(run.name), "line": {"color": colour},
            },
            {
                "type": "scatter", "x": marks, "y": MARKED,
                "mode": "markers+text" if len(runs) == 1 else "markers",
                "showlegend": False, "name": "percentiles", "marker": {"color": colour},
                "text": [f"p{100 * p:.0f} {number(v)}" for p, v in zip(MARKED, marks, strict=True)],
                # Above and to the left of a rising curve is room, and below and to the right.
                "textposition": [
                    "top left" if mark > farthest / 2 else "bottom right" for mark in marks
                ],
                "textfont": {"color": TEXT}, "cliponaxis": False,
            },
        ]  # fmt: skip
    axes: Any = {"xaxis": {"rangemode": "tozero"}, "yaxis": {"range": [0, 1.04]}}
    return {"data": traces, "layout": layout(LATENCIES[metric], "share within", 360, **axes)}


def marked(runs: Sequence[Recorded], metric: str) -> list[str]:
    """Say the percentiles that a figure marks, a line of each run."""
    lines = []
    for run in runs:
        values = 1e3 * _quantiles(run, metric, np.array(MARKED))
        words = [f"p{100 * p:.0f} {number(v)}" for p, v in zip(MARKED, values, strict=True)]
        lines.append(f"{run.name}: {', '.join(words)} ms.")
    return lines


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


def own_phase(run: Recorded, phase: str) -> str:
    """Name a phase as the run has it: where nothing is drafted, nothing is verified either."""
    return "plain step" if phase == "verify" and not run.scenario.gamma else phase


def gpu_phases(runs: Sequence[Recorded]) -> Figure:
    """Draw what share of the run each GPU spent in each phase."""
    rows, shares = [], []
    for run in runs:
        for gpu, phases in run.figures["utilisation"].items():
            rows.append(f"{escape(run.name)}, {gpu}" if len(runs) > 1 else gpu)
            shares.append({own_phase(run, phase): share for phase, share in phases.items()})
    look = layout(
        "share of the run", "", 140 + 34 * len(rows), barmode="stack",
        xaxis={"range": [0, 1.001], "tickformat": ".0%", "dtick": 0.25},
        yaxis={"autorange": "reversed"},
    )  # fmt: skip
    look["margin"]["r"] = 28  # for half of "100%"
    traces = [
        {
            "type": "bar", "y": rows, "x": [share.get(phase, 0.0) for share in shares],
            "name": phase, "orientation": "h", "marker": filled(PHASES[phase]),
        }
        for phase in PHASES
        if any(share.get(phase) for share in shares)
    ]  # fmt: skip
    return {"data": traces, "layout": look}


def gantt(run: Recorded) -> Figure:
    """Draw who held which GPU when, over the first engine steps of the run."""
    spans = run.spans
    gpus = gpu_names(run.scenario, spans)
    order = np.argsort(spans["start_s"], kind="stable")[: GANTT_SPANS * len(set(gpus))]
    begun = float(spans["start_s"][order[0]])
    rows = [gpus[i] for i in order]
    traces = []
    for phase in sorted({int(spans["phase"][i]) for i in order}):
        here = [(i, row) for i, row in zip(order, rows, strict=True) if spans["phase"][i] == phase]
        name = own_phase(run, PHASE_NAMES[phase])
        traces.append(
            {
                "type": "bar", "y": [row for _, row in here],
                "x": [1e3 * (spans["end_s"][i] - spans["start_s"][i]) for i, _ in here],
                "base": [1e3 * (spans["start_s"][i] - begun) for i, _ in here],
                "orientation": "h", "name": name, "marker": {"color": PHASES[name]},
                "customdata": [int(spans["sequences"][i]) for i, _ in here],
                "hovertemplate": f"{name}, %{{customdata}} sequences<br>%{{x:.4g}} ms"
                "<extra></extra>",
            }
        )  # fmt: skip
    look = layout(
        "time from the first step (ms)", "", 180 + 34 * len(set(rows)),
        barmode="overlay", bargap=0.3,
        yaxis={"autorange": "reversed", "categoryorder": "category ascending"},
    )  # fmt: skip
    return {"data": traces, "layout": look}


def over_time(runs: Sequence[Recorded], column: str, title: str) -> Figure:
    """Draw a sampled count over time, summed over the replicas: running, waiting, kv_blocks."""
    traces = []
    for index, run in enumerate(runs):
        if column == "kv_blocks" and not run.scenario.kv_cache:
            continue  # its cache has no end, and no blocks
        time_s, value = summed(run, column)
        traces.append(
            {
                "type": "scatter", "x": time_s, "y": value, "mode": "lines",
                "name": escape(run.name),
                "line": {"color": SCENARIOS[index % len(SCENARIOS)], "shape": "hv", "width": 1.5},
            }
        )  # fmt: skip
    return {
        "data": traces,
        "layout": layout("time (s)", title, 340, yaxis={"rangemode": "tozero"}),
    }


def summed(run: Recorded, column: str) -> tuple[Floats, Floats]:
    """Sum a sampled column over the replicas, thinned: times `(n,)` and values `(n,)`."""
    samples = run.samples
    order = np.argsort(samples["time_s"], kind="stable")
    time_s, replica = samples["time_s"][order], samples["replica"][order]
    value = samples[column][order].astype(np.float64)
    # A replica's contribution changes by its new value minus its last one.
    change = value.copy()
    for engine in np.unique(replica):
        own = replica == engine
        change[own] = np.diff(value[own], prepend=0.0)
    total = np.cumsum(change)
    step = max(1, len(total) // LONGEST_SERIES)
    return time_s[::step], total[::step]


def gap_steps(run: Recorded) -> Figure | None:
    """Draw the way from the closed form to the simulated mean TPOT; None without one."""
    found = run.figures.get("closed_form", {})
    if "simulated_s" not in found:
        return None
    least_s = ROUNDING * found["simulated_s"]
    steps = {label: found[key] for label, key in STEPS.items() if abs(found[key]) >= least_s}
    values = [1e3 * seconds for seconds in (*steps.values(), found["simulated_s"])]
    trace = {
        "type": "waterfall", "orientation": "h", "x": values, "y": [*steps, "simulated"],
        "measure": ["absolute", *["relative"] * (len(steps) - 1), "total"],
        "increasing": {"marker": {"color": HIGHER}},
        "decreasing": {"marker": {"color": LOWER}},
        "totals": {"marker": {"color": SCENARIOS[0]}},
        "connector": {"line": {"color": "#7F7F7F"}},
        "text": [f"{step:.3g}" for step in values], "textposition": "outside", "cliponaxis": False,
    }  # fmt: skip
    look = layout("time per output token (ms)", "", 340, yaxis={"autorange": "reversed"})
    look["margin"]["r"] = 48  # for the number beside the longest bar
    return {"data": [trace], "layout": look}
