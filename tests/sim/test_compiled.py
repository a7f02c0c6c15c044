"""The compiled loop: where it is kept, what is said about it, and its plain twin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from specplan.sim import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = """
import json, sys
from specplan.results.metrics import summary
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate
sets = ["workload={arrivals: {rate: 9/s}, requests: 60, prompt_tokens: 40, output_tokens: 9}",
        "scheduler.max_num_seqs=4", "target.round=50 ms", "target.step=50 ms", "draft.step=5 ms",
        "kv_cache={blocks: 14}", "target.prefill={per_token: 100 us}"]
run = simulate(load("toy-20ms", sets), check_blocks=True)
columns = {name: values.tolist() for name, values in run.requests.items()}
json.dump([columns, run.preemptions, run.engine_steps, run.phases], sys.stdout)
"""


def run_python(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_plain_twin_gives_the_same_run_bit_for_bit() -> None:
    plain = json.loads(run_python(NUMBA_DISABLE_JIT="1").stdout)
    fast = json.loads(run_python().stdout)
    assert plain[1] > 0  # preemptions: the case is not a trivial one
    assert plain == fast


@pytest.fixture
def function() -> Any:
    """A dispatcher that has not compiled anything."""
    loop = SimpleNamespace(__name__="advance", __module__="specplan.sim.kernel")
    return SimpleNamespace(signatures=[], py_func=loop)


def test_a_cold_cache_is_announced_once_a_warm_one_never(
    function: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(compiled, "folder", tmp_path)
    monkeypatch.setattr(compiled, "interpreted", False)
    compiled.announce(function)
    said = capsys.readouterr()
    assert said.err == f"compiling the simulator, once, about {compiled.ABOUT_S} s\n"
    assert said.out == ""
    compiled.announce(function)  # the other worker of a sweep
    assert capsys.readouterr().err == ""
    (tmp_path / "kernel.advance.announced").unlink()
    (tmp_path / "sim_1").mkdir()
    (tmp_path / "sim_1" / "kernel.advance-25.py311.nbi").touch()
    compiled.announce(function)
    assert capsys.readouterr().err == ""


def test_without_any_folder_it_compiles_and_says_so(
    function: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiled, "folder", None)
    monkeypatch.setattr(compiled, "interpreted", False)
    compiled.announce(function)
    assert "no folder" in capsys.readouterr().err


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path | None]:
    """`cache_folder` with temporary folders instead of the real ones."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return compiled.cache_folder


def test_a_cache_home_that_cannot_be_written_moves_to_a_private_temporary_folder(
    folders: Callable[[], Path | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()  # no folder can be made below a file, not even by root
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = folders()
    assert found is not None
    assert found.parent.parent == tmp_path / "temporary"
    assert found.stat().st_mode & 0o077 == 0


def test_no_home_is_no_reason_to_fail(
    folders: Callable[[], Path | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    found = folders()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "missing" / "x"))
    (tmp_path / "missing").touch()
    assert folders() is None


def test_folders_of_old_sources_go_but_the_newest_and_recent_stay(tmp_path: Path) -> None:
    for age in range(10):
        old = tmp_path / f"old{age}"
        old.mkdir()
        os.utime(old, (1e9 - age, 1e9 - age))
    (tmp_path / "recent").mkdir()
    used = tmp_path / "used"
    used.mkdir()
    compiled.prune(tmp_path, used)
    left = {folder.name for folder in tmp_path.iterdir()}
    newest = {f"old{age}" for age in range(compiled.KEPT_FOLDERS - 1)}
    assert left == {"used", "recent", *newest}
