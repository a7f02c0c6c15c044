"""Output that cannot be written, names that are none, folders that are not ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

CODE = "from specplan.cli import main; main()"
FULL = Path("/dev/full")
LONG = "n" * 300


def _shell(words: str, redirect: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -c "{CODE}" {words} {redirect}'
    return subprocess.run(command, shell=True, text=True, capture_output=True, check=False)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", ["predict toy-20ms", "predict toy-20ms --json", "--help"])
def test_a_full_disk_is_one_sentence(words: str) -> None:
    found = _shell(words, "> /dev/full")
    assert found.stderr == "the output cannot be written: No space left on device\n"
    assert found.returncode == 2


def test_closed_streams() -> None:
    found = _shell("predict toy-20ms", ">&-")
    assert found.stderr == "the output cannot be written: Bad file descriptor\n"
    assert found.returncode == 2
    assert _shell("predict toy-20ms", "2>&- <&-").returncode == 0


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_nobody_left_to_tell() -> None:
    assert _shell("predict toy-20ms", "> /dev/full 2>&1").returncode == 2


def test_no_trailing_blanks_in_a_pipe(specplan_cli: Callable[..., Any]) -> None:
    lines = specplan_cli("predict", "toy-20ms").out.splitlines()
    assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "toy-20ms", "-o", LONG),
        ("sweep", "toy-20ms", "--vary", "speculation.gamma=1", "--by", "simulate", "-o", LONG),
        ("simulate", "toy-20ms", "--timeline", LONG),
        ("report", LONG),
        ("report", "toy-20ms", "-o", LONG),
        ("validate", "--html", LONG),
        ("calibrate", LONG),
        ("calibrate", "--baseline", LONG),
        ("calibrate", "--baseline", "5 ms", "--point", "gamma=3 404 tok/s tau=2.9", "-o", LONG),
        ("init", LONG),
        ("acceptance", "import", LONG),
        ("law", LONG),
        ("predict", f"x/{LONG}"),
        ("sweep", "toy-20ms", "--vary", f"@{LONG}"),
    ],
)
def test_a_name_too_long_is_no_mistake_of_ours(
    specplan_cli: Callable[..., Any], words: tuple[str, ...]
) -> None:
    found = specplan_cli(*words)
    assert found.code == 2
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["", ".", "/"])
@pytest.mark.parametrize(
    "words",
    [
        ("predict", "toy-20ms", "-o"),
        ("simulate", "toy-20ms", "--timeline"),
        ("validate", "--html"),
        ("validate", "--markdown"),
        ("report", "toy-20ms", "-o"),
        ("calibrate", "--baseline", "5 ms", "-o"),
        ("acceptance", "import", "a.log", "-o"),
        ("init",),
    ],
)
def test_names_that_are_none(
    specplan_cli: Callable[..., Any], words: tuple[str, ...], name: str
) -> None:
    found = specplan_cli(*words, name)
    assert found.code == 2
    assert f"`{name}` names nothing that could be made" in found.err


@pytest.mark.parametrize("words", [("calibrate", ""), ("acceptance", "import", "")])
def test_empty_names_of_files_to_read(
    specplan_cli: Callable[..., Any], words: tuple[str, ...]
) -> None:
    found = specplan_cli(*words)
    assert found.code == 2
    assert "the name is empty" in found.err


def test_a_folder_of_somebody_else(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "summary.json").write_text("{}")
    (own / "thesis.tex").write_text("x")
    found = specplan_cli("predict", "toy-20ms", "-o", str(own), "--force")
    assert (found.code, found.out) == (2, "")
    assert (own / "thesis.tex").read_text() == "x"


def test_results_with_a_file_of_somebody_else(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    words = ("predict", "toy-20ms", "-o", str(tmp_path / "run"))
    assert specplan_cli(*words).code == 0  # an empty folder is none
    assert specplan_cli(*words).code == 2
    assert specplan_cli(*words, "--force").code == 0
    (tmp_path / "run" / "notes.md").write_text("x")
    found = specplan_cli(*words, "--force")
    assert found.code == 2
    assert "holds `notes.md`, which specplan did not write" in found.err


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "eagle1-llama3-8b-vllm", "--html"),
        ("validate", "eagle1-llama3-8b-vllm", "--markdown"),
        ("simulate", "toy-20ms", "--timeline"),
        ("report", "toy-20ms", "-o"),
        (
            *("calibrate", "--baseline", "5.264 ms"),
            *(
                "--point",
                "gamma=3 404.25 tok/s tau=2.8981",
                "--point",
                "gamma=5 446.64 tok/s tau=3.5164",
            ),
            "-o",
        ),
        ("init",),
    ],
)
def test_a_file_in_the_way_stays(
    specplan_cli: Callable[..., Any], tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    found = specplan_cli(*words, str(tmp_path / "mine.yaml"))
    assert found.code == 2
    assert "exists" in found.err
    assert (tmp_path / "mine.yaml").read_text() == "precious"


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_interrupted_sweep_says_so_on_stderr(
    specplan_cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: tuple[str, ...],
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specplan.results.sweep.answer.simulate_grid", interrupted)
    words = ("sweep", "toy-20ms", "--vary", "speculation.gamma=0,1", "--by", "simulate")
    found = specplan_cli(*words, "--workers", "1", "-o", str(tmp_path / "grid"), *flags)
    assert found.code == 130
    assert found.err == "interrupted; no point was finished, nothing was written\n"
    assert (found.json["points_done"] == 0) if flags else (found.out == "")
    assert list(tmp_path.iterdir()) == []


def test_no_sweep_deletes_a_file_of_somebody_else(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    theirs = tmp_path / "grid.ledger.sqlite"
    theirs.write_text("precious")
    words = ("sweep", "toy-20ms", "--vary", "speculation.gamma=0,1", "-o", str(tmp_path / "grid"))
    found = specplan_cli(*words, "--by", "simulate", "--force")
    assert found.code == 2
    assert "no ledger of a sweep" in found.err
    assert specplan_cli(*words).code == 0
    assert theirs.read_text() == "precious"
