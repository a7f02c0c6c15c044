"""One visual language: the same colour for the same thing in every figure.

The categorical colours are Okabe and Ito's (2008), told apart by colour-blind readers; text and
lines meet WCAG AA contrast on white.
"""

from __future__ import annotations

PHASES = {
    "prefill": "#009E73",
    "draft": "#E69F00",
    "verify": "#0072B2",
    "overhead": "#7F7F7F",
    "idle": "#D9D9D9",
    "waste": "#D55E00",
    "queue": "#CC79A7",
}
SCENARIOS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
PLAIN = "#595959"  # plain decoding, the baseline, wherever it is drawn
BREAK_EVEN = "#000000"
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
