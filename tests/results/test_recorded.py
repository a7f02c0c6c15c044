"""Runs of one scenario are called by what differs between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from specplan.cli import app
from specplan.results.recorded import Recorded, told_apart
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path


def run(*sets: str) -> Recorded:
    none = {"nothing": np.zeros(0)}
    return Recorded(load("toy-20ms", sets), {}, none, none, none, none)


@pytest.mark.parametrize(
    ("sets", "names"),
    [
        ([["speculation.gamma=3"], ["speculation.gamma=0"]], ["γ = 3", "γ = 0"]),
        ([["seed=1"], ["seed=2"]], ["seed 1", "seed 2"]),
        (
            [["speculation.gamma=3"], ["speculation.gamma=0", "seed=2"]],
            ["seed 1, speculation.gamma 3", "seed 2, speculation.gamma 0"],
        ),
    ],
)
def test_runs_are_called_by_what_differs(sets: list[list[str]], names: list[str]) -> None:
    found = [one.name for one in told_apart([run(*one) for one in sets])]
    assert found == [f"toy-20ms, {name}" for name in names]


def test_equal_runs_are_numbered_and_other_names_stay() -> None:
    found = told_apart([run(), run(), run("name=mine")])
    assert [one.name for one in found] == ["toy-20ms (1)", "toy-20ms (2)", "mine"]


def test_plain_decoding_has_no_sampling_to_preserve() -> None:
    ran = CliRunner().invoke(app, ["predict", "toy-20ms", "--set", "speculation.gamma=0", "--json"])
    handoff = json.loads(ran.stdout)["handoff"]
    assert handoff["sampling"] == ""
    assert handoff["preserves_target_law"] is None


def test_the_page_of_two_runs(tmp_path: Path) -> None:
    for gamma in (3, 0):
        arguments = ["simulate", "toy-20ms", "--set", f"speculation.gamma={gamma}"]
        arguments += ["--set", "workload.requests=20", "-o", str(tmp_path / f"g{gamma}")]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    page = tmp_path / "r.html"
    folders = [str(tmp_path / "g3"), str(tmp_path / "g0")]
    assert CliRunner().invoke(app, ["report", *folders, "-o", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "toy-20ms, γ = 3 against toy-20ms, γ = 0" in text
    assert text.count("preserves the target") == 1
