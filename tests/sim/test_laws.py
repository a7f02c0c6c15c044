"""What holds on every run: conservation, Little's law, monotone luck, the KV cache's blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run

PROMPTS = ("workload.prompt_tokens={uniform: [1, 90]}", "target.prefill={per_token: 0.5 ms}")
OPEN = ("workload.arrivals={rate: 1.2/s}", "scheduler.max_num_seqs=6", "workload.requests=400")
CLOSED = ("workload.arrivals={streams: 7}", "scheduler.max_num_seqs=6", "workload.requests=400")
LENGTHS = ("workload.output_tokens={uniform: [1, 20]}",)
KINDS = {
    "closed": (*CLOSED, *LENGTHS),
    "think": (*CLOSED, *LENGTHS, "workload.arrivals={streams: 7, think_time: 1 s}"),
    "poisson": (*OPEN, *LENGTHS, "speculation.overhead=2 ms"),
    "bursty": (*OPEN, *LENGTHS, *PROMPTS, "workload.arrivals={rate: 1/s, burstiness: 0.3}"),
    "chunked": (*OPEN, *LENGTHS, *PROMPTS, "scheduler.max_num_batched_tokens=40"),
    "whole": (*OPEN, *LENGTHS, *PROMPTS, "scheduler.chunked_prefill=false"),
    "prefill_first": (*OPEN, *LENGTHS, *PROMPTS, "scheduler.prefill_first=true"),
    "ngram": (*OPEN, *LENGTHS, "speculation.method=ngram", "draft.step=0 ms",
              "speculation.draft_probability=0.4"),
    "one_pass": (*OPEN, *LENGTHS, "speculation.method=one_pass"),
    "heuristic": (*OPEN, *LENGTHS, "speculation.policy={hf_heuristic: {max: 6}}"),
    "goodput": (*OPEN, *LENGTHS, "speculation.policy=goodput"),
    "stop": (*OPEN, *LENGTHS,
             "speculation.confidence_stop={if_accepted: 0.1, if_rejected: 0.6}"),
    "replicas": (*OPEN, *LENGTHS, "cluster.replicas=3", "workload.arrivals={rate: 3/s}"),
    "dedicated": (*OPEN, *LENGTHS, *PROMPTS, "draft.placement=dedicated", "draft.transfer=3 ms"),
    "parallel": (*OPEN, *LENGTHS, *PROMPTS, "draft.placement=parallel"),
    "shared": (*OPEN, *LENGTHS, *PROMPTS, "draft.placement=shared", "draft.transfer=3 ms",
               "cluster.replicas=3", "workload.arrivals={rate: 3/s}"),
    "turns": (*OPEN, *LENGTHS, *PROMPTS, "cluster.replicas=2", "cluster.engines_per_gpu=2"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_conservation(run: Callable[..., Run], kind: str) -> None:
    done = run(*KINDS[kind])
    requests = done.requests
    assert np.all(requests["status"] == 0)
    # Tokens: every round commits what it keeps and one more; a prefill commits one.
    by_prefill = (requests["prompt_tokens"] > 0).astype(int)
    committed = requests["rounds"] + requests["accepted_tokens"] + by_prefill
    np.testing.assert_array_equal(committed, requests["output_tokens"])
    assert done.second_tokens.sum() == requests["output_tokens"].sum()
    for name in ("rounds", "drafted_tokens", "accepted_tokens"):
        assert getattr(done, name) == requests[name].sum()
    # Chunks: one a pass that commits, and a gap between each and the next.
    assert done.itl.count == (requests["rounds"] + by_prefill - 1).sum()
    lasted_s = requests["finish_s"] - requests["first_token_s"]
    assert done.itl.sum == pytest.approx(lasted_s.sum())
    # Little's law without an "in the mean": ∫ running dt = Σ time in service.
    served_s = (requests["finish_s"] - requests["admitted_s"]).sum()
    batches = np.arange(len(done.batch_time_s))
    assert batches @ done.batch_time_s == pytest.approx(served_s)
    assert np.all(requests["admitted_s"] >= requests["arrival_s"])
    assert np.all(requests["first_token_s"] > requests["admitted_s"])
    # Work: what GPUs did, and idled, is the whole run.
    for phases in done.phases.values():
        assert sum(phases.values()) == pytest.approx(done.duration_s)
        assert min(phases.values()) >= 0
    assert done.wasted_draft_s <= sum(p["draft"] for p in done.phases.values()) + 1e-9


@pytest.mark.parametrize("kind", ["closed", "poisson", "chunked", "prefill_first", "replicas"])
def test_phases_are_the_busy_time(run: Callable[..., Run], kind: str) -> None:
    """Where phases go one after the other, steps and phases take the same time, to rounding."""
    done = run(*KINDS[kind])
    busy_s = sum(sum(p.values()) - p["idle"] for p in done.phases.values())
    assert done.batch_time_s.sum() == pytest.approx(busy_s)


def test_no_gpu_idles_while_somebody_waits(run: Callable[..., Run]) -> None:
    """Work conservation: in a closed loop without pauses nothing idles at all."""
    done = run(*KINDS["closed"])
    assert done.phases["replica0"]["idle"] == pytest.approx(0, abs=1e-6)


def test_littles_law_of_the_queue(run: Callable[..., Run]) -> None:
    """L = λW, the queue measured at the steps' ends: samples of a long run, thinned."""
    done = run(
        "workload.arrivals={rate: 2/s}", "workload.output_tokens=4", "workload.requests=60000"
    )
    waits_s = done.requests["admitted_s"] - done.requests["arrival_s"]
    length = waits_s.sum() / done.duration_s
    # Steps end at random moments of busy periods: weigh each sample with the share of busy time.
    busy = done.batch_time_s.sum() / done.duration_s
    assert done.samples["waiting"].mean() * busy == pytest.approx(length, rel=0.15)


