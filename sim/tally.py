"""Requests added up chunk by chunk: the figures of a run that need not keep its requests."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan, pi, sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from specplan.sim.state import ABORTED, COMPLETED, REJECTED, UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario

    Floats = NDArray[np.float64]

BATCHES = 20
CENTROIDS = 1000
LATENCIES = ("ttft", "tpot", "e2el")
RATIOS = {"ttft": ("ttft_s", None), "tpot": ("tpot_s", None), "e2el": ("e2el_s", None),
          "itl": ("gap_s", "gaps")}  # fmt: skip


class Distribution(Protocol):
    """Values of one figure: how many, their mean and spread, and their quantiles."""

    count: int

    def add(self, values: Floats) -> None:
        """Take in more values."""

    def mean(self) -> float:
        """Mean, NaN without values."""

    def std(self) -> float:
        """Give the population standard deviation, NaN without values."""

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Values that these shares of all do not exceed, NaN without values."""

    def rank_error(self, share: float) -> float:
        """Largest distance of a quantile's true rank from the share asked for."""


class Exact:
    """All values, kept: quantiles as NumPy interpolates them.

    >>> kept = Exact()
    >>> kept.add(np.arange(5.0))
    >>> kept.quantiles([0.5, 0.9]), kept.rank_error(0.9)
    ([2.0, 3.6], 0.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[Floats] = []

    def add(self, values: Floats) -> None:
        """Keep more values."""
        self.count += len(values)
        self._parts.append(values)

    def _values(self) -> Floats:
        self._parts = [np.concatenate(self._parts)] if len(self._parts) > 1 else self._parts
        return self._parts[0] if self._parts else np.zeros(0)

    def mean(self) -> float:
        """Mean, NaN without values."""
        return float(self._values().mean()) if self.count else nan

    def std(self) -> float:
        """Give the population standard deviation, NaN without values."""
        return float(self._values().std()) if self.count else nan

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Quantiles by linear interpolation, NaN without values."""
        if not self.count:
            return [nan] * len(shares)
        return [float(value) for value in np.quantile(self._values(), shares)]

    def rank_error(self, share: float) -> float:  # noqa: ARG002  # every share alike
        """Zero: nothing is left out."""
        return 0.0


class Sketch:
    """Values in a t-digest of 1000 centroids: fixed memory, exact mean and spread.

    A quantile is off in rank by at most the width of one centroid, π √(q (1 − q)) / 1000 (Dunning
    and Ertl, Computing Extremely Accurate Quantiles Using t-Digests, 2019, scale function k₁).

    >>> sketch = Sketch()
    >>> sketch.add(np.linspace(0, 1, 100_001))
    >>> abs(sketch.quantiles([0.99])[0] - 0.99) < sketch.rank_error(0.99) < 0.0004
    True
    """

    def __init__(self) -> None:
        from fastdigest import TDigest

        self.count = 0
        self._sum = self._squares = 0.0
        self._digest = TDigest(max_centroids=CENTROIDS)

    def add(self, values: Floats) -> None:
        """Take in more values and forget them."""
        if len(values) == 0:
            return
        self._digest.batch_update(values)  # type: ignore[arg-type]  # takes arrays
        count, mean = len(values), float(values.mean())
        shift = mean - self.mean() if self.count else 0.0
        # Chan, Golub and LeVeque: no cancellation however many chunks there are.
        self._squares += float(((values - mean) ** 2).sum())
        self._squares += shift * shift * self.count * count / (self.count + count)
        self._sum += float(values.sum())
        self.count += count

    def mean(self) -> float:
        """Mean, NaN without values."""
        return self._sum / self.count if self.count else nan

    def std(self) -> float:
        """Give the population standard deviation, NaN without values."""
        return sqrt(self._squares / self.count) if self.count else nan

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Quantiles of the digest, NaN without values."""
        if not self.count:
            return [nan] * len(shares)
        return [float(self._digest.quantile(share)) for share in shares]

    def rank_error(self, share: float) -> float:
        """Width of a centroid at this share."""
        return pi * sqrt(share * (1 - share)) / CENTROIDS


@dataclass(frozen=True)
class Cut:
    """The warm-up in numbers: requests before this one, or that arrive before this moment."""

    requests: int = 0
    time_s: float = 0.0

    def counts(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Tell which requests count `(requests,)`."""
        counted: NDArray[np.bool_] = columns["request"] >= self.requests
        return counted & (columns["arrival_s"] >= self.time_s)


def warmup_cut(scenario: Scenario, requests: int) -> Cut:
    """Put the warm-up rule of a scenario into numbers; `mser` cuts nothing before it is known."""
    rule = scenario.workload.warmup
    if rule is None:
        return Cut()
    share = 0.0 if rule.fraction is None else rule.fraction
    return Cut(rule.requests or ceil(share * requests), rule.time or 0.0)


