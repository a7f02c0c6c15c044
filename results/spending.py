"""What tokens cost: GPU-seconds and money for a million of them."""

from __future__ import annotations


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
