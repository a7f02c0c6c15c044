"""Closed form = simulation wherever both apply, within the simulation's own interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.scenarios.closed_form import predict

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

LISTED = "speculation.acceptance={conditional: [.85, .78, .72, .65]}"
WIDE = "target.round={linear: {base: 80 ms, per_token: 3 ms}}"
ONE_STREAM = {
    "toy": (),
    "listed": (LISTED, "speculation.gamma=4", WIDE, "target.step=null"),
    "overhead": (LISTED, "speculation.gamma=3", "speculation.overhead=4 ms"),
    "extra": (LISTED, "speculation.gamma=3", "speculation.extra_draft_step=true"),
    "one_pass": (LISTED, "speculation.gamma=4", "speculation.method=one_pass", WIDE),
    "ngram": (LISTED, "speculation.gamma=4", "speculation.method=ngram", "draft.step=0 ms",
              "speculation.draft_probability=0.35", WIDE),
    "tree": ("speculation.method=tree", "speculation.gamma=null",
             "speculation.tree={width: 3, depth: 3}",
             "speculation.acceptance={ranks: [.6, .2, .1]}"),
    "budget": ("speculation.method=tree", "speculation.gamma=null", WIDE, "target.step=null",
               "speculation.tree={budget: 64, depth: 9}",  # Sequoia's ranks, published.json
               "speculation.acceptance={ranks: [.6342, .1079, .057, .0225, .0195, .015, .0045, "
               ".003]}"),
    "dedicated": (LISTED, "speculation.gamma=4", "draft.placement=dedicated",
                  "draft.transfer=6 ms"),
    "parallel": (LISTED, "speculation.gamma=4", "draft.placement=parallel", "draft.step=31 ms"),
    "mixture": ("speculation.acceptance={mixture: [{weight: 1, alpha: .3}, "
                "{weight: 2, alpha: .9}]}",),
    "spread": ("speculation.acceptance={alpha: 0.6, concentration: 3}",),
    "none": ("speculation.method=none",),
    "one_token": ("workload.output_tokens=1",),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE_STREAM)
def test_one_stream(toy: Callable[..., Scenario], run: Callable[..., Run], case: str) -> None:
    sets = ("workload.requests=3000", "workload.output_tokens=50", *ONE_STREAM[case])
    exact, done = predict(toy(*sets)), run(*sets).requests
    spent_s = done["finish_s"] - done["arrival_s"]
    for seen, expected in (
        (done["rounds"], exact.rounds),
        (spent_s, exact.generation_s),
    ):
        error = 4.5 * float(seen.std(ddof=1)) / np.sqrt(len(seen))
        assert seen.mean() == pytest.approx(float(expected), abs=max(error, 1e-9))


@pytest.mark.parametrize("batch", [2, 5])
def test_streams_in_one_batch(
    toy: Callable[..., Scenario], run: Callable[..., Run], batch: int
) -> None:
    """b streams whose rounds cost the same at any batch and width: each as if it were alone."""
    sets = (
        LISTED,
        "speculation.gamma=4",
        "draft.step=0 ms",
        f"workload.arrivals={{streams: {batch}}}",
        f"scheduler.max_num_seqs={batch}",
        "workload.requests=4000",
        "workload.output_tokens=50",
    )
    exact, done = predict(toy(*sets)), run(*sets).requests
    spent_s = done["finish_s"] - done["arrival_s"]
    error = 4.5 * float(spent_s.std(ddof=1)) / np.sqrt(len(spent_s))
    assert spent_s.mean() == pytest.approx(float(exact.generation_s), abs=error)


@pytest.mark.parametrize("extra", ["draft.transfer=5 ms", "speculation.extra_draft_step=true"])
def test_parallel_rounds_cost_the_same_in_both(
    run: Callable[..., Run], toy: Callable[..., Scenario], extra: str
) -> None:
    # 120 ms of drafting hide the 100 ms of verification, but not in rounds that draft less.
    sets = ("draft.placement=parallel", "draft.step=60 ms", extra, "workload.requests=4000")
    expected, simulated = predict(toy(*sets)), run(*sets)
    assert simulated.duration_s / 4000 == pytest.approx(float(expected.generation_s), rel=0.005)
