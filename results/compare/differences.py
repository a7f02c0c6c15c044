"""What differs between two scenarios simulated on the same luck, figure by figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.results import metrics
from specplan.results.intervals import Interval, paired_difference, ratio_interval
from specplan.results.replications import difference
from specplan.results.warmup import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.results.replications import Replicated
    from specplan.sim.records import Run


@dataclass(frozen=True)
class Difference:
    """One figure of two runs: A, B, and B − A with its paired 95 % interval."""

    name: str
    unit: str
    a: float
    b: float
    difference: Interval
    more_is_better: bool

    @property
    def key(self) -> str:
        """The figure's name in the JSON of a run: `mean_ttft_ms`, `output_throughput`."""
        if self.unit == "ms":
            return f"{self.name.replace(' ', '_').lower()}_ms"
        return f"{self.name}_throughput"

    @property
    def ratio(self) -> float:
        """How many times better B is than A: above 1 in B's favour, below 1 in A's."""
        better, worse = (self.b, self.a) if self.more_is_better else (self.a, self.b)
        return better / worse if worse > 0 else float("nan")

    @property
    def verdict(self) -> str:
        """B `better`, `worse`, `no difference`, or `too few requests` for an interval."""
        if not self.difference.known:
            return "too few requests"
        if self.difference.low <= 0 <= self.difference.high:
            return "no difference"
        return "better" if (self.difference.mean > 0) == self.more_is_better else "worse"


def differences(a: Run, b: Run) -> list[Difference]:
    """Mean TTFT, TPOT, ITL and E2EL and output throughput of both runs, paired request by request.

    Only requests that both runs completed are paired; the throughput is paired in blocks of equally
    many completions. Latencies in ms, throughput in tokens/s.
    """
    both = (a.requests["status"] == 0) & (b.requests["status"] == 0) & counted(a) & counted(b)
    rows_a, rows_b = (_completed(run, both) for run in (a, b))
    found = []
    for name, top, bottom in (
        ("mean TTFT", "ttft_s", None),
        ("mean TPOT", "tpot_s", None),
        ("mean ITL", "gap_s", "gaps"),
        ("mean E2EL", "e2el_s", None),
    ):
        pair = [
            (rows[top] * 1e3, None if bottom is None else rows[bottom]) for rows in (rows_a, rows_b)
        ]
        if bottom is None:
            kept = np.isfinite(pair[0][0]) & np.isfinite(pair[1][0])
            pair = [(values[kept], None) for values, _ in pair]
        difference = paired_difference(pair[0], pair[1])
        means = [ratio_interval(above, below).mean for above, below in pair]
        found.append(Difference(name, "ms", means[0], means[1], difference, more_is_better=False))
    return [*found, _throughput(a, b, rows_a, rows_b)]


def _completed(run: Run, both: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    done = (run.requests["status"] == 0) & counted(run)
    return {name: values[both[done]] for name, values in metrics.latencies(run).items()}


def _throughput(
    a: Run,
    b: Run,
    rows_a: dict[str, NDArray[np.float64]],
    rows_b: dict[str, NDArray[np.float64]],
) -> Difference:
    pair = []
    for rows in (rows_a, rows_b):
        order = np.argsort(rows["finish_s"], kind="stable")
        between = np.diff(rows["finish_s"][order], prepend=0.0)
        pair.append((rows["output_tokens"][order], between))
    per_second = [
        float(rows["output_tokens"].sum()) / run.duration_s if run.duration_s > 0 else np.nan
        for run, rows in ((a, rows_a), (b, rows_b))
    ]
    difference = paired_difference(pair[0], pair[1])
    centred = Interval(per_second[1] - per_second[0], difference.half_width, difference.batches)
    return Difference("output", "tok/s", per_second[0], per_second[1], centred, more_is_better=True)


def differences_over_seeds(found: Replicated, a: int = 0, b: int = 1) -> list[Difference]:
    """Differences of the figures of `differences`, one a seed: B − A with its t interval."""
    rows = []
    for name, unit, key in (
        ("mean TTFT", "ms", "mean_ttft_ms"),
        ("mean TPOT", "ms", "mean_tpot_ms"),
        ("mean ITL", "ms", "mean_itl_ms"),
        ("mean E2EL", "ms", "mean_e2el_ms"),
        ("output", "tok/s", "output_throughput"),
    ):
        one, other = (float(np.mean(found.values(which, key))) for which in (a, b))
        interval = difference(found, key, a, b)
        rows.append(Difference(name, unit, one, other, interval, more_is_better=unit == "tok/s"))
    return rows
