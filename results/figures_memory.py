"""The memory of one engine's KV cache, and what a draft takes from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from specplan.results.figures import layout
from specplan.results.palette import PHASES

if TYPE_CHECKING:
    from specplan.scenarios.schema import Scenario

GIB = 2.0**30


def kv_memory(scenario: Scenario) -> go.Figure | None:
    """Draw where the memory of the KV cache goes, plain and with the draft; None without a size.

    With a draft on the same GPU its weights come off first, and every token is held twice: in the
    target's cache and in the draft's (MODEL.md § 4). The text says how many tokens are left.
    """
    cache = scenario.kv_cache
    if cache is None or cache.memory is None or cache.bytes_per_token is None:
        return None
    shares = scenario.gamma > 0 and scenario.draft.placement in ("colocated", "parallel")
    rows, held = ["plain decoding"], [cache.capacity_blocks(draft_on_gpu=False)]
    if shares:
        rows.append("speculation")
        held.append(cache.capacity_blocks(draft_on_gpu=True))
    tokens = [blocks * cache.block_tokens for blocks in held]
    drafting = [False, True][: len(rows)]
    look = layout("memory of one engine's KV cache (GiB)", "", 120 + 70 * len(rows))
    figure = go.Figure(layout={**look, "barmode": "stack"})
    figure.add_bar(
        y=rows, x=[cache.draft_weights / GIB * one for one in drafting], orientation="h",
        name="weights of the draft", marker={"color": PHASES["overhead"]},
    )  # fmt: skip
    figure.add_bar(
        y=rows,
        x=[n * one * cache.draft_bytes_per_token / GIB
           for n, one in zip(tokens, drafting, strict=True)],
        orientation="h", name="KV of the draft", marker={"color": PHASES["draft"]},
    )  # fmt: skip
    figure.add_bar(
        y=rows, x=[n * cache.bytes_per_token / GIB for n in tokens], orientation="h",
        name="KV of the target", marker={"color": PHASES["verify"]},
        text=[f"{n:,} tokens" for n in tokens], textposition="inside", insidetextanchor="middle",
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed")
    return figure
