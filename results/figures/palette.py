"""One visual language: the same colour for the same thing in every figure.

Phases have the colours of Okabe and Ito (2008), told apart by colour-blind readers. Text meets WCAG
AA on white, 4.5:1; lines and marks 3:1; areas that are lighter have an outline that does.
"""

from __future__ import annotations

from typing import Any

PLAIN = "#595959"  # plain decoding, the baseline, wherever it is drawn
PHASES = {
    "prefill": "#009E73",
    "draft": "#E69F00",
    "verify": "#0072B2",
    "plain step": PLAIN,
    "overhead": "#7F7F7F",
    "idle": "#D9D9D9",
    "waste": "#D55E00",
    "queue": "#CC79A7",
}
SCENARIOS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#332288", "#7A6A00")
BREAK_EVEN = "#000000"
PLATEAU = "#F0E442"  # behind a line, at a third of its strength
LOWER, HIGHER = "#88CCEE", "#882255"  # moved down or up: the colours of no phase
# Slower than plain decoding is orange, faster is blue, break-even is white.
SPEEDUP_SCALE = (
    (0.0, "#B35806"),
    (0.25, "#F1A340"),
    (0.5, "#F7F7F7"),
    (0.75, "#67A9CF"),
    (1.0, "#08519C"),
)
TEXT = "#1A1A1A"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def filled(colour: str) -> dict[str, Any]:
    """Fill a bar, with an outline that is seen where the colour is not."""
    return {"color": colour, "line": {"color": TEXT, "width": 0.5}}
