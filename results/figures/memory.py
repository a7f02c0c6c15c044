"""The memory of one engine, and what a draft takes from its KV cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.results.figures.layout import Figure, Trace, layout
from specplan.results.figures.palette import PHASES, PLAIN, filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.memory.parts import Held

GIB = 2.0**30
_COLOURS = {
    "target": ("weights of the target", PLAIN),
    "draft": ("weights of the draft", PHASES["overhead"]),
    "reserve": ("reserve", PHASES["idle"]),
    "KV of the draft": ("KV of the draft", PHASES["draft"]),
    "KV of the target": ("KV of the target", PHASES["verify"]),
}


def memory_bar(found: Sequence[Held]) -> Figure | None:
    """Draw where the memory of the fullest GPU goes, plain and with the draft; None without sizes.

    The text says how many tokens the KV cache holds. With a draft on the same GPU every token is
    held twice, in the target's cache and in the draft's (MODEL.md § 4).
    """
    rows = [one for one in found if one.parts]
    if not rows:
        return None
    what = "the fullest GPU" if "target" in rows[0].parts else "the KV cache"
    look = layout(
        f"GiB of {what}", "", 120 + 70 * len(rows), barmode="stack",
        yaxis={"autorange": "reversed"},
    )  # fmt: skip
    traces: list[Trace] = []
    for part, (name, colour) in _COLOURS.items():
        sizes = [one.parts.get(part, 0.0) / GIB for one in rows]
        if part not in rows[0].parts or (part == "reserve" and not any(sizes)):
            continue
        bar = {
            "type": "bar", "y": [one.name for one in rows], "x": sizes, "orientation": "h",
            "name": name, "marker": filled(colour),
        }  # fmt: skip
        if part == "KV of the target":
            bar["text"] = [f"{one.pool.tokens:,} tokens" if one.pool else "" for one in rows]
            bar |= {"textposition": "inside", "insidetextanchor": "middle"}
        traces.append(bar)
    return {"data": traces, "layout": look}
