"""Print the speed figures: `python benchmarks/run.py [NAME ...]`, or `make bench`.

Each figure is printed in absolute terms and as a ratio to a reference loop timed in the same run,
so that figures from different machines can be compared. Limits are those of the issues; a figure
beyond its limit is marked, and the exit code is 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCE_STEPS = 5_000_000


@dataclass(frozen=True)
class Figure:
    """One measured figure: seconds, how much work was done in them, and the limit."""

    seconds: float
    amount: float = 1.0
    unit: str = "s"
    limit: float | None = None

    @property
    def value(self) -> float:
        """Seconds, or work per second where there is a unit of work."""
        return self.seconds if self.unit == "s" else self.amount / self.seconds

    @property
    def met(self) -> bool:
        """Whether the limit holds."""
        if self.limit is None:
            return True
        return self.value <= self.limit if self.unit == "s" else self.value >= self.limit


def reference_s() -> float:
    """Time five million additions in the interpreter: the yardstick of this machine, in s."""
    begun = time.perf_counter()
    total = 0
    for i in range(REFERENCE_STEPS):
        total += i
    return time.perf_counter() - begun


def process_s(*arguments: str, repeats: int = 5) -> float:
    """Take the fastest of several fresh processes, in s."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begun)
    return min(times)


def command(*arguments: str) -> tuple[str, ...]:
    """Spell a specplan command as the installed script runs it."""
    return ("-c", "from specplan.cli import main; main()", *arguments)


def interpreter() -> Figure:
    """Start Python and leave: what no command can be faster than."""
    return Figure(process_s("-c", "pass"))


def help_page() -> Figure:
    """`specplan --help`."""
    return Figure(process_s(*command("--help")), limit=0.25)


def predict() -> Figure:
    """`specplan predict toy-20ms`, warm."""
    return Figure(process_s(*command("predict", "toy-20ms")), limit=0.6)


def simulation() -> Figure:
    """Loop time of 100,000 requests of 128 output tokens on one replica."""
    from specplan import load, simulate

    # Poisson below saturation: a batch of about six, where rounds of several requests overlap.
    sets = (
        "target.round=10 ms", "target.step=10 ms", "draft.step=1 ms", "scheduler.max_num_seqs=64",
        "workload.arrivals.rate=8/s", "workload.output_tokens=128",
    )  # fmt: skip
    simulate(load("toy-20ms", (*sets, "workload.requests=100")))  # compiled before it is timed
    run = simulate(load("toy-20ms", (*sets, "workload.requests=100000")))
    return Figure(run.loop_s, limit=5.0)


def grid() -> Figure:
    """Closed form over a million points of draft step × verify cost, one call."""
    from specplan.models.round_costs import round_costs
    from specplan.models.speedup import predict as closed_form

    draft_s = np.linspace(0.005, 0.05, 1000)[:, None]
    verify_s = np.linspace(0.08, 0.2, 1000)[None, :, None]
    costs = round_costs(0.1, verify_s, draft_s)
    lists = 0.7 ** np.arange(1, 9)
    begun = time.perf_counter()
    points = closed_form(lists, 4, costs).speedup.size
    return Figure(time.perf_counter() - begun, points, "points/s", 1e6)


def roofline() -> Figure:
    """Roofline cost of a mixture of experts over batch × width × context, one call."""
    from specplan.models import cost
    from specplan.models.hardware import Model
    from specplan.models.layers import Attention, Layer, Mlp
    from specplan.scenarios.gpus import find_gpu

    layers = (Layer(Attention(32, 4, 128), Mlp(0, 128, 8, 768), 48),)  # Qwen3-30B-A3B
    priced = cost.roofline(find_gpu("h100-sxm"), Model("moe", 2048, 151936, layers))
    batch, width, context = np.meshgrid(
        np.arange(1, 257), np.arange(1, 17), np.linspace(0, 32768, 65), indexing="ij"
    )
    begun = time.perf_counter()
    points = priced.seconds(batch, width, context).size
    return Figure(time.perf_counter() - begun, points, "points/s", 1e5)


def log() -> Figure:
    """Acceptance from 200 MB of a vLLM server's log, one metrics line to ten of traffic."""
    from specplan.scenarios.importers.recognise import read_file

    metrics = (
        "(APIServer pid=1) INFO 11-30 05:10:00 [metrics.py:120] SpecDecoding metrics: Mean "
        "acceptance length: 2.87, Accepted throughput: 1513.50 tokens/s, Drafted throughput: "
        "3152.30 tokens/s, Accepted: 15135 tokens, Drafted: 31523 tokens, Per-position acceptance "
        "rate: 0.785, 0.540, 0.347, 0.200, Avg Draft acceptance rate: 48.0%\n"
    )
    traffic = '(APIServer pid=1) INFO: 127.0.0.1:40052 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    piece = (10 * traffic + metrics).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        with path.open("wb") as stream:
            for _ in range(200 * 2**20 // len(piece)):
                stream.write(piece)
        begun = time.perf_counter()
        read_file(path)
        return Figure(time.perf_counter() - begun, limit=4.0)


def slider() -> Figure:
    """From a moved slider to every figure of the live page, for the slowest bundled scenario."""
    from slider import slowest

    return Figure(slowest()[0], limit=0.1)


def report() -> Figure:
    """`specplan report` of a run of a million requests: read, drawn and written."""
    run = ("llama31-8b-eagle3-h100", "--set", "workload.requests=1000000")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run"
        process_s(*command("simulate", *run, "-o", path), repeats=1)
        written = command("report", path, "-o", f"{folder}/report.html")
        return Figure(process_s(*written, repeats=1), limit=5.0)


FIGURES: dict[str, Callable[[], Figure]] = {
    "interpreter": interpreter,
    "help": help_page,
    "predict": predict,
    "simulation": simulation,
    "grid": grid,
    "roofline": roofline,
    "log": log,
    "slider": slider,
    "report": report,
}


def main(names: list[str]) -> int:
    """Run the named figures, or all of them."""
    reference = min(reference_s() for _ in range(3))
    print(f"reference: {REFERENCE_STEPS:,} additions in {reference:.3f} s")
    print(f"{'':12} {'measured':>20} {'x reference':>12} {'limit':>20}")
    missed = 0
    for name in names or FIGURES:
        figure = FIGURES[name]()
        missed += not figure.met
        limit = "" if figure.limit is None else f"{figure.limit:,.4g} {figure.unit}"
        mark = "" if figure.met else "  MISSED"
        value = f"{figure.value:,.4g} {figure.unit}"
        print(f"{name:12} {value:>20} {figure.seconds / reference:12.3f} {limit:>20}{mark}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
