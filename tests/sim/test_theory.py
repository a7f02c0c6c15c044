"""Simulation = theory, where theory is exact (MODEL.md §6, checks 1 to 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.queueing import pollaczek_khinchine_wait_s
from specplan.models.round_costs import round_costs
from specplan.models.rounds import finite_output, generation_s_moments, tokens_per_round

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

T, V, D = 0.1, 0.1, 0.02  # toy-20ms


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and 4.5 standard errors: a right program fails once in 100,000 such tests."""
    return float(values.mean()), 4.5 * float(values.std(ddof=1)) / np.sqrt(len(values))


# Rounds for n tokens at γ 2, α .5: issue #2.
@pytest.mark.parametrize(
    ("n", "rounds"),
    [(1, 1.0), (2, 1.5), (3, 2.0), (10, 6.041015625), (128, 73.46938775510203)],
)
def test_rounds_of_finite_outputs(run: Callable[..., Run], n: int, rounds: float) -> None:
    made = run("workload.requests=8000", f"workload.output_tokens={n}").requests["rounds"]
    mean, error = interval(made)
    assert mean == pytest.approx(rounds, abs=max(error, 1e-12))


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_law_of_rounds(run: Callable[..., Run], n: int) -> None:
    """The whole law, by the recursion P(r | L) = Σ_k P(k) P(r − 1 | L − k − 1)."""
    kept = np.array([0.5, 0.25, 0.25])  # γ 2, α .5

    def law(left: int) -> np.ndarray:
        out = np.zeros(n + 1)
        if left == 0:
            out[0] = 1.0
            return out
        g = min(2, left - 1)
        chances = [*kept[:g], kept[g:].sum()]
        for k, chance in enumerate(chances):
            out[1:] += chance * law(left - k - 1)[:-1]
        return out

    requests = 40_000
    made = run(f"workload.requests={requests}", f"workload.output_tokens={n}").requests["rounds"]
    seen, expected = np.bincount(made, minlength=n + 1) / requests, law(n)
    assert np.all(seen[expected == 0] == 0)
    assert np.all(np.abs(seen - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / requests))


LISTS = [(2, (0.5, 0.5)), (4, (0.85, 0.78, 0.72, 0.65)), (5, (0.59, 0.64, 0.68, 0.71, 0.74))]


@pytest.mark.parametrize(("gamma", "conditional"), LISTS)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_moments_of_the_generation_time(
    run: Callable[..., Run], gamma: int, conditional: tuple[float, ...], n: int
) -> None:
    done = run(
        f"speculation.gamma={gamma}",
        f"speculation.acceptance={{conditional: {list(conditional)}}}",
        "target.round={linear: {base: 90 ms, per_token: 4 ms}}",
        "speculation.overhead=3 ms",
        "workload.requests=8000",
        f"workload.output_tokens={n}",
    ).requests
    spent_s = done["finish_s"] - done["arrival_s"]
    costs = round_costs(T, 0.09 + 0.004 * np.arange(2, gamma + 2), D, overhead_s=0.003)
    first, second = generation_s_moments(np.cumprod(conditional), gamma, n, costs)
    mean, error = interval(spent_s)
    assert mean == pytest.approx(float(first), abs=max(error, 1e-9))
    mean, error = interval(spent_s**2)
    assert mean == pytest.approx(float(second), abs=max(error, 1e-9))


def queue(
    run: Callable[..., Run],
    seed: int,
    load: float,
    gamma: int,
    conditional: tuple[float, ...],
    n: int,
) -> tuple[float, float, float]:
    """Mean wait of 200,000 requests in M/G/1, its standard error, and Pollaczek–Khinchine's.

    What the run's own mean service and gap explain is taken out of the mean (control variates).
    """
    first, second = generation_s_moments(np.cumprod(conditional), gamma, n, round_costs(T, V, D))
    rate = load / float(first)
    done = run(
        f"seed={seed}",
        f"speculation.gamma={gamma}",
        f"speculation.acceptance={{conditional: {list(conditional)}}}",
        f"workload.arrivals={{rate: {rate!r}/s}}",
        "workload.requests=200000",
        f"workload.output_tokens={n}",
    ).requests
    waits_s = done["admitted_s"] - done["arrival_s"]
    served_s = done["finish_s"] - done["admitted_s"]
    gaps_s = np.diff(done["arrival_s"], prepend=0.0)
    # Request by request: Lindley's recursion, w' = max(0, w + s − a).
    steps = served_s[:-1] - gaps_s[1:]
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    assert waits_s == pytest.approx(walk - np.minimum.accumulate(walk), abs=1e-5)
    parts = [column.reshape(100, -1).mean(axis=1) for column in (waits_s, served_s, gaps_s)]
    knowns = np.column_stack([np.ones(100), parts[1] - float(first), parts[2] - 1 / rate])
    knowns = knowns[:, np.ptp(knowns, axis=0) + (np.arange(3) == 0) > 1e-9]
    fit, *_ = np.linalg.lstsq(knowns, parts[0])
    residual = parts[0] - knowns @ fit
    spread = np.linalg.inv(knowns.T @ knowns)[0, 0] * (residual @ residual) / (100 - len(fit))
    exact_s = float(pollaczek_khinchine_wait_s(rate, first, second))
    return float(fit[0]), float(np.sqrt(spread)), exact_s


