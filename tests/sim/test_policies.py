"""Who chooses γ: chains, tables and the best γ of the cost model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specplan.models.adaptive import adaptive_gamma
from specplan.models.round_costs import round_costs
from specplan.models.speedup import predict
from specplan.scenarios.closed_form import predict as closed_form
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario
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


# A step of 100 ms for every γ, rounds that keep nothing: the batch does not depend on the policy.
SAME_STEPS = (
    "draft.step=0 ms",
    "speculation.acceptance={alpha: 0}",
    "speculation.gamma=1",
    "workload.prompt_tokens=0",
    "workload.output_tokens=trace",
    "scheduler.max_num_seqs=64",
)


def batches(joins: list[int], lengths: list[int]) -> tuple[list[int], list[int]]:
    """Sequences in every step, and those that may still draft: with more than one token left."""
    steps = range(max(a + n for a, n in zip(joins, lengths, strict=True)))
    pairs = list(zip(joins, lengths, strict=True))
    return (
        [sum(a <= k < a + n for a, n in pairs) for k in steps],
        [sum(a <= k < a + n - 1 for a, n in pairs) for k in steps],
    )


def triggered(sizes: list[int], limit: int, hysteresis: int, patience: int) -> list[bool]:
    """Switch as a Schmitt trigger does: off above the limit, on at limit − hysteresis or fewer."""
    on, wanted, asked, states = True, True, 0, []
    for step, size in enumerate(sizes):
        if size > limit:
            wanted = False
        elif size <= limit - hysteresis:
            wanted = True
        asked = 0 if wanted == on else asked + 1
        if step == 0 or asked >= patience:
            on, asked = wanted, 0
        states.append(on)
    return states


@settings(max_examples=25)
@given(
    late=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), max_size=12),
    limit=st.integers(1, 8),
    data=st.data(),
)
def test_a_switch_with_hysteresis_and_patience_is_a_schmitt_trigger(
    run: Callable[..., Run], late: list[tuple[int, int]], limit: int, data: st.DataObject
) -> None:
    hysteresis, patience = data.draw(st.integers(0, limit - 1)), data.draw(st.integers(1, 5))
    late = sorted(late)
    joins, lengths = [0, *[k for k, _ in late]], [120, *[n for _, n in late]]
    sizes, drafting = batches(joins, lengths)
    states = triggered(sizes, limit, hysteresis, patience)
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace.csv")
        at_s = [0.0, *[(k - 0.5) * 0.1 for k, _ in late]]  # half a step before the one they join
        lines = [f"{at:.3f},1,{n}" for at, n in zip(at_s, lengths, strict=True)]
        trace.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines]) + "\n")
        done = run(
            *SAME_STEPS,
            f"workload.arrivals={{trace: {trace}}}",
            f"workload.requests={len(joins)}",
            f"speculation.policy={{off_above: {limit}, hysteresis: {hysteresis}, "
            f"patience: {patience}}}",
        )
    assert done.engine_steps == len(sizes)
    expected = sum(n for n, on in zip(drafting, states, strict=True) if on)
    assert done.drafted_tokens == expected


def test_hysteresis_holds_at_every_limit_of_a_schedule(run: Callable[..., Run]) -> None:
    """Six sequences of 10, 20, … 60 tokens, a token a step: one fewer every ten steps."""
    rows = "[[1, 2, 4], [3, 4, 2], [5, 64, 0]]"
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace.csv")
        lines = [f"0.0,1,{10 * i}" for i in range(1, 7)]
        trace.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines]) + "\n")
        done = {
            width: run(
                *SAME_STEPS,
                "speculation.gamma=4",
                f"workload.arrivals={{trace: {trace}}}",
                "workload.requests=6",
                f"speculation.policy={{by_batch: {rows}, hysteresis: {width}}}",
            )
            for width in (0, 1)
        }
    # Decodes 6 5 4 3 2 1 for ten steps each; γ without and with hysteresis 1:
    for width, gammas in ((0, [0, 0, 2, 2, 4, 4]), (1, [0, 0, 0, 2, 2, 4])):
        left = {i: 10 * i for i in range(1, 7)}
        expected = 0
        for step in range(60):
            for i in [i for i in left if left[i]]:
                expected += min(gammas[step // 10], left[i] - 1)
                left[i] -= 1
        assert done[width].drafted_tokens == expected


def test_a_switch_is_a_schedule_of_two_rows(run: Callable[..., Run]) -> None:
    sets = ("workload.arrivals={rate: 8/s}", "workload.requests=200", "scheduler.max_num_seqs=16")
    switch = run("speculation.policy={off_above: 4}", *sets)
    rows = run("speculation.policy={by_batch: [[1, 4, 2], [5, 16, 0]]}", *sets)
    np.testing.assert_array_equal(switch.requests["finish_s"], rows.requests["finish_s"])


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("{off_above: 8, hysteresis: 8}", "hysteresis of 8 below a limit of 8 is never reached"),
        ("{goodput: {}, hysteresis: 2}", "hysteresis does not apply to goodput"),
        ("{hf_constant: {}, patience: 2}", "patience does not apply to hf_constant"),
    ],
)
def test_hysteresis_where_it_means_nothing(
    toy: Callable[..., Scenario], policy: str, says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        toy(f"speculation.policy={policy}")


@pytest.mark.parametrize(("streams", "factor"), [(2, 1.066), (189, 1.216)])
def test_speculation_that_drafts_nothing_costs_its_factor(
    run: Callable[..., Run], toy: Callable[..., Scenario], streams: int, factor: float
) -> None:
    """vllm-project/vllm#49548: K = 0 throughout, and passes 6.6 and 21.6 % slower."""
    sets = (
        f"workload.arrivals={{streams: {streams}}}",
        f"workload.requests={streams}",
        f"scheduler.max_num_seqs={streams}",
        "scheduler.max_num_batched_tokens=8192",
    )
    never = ("speculation.policy={by_batch: [[1, 1, 0]]}", f"speculation.enabled_factor={factor}")
    off = run(*sets, "speculation.method=none", *never[1:])
    on = run(*sets, *never)
    assert on.duration_s / off.duration_s == pytest.approx(factor)
    assert on.engine_steps == off.engine_steps
    assert float(closed_form(toy(*sets, *never)).speedup) == pytest.approx(1 / factor)


def test_the_factor_is_on_every_pass_of_a_round(
    run: Callable[..., Run], toy: Callable[..., Scenario]
) -> None:
    """MODEL.md § 3: τ 1.75, R = 2 · 20 + 1.25 · 100 ms."""
    sets = ("speculation.enabled_factor=1.25", "workload.output_tokens=1000")
    predicted = closed_form(toy(*sets))
    assert float(predicted.speedup) == pytest.approx(1.75 * 100 / (40 + 125))
    done = run(*sets)
    assert done.phases["replica0"]["verify"] == pytest.approx(0.125 * done.rounds)