# Monotone in luck

chances = st.lists(st.floats(0, 1), min_size=1, max_size=5)


@settings(max_examples=60)
@given(chances, st.data())
def test_more_acceptance_never_adds_a_round(lower: list[float], data: st.DataObject) -> None:
    """For any conditional lists, falling or not, position by position one above the other."""
    higher = [data.draw(st.floats(chance, 1)) for chance in lower]
    hit = data.draw(st.floats(0, 1))
    sets = (
        "workload.requests=40",
        "workload.output_tokens={uniform: [1, 60]}",
        f"seed={data.draw(st.integers(0, 2**40))}",
        f"speculation.gamma={len(lower)}",
    )
    higher_hit = data.draw(st.floats(hit, 1))
    few, many = (
        simulate(
            load(
                "toy-20ms",
                (
                    *sets,
                    f"speculation.draft_probability={chance!r}",
                    f"speculation.acceptance={{conditional: {listed}}}",
                ),
            )
        )
        for chance, listed in ((hit, lower), (higher_hit, higher))
    )
    assert np.all(many.requests["rounds"] <= few.requests["rounds"])


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.data())
def test_a_deeper_draft_never_adds_a_round(listed: list[float], data: st.DataObject) -> None:
    shallow = data.draw(st.integers(0, len(listed) - 1))
    sets = (
        "workload.requests=40",
        "workload.output_tokens={uniform: [1, 60]}",
        f"seed={data.draw(st.integers(0, 2**40))}",
        f"speculation.acceptance={{conditional: {listed}}}",
    )
    less = simulate(load("toy-20ms", (*sets, f"speculation.gamma={shallow}")))
    more = simulate(load("toy-20ms", (*sets, f"speculation.gamma={len(listed)}")))
    assert np.all(more.requests["rounds"] <= less.requests["rounds"])


