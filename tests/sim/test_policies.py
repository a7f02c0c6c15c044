"""Who chooses γ: chains, tables and the best γ of the cost model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.adaptive import adaptive_gamma
from specplan.models.round_costs import round_costs
from specplan.models.speedup import predict

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

CHAIN = ("speculation.policy={hf_heuristic: {max: 100}}", "speculation.acceptance={alpha: 0.8}")


def test_long_run_of_the_heuristic(run: Callable[..., Run]) -> None:
    """α .8, +2/−1, at least 1: E[γ] 5.4483, 3.67324 tokens per round (issue #3)."""
    done = run(*CHAIN, "workload.output_tokens=5000", "workload.requests=100").requests
    chain = adaptive_gamma(0.8 ** np.arange(1, 101))
    assert chain.mean_gamma == pytest.approx(5.4483, abs=5e-5)
    for seen, exact in (
        (done["drafted_tokens"] / done["rounds"], 5.4483),
        (done["output_tokens"] / done["rounds"], 3.67324),
    ):
        error = 4.5 * seen.std(ddof=1) / np.sqrt(len(seen))
        assert seen.mean() == pytest.approx(exact, abs=error)


def test_heuristic_goes_on_from_request_to_request(run: Callable[..., Run]) -> None:
    """α 1: γ 2, 4, 6 commit 3 + 5 + 7 = 15; the next request starts at 8: 9 + 6."""
    sets = ("speculation.acceptance={alpha: 1}", "workload.output_tokens=15", "workload.requests=2")
    done = run("speculation.policy={hf_heuristic: {max: 100}}", *sets).requests
    assert done["rounds"].tolist() == [3, 2]
    assert done["drafted_tokens"].tolist() == [12, 13]
    done = run("speculation.policy={hf_transient: {max: 100}}", *sets).requests
    assert done["rounds"].tolist() == [3, 3]


def test_heuristic_falls_to_its_minimum_and_rises_to_its_maximum(run: Callable[..., Run]) -> None:
    sets = ("speculation.gamma=5", "workload.output_tokens=10", "workload.requests=1")
    done = run("speculation.policy=hf_transient", "speculation.acceptance={alpha: 0}", *sets)
    assert done.drafted_tokens == 5 + 4 + 3 + 2 + 1 + 1 + 1 + 1 + 1 + 0
    sets = ("speculation.gamma=1", "workload.output_tokens=12", "workload.requests=1")
    done = run(
        "speculation.policy={hf_transient: {max: 3}}", "speculation.acceptance={alpha: 1}", *sets
    )
    assert done.drafted_tokens == 1 + 3 + 3 + 1  # commits 2, 4, 4, 2


def test_constant_schedule_is_a_fixed_gamma(run: Callable[..., Run]) -> None:
    one, other = run("speculation.policy=hf_constant"), run("speculation.policy=fixed")
    np.testing.assert_array_equal(one.requests["finish_s"], other.requests["finish_s"])


@pytest.mark.parametrize(("streams", "gamma"), [(1, 4), (2, 2), (3, 2), (4, 0), (6, 0)])
def test_gamma_by_running_batch(run: Callable[..., Run], streams: int, gamma: int) -> None:
    """Rounds keep nothing, so all streams run all along and end together."""
    done = run(
        "speculation.gamma=4",
        "speculation.acceptance={alpha: 0}",
        "speculation.policy={by_batch: [[1, 1, 4], [2, 3, 2], [4, 8, 0]]}",
        "speculation.overhead=3 ms",
        f"workload.arrivals={{streams: {streams}}}",
        f"workload.requests={streams}",
        "workload.output_tokens=40",
        "scheduler.max_num_seqs=8",
    )
    clipped = sum(min(gamma, left - 1) for left in range(1, 41))
    assert set(done.requests["drafted_tokens"]) == {clipped}
    assert done.phases["replica0"]["overhead"] == pytest.approx(0.003 * 40 * (gamma > 0))


# α, draft step, and base and slope per position of a pass, in ms.
CASES = [(0.8, 1, 90, 5), (0.8, 20, 90, 5), (0.3, 30, 60, 40), (0.95, 4, 100, 10)]


@pytest.mark.parametrize(("alpha", "draft_ms", "base_ms", "slope_ms"), CASES)
def test_goodput_policy_takes_the_best_gamma_of_the_cost_model(
    run: Callable[..., Run], alpha: float, draft_ms: int, base_ms: int, slope_ms: int
) -> None:
    sets = (
        f"speculation.acceptance={{alpha: {alpha}}}",
        f"draft.step={draft_ms} ms",
        f"target.round={{linear: {{base: {base_ms} ms, per_token: {slope_ms} ms}}}}",
        "target.step=null",
        "speculation.overhead=2 ms",
        "workload.requests=30",
    )
    pass_s = (base_ms + slope_ms * np.arange(1, 10)) / 1000
    costs = round_costs(pass_s[0], pass_s[1:], draft_ms / 1000, overhead_s=0.002)
    choices = np.arange(9)
    found = predict(alpha ** np.arange(1.0, 9.0), choices, costs)
    best = int(choices[np.argmax(found.speedup)])
    chosen = run("speculation.gamma=8", "speculation.policy=goodput", *sets)
    fixed = run(f"speculation.gamma={best}", *sets)
    np.testing.assert_array_equal(chosen.requests["finish_s"], fixed.requests["finish_s"])
    np.testing.assert_array_equal(chosen.requests["rounds"], fixed.requests["rounds"])


@pytest.mark.parametrize("hit", [0.2, 0.6, 1.0])
def test_goodput_weighs_the_rounds_without_a_proposal(run: Callable[..., Run], hit: float) -> None:
    """Only a share of n-gram's rounds pays for the wide pass: o + h V(γ) + (1 − h) T."""
    sets = (
        "speculation.method=ngram",
        "speculation.acceptance={alpha: 0.8}",
        f"speculation.draft_probability={hit}",
        "draft.step=0 ms",
        "target.round={linear: {base: 60 ms, per_token: 25 ms}}",
        "target.step=null",
        "workload.requests=30",
    )
    pass_s = (60 + 25 * np.arange(1, 10)) / 1000
    costs = round_costs(pass_s[0], pass_s[1:], 0.0)
    choices = np.arange(9)
    found = predict(0.8 ** np.arange(1.0, 9.0), choices, costs, draft_probability=hit)
    best = int(choices[np.argmax(found.speedup)])
    chosen = run("speculation.gamma=8", "speculation.policy=goodput", *sets)
    fixed = run(f"speculation.gamma={best}", *sets)
    np.testing.assert_array_equal(chosen.requests["finish_s"], fixed.requests["finish_s"])


def test_goodput_holds_a_choice(run: Callable[..., Run]) -> None:
    """A draft that costs per sequence pays alone, not in a batch of two; held, it goes on."""
    sets = (
        "speculation.gamma=4",
        "speculation.acceptance={alpha: 0.9}",
        "draft.step={linear: {base: 0 ms, per_sequence: 10 ms}}",
        "target.round={linear: {base: 50 ms, per_token: 12 ms}}",
        "target.step=null",
        "workload.arrivals={streams: 2}",
        "workload.requests=2",
        "workload.output_tokens={choice: [30]}",
        "scheduler.max_num_seqs=2",
    )
    free = run("speculation.policy=goodput", *sets)
    held = run("speculation.policy={goodput: {hold_rounds: 1000}}", *sets)
    gamma = [run(f"speculation.policy={{by_batch: [[1, 2, {g}]]}}", *sets) for g in range(5)]
    assert any(np.array_equal(held.requests["finish_s"], g.requests["finish_s"]) for g in gamma)
    assert free.rounds <= held.rounds
