"""What tokens cost: GPU-seconds and money for a million of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specplan.sim.records import Run


def gpu_seconds_per_million(gpus: float, tokens_per_s: float) -> float:
    """GPU-seconds per million tokens: gpus/(tokens/s) · 10⁶.

    >>> gpu_seconds_per_million(2.0, 1000.0)
    2000.0
    """
    return gpus / tokens_per_s * 1e6


def cost_per_million(price_per_gpu_hour: float, gpus: float, tokens_per_s: float) -> float:
    """Cost of a million output tokens: price · gpus/(3600 · tokens/s) · 10⁶.

    >>> round(cost_per_million(2.0, 1.0, 1000.0), 4)
    0.5556
    """
    return price_per_gpu_hour / 3600 * gpu_seconds_per_million(gpus, tokens_per_s)


def spending(run: Run, tokens_per_s: float) -> dict[str, float | None]:
    """Output tokens per second and GPU, and the cost of a million; None without tokens or price."""
    price, gpus = run.scenario.cluster.price_per_gpu_hour, _gpus(run)
    spent_s = cost = None
    if tokens_per_s > 0:  # not for NaN: nothing was made
        spent_s = gpu_seconds_per_million(gpus, tokens_per_s)
        cost = None if price is None else cost_per_million(price, gpus, tokens_per_s)
    return {
        "output_throughput_per_gpu": tokens_per_s / gpus,
        "gpu_seconds_per_million_tokens": spent_s,
        "cost_per_million_tokens": cost,
    }


def _gpus(run: Run) -> int:
    scenario, draft = run.scenario, run.scenario.draft
    drafting = sum(name.startswith("draft") for name in run.phases)
    gpus = (len(run.phases) - drafting) * scenario.cluster.gpus_per_replica
    return max(1, gpus + drafting * (draft.gpus if draft.placement == "dedicated" else 1))
