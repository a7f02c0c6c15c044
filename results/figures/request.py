"""Where the time of a simulated request goes, queue included."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.figures.layout import Figure, layout
from specplan.results.figures.palette import PHASES, filled
from specplan.results.figures.run import own_phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.recorded import Recorded

PARTS = {
    "queue": "queue",
    "prefill": "prefill",
    "draft": "draft, kept",
    "waste": "thrown away",
    "verify": "verify",
    "plain step": "plain step",
    "overhead": "overhead",
}


def token_time(runs: Sequence[Recorded]) -> Figure:
    """Draw the end-to-end time of the completed requests per output token: queue, then the GPU.

    Waiting is each request's own; the time after admission is split as the GPUs' busy time was.
    """
    split = [_split(run) for run in runs]
    rows = [escape(run.name) for run in runs] if len(runs) > 1 else ["simulated"]
    look = layout(
        "ms per output token", "", 260 + 44 * len(runs),
        yaxis={"autorange": "reversed"}, barmode="stack",
    )  # fmt: skip
    traces = [
        {
            "type": "bar", "y": rows, "x": [1e3 * parts.get(part, 0.0) for parts in split],
            "name": words, "orientation": "h", "marker": filled(PHASES[part]),
        }
        for part, words in PARTS.items()
        if any(parts.get(part) for parts in split)
    ]  # fmt: skip
    return {"data": traces, "layout": look}


def _split(run: Recorded) -> dict[str, float]:
    """Seconds per output token in each part; NaN without a completed request."""
    rows: dict[str, Any] = run.requests
    done = rows["status"] == 0
    tokens = float(rows["output_tokens"][done].sum())
    if not tokens:
        return dict.fromkeys(PARTS, float("nan"))
    waited_s = float((rows["admitted_s"] - rows["arrival_s"])[done].sum())
    served_s = float((rows["finish_s"] - rows["admitted_s"])[done].sum())
    phases = {
        phase: float(np.sum([gpu[phase] for gpu in run.figures["utilisation"].values()]))
        for phase in ("prefill", "draft", "verify", "overhead")
    }
    drafted = float(run.figures["drafted_tokens"])
    wasted = float(run.figures["wasted_draft_tokens"]) / drafted if drafted else 0.0
    phases["waste"] = wasted * phases["draft"]
    phases["draft"] -= phases["waste"]
    busy = sum(phases.values()) or 1.0
    return {
        "queue": waited_s / tokens,
        **{
            own_phase(run, phase): served_s * share / busy / tokens
            for phase, share in phases.items()
        },
    }
