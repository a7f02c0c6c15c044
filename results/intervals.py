"""Confidence intervals of correlated series: batch means and Student's t."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCHES = 20
SMALLEST_BATCH = 5


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % interval, NaN where none can be given."""

    mean: float
    half_width: float
    batches: int

    @property
    def known(self) -> bool:
        """Whether the series was long enough for an interval."""
        return bool(np.isfinite(self.half_width))

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    def scaled(self, factor: float) -> Interval:
        """Return the same interval in another unit."""
        return Interval(self.mean * factor, self.half_width * abs(factor), self.batches)

    def ends(self) -> list[float] | None:
        """`[low, high]` for JSON, None where the series was too short."""
        return [self.low, self.high] if self.known else None


def wilson(
    shares: NDArray[np.float64], trials: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's 95 % interval of a share of independent trials (Wilson 1927, equation 2).

    (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.96; two arrays `(n,)`; [0, 1] for none.

    >>> low, high = wilson(np.array([0.5]), np.array([100.0]))
    >>> float(low[0].round(4)), float(high[0].round(4))
    (0.4038, 0.5962)
    """
    z = 1.959963985
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.asarray(trials, dtype=np.float64)
        middle = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(shares * (1 - shares) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    some = n > 0
    return np.where(some, middle - half, 0.0), np.where(some, middle + half, 1.0)


def t_interval(values: NDArray[np.float64], confidence: float = 0.95) -> Interval:
    """Student's t interval of the mean of independent values: x̄ ± t_{n−1} s/√n.

    `values (n,)`. Fewer than two values give a NaN half width.

    >>> round(t_interval(np.array([1.0, 2.0, 3.0])).half_width, 4)  # 4.3027 / sqrt(3)
    2.4841
    """
    n = len(values)
    if n < 2:
        return Interval(float(values[0]) if n else nan, nan, n)
    from scipy.special import stdtrit  # 60 ms at import: only where an interval is asked for

    t = float(stdtrit(n - 1, 0.5 + confidence / 2))
    return Interval(float(np.mean(values)), t * float(np.std(values, ddof=1)) / sqrt(n), n)


def batch_edges(count: int, batches: int = BATCHES) -> NDArray[np.intp]:
    """Edges `(batches + 1,)` that cut `count` observations into batches of nearly equal size.

    >>> batch_edges(200, 4).tolist()
    [0, 50, 100, 150, 200]
    """
    return np.linspace(0, count, batches + 1).round().astype(np.intp)


def ratio_interval(
    numerator: NDArray[np.float64],
    denominator: NDArray[np.float64] | None = None,
    batches: int = BATCHES,
) -> Interval:
    """Interval of Σ numerator / Σ denominator over one long run, by batch means.

    The run is cut into contiguous batches whose ratios are treated as independent (Law, Simulation
    Modeling and Analysis, 5th ed., § 9.5.3). `numerator (n,)` and `denominator (n,)` are per
    request in arrival order; without a denominator the ratio is the mean. Batches of fewer than
    five requests give a NaN half width.

    >>> ratio_interval(np.tile([1.0, 3.0], 100)).mean
    2.0
    >>> ratio_interval(np.ones(10)).known
    False
    """
    n = len(numerator)
    weight = np.ones(n) if denominator is None else denominator
    total = float(weight.sum())
    mean = float(numerator.sum()) / total if total > 0 else nan
    if n < batches * SMALLEST_BATCH:
        return Interval(mean, nan, 0)
    starts = batch_edges(n, batches)[:-1]
    return batch_interval(np.add.reduceat(numerator, starts), np.add.reduceat(weight, starts))


def batch_interval(
    tops: NDArray[np.float64], bottoms: NDArray[np.float64], *, enough: bool = True
) -> Interval:
    """Interval of Σ tops / Σ bottoms from the sums `(batches,)` of each batch.

    NaN half width without `enough` observations, or when more than half of the batches are empty.

    >>> batch_interval(np.array([2.0, 4.0, 6.0]), np.array([2.0, 2.0, 2.0])).mean
    2.0
    """
    total = float(bottoms.sum())
    mean = float(tops.sum()) / total if total > 0 else nan
    kept = bottoms > 0
    if not enough or np.count_nonzero(kept) < max(2, len(tops) // 2):
        return Interval(mean, nan, 0)
    spread = t_interval(tops[kept] / bottoms[kept])
    return Interval(mean, spread.half_width, spread.batches)


def paired_difference(
    a: tuple[NDArray[np.float64], NDArray[np.float64] | None],
    b: tuple[NDArray[np.float64], NDArray[np.float64] | None],
    batches: int = BATCHES,
) -> Interval:
    """Interval of ratio(b) − ratio(a) for two runs on one luck, by batch means of the difference.

    Request i is the same request in both runs, so what both runs share (its arrival, its lengths,
    its luck) cancels inside each batch before the spread is taken. `a` and `b` are the two
    arguments of `ratio_interval`, with equally many requests.

    >>> x = np.random.default_rng(1).normal(10, 5, 1000)
    >>> d = paired_difference((x, None), (x + 1, None))
    >>> round(d.mean, 9), d.half_width < 1e-9
    (1.0, True)
    """
    means = [ratio_interval(top, bottom, batches).mean for top, bottom in (a, b)]
    n = len(a[0])
    if n < batches * SMALLEST_BATCH or n != len(b[0]):
        return Interval(means[1] - means[0], nan, 0)
    starts = batch_edges(n, batches)[:-1]
    ratios = []
    for top, bottom in (a, b):
        weight = np.ones(n) if bottom is None else bottom
        sums = np.add.reduceat(weight, starts)
        ratios.append(np.add.reduceat(top, starts) / np.where(sums > 0, sums, nan))
    differences = ratios[1] - ratios[0]
    spread = t_interval(differences[np.isfinite(differences)])
    return Interval(means[1] - means[0], spread.half_width, spread.batches)
