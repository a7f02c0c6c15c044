"""Saturation is said of overload, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from specplan.scenarios.load import load
from specplan.sim.records import Run, queue_length, saturation
from specplan.sim.simulate import simulate

# One request is served in 10 ms on average (geometric rounds), one at a time: 100/s at most.
ONE_AT_A_TIME = [
    "speculation.method=none",
    "target.round=1 ms",
    "target.step=1 ms",
    "workload.output_tokens={uniform: [1, 19]}",
]


def run(arrivals: str, requests: int, seed: int, *sets: str) -> Run:
    workload = [f"workload.arrivals={arrivals}", f"workload.requests={requests}", f"seed={seed}"]
    return simulate(load("toy-20ms", [*ONE_AT_A_TIME, *workload, *sets]), keep_requests=False)


@pytest.mark.parametrize("load_", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("requests", [1000, 20_000])
def test_stable_loads_are_never_called_saturated(load_: float, requests: int) -> None:
    rate = f"{{rate: {100 * load_}/s}}"
    said = [run(rate, requests, seed).saturated for seed in range(1, 6)]
    assert sum(said) == 0


@pytest.mark.parametrize(("load_", "requests"), [(1.05, 20_000), (1.2, 2000), (1.5, 500), (4, 100)])
def test_overload_is_always_called_saturated(load_: float, requests: int) -> None:
    rate = f"{{rate: {100 * load_}/s}}"
    said = [run(rate, requests, seed).saturated for seed in range(1, 6)]
    assert all(said)


@pytest.mark.parametrize("seed", range(1, 6))
def test_bursts_that_drain_are_no_overload(seed: int) -> None:
    # 300/s for 1 s of every 5: three times too much for a second, 0.6 on average.
    made = run("{on_off: {rate: 300/s, on: 1 s, off: 4 s}}", 6000, seed)
    assert not made.saturated
    overloaded = run("{on_off: {rate: 300/s, on: 1 s, off: 1 s}}", 6000, seed)  # 1.5 on average
    assert overloaded.saturated


@pytest.mark.parametrize("seed", range(1, 6))
def test_bursty_gaps(seed: int) -> None:
    assert not run("{rate: 80/s, burstiness: 0.25}", 20_000, seed).saturated
    assert run("{rate: 120/s, burstiness: 0.25}", 20_000, seed).saturated


def test_batches_and_several_replicas() -> None:
    sets = ("scheduler.max_num_seqs=32", "cluster.replicas=2")  # 2 · 32 · 100/s at most
    assert not run("{rate: 6000/s}", 20_000, 1, *sets).saturated
    assert run("{rate: 7500/s}", 20_000, 1, *sets).saturated


def test_everything_at_once_and_closed_loops_have_no_load_to_exceed() -> None:
    assert not run("{rate: inf}", 500, 1).saturated
    assert not run("{streams: 50}", 500, 1, "scheduler.max_num_seqs=8").saturated


def test_queue_length_adds_replicas_up() -> None:
    samples = {
        "replica": np.array([0, 0, 1]),
        "time_s": np.array([1.0, 3.0, 2.0]),
        "waiting": np.array([4, 1, 7]),
    }
    time_s, waiting = queue_length(samples)
    assert time_s.tolist() == [1, 2, 3]
    assert waiting.tolist() == [4, 11, 8]
    assert not saturation(samples, 0.0, 3.0, arrivals=3)
