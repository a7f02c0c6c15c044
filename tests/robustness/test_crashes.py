"""Kills, full disks, missing homes: a clear outcome, and nothing half under a final name.

`SPECPLAN_KILLS=50 pytest tests/robustness/test_crashes.py` kills at 50 random moments.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

KILLS = int(os.environ.get("SPECPLAN_KILLS", "3"))
SPECPLAN = [sys.executable, "-m", "specplan.cli"]
SHORT = ["--set", "workload.requests=40", "--set", "workload.output_tokens=16"]
SWEEP = ["sweep", "toy-20ms", "--vary", "speculation.gamma=0..5", "--by", "simulate",
         "--workers", "1", *SHORT, "-o"]  # fmt: skip
CALIBRATE = ["calibrate", "--baseline", "5.264 ms", "--point", "gamma=3 404.25 tok/s tau=2.8981",
             "--point", "gamma=5 446.64 tok/s tau=3.5164", "-o"]  # fmt: skip


def specplan(
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own; `before` runs in it first."""
    found = subprocess.run(
        [*SPECPLAN, *words],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})},
        preexec_fn=before,
    )
    assert "Traceback" not in found.stderr
    assert "internal error" not in found.stderr
    return found


def killed(words: Sequence[str], after_s: float) -> bool:
    """Run and kill −9 the whole group after so long; tell whether it was still running."""
    with subprocess.Popen(
        [*SPECPLAN, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
    return False


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file of a sweep that holds numbers, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".sqlite"}


def lasting(words: Sequence[str]) -> float:
    """Measure how long a command takes on this machine now."""
    begun = time.perf_counter()
    assert specplan(words).returncode == 0
    return time.perf_counter() - begun


def test_a_killed_sweep_resumes_to_identical_bytes(tmp_path: Path) -> None:
    luck = random.Random("sweep")
    lasted_s = lasting([*SWEEP, str(tmp_path / "whole")])
    expected = contents(tmp_path / "whole")
    for number in range(KILLS):
        output = tmp_path / f"killed{number}"
        for _ in range(2):
            more = ["--resume"] if output.with_name(f"{output.name}.ledger.sqlite").exists() else []
            if not output.exists():
                killed([*SWEEP, str(output), *more], luck.uniform(0.3, 1) * lasted_s)
            if output.exists():  # it is whole, or not there
                assert contents(output) == expected
        if not output.exists():
            assert specplan([*SWEEP, str(output), "--resume"]).returncode == 0
        assert contents(output) == expected


def test_a_killed_run_leaves_no_half_folder(tmp_path: Path) -> None:
    luck = random.Random("simulate")
    words = ["simulate", "toy-20ms", *SHORT, "-o"]
    lasted_s = lasting([*words, str(tmp_path / "whole")])
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    for number in range(KILLS):
        output = tmp_path / f"killed{number}"
        killed([*words, str(output)], luck.uniform(0.3, 1.05) * lasted_s)
        if output.exists():
            assert {path.name for path in output.iterdir()} == names
            json.loads((output / "summary.json").read_text(encoding="utf-8"))
        else:  # the same name may be used again
            assert specplan([*words, str(output)]).returncode == 0


def test_a_killed_calibration_leaves_no_half_file(tmp_path: Path) -> None:
    luck = random.Random("calibrate")
    lasted_s = lasting([*CALIBRATE, str(tmp_path / "whole.yaml")])
    whole = (tmp_path / "whole.yaml").read_text(encoding="utf-8")
    for number in range(KILLS):
        output = tmp_path / f"killed{number}.yaml"
        killed([*CALIBRATE, str(output)], luck.uniform(0.3, 1.05) * lasted_s)
        assert not output.exists() or output.read_text(encoding="utf-8") == whole


# A machine that is not as one wishes


def full_disk() -> None:
    """Let no file grow above 300 bytes, as on a disk with so much left."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


@pytest.mark.parametrize(
    "words",
    [["predict", "toy-20ms", "-o"], ["simulate", "toy-20ms", *SHORT, "-o"],
     SWEEP, ["sweep", "toy-20ms", "--vary", "speculation.gamma=0..8", "-o"],
     [*CALIBRATE[:-1], "-o"], ["report", "toy-20ms", *SHORT, "-o"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_full_disk(tmp_path: Path, words: list[str]) -> None:
    env = {"NUMBA_DISABLE_JIT": "1"}  # compiled code would fail to be kept, too
    found = specplan([*words, str(tmp_path / "out")], env, full_disk)
    assert found.returncode == 2, found.stderr
    assert str(tmp_path / "out") in found.stderr
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_during_a_sweep(tmp_path: Path) -> None:
    """What was finished stays in the ledger, and --resume goes on from there."""

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    output, env = tmp_path / "out", {"NUMBA_DISABLE_JIT": "1"}
    found = specplan([*SWEEP, str(output)], env, small)
    assert found.returncode == 2, found.stderr
    assert "cannot be written" in found.stderr
    assert not output.exists()
    ledger = output.with_name("out.ledger.sqlite")
    assert ledger.exists()
    assert specplan([*SWEEP, str(output), "--resume"], env).returncode == 0
    assert not ledger.exists()


def powerless() -> None:
    """Let root obey permissions, too: what is started now keeps no capability (PR_CAPBSET_DROP)."""
    libc, drop = ctypes.CDLL(None), 24
    for capability in range(64):
        libc.prctl(drop, capability, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="root obeys no permissions elsewhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    found = specplan(["predict", "toy-20ms", "-o", str(tmp_path / "out")], before=powerless)
    assert found.returncode == 2
    assert "no permission to write" in found.stderr


@pytest.mark.parametrize(
    "env",
    [{"HOME": "/nonexistent", "XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "/dev/null/cache"},
     {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
     {"TERM": "dumb", "COLUMNS": "1"}, {"TZ": "Nowhere/Here"}],
    ids=lambda env: next(iter(env)),
)  # fmt: skip
def test_odd_environments(tmp_path: Path, env: dict[str, str]) -> None:
    env = {"NUMBA_DISABLE_JIT": "1", **env}
    output = tmp_path / "Läufe mit γ" / "run 1"
    words = ["simulate", "toy-20ms", *SHORT, "-o", str(output)]
    if "LC_ALL" not in env:  # without a locale, Python cannot tell what such an argument says
        words += ["--set", "description=γ äö 語"]
    found = specplan(words, env)
    assert found.returncode == 0, found.stderr
    again = specplan(["predict", str(output / "scenario.yaml"), "--json"], env)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["speedup"] == pytest.approx(1.25)


def test_two_runs_into_one_folder(tmp_path: Path) -> None:
    """One of them writes it; the other says so, and what is there is whole."""
    words = [*SPECPLAN, "simulate", "toy-20ms", *SHORT, "-o", str(tmp_path / "run")]
    both = [
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    says = [process.communicate(timeout=300)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes == [0, 2], says
    assert any("exists already" in one or "appeared while" in one for one in says)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