# Mean wait in M/G/1 with exact service moments: issues #2 and #3.
@pytest.mark.parametrize(
    ("gamma", "conditional", "n"),
    [(2, (0.5, 0.5), 6), (4, (0.9, 0.5, 0.7, 0.2), 9), (1, (0.8,), 3), (0, (0.5,), 2)],
)
@pytest.mark.parametrize("load", [0.5, 0.7, 0.8, 0.9])
def test_pollaczek_khinchine(
    run: Callable[..., Run], gamma: int, conditional: tuple[float, ...], n: int, load: float
) -> None:
    mean_s, error_s, exact_s = queue(run, 1, load, gamma, conditional, n)
    assert mean_s == pytest.approx(exact_s, abs=4.5 * error_s)


@pytest.mark.parametrize(("load", "seeds"), [(0.5, 2), (0.8, 8)])
def test_pollaczek_khinchine_within_two_percent(
    run: Callable[..., Run], load: float, seeds: int
) -> None:
    """Pooled seeds, for at ρ .8 even 200,000 requests scatter by 1.4 %: 2 % of one is luck."""
    found = np.array([queue(run, s, load, 2, (0.5, 0.5), 6) for s in range(1, seeds + 1)])
    exact_s = float(found[0, 2])
    assert 3 * np.sqrt((found[:, 1] ** 2).sum()) / seeds < 0.02 * exact_s  # 2 % is 3 errors or more
    assert float(found[:, 0].mean()) == pytest.approx(exact_s, rel=0.02)


@pytest.mark.parametrize("streams", [1, 2, 7])
def test_streams_at_the_round_time_over_tau(run: Callable[..., Run], streams: int) -> None:
    """b streams, cost independent of b: each at R/τ, and no stream waits for another."""
    n = 400
    done = run(
        f"workload.arrivals={{streams: {streams}}}",
        f"scheduler.max_num_seqs={streams}",
        f"workload.requests={600 * streams}",
        f"workload.output_tokens={n}",
    ).requests
    assert np.array_equal(done["admitted_s"], done["arrival_s"])
    mean, error = interval((done["finish_s"] - done["arrival_s"]) / n)
    exact = finite_output([0.5, 0.25], 2, n)
    assert float(tokens_per_round([0.5, 0.25])) == 1.75
    # A batch of unequal widths costs what its widest sequence does: a last token at γ = 0 drafts
    # along. So one stream is exact, and several are within one draft round of the asymptote.
    assert mean == pytest.approx(0.14 / 1.75, abs=error + 0.14 * 2 / n)
    if streams == 1:
        seconds = float(exact.rounds) * V + float(exact.drafted_tokens) * D
        assert mean == pytest.approx(seconds / n, abs=error)


def test_perfect_draft(run: Callable[..., Run]) -> None:
    """α = 1: ⌊(n − 1)/(γ + 1)⌋ full rounds and one that is clipped."""
    made = run(
        "speculation.acceptance={alpha: 1}", "speculation.gamma=3", "workload.output_tokens=10"
    )
    assert set(made.requests["rounds"]) == {3}  # 4 + 4 + 2
    assert set(made.requests["drafted_tokens"]) == {3 + 3 + 1}
    assert made.wasted_draft_tokens == 0
    assert made.wasted_draft_s == 0.0


def test_useless_draft(run: Callable[..., Run]) -> None:
    """α = 0: a round a token, everything drafted is waste, g = min(γ, left − 1)."""
    made = run(
        "speculation.acceptance={alpha: 0}", "speculation.gamma=3", "workload.output_tokens=10"
    )
    assert set(made.requests["rounds"]) == {10}
    assert set(made.requests["drafted_tokens"]) == {7 * 3 + 2 + 1}
    assert made.accepted_tokens == 0
    assert made.wasted_draft_tokens == made.drafted_tokens


def test_one_output_token_is_not_speculated(run: Callable[..., Run]) -> None:
    made = run("workload.output_tokens=1", "target.round=150 ms", "workload.requests=50")
    assert made.drafted_tokens == 0
    assert made.requests["finish_s"] - made.requests["arrival_s"] == pytest.approx(T)


def test_free_draft(run: Callable[..., Run]) -> None:
    made = run("draft.step=0 ms", "workload.requests=2000")
    assert made.phases["replica0"]["draft"] == 0.0
    assert made.wasted_draft_s == 0.0
    spent_s = made.requests["finish_s"] - made.requests["arrival_s"]
    assert spent_s == pytest.approx(made.requests["rounds"] * V)


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("workload.arrivals={rate: 3/s}", "scheduler.max_num_seqs=16", "workload.prompt_tokens=100",
         "target.prefill={linear: {base: 1 ms, per_token: 10 us}}", "draft.prefill=5 ms"),
        ("draft.placement=dedicated", "draft.transfer=1 ms", "draft.ping_pong=true",
         "workload.arrivals={streams: 5}", "scheduler.max_num_seqs=4"),
        ("draft.placement=shared", "draft.transfer=1 ms", "cluster.replicas=2"),
        ("draft.placement=parallel", "speculation.policy=goodput"),
        ("kv_cache={memory: 1 MiB, bytes_per_token: 1 KiB, draft_weights: 0.5 MiB}",),
    ],
)  # fmt: skip
def test_gamma_zero_is_the_baseline(run: Callable[..., Run], extra: tuple[str, ...]) -> None:
    """γ = 0 and method none: bit for bit the same run, whatever else is said about the draft."""
    off = ("speculation.overhead=3 ms", "workload.requests=300", *extra)
    zero, none = run("speculation.gamma=0", *off), run("speculation.method=none", *off)
    for name, column in zero.requests.items():
        np.testing.assert_array_equal(column, none.requests[name], err_msg=name)
    assert zero.phases == none.phases
    assert zero.engine_steps == none.engine_steps
    assert zero.phases["replica0"]["overhead"] == 0.0
