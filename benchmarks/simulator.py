"""Speed of the simulator: `python benchmarks/simulator.py [NAME ...]`.

Each workload is simulated by specplan and, for a ratio that holds on any machine, by a reference
loop in this file: `numpy_steps` (one NumPy pass over the batch an engine step, as most Python
simulators work) or `simpy_processes` (a SimPy process an engine, a resource a GPU). Figures are per
second of wall clock and per second of processor time: the latter is what a busy machine leaves.
A figure beyond its limit is marked, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import simpy

from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from specplan.sim.records import Run

AZURE = Path(__file__).resolve().parents[2] / "shared/data/traces/AzureLLMInferenceTrace_conv.csv"
KEPT = np.array([1.0, 0.8, 0.6, 0.42, 0.273, 0.0])  # A_0 … A_γ, then 0: conditional .8 .75 .7 .65
W1 = (
    "target.round={linear: {base: 10 ms, per_token: 20 us}}",
    "target.prefill={per_token: 20 us}",
    "draft.step=0.5 ms",
    "speculation.gamma=4",
    "speculation.acceptance={conditional: [0.8, 0.75, 0.7, 0.65]}",
    "workload.arrivals={rate: 5/s}",
    "workload.prompt_tokens=512",
    "workload.output_tokens=128",
    "scheduler.max_num_seqs=128",
    "scheduler.prefill_chunk=512",
)
POOL = (
    *W1,
    "draft.placement=shared",
    "draft.transfer=0.1 ms",
    "draft.gpus=2",
    "cluster.replicas=4",
    "workload.arrivals={rate: 20/s}",
)


@dataclass(frozen=True)
class Speed:
    """One workload: how much was done, in how long, how fast the reference is, and the limits."""

    requests: int
    steps: int
    wall_s: float
    cpu_s: float
    reference_steps_per_s: float
    least_requests_per_s: float = 0.0
    least_steps_per_s: float = 0.0

    @property
    def met(self) -> bool:
        """Whether the limits hold, by processor time."""
        return (
            self.requests / self.cpu_s >= self.least_requests_per_s
            and self.steps / self.cpu_s >= self.least_steps_per_s
        )

    def line(self, name: str) -> str:
        """Print one row."""
        limits = []
        if self.least_requests_per_s:
            limits.append(f"{self.least_requests_per_s:,.0f} requests/s")
        if self.least_steps_per_s:
            limits.append(f"{self.least_steps_per_s:,.0f} steps/s")
        ratio = self.steps / self.cpu_s / self.reference_steps_per_s
        return (
            f"{name:10} {self.requests / self.wall_s:10,.0f} {self.requests / self.cpu_s:10,.0f}"
            f" {self.steps / self.wall_s:12,.0f} {self.steps / self.cpu_s:12,.0f}"
            f" {self.reference_steps_per_s:12,.0f} {ratio:8,.0f}x  {', '.join(limits)}"
            f"{'' if self.met else '  MISSED'}"
        )


def timed(sets: tuple[str, ...], repeats: int = 3) -> tuple[Run, float, float]:
    """Simulate several times; the run, and the least wall and processor seconds of its loop."""
    scenario = load("toy-20ms", sets)
    simulate(load("toy-20ms", (*sets, "workload.requests=20")))  # compiled before it is timed
    wall, cpu = [], []
    for _ in range(repeats):
        begun = time.process_time()
        run = simulate(scenario)
        cpu.append(time.process_time() - begun)  # with setting up and collecting the rows
        wall.append(run.loop_s)
    return run, min(wall), min(cpu)


def numpy_steps(rate: float, requests: int, seed: int = 1) -> float:
    """Simulate W1 with NumPy over the batch at every step; returns engine steps per CPU second."""
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / rate, requests))
    left = np.full(requests, 128)
    prompt = np.full(requests, 512)
    first_s, finish_s = np.full(requests, np.nan), np.full(requests, np.nan)
    running = np.zeros(0, np.int64)
    clock_s, arrived, steps = 0.0, 0, 0
    begun = time.process_time()
    while arrived < requests or len(running):
        if not len(running):
            clock_s = max(clock_s, arrival_s[arrived])
        room = 128 - len(running)
        until = min(int(np.searchsorted(arrival_s, clock_s, side="right")), arrived + room)
        running = np.concatenate([running, np.arange(arrived, until)])
        arrived = until
        chunk = np.minimum(prompt[running], 512)
        decoding = running[chunk == 0]
        g = np.minimum(4, left[decoding] - 1)
        kept = (rng.random(len(decoding))[:, None] < KEPT[1:5]).sum(axis=1)
        kept = np.minimum(kept, g)
        pass_s = (0.01 + 20e-6 * (g + 1).sum()) * (len(decoding) > 0)
        clock_s += pass_s + 0.5e-3 * g.max(initial=0) + 20e-6 * chunk.sum()
        filled = running[(chunk > 0) & (prompt[running] == chunk)]
        prompt[running] -= chunk
        left[decoding] -= kept + 1
        left[filled] -= 1
        first_s[filled] = clock_s
        ended = running[left[running] == 0]
        finish_s[ended] = clock_s
        running = running[left[running] > 0]
        steps += 1
    assert np.isfinite(finish_s).all()
    return steps / (time.process_time() - begun)


def simpy_processes(requests: int, seed: int = 1) -> float:
    """Simulate the pool with SimPy processes and resources; returns engine steps per CPU second."""
    rng = np.random.default_rng(seed)
    env = simpy.Environment()
    pool = simpy.Resource(env, capacity=2)
    queues: list[list[int]] = [[], [], [], []]
    woken = [env.event() for _ in queues]
    steps = 0

    def engine(number: int) -> Generator[simpy.Event, object, None]:
        nonlocal steps
        running: list[list[int]] = []  # [tokens left, prompt left]
        while True:
            running += [[128, 512] for _ in queues[number]]
            queues[number].clear()
            if not running:
                woken[number] = env.event()
                yield woken[number]
                continue
            deepest = max((min(4, left - 1) for left, prompt in running if not prompt), default=0)
            if deepest > 0:
                with pool.request() as turn:
                    yield turn
                    yield env.timeout(0.5e-3 * deepest)
                yield env.timeout(0.1e-3)
            tokens = prompts = 0
            for one in running:
                if one[1]:
                    prompts += one[1]
                    one[1] = 0
                    one[0] -= 1
                    continue
                g = min(4, one[0] - 1)
                luck, kept = rng.random(), 0
                while kept < g and luck < KEPT[kept + 1]:
                    kept += 1
                tokens += g + 1
                one[0] -= kept + 1
            yield env.timeout(0.01 * (tokens > 0) + 20e-6 * (tokens + prompts))
            running = [one for one in running if one[0]]
            steps += 1

    def arrivals() -> Generator[simpy.Event, object, None]:
        for request in range(requests):
            yield env.timeout(rng.exponential(1 / 20))
            queues[request % 4].append(request)
            if not woken[request % 4].triggered:
                woken[request % 4].succeed()

    for number in range(4):
        env.process(engine(number))
    env.process(arrivals())
    begun = time.process_time()
    env.run()
    return steps / (time.process_time() - begun)


def w1() -> Speed:
    """W1: a mean batch of about 3, 14 engine steps a request."""
    run, wall_s, cpu_s = timed((*W1, "workload.requests=100000"))
    return Speed(100_000, run.engine_steps, wall_s, cpu_s, numpy_steps(5, 1000), 100_000, 1_400_000)


def saturated() -> Speed:
    """W1 with more than the replica can take: a batch of 128."""
    run, wall_s, cpu_s = timed((*W1, "workload.arrivals={rate: 200/s}", "workload.requests=50000"))
    busy = np.arange(len(run.batch_time_s)) @ run.batch_time_s / run.batch_time_s.sum()
    assert busy >= 90
    return Speed(50_000, run.engine_steps, wall_s, cpu_s, numpy_steps(200, 3000), 50_000)


def azure() -> Speed:
    """The Azure conversation trace through four replicas with KV limits, chunks and γ 4."""
    sets = (
        *W1,
        f"workload.arrivals={{trace: {AZURE}}}",
        "workload.requests=null",
        "workload.prompt_tokens=trace",
        "workload.output_tokens=trace",
        "scheduler.max_num_batched_tokens=2048",
        "kv_cache={tokens: 60000}",
        "cluster.replicas=4",
    )
    run, wall_s, cpu_s = timed(sets)
    requests = len(run.requests["request"])
    return Speed(requests, run.engine_steps, wall_s, cpu_s, numpy_steps(5, 1000), requests)


def plain() -> Speed:
    """100,000 requests of 128 output tokens without prompts on one replica, in 5 s at most."""
    sets = (
        *W1,
        "workload.prompt_tokens=0",
        "workload.arrivals={rate: 8/s}",
        "workload.requests=100000",
    )
    run, wall_s, cpu_s = timed(sets)
    return Speed(100_000, run.engine_steps, wall_s, cpu_s, numpy_steps(8, 1000), 20_000)


def pool() -> Speed:
    """Four replicas that queue for two draft GPUs: a SimPy event a phase."""
    run, wall_s, cpu_s = timed((*POOL, "workload.requests=10000"))
    return Speed(
        10_000, run.engine_steps, wall_s, cpu_s, simpy_processes(2000), least_steps_per_s=100_000
    )


SPEEDS: dict[str, Callable[[], Speed]] = {
    "w1": w1,
    "saturated": saturated,
    "azure": azure,
    "plain": plain,
    "pool": pool,
}

# Name: requests, whether each one's row is kept, most megabytes of the whole process.
MEMORY = {"million": (1_000_000, True, 700.0), "stream": (10_000_000, False, 700.0)}


def simulate_for_memory(name: str) -> None:
    """Run in a process of its own: simulate, and print its largest size in MB."""
    requests, keep, _ = MEMORY[name]
    short = ("workload.output_tokens=8", "workload.arrivals={rate: 40/s}", "speculation.gamma=4")
    scenario = load("toy-20ms", (*W1, *short, f"workload.requests={requests}"))
    simulate(scenario, keep_requests=keep)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def megabytes(name: str) -> float:
    """Largest size of a process that runs one memory figure."""
    command = [sys.executable, __file__, "--memory", name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Run the named figures, or all of them."""
    parser = argparse.ArgumentParser(description="Speed figures of the simulator.")
    parser.add_argument("names", nargs="*", choices=[*SPEEDS, *MEMORY, []])
    parser.add_argument("--memory", choices=MEMORY, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.memory:
        simulate_for_memory(asked.memory)
        return 0
    missed = 0
    begun = time.process_time()
    sum(i for i in range(5_000_000))
    print(f"yardstick: five million additions in {time.process_time() - begun:.3f} CPU s")
    print(
        f"{'':10} {'requests/s':>10} {'per CPU s':>10} {'steps/s':>12} {'per CPU s':>12}"
        f" {'reference':>12} {'ratio':>9}  at least"
    )
    for name in asked.names or [*SPEEDS, *MEMORY]:
        if name in SPEEDS:
            if name == "azure" and not AZURE.exists():
                print(f"{name:10} left out: {AZURE} is absent")
                continue
            speed = SPEEDS[name]()
            missed += not speed.met
            print(speed.line(name), flush=True)
        else:
            size, most = megabytes(name), MEMORY[name][2]
            missed += size > most
            mark = "  MISSED" if size > most else ""
            requests = MEMORY[name][0]
            print(
                f"{name:10} {size:10,.0f} MB for {requests:,} requests, at most {most:,.0f}{mark}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