def request_latencies(columns: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Latency of each completed request, seconds; see `results.metrics.latencies`."""
    arrival, first, finish = (columns[k] for k in ("arrival_s", "first_token_s", "finish_s"))
    tokens = columns["output_tokens"].astype(np.float64)
    generation = finish - first
    several = np.full(len(tokens), nan)
    return {
        "ttft_s": first - arrival,
        "e2el_s": finish - arrival,
        "tpot_s": np.divide(generation, tokens - 1, out=several, where=tokens > 1),
        "gap_s": generation,
        # With a prompt the prefill pass commits the first chunk and every round adds a gap.
        "gaps": columns["rounds"].astype(np.float64) - (columns["prompt_tokens"] == 0),
        "queue_s": columns["admitted_s"] - arrival,
        "output_tokens": tokens,
        "prompt_tokens": columns["prompt_tokens"].astype(np.float64),
        "finish_s": finish,
    }


class Tally:
    """Counts, sums, latencies and batch sums of the requests of one run or of one class.

    Requests come as columns of `sim.records.REQUEST_COLUMNS`, in order of arrival. Those before
    `cut` are only counted in `seen`. `tops`, `bottoms` hold for each figure the sums over `BATCHES`
    stretches of equally many arrivals, whose ratios give batch means.
    """

    def __init__(
        self,
        scenario: Scenario,
        requests: int,
        cut: Cut,
        distribution: Callable[[], Distribution] = Sketch,
        cls: int | None = None,
    ) -> None:
        self.requests, self.cut, self.cls = max(1, requests), cut, cls
        kinds = scenario.workload.classes
        self.limits = [
            (kind.slo or scenario.slo).request_limits() for kind in kinds
        ] or [scenario.slo.request_limits()]  # fmt: skip
        self.seen = self.counted = self.met = 0
        self.first_arrival_s = self.last_arrival_s = self.counted_from_s = nan
        self.statuses = np.zeros(4, np.int64)
        self.prompt_tokens = self.cached_tokens = self.output_tokens = 0
        self.queue_s = self.service_s = 0.0
        self.longest_rejected = 0
        self.latency: dict[str, Distribution] = {name: distribution() for name in LATENCIES}
        self.tops = {name: np.zeros(BATCHES) for name in RATIOS}
        self.bottoms = {name: np.zeros(BATCHES) for name in RATIOS}
        many = range(len(kinds)) if cls is None and len(kinds) > 1 else ()
        self.classes = {
            kinds[i].name: Tally(scenario, requests, cut, distribution, i) for i in many
        }

    @property
    def judged(self) -> bool:
        """Whether any limit judges these requests."""
        mine = self.limits if self.cls is None else [self.limits[self.cls]]
        return any(mine)

    @property
    def completed(self) -> int:
        """Requests whose clients got everything."""
        return int(self.statuses[COMPLETED])

    @property
    def aborted(self) -> int:
        """Requests whose clients gave up."""
        return int(self.statuses[ABORTED])

    @property
    def rejected(self) -> int:
        """Requests that could never fit."""
        return int(self.statuses[REJECTED])

    @property
    def unfinished(self) -> int:
        """Requests that an interrupted run left."""
        return int(self.statuses[UNFINISHED])

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add requests that come after all those added before."""
        for tally in self.classes.values():
            mine = columns["cls"] == tally.cls
            tally.add({name: values[mine] for name, values in columns.items()})
        if len(columns["arrival_s"]) == 0:
            return
        if not self.seen:
            self.first_arrival_s = float(columns["arrival_s"][0])
        self.last_arrival_s = float(columns["arrival_s"][-1])
        self.seen += len(columns["arrival_s"])
        kept = self.cut.counts(columns)
        if not kept.any():
            return
        if not self.counted:
            self.counted_from_s = float(columns["arrival_s"][kept][0])
        self.counted += int(np.count_nonzero(kept))
        self.statuses += np.bincount(columns["status"][kept].astype(np.int64), minlength=4)
        refused = kept & (columns["status"] == REJECTED)
        if refused.any():
            longest = columns["prompt_tokens"][refused].max()
            self.longest_rejected = max(self.longest_rejected, int(longest))
        done = kept & (columns["status"] == COMPLETED)
        self._add_completed({name: values[done] for name, values in columns.items()})

    def _add_completed(self, columns: Mapping[str, NDArray[Any]]) -> None:
        rows = request_latencies(columns)
        self.prompt_tokens += int(columns["prompt_tokens"].sum())
        self.cached_tokens += int(columns["cached_tokens"].sum())
        self.output_tokens += int(columns["output_tokens"].sum())
        self.queue_s += float(rows["queue_s"].sum())
        self.service_s += float((rows["e2el_s"] - rows["queue_s"]).sum())
        self.met += self._meeting(rows, columns["cls"])
        batch = np.minimum(columns["request"] * BATCHES // self.requests, BATCHES - 1)
        for name, (top, bottom) in RATIOS.items():
            values = rows[top]
            weights = np.ones(len(values)) if bottom is None else rows[bottom]
            known = np.isfinite(values)  # a one-token answer has no TPOT
            self.tops[name] += np.bincount(batch[known], values[known], BATCHES)
            self.bottoms[name] += np.bincount(batch[known], weights[known], BATCHES)
            if name in self.latency:
                self.latency[name].add(values[known])

    def _meeting(self, rows: Mapping[str, Floats], cls: NDArray[np.int64]) -> int:
        """Count the requests that meet every limit of their class (DistServe's goodput)."""
        met = np.ones(len(cls), dtype=bool)
        for index, limits in enumerate(self.limits):
            mine = cls == index if len(self.limits) > 1 else np.ones(len(cls), dtype=bool)
            for metric, limit_s in limits.items():
                value = rows[f"{metric}_s"]
                met &= ~mine | (value <= limit_s) | np.isnan(value)
        return int(np.count_nonzero(met))
