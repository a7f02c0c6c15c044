"""Ctrl-C during a long run: prompt, with what is complete, and with the exit code of shells."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from specplan.sim.interrupts import Shield, shielding

if TYPE_CHECKING:
    from pathlib import Path

LONG = [
    "workload={arrivals: {rate: 6/s}, requests: 9000000, output_tokens: 20}",
    "target.round=10 ms",
    "target.step=10 ms",
    "draft.step=2 ms",
]


# A runner in the background has SIGINT ignored, and its children inherit that.
LISTENING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from specplan.cli import main; main()"
)


@pytest.mark.parametrize("more", [[], ["--no-requests"], ["--set", "cluster.engines_per_gpu=1"]])
def test_an_interrupted_run_keeps_what_is_complete(tmp_path: Path, more: list[str]) -> None:
    sets = [word for one in LONG for word in ("--set", one)]
    command = [sys.executable, "-c", LISTENING, "simulate", "toy-20ms", *sets]
    process = subprocess.Popen(
        [*command, "--json", "-o", str(tmp_path / "run"), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:  # until the first requests are through
        if re.search(r": [1-9][\d,]* of 9,000,000", line):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    figures = json.loads(out)
    assert figures["interrupted"] is True
    assert 0 < figures["completed"] < 9_000_000
    assert figures["unfinished"] < 1000  # who is in the house, not who is generated ahead
    assert f"{figures['completed']:,} requests that were complete" in err
    written = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert written["interrupted"] is True
    assert written["completed"] == figures["completed"]


def test_a_shield_holds_ctrl_c_back_until_its_end() -> None:
    reached = []

    def work(shield: Shield) -> None:
        with shield:
            signal.raise_signal(signal.SIGINT)
            reached.append("end of the block")
        reached.append("beyond")

    with shielding() as shield, pytest.raises(KeyboardInterrupt):
        work(shield)
    assert reached == ["end of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_shield_it_comes_at_once() -> None:
    with shielding(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_whoever_handles_ctrl_c_already_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with shielding() as shield:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert isinstance(shield, Shield)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_parallel_sweep_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    """SIGTERM as a cluster's scheduler sends it: workers go, the ledger stays, --resume goes on."""
    words = [sys.executable, "-m", "specplan.cli", "sweep", "toy-20ms", "--by", "simulate"]
    words += ["--vary", "seed=1..40", "--workers", "2", "--set", "workload.requests=20000"]
    words += ["-o", str(tmp_path / "grid")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ledger = tmp_path / "grid.ledger.sqlite"
    for _ in range(1200):
        time.sleep(0.1)
        if ledger.is_file() and _points(ledger):
            break
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"{_points(ledger)} of 40 points are in {ledger}; --resume goes on" in err
    assert "resource_tracker" not in err
    assert "Traceback" not in err


def _points(ledger: Path) -> int:
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as database:
        try:
            (count,) = database.execute("SELECT count(*) FROM points").fetchone()
        except sqlite3.OperationalError:  # not begun yet
            return 0
    return int(count)
