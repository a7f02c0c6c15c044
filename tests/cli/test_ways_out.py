"""Every way out is one clear line and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from specplan.commands import shared
from specplan.results.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["speculation.gama=3"], "gamma"),
        (["draft.step=20 m"], "unit"),
        (["draft.step=-20 ms"], "negative"),
        (["draft.step=20"], "no unit"),
        (["speculation.acceptance.alpha=1.5"], "outside [0, 1]"),
        (["speculation.acceptance.alpha=80"], "0.8"),
        (["speculation.acceptance.alpha=0.8 %"], "0.8"),
        (["speculation.gamma=3", "speculation.acceptance.unconditional=[0.5, 0.6, 0.4]"], "0.6"),
        (["speculation.gamma=5", "speculation.acceptance.conditional=[0.5, 0.6]"], "2"),
        (["nonsense"], "--set"),
    ],
)
def test_bad_settings(specplan_cli: Callable[..., Any], sets: list[str], says: str) -> None:
    flags = [part for text in sets for part in ("--set", text)]
    found = specplan_cli("predict", "toy-20ms", *flags)
    assert found.code == 2
    assert found.out == ""
    assert says in found.err
    assert "Traceback" not in found.err


def test_unknown_scenario_names_the_nearest(specplan_cli: Callable[..., Any]) -> None:
    found = specplan_cli("predict", "toy-20m")
    assert found.code == 2
    assert "did you mean `toy-20ms`" in found.err


def test_every_fault_has_its_line(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: x\nsneed: 1\ntarget: {round: 10}\nworkload: {arrivals: {streams: 1}}\n")
    lines = specplan_cli("predict", str(file)).err.splitlines()
    assert any(line.startswith(f"{file}:2:1: ") for line in lines)
    assert any(line.startswith(f"{file}:3:") for line in lines)


def test_not_yaml(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("{ this: [is not")
    found = specplan_cli("predict", str(file))
    assert found.code == 2
    assert found.err.startswith(f"{file}:")


@pytest.mark.parametrize("command", ["predict", "simulate", "sweep", "compare", "list", "schema"])
def test_every_command_has_help_with_an_example(
    specplan_cli: Callable[..., Any], command: str
) -> None:
    found = specplan_cli(command, "--help")
    assert found.code == 0
    assert f"Example: specplan {command}" in found.out


def test_interrupt(specplan_cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Answer:
        raise KeyboardInterrupt

    monkeypatch.setattr("specplan.results.prediction.predict_answer", interrupted)
    found = specplan_cli("predict", "toy-20ms")
    assert (found.out, found.code) == ("", 130)
    assert found.err == "interrupted; nothing was written\n"


def test_our_own_mistake(specplan_cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Answer:
        return Answer({"a": 1 / 0}, "")

    monkeypatch.setattr("specplan.results.prediction.predict_answer", broken)
    found = specplan_cli("predict", "toy-20ms")
    assert found.code == shared.INTERNAL
    assert "please report it: ZeroDivisionError" in found.err
    assert len(found.err.splitlines()) == 1


def test_broken_pipe() -> None:
    code = "from specplan.cli import main; main()"
    command = [sys.executable, "-c", code, "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == shared.BROKEN_PIPE


def test_real_interrupt_of_a_long_simulation(tmp_path: Path) -> None:
    # A test runner in the background has SIGINT ignored, and children inherit that.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}\nfrom specplan.cli import main; main()"
    command = [sys.executable, "-c", code, "simulate", "toy-20ms", "-o", str(tmp_path / "run")]
    long = ["--set", "workload.requests=1000000", "--set", "workload.output_tokens=1000"]
    with subprocess.Popen([*command, *long], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        time.sleep(3)
        os.kill(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=60)
        assert b"Traceback" not in err
        assert run.returncode == 130
