"""`specplan sweep` end to end: killed and resumed, refused, limited."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from specplan.results import metrics, store
from specplan.results.sweep.answer import Means, check_size, ledger_path, sweep_answer, with_speedup
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.sim.design import parse_design
from specplan.sim.sweep import simulate_grid

if TYPE_CHECKING:
    from pathlib import Path

SETS = ("workload.requests=2000", "workload.output_tokens=64")
VARY = ("speculation.gamma=0..2", "seed=1..30")
COMMAND = (sys.executable, "-m", "specplan.cli", "sweep", "toy-20ms", "--by", "simulate")


def _command(output: Path, *more: str) -> list[str]:
    sets = [part for text in SETS for part in ("--set", text)]
    vary = [part for text in VARY for part in ("--vary", text)]
    return [*COMMAND, *sets, *vary, "--workers", "1", "-o", str(output), *more]


def _points(ledger: Path) -> int:
    try:
        with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM points").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_killed_and_resumed_the_table_is_the_same_to_the_byte(tmp_path: Path) -> None:
    output = tmp_path / "grid"
    ledger = ledger_path(output)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    running = subprocess.Popen(_command(output), **quiet)  # type: ignore[call-overload]
    deadline = time.monotonic() + 240
    while _points(ledger) < 5 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert running.returncode == -signal.SIGKILL, "the sweep was over before it could be killed"
    done = _points(ledger)
    assert 5 <= done < 90
    assert not output.exists()

    refused = subprocess.run(_command(output), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--resume to go on" in refused.stderr

    subprocess.run(_command(output, "--resume"), capture_output=True, check=True)
    assert not ledger.exists()
    with ThreadPoolExecutor(1) as executor:
        grid = simulate_grid(load("toy-20ms", SETS), parse_design(VARY), metrics.summary, executor)
    uninterrupted = tmp_path / "uninterrupted.parquet"
    store.write_table(uninterrupted, with_speedup(grid).columns)
    assert (output / "grid.parquet").read_bytes() == uninterrupted.read_bytes()
    assert (output / "grid.csv").read_text().count("\n") == 91


def test_results_of_another_scenario_are_refused(tmp_path: Path) -> None:
    design = parse_design(["seed=1..2"])
    scenario = load("toy-20ms", ["workload.requests=20"])
    means = Means(by="simulate", workers=1)
    sweep_answer(scenario, design, means, tmp_path / "grid")
    before = (tmp_path / "grid" / "grid.parquet").read_bytes()
    other = load("toy-20ms", ["workload.requests=20", "draft.step=21 ms"])
    with pytest.raises(ScenarioError, match="holds results of toy-20ms"):
        sweep_answer(other, design, means, tmp_path / "grid", resume=True)
    with pytest.raises(ScenarioError, match="exists already"):
        sweep_answer(scenario, design, means, tmp_path / "grid")
    assert (tmp_path / "grid" / "grid.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("vary", "means", "wrong"),
    [
        (["seed=1..5001"], Means("simulate"), r"5,001 points are more than 5,000; they take about"),
        (["draft.step=1ms..2ms:20000001"], Means(), "is not a number of values"),
        (["workload.output_tokens=1..20001"], Means(), "cannot be computed in one call"),
        (["speculation.gamma=0..1000000"], Means(), "1000 or less"),
        (["seed=1..2"], Means("simulated"), "did you mean `simulate`"),
        (["seed=1..2"], Means(cluster="tcp://127.0.0.1:1"), "--cluster computes simulations"),
        (["speculation.gama=1..2"], Means(), "did you mean `gamma`"),
        (["draft.step=1/s..2/s:3"], Means(), "unknown unit of time"),
    ],
)
def test_refused_before_anything_is_computed(vary: list[str], means: Means, wrong: str) -> None:
    scenario = load("toy-20ms", ["workload.requests=20"])
    with pytest.raises(ScenarioError, match=wrong):
        check_size(scenario, parse_design(vary), means)


def test_yes_lets_a_large_grid_through() -> None:
    scenario = load("toy-20ms", ["workload.requests=20"])
    check_size(scenario, parse_design(["seed=1..5001"]), Means("simulate", yes=True))


def test_resume_needs_a_folder() -> None:
    with pytest.raises(ScenarioError, match="--resume without -o"):
        sweep_answer(load("toy-20ms"), parse_design(["seed=1..2"]), Means(), None, resume=True)


def test_speedup_is_against_no_drafts_on_the_same_luck() -> None:
    """Constant costs, one stream, long output: R/τ against T, so 1.25 (MODEL.md)."""
    scenario = load("toy-20ms", ["workload.requests=50", "workload.output_tokens=2000"])
    with ThreadPoolExecutor(1) as executor:
        design = parse_design(["speculation.gamma=0,2"])
        grid = with_speedup(simulate_grid(scenario, design, metrics.summary, executor))
    assert grid.columns["speedup"][0] == 1.0
    assert grid.columns["speedup"][1] == pytest.approx(1.25, rel=0.01)
