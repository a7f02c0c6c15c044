"""What a simulated run leaves behind: plain columns, sums and histograms, in seconds and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.tally import Tally

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

        >>> from specplan.sim.step import GAP_BINS
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


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One simulated run.

    - requests: one array a column of `REQUEST_COLUMNS`, one row a request in order of arrival;
      times are NaN where they never happened; status 0 completed, 1 aborted, 2 rejected, 3
      unfinished; `rounds` does not count the pass that finishes a prefill
    - phases: seconds each GPU spent in prefill, draft, verify, overhead, idle
    - samples: replica, time_s, running, waiting, kv_blocks, thinned to a few thousand a replica
    - spans: start_s, end_s, replica, gpu (0 target, 1 draft), phase (index into
      `sim.state.PHASES`), sequences: the first engine steps in detail
    - tally: the requests added up, where `keep_requests=False` left `requests` empty
    - kept_rounds (γ_max + 1,): rounds that drafted, by how many tokens were kept
    - second_tokens (seconds,): output tokens in each second of simulated time, the first so many
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
    kept_rounds: NDArray[np.int64]
    second_tokens: NDArray[np.int64]
    drafted_tokens: int
    accepted_tokens: int
    wasted_draft_tokens: int
    wasted_draft_s: float
    preemptions: int
    saturated: bool
    interrupted: bool
    loop_s: float
    tally: Tally | None = None

    @property
    def drafting_rounds(self) -> int:
        """Rounds that proposed at least one token."""
        return int(self.kept_rounds.sum())

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ", saturated" if self.saturated else ""
        return (
            f"Run({self.scenario.name}, seed {self.scenario.seed}: {self.duration_s:,.4g} s, "
            f"{self.rounds:,} rounds in {self.engine_steps:,} engine steps{state})"
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return the requests, one row each, in order of arrival."""
        import pandas as pd

        return pd.DataFrame(self.requests)

    def _repr_html_(self) -> str:
        """Show the run and its requests in a notebook."""
        return f"<p>{escape(repr(self))}</p>" + self.to_pandas().to_html(max_rows=10, notebook=True)


def saturation(
    samples: dict[str, NDArray[Any]], begin_s: float, end_s: float, arrivals: int
) -> bool:
    """Tell whether the queue kept growing while `arrivals` came from `begin_s` to `end_s`.

    Three things together: at the end more wait than chance piles up at a load of exactly one (a
    random walk of Poisson arrivals and exponential services, 2 √n is 1.4 standard deviations);
    nobody ever found the queue empty in the second half (below a load of one it empties again and
    again); and in the last quarter it was 1.1 times as long as in the third (steady growth makes
    1.4).
    """
    if arrivals < 20 or not end_s > begin_s:
        return False
    time_s, waiting = queue_length(samples)
    place = int(np.searchsorted(time_s, end_s, side="right"))
    if place == 0 or waiting[place - 1] <= 2 * np.sqrt(arrivals):
        return False
    middle_s = (begin_s + end_s) / 2
    half = (time_s >= middle_s) & (time_s <= end_s)
    if not half.any() or waiting[half].min() == 0:
        return False
    grid = np.searchsorted(time_s, np.linspace(middle_s, end_s, 2001)[1:-1], side="right") - 1
    third, last = waiting[grid[:999]].mean(), waiting[grid[1000:]].mean()
    return bool(last > 1.1 * third)


def queue_length(samples: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Add up who waits before the replicas: moments (n,), seconds, and lengths (n,)."""
    change = np.zeros(len(samples["waiting"]), np.int64)
    for replica in np.unique(samples["replica"]):
        mine = samples["replica"] == replica
        change[mine] = np.diff(samples["waiting"][mine], prepend=0)
    order = np.argsort(samples["time_s"], kind="stable")
    return samples["time_s"][order], np.cumsum(change[order])
