"""What several kinds of text make together: times add, speedups do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class MixedSpeedup:
    """Speedup of a mixture of texts, and the figures people quote instead.

    token_weighted: baseline time over time with speculation, for the stated shares of tokens;
    geometric_mean, arithmetic_mean: over the kinds, whatever their shares; worst: the least.
    """

    token_weighted: float
    geometric_mean: float
    arithmetic_mean: float
    worst: float


def mixed_speedup(speedup: ArrayLike, token_share: ArrayLike | None = None) -> MixedSpeedup:
    """1/Σ share/speedup: the harmonic mean by tokens, since each token takes its own time.

    speedup, token_share (kinds,); shares are taken as equal when absent. Raises ValueError unless
    speedups are above 0 and shares sum to 1.

    >>> round(mixed_speedup([9.84, 1.003], [0.1, 0.9]).token_weighted, 3)
    1.102
    """
    gains = np.atleast_1d(np.asarray(speedup, dtype=np.float64))
    if not (gains.size and np.isfinite(gains).all() and (gains > 0).all()):
        raise ValueError(f"speedups are {gains.tolist()} (one or more, above 0)")
    shares = np.full(gains.shape, 1 / gains.size) if token_share is None else token_share
    shares = np.atleast_1d(np.asarray(shares, dtype=np.float64))
    if shares.shape != gains.shape:
        raise ValueError(f"{gains.size} speedups and {shares.size} token shares (one each)")
    if not ((shares >= 0).all() and abs(shares.sum() - 1) <= 1e-6):
        raise ValueError(f"token shares are {shares.tolist()} (0 or more, summing to 1)")
    return MixedSpeedup(
        float(1 / (shares / gains).sum()),
        float(np.exp(np.log(gains).mean())),
        float(gains.mean()),
        float(gains.min()),
    )
