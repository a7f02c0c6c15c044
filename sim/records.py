"""What a simulated run leaves behind: plain columns, sums and histograms, in seconds and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.sim.step import GAP_BINS, GAP_SHORTEST_S, GAPS_PER_E

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario

REQUEST_COLUMNS = (
    "request",
    "cls",
    "replica",
    "status",
    "arrival_s",
    "admitted_s",
    "first_token_s",
    "finish_s",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "rounds",
    "drafted_tokens",
    "accepted_tokens",
    "preemptions",
)


@dataclass(frozen=True, eq=False)
class GapHistogram:
    """The gaps between chunks as clients see them (ITL), counted in bins 0.1 % wide.

    Count, sum, sum of squares, least and largest are exact; a quantile is the mean of the gaps in
    its bin, so it is off by less than 0.1 %, and exact where one value fills the bin.
    """

    counts: NDArray[np.int64]
    sums_s: NDArray[np.float64]
    sum_of_squares: float
    min: float
    max: float

    @property
    def count(self) -> int:
        """Gaps in all."""
        return int(self.counts.sum())

    @property
    def sum(self) -> float:
        """All gaps added up, seconds."""
        return float(self.sums_s.sum())

    def quantile(self, p: float) -> float:
        """Find the gap that a share p of all gaps does not exceed, seconds; NaN without gaps.

        >>> counts = np.zeros(GAP_BINS, np.int64); sums = np.zeros(GAP_BINS)
        >>> counts[100] = 4; sums[100] = 0.56
        >>> GapHistogram(counts, sums, 0.0784, 0.14, 0.14).quantile(0.99)
        0.14
        """
        if self.count == 0:
            return float("nan")
        rank = min(self.count, max(1, int(np.ceil(p * self.count))))
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(self.sums_s[place] / self.counts[place])

    @staticmethod
    def edges_s() -> NDArray[np.float64]:
        """Lower edges of the bins, seconds; the first bin begins at 0."""
        edges: NDArray[np.float64] = GAP_SHORTEST_S * np.exp(np.arange(GAP_BINS) / GAPS_PER_E)
        edges[0] = 0.0
        return edges


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated run.

    - requests: one array a column of `REQUEST_COLUMNS`, one row a request in order of arrival;
      times are NaN where they never happened; status 0 completed, 1 aborted, 2 rejected, 3
      unfinished; `rounds` does not count the pass that finishes a prefill
    - phases: seconds each GPU spent in prefill, draft, verify, overhead, idle
    - samples: replica, time_s, running, waiting, kv_blocks, thinned to a few thousand a replica
    - spans: start_s, end_s, replica, gpu (0 target, 1 draft), phase (index into `sim.state.PHASES`),
      sequences: the first engine steps in detail
    - batch_time_s (max_num_seqs + 1,): seconds all replicas together spent at each batch size
    """

    scenario: Scenario
    requests: dict[str, NDArray[Any]]
    phases: dict[str, dict[str, float]]
    itl: GapHistogram
    samples: dict[str, NDArray[Any]]
    spans: dict[str, NDArray[Any]]
    batch_time_s: NDArray[np.float64]
    duration_s: float
    engine_steps: int
    rounds: int
    drafting_rounds: int
    drafted_tokens: int
    accepted_tokens: int
    wasted_draft_tokens: int
    wasted_draft_s: float
    committed_tokens: int
    preemptions: int
    saturated: bool
    interrupted: bool
    loop_s: float


def saturation(requests: dict[str, NDArray[Any]], slots: int) -> bool:
    """Tell whether the queue kept growing: the system could not keep up with open arrivals.

    At the last arrival more requests wait than the engines can run at once and than 5 % of all, and
    the second half of the arrivals left at least 1.5 times the queue that the first half had left.
    """
    arrival = requests["arrival_s"]
    if len(arrival) < 20:
        return False
    admitted = np.where(np.isnan(requests["admitted_s"]), np.inf, requests["admitted_s"])
    admitted = np.where(requests["status"] == 2, -np.inf, admitted)

    def waiting(at_s: float) -> int:
        return int(np.count_nonzero((arrival <= at_s) & (admitted > at_s)))

    middle, end = waiting(arrival[len(arrival) // 2]), waiting(arrival[-1])
    return end > max(slots, 0.05 * len(arrival)) and end >= 1.5 * middle
