"""Where the draft runs: known cycle times, and one path against the other where both must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.queueing import two_resource_cycle_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

# Rounds that keep nothing: each commits one token, after one draft step and one pass.
BARREN = ("speculation.acceptance={alpha: 0}", "speculation.gamma=1", "workload.output_tokens=400")


def assert_same(one: Run, other: Run) -> None:
    """Two runs are equal to the last bit, request by request."""
    for name, column in one.requests.items():
        np.testing.assert_array_equal(column, other.requests[name], err_msg=name)
    assert (one.engine_steps, one.rounds) == (other.engine_steps, other.rounds)


@pytest.mark.parametrize("streams", [1, 2, 3, 5])
@pytest.mark.parametrize(("draft_ms", "verify_ms"), [(20, 100), (100, 20), (64, 64)])
def test_closed_cycle_of_a_shared_draft_pool(
    run: Callable[..., Run], streams: int, draft_ms: int, verify_ms: int
) -> None:
    """b streams, one draft GPU, one target GPU, no batching: min(b/(D + V), 1/max(D, V))."""
    done = run(
        *BARREN,
        "draft.placement=shared",
        "draft.transfer=0 ms",
        "draft.max_batch=1",
        f"draft.step={draft_ms} ms",
        f"target.round={verify_ms} ms",
        f"target.step={verify_ms} ms",
        f"cluster.replicas={streams}",
        f"cluster.engines_per_gpu={streams}",
        f"workload.arrivals={{streams: {streams}}}",
        f"workload.requests={streams}",
        "scheduler.max_num_seqs=1",
    )
    rate = float(two_resource_cycle_rate(streams, draft_ms / 1000, verify_ms / 1000))
    assert done.itl.quantile(0.5) == pytest.approx(streams / rate)  # one token a round
    warm_s = 2 * streams * (draft_ms + verify_ms) / 1000
    assert done.duration_s == pytest.approx(400 * streams / rate, abs=warm_s)
    busiest = "draft0" if draft_ms > verify_ms else "gpu0"
    if streams >= 3:
        assert done.phases[busiest]["idle"] <= warm_s


def test_a_pool_of_two_serves_twice(run: Callable[..., Run]) -> None:
    """Four streams, 100 ms of draft and 10 ms of a target of their own: 2 rounds in 100 ms."""
    done = run(
        *BARREN,
        "draft.placement=shared",
        "draft.transfer=0 ms",
        "draft.max_batch=1",
        "draft.gpus=2",
        "draft.step=100 ms",
        "target.round=10 ms",
        "target.step=10 ms",
        "cluster.replicas=4",
        "workload.arrivals={streams: 4}",
        "workload.requests=4",
    )
    assert done.itl.quantile(0.5) == pytest.approx(0.2)


def test_a_pool_that_batches_drafts_for_all_at_once(run: Callable[..., Run]) -> None:
    """Who queues while the pool is busy is drafted for together."""
    done = run(
        *BARREN,
        "draft.placement=shared",
        "draft.transfer=0 ms",
        "draft.step=100 ms",
        "target.round=10 ms",
        "target.step=10 ms",
        "cluster.replicas=4",
        "workload.arrivals={streams: 4}",
        "workload.requests=4",
    )
    # Two groups take turns on the draft GPU: 200 ms a round for everybody.
    assert done.itl.quantile(0.5) == pytest.approx(0.2)
    assert done.phases["draft0"]["draft"] == pytest.approx(399 * 2 * 0.1, abs=0.4)


LOADS = [
    ("workload.arrivals={rate: 2/s}", "workload.prompt_tokens={uniform: [1, 200]}"),
    ("workload.arrivals={interval: 70 ms}", "workload.output_tokens=5"),
    ("workload.arrivals={streams: 6, think_time: 50 ms}", "workload.timeout=3 s"),
    ("workload.arrivals={streams: 6}", "kv_cache={blocks: 14, block_tokens: 4, watermark: 0}"),
]


@pytest.mark.parametrize("load", LOADS)
def test_a_pool_with_one_replica_is_a_dedicated_gpu(
    run: Callable[..., Run], load: tuple[str, ...]
) -> None:
    """An event a phase, or the compiled loop over whole steps: the same moments."""
    sets = (
        "draft.transfer=1 ms",
        "draft.prefill=3 ms",
        "target.prefill={linear: {base: 0 ms, per_token: 0.1 ms}}",
        "scheduler.max_num_seqs=4",
        "workload.requests=400",
        "workload.output_tokens={uniform: [1, 30]}",
        *load,
    )
    pool, own = run(*sets, "draft.placement=shared"), run(*sets, "draft.placement=dedicated")
    assert_same(pool, own)
    assert pool.requests["status"].max() <= 1
    for phase in ("verify", "overhead"):
        assert pool.phases["replica0"][phase] == pytest.approx(own.phases["replica0"][phase])


@pytest.mark.parametrize("router", ["round_robin", "random"])
def test_contended_replicas_without_contention(run: Callable[..., Run], router: str) -> None:
    """As many draft GPUs as replicas: nobody waits for the pool."""
    sets = (
        "cluster.replicas=3",
        f"cluster.router={router}",
        "draft.transfer=1 ms",
        "workload.arrivals={rate: 2/s}",
        "workload.output_tokens={uniform: [1, 30]}",
        "scheduler.max_num_seqs=4",
        "workload.requests=300",
    )
    pool = run(*sets, "draft.placement=shared", "draft.gpus=3", "draft.max_batch=4")
    own = run(*sets, "draft.placement=dedicated")
    assert_same(pool, own)


def test_dedicated_round_is_draft_transfer_verify(run: Callable[..., Run]) -> None:
    done = run(*BARREN, "draft.placement=dedicated", "draft.transfer=7 ms", "workload.requests=3")
    assert done.itl.quantile(0.5) == pytest.approx(0.02 + 0.007 + 0.1)
    assert done.phases["draft0"]["draft"] == pytest.approx(3 * 399 * 0.02)
    assert done.phases["replica0"]["verify"] == pytest.approx(3 * 400 * 0.1)


@pytest.mark.parametrize(("draft_ms", "verify_ms"), [(20, 100), (100, 20), (64, 64)])
def test_ping_pong_keeps_the_busier_gpu_busy(
    run: Callable[..., Run], draft_ms: int, verify_ms: int
) -> None:
    """Two half batches: a closed cycle of two over the draft and the target GPU."""
    done = run(
        *BARREN,
        "draft.placement=dedicated",
        "draft.transfer=0 ms",
        "draft.ping_pong=true",
        f"draft.step={draft_ms} ms",
        f"target.round={verify_ms} ms",
        f"target.step={verify_ms} ms",
        "workload.arrivals={streams: 4}",
        "workload.requests=4",
        "scheduler.max_num_seqs=4",
    )
    rate = float(two_resource_cycle_rate(2, draft_ms / 1000, verify_ms / 1000))
    assert done.itl.quantile(0.5) == pytest.approx(2 / rate)
    assert done.batch_time_s[2] > 0.95 * done.batch_time_s.sum()  # two and two


@pytest.mark.parametrize("seats", [2, 3, 5])
def test_ping_pong_never_runs_more_than_max_num_seqs(run: Callable[..., Run], seats: int) -> None:
    done = run(
        "draft.placement=dedicated",
        "draft.transfer=0 ms",
        "draft.ping_pong=true",
        "workload.arrivals={rate: 1/s}",
        "workload.requests=60",
        f"scheduler.max_num_seqs={seats}",
    )
    assert done.samples["running"].max() == seats
    assert np.all(done.requests["status"] == 0)


@pytest.mark.parametrize(("draft_ms", "round_ms"), [(20, 100), (130, 130)])
def test_parallel_round_is_the_longer_of_both(
    run: Callable[..., Run], draft_ms: int, round_ms: int
) -> None:
    done = run(
        *BARREN,
        "draft.placement=parallel",
        f"draft.step={draft_ms} ms",
        "speculation.overhead=3 ms",
        "workload.requests=3",
    )
    assert done.itl.quantile(0.5) == pytest.approx(round_ms / 1000 + 0.003)
    # Nothing is ever kept: what was drafted ahead is thrown away with what was verified.
    assert done.wasted_draft_tokens == 2 * done.drafted_tokens


def test_engines_take_turns_on_one_gpu(run: Callable[..., Run]) -> None:
    """Three engines on a GPU, one stream each: a token every 3 T, and the GPU never idles."""
    done = run(
        "speculation.method=none",
        "cluster.replicas=3",
        "cluster.engines_per_gpu=3",
        "workload.arrivals={streams: 3}",
        "workload.requests=3",
    )
    assert done.itl.quantile(0.5) == pytest.approx(0.3)
    assert list(done.phases) == ["gpu0"]
    assert done.phases["gpu0"]["idle"] == pytest.approx(0.0, abs=1e-9)
    assert done.phases["gpu0"]["verify"] == pytest.approx(3 * 128 * 0.1)


ROUTERS = ("round_robin", "random", "least_outstanding", "power_of_two")


@pytest.mark.parametrize("router", ROUTERS)
def test_requests_that_never_meet_do_not_care_for_replicas(
    run: Callable[..., Run], router: str
) -> None:
    """Luck belongs to the request: where nobody waits, router and replicas change nothing."""
    sets = ("workload.arrivals={interval: 30 s}", "workload.requests=40")
    alone = run(*sets)
    several = run(*sets, "cluster.replicas=3", f"cluster.router={router}")
    for name in ("arrival_s", "first_token_s", "finish_s", "rounds"):
        np.testing.assert_array_equal(alone.requests[name], several.requests[name])
    if router == "least_outstanding":
        assert set(several.requests["replica"]) == {0}


def test_round_robin_replicas_are_independent_queues(run: Callable[..., Run]) -> None:
    """Deterministic requests of 4 s every 1.5 s over 3 replicas: each sees one every 4.5 s."""
    sets = ("speculation.method=none", "workload.output_tokens=40", "cluster.router=round_robin")
    done = run(
        *sets, "cluster.replicas=3", "workload.arrivals={interval: 1.5 s}", "workload.requests=60"
    )
    assert done.requests["replica"].tolist() == [i % 3 for i in range(60)]
    assert np.all(done.requests["admitted_s"] == done.requests["arrival_s"])


def test_least_outstanding_sees_steps_under_way_as_unfinished(run: Callable[..., Run]) -> None:
    """One token each, 100 ms: at 50 ms replica 0 is still busy, at 100 ms it is free again."""
    done = run(
        "speculation.method=none",
        "workload.output_tokens=1",
        "cluster.replicas=2",
        "workload.arrivals={interval: 50 ms}",
        "workload.requests=6",
    )
    assert done.requests["replica"].tolist() == [0, 1, 0, 1, 0, 1]


def test_power_of_two_balances_better_than_chance(run: Callable[..., Run]) -> None:
    sets = (
        "speculation.method=none",
        "workload.output_tokens=10",
        "cluster.replicas=4",
        "workload.arrivals={rate: 3.4/s}",
        "workload.requests=8000",
    )
    waits_s = {}
    for router in ROUTERS:
        done = run(*sets, f"cluster.router={router}").requests
        waits_s[router] = float((done["admitted_s"] - done["arrival_s"]).mean())
    assert waits_s["least_outstanding"] < waits_s["power_of_two"] < waits_s["random"]
    # random splitting of Poisson is Poisson: M/D/1 at ρ .85, W = ρS/(2(1 − ρ)).
    assert waits_s["random"] == pytest.approx(0.85 * 1.0 / (2 * 0.15), rel=0.15)


@pytest.mark.parametrize(("most", "turns"), [(1, 5), (2, 3), (3, 2), (5, 1), (8, 1)])
def test_a_batch_larger_than_a_draft_gpu_holds_is_drafted_for_in_turns(
    run: Callable[..., Run], most: int, turns: int
) -> None:
    """Five sequences, two draft steps of 20 ms each, and a pass of 100 ms."""
    done = run(
        "speculation.acceptance={alpha: 0}",
        "draft.placement=shared",
        "draft.transfer=0 ms",
        f"draft.max_batch={most}",
        "workload.arrivals={streams: 5}",
        "workload.requests=5",
        "scheduler.max_num_seqs=5",
    )
    assert done.itl.quantile(0.5) == pytest.approx(turns * 2 * 0.02 + 0.1)


def test_turns_of_a_draft_that_costs_by_the_sequence(run: Callable[..., Run]) -> None:
    """Price 4 ms + 2 ms a sequence: turns of 2, 2 and 1 cost 2 · (8 + 8 + 6) ms."""
    done = run(
        "speculation.acceptance={alpha: 0}",
        "draft.placement=shared",
        "draft.transfer=0 ms",
        "draft.max_batch=2",
        "draft.step={linear: {base: 4 ms, per_sequence: 2 ms}}",
        "workload.arrivals={streams: 5}",
        "workload.requests=5",
        "scheduler.max_num_seqs=5",
    )
    assert done.itl.quantile(0.5) == pytest.approx(0.044 + 0.1)
