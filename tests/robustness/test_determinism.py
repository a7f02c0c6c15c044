"""Equal scenarios give equal numbers: over runs, over numbers of workers, over releases."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from specplan.results.sweep.answer import Means, sweep_answer
from specplan.scenarios.load import load
from specplan.sim.design import parse_design
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from specplan.sim.records import Run

# Costs and arrivals are sums of binary fractions of a second, and a half to a power is exact, so no
# library of mathematical functions has a say: every machine must find these very numbers.
REFERENCE = [
    "target.round=62.5 ms", "target.step=62.5 ms", "draft.step=15.625 ms", "speculation.gamma=3",
    "speculation.acceptance.alpha=0.5", "workload.arrivals={interval: 125 ms}",
    "workload.requests=500", "workload.output_tokens={uniform: [1, 40]}",
    "scheduler.max_num_seqs=4", "cluster={replicas: 2, router: round_robin}", "seed=7",
]  # fmt: skip
# Changes with the luck, the scheduler or the accounting: then CHANGELOG.md has to say so.
DIGEST = "55d59e239c930d5c72de1f29f1b6237173587362efed187f52a41cb58a5aa640"


def digest(run: Run) -> str:
    """Hash the columns of all requests: whole numbers as they are, times as exact fractions."""
    sha = hashlib.sha256()
    for name, column in sorted(run.requests.items()):
        texts = [
            value.hex() if isinstance(value, float) else str(value) for value in column.tolist()
        ]
        sha.update(f"{name}: {' '.join(texts)}\n".encode())
    return sha.hexdigest()


def test_the_numbers_of_the_reference_run() -> None:
    run = simulate(load("toy-20ms", REFERENCE))
    assert run.requests["finish_s"].max() * 64 % 1 == 0  # exact in binary, as costs are
    assert digest(run) == DIGEST
    assert digest(simulate(load("toy-20ms", REFERENCE))) == DIGEST


def test_workers_do_not_change_a_byte(tmp_path: Path) -> None:
    scenario = load("llama31-8b-eagle3-h100", ["workload.requests=40"])
    design = parse_design(["speculation.gamma=0..3"])
    for workers in (1, 2, 3):
        means = Means(by="simulate", workers=workers)
        sweep_answer(scenario, design, means, tmp_path / str(workers))
    for name in ("grid.parquet", "grid.csv", "scenario.yaml", "summary.json", "grid.html"):
        kept = {(tmp_path / str(workers) / name).read_bytes() for workers in (1, 2, 3)}
        assert len(kept) == 1, name
