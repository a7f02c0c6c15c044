"""What is cut off before steady state, by the rule the scenario names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from specplan.sim.tally import Cut, warmup_cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario

MSER_BATCH = 5


class Rows(Protocol):
    """What latencies are computed from: a run, or what a run folder holds of one."""

    @property
    def scenario(self) -> Scenario:
        """The scenario, whose rule is applied."""

    @property
    def requests(self) -> dict[str, NDArray[Any]]:
        """One array a column, one row a request in order of arrival."""


def counted(run: Rows) -> NDArray[np.bool_]:
    """Tell which requests `(requests,)` count: all of them, or those after the warm-up."""
    return cut(run).counts(run.requests)


def cut(run: Rows) -> Cut:
    """Put the warm-up of a run into numbers.

    Rules of `workload.warmup`: the first n requests, those that arrive before a time, a share of
    all, or MSER-5 on the end-to-end latency of completed requests in arrival order.
    """
    rows = run.requests
    rule = run.scenario.workload.warmup
    if rule is None or not rule.mser:
        return warmup_cut(run.scenario, len(rows["request"]))
    done = np.flatnonzero(rows["status"] == 0)
    dropped = mser5((rows["finish_s"] - rows["arrival_s"])[done])
    return Cut(requests=int(rows["request"][done[dropped]]) if dropped else 0)


def mser5(values: NDArray[np.float64]) -> int:
    """Observations to cut so that the marginal standard error of the rest is least.

    MSER-5 (White, Cobb and Spratt 2000): of the means of batches of five, drop the first d that
    minimise Σ (y − ȳ)²/(k − d)², d at most half of the k batches.

    >>> mser5(np.concatenate([np.full(50, 9.0), np.tile([0.0, 1.0], 200)]))
    50
    """
    k = len(values) // MSER_BATCH
    if k < 4:
        return 0
    means = values[: k * MSER_BATCH].reshape(k, MSER_BATCH).mean(axis=1)[::-1]
    count = np.arange(1, k + 1)
    total, squares = np.cumsum(means), np.cumsum(means**2)
    error = (np.maximum(squares - total**2 / count, 0.0) / count**2)[::-1]  # error[d]: d dropped
    return MSER_BATCH * int(np.argmin(error[: k // 2 + 1]))