@pytest.mark.parametrize(
    "other",
    [
        ("scheduler.max_num_seqs=9",),
        ("workload.arrivals={rate: 0.1/s}",),
        ("cluster.replicas=3",),
        ("draft.step=70 ms", "target.round=300 ms"),
        ("draft.placement=shared", "draft.transfer=0 ms", "cluster.replicas=2"),
    ],
)
def test_luck_depends_on_nothing_else(run: Callable[..., Run], other: tuple[str, ...]) -> None:
    sets = ("workload.requests=200", "workload.arrivals={streams: 5}")
    one, another = run(*sets), run(*sets, *other)
    np.testing.assert_array_equal(one.requests["rounds"], another.requests["rounds"])
    np.testing.assert_array_equal(
        one.requests["accepted_tokens"], another.requests["accepted_tokens"]
    )


def test_seeds(run: Callable[..., Run]) -> None:
    one, same, other = run("seed=5"), run("seed=5"), run("seed=6")
    np.testing.assert_array_equal(one.requests["finish_s"], same.requests["finish_s"])
    assert not np.array_equal(one.requests["rounds"], other.requests["rounds"])
    # Neighbouring seeds and requests have unrelated luck.
    pair = np.corrcoef(one.requests["rounds"], other.requests["rounds"])[0, 1]
    assert abs(pair) < 4.5 / np.sqrt(1000)


# KV blocks

tight = st.fixed_dictionaries(
    {
        "workload.arrivals": st.sampled_from(
            ["{streams: 9}", "{rate: inf}", "{rate: 3/s}", "{interval: 100 ms}"]
        ),
        "workload.prompt_tokens": st.sampled_from(["0", "{uniform: [1, 60]}", "33"]),
        "workload.output_tokens": st.sampled_from(["{uniform: [1, 40]}", "17"]),
        "speculation.gamma": st.integers(0, 5),
        "scheduler.chunked_prefill": st.sampled_from(["true", "false"]),
        "scheduler.prefill_first": st.sampled_from(["true", "false"]),
        "scheduler.max_num_seqs": st.integers(2, 8),
        "scheduler.max_num_batched_tokens": st.integers(6, 70),
        "cluster.replicas": st.integers(1, 2),
        "workload.timeout": st.sampled_from(["null", "2 s", "20 s"]),
        "seed": st.integers(0, 1000),
        "draft.placement": st.sampled_from(["colocated", "dedicated", "shared"]),
    }
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(tight, st.integers(1, 9), st.integers(1, 30), st.floats(0, 0.3), st.booleans())
def test_kv_blocks_are_conserved(
    drawn: dict[str, object], block_tokens: int, spare: int, watermark: float, ping_pong: bool
) -> None:
    """Whatever the pressure: no block lost at any step (checked inside), and everybody ends."""
    pair = ping_pong and drawn["draft.placement"] == "dedicated"
    blocks = -(-(60 + 40 + 5) // block_tokens) + spare
    if drawn["scheduler.chunked_prefill"] == "false":
        drawn["scheduler.max_num_batched_tokens"] = 66
    run = simulate(
        load(
            "toy-20ms",
            (
                *(f"{name}={value}" for name, value in drawn.items()),
                f"kv_cache={{blocks: {blocks}, block_tokens: {block_tokens}, "
                f"watermark: {watermark!r}}}",
                f"draft.ping_pong={str(pair).lower()}",
                "draft.transfer=1 ms",
                "target.prefill={per_token: 1 ms}",
                "speculation.acceptance={alpha: 0.7}",
                "workload.requests=40",
            ),
        ),
        check_blocks=True,
    )
    done = run.requests
    assert set(done["status"]) <= {0, 1}
    assert run.samples["kv_blocks"].max() <= blocks
    if drawn["workload.timeout"] == "null":
        assert np.all(done["status"] == 0)
        # A recompute makes a token without a round.
        extra = done["output_tokens"] - done["rounds"] - done["accepted_tokens"]
        by_prefill = (done["prompt_tokens"] > 0).astype(int)
        assert np.all((by_prefill <= extra) & (extra <= by_prefill + done["preemptions"]))
    assert run.preemptions == done["preemptions"].sum()
