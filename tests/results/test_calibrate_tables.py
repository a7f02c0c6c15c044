"""Calibrate keeps a table of pass times where no linear cost stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# vLLM blog 2026-08-14, Fig. 2 (published.json vllm-dspark-costtable): the step of captured graphs
STEPS_MS = {1: 5.109, 256: 11.508, 1008: 20.256, 1025: 20.634, 2047: 104.489, 4097: 133.452}


def staircase(folder: Path) -> Path:
    path = folder / "steps.csv"
    rows = [f"{batch},1,{ms}" for batch, ms in STEPS_MS.items()]
    path.write_text("\n".join(["batch,width,ms", *rows, ""]), encoding="utf-8")
    return path


def test_a_staircase_is_kept_as_a_table(tmp_path: Path) -> None:
    output = tmp_path / "mine.yaml"
    answer = calibrate_answer([staircase(tmp_path)], output=output)
    assert answer.exit_code == 0
    assert (tmp_path / "mine.csv").is_file()
    scenario = load(output)
    for batch, ms in STEPS_MS.items():
        assert float(scenario.target_step().seconds(batch, 1)) == pytest.approx(1e-3 * ms)
    assert scenario.target_step().provenance == "measured"
    assert float(predict(scenario).tpot_s) == pytest.approx(5.109e-3)


def test_without_a_file_to_write_the_scatter_is_refused_or_said(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="scatter by"):
        calibrate_answer([staircase(tmp_path)])
    bent = tmp_path / "bent.csv"  # worst residual above 10 %, not wild
    bent.write_text("batch,width,ms\n1,1,10\n2,1,10\n4,1,10\n8,1,14\n16,1,14\n", encoding="utf-8")
    answer = calibrate_answer([bent])
    assert any("-o FILE keeps the table" in note for note in answer.notes)


def test_a_table_that_is_linear_is_written_as_linear(tmp_path: Path) -> None:
    path, output = tmp_path / "steps.csv", tmp_path / "mine.yaml"
    path.write_text("batch,width,ms\n1,1,6\n8,1,6.14\n64,1,7.26\n", encoding="utf-8")
    calibrate_answer([path], output=output)
    assert "linear:" in output.read_text(encoding="utf-8")
    assert not output.with_suffix(".csv").exists()


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("keep", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"mine\.csv.*exists"):
        calibrate_answer([staircase(tmp_path)], output=tmp_path / "mine.yaml")
    assert (tmp_path / "mine.csv").read_text(encoding="utf-8") == "keep"
    assert not (tmp_path / "mine.yaml").exists()


def test_a_scenario_is_never_written_over_a_file_that_was_read(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    table = tmp_path / "moe.csv"
    rows = "batch,width,ms\n1,1,8.47\n1,2,13.49\n1,3,15.64\n1,5,20.67\n1,8,28.13\n"
    table.write_text(rows, encoding="utf-8")
    wanted = tmp_path / "moe.yaml"
    for force in ([], ["--force"]):
        refused = specplan_cli("calibrate", str(table), "-o", str(wanted), *force)
        assert refused.code == 2
        assert f"would write {table}, which was read" in refused.err
    assert table.read_text(encoding="utf-8") == rows
    assert not wanted.exists()
    other = tmp_path / "other.yaml"
    assert specplan_cli("calibrate", str(table), "-o", str(other)).code == 0
    again = specplan_cli("calibrate", str(table), "-o", str(other))
    assert (again.code, "--force to replace it" in again.err) == (2, True)
    assert specplan_cli("calibrate", str(table), "-o", str(other), "--force").code == 0


def test_a_rule_outside_a_table_is_told_as_a_note(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("batch,width,ms\n1,1,8\n8,1,9\n1,3,9\n8,3,12\n", encoding="utf-8")
    at_nine = ["workload.arrivals.streams=9", "scheduler.max_num_seqs=9", "target.step=9 ms"]
    words = [word for one in at_nine for word in ("--set", one)]
    rule = f"target.round={{table: {table}, outside: hold}}"
    found = specplan_cli("predict", "toy-20ms", "--set", rule, *words)
    (said,) = found.err.splitlines()
    assert said.startswith("warning: target.round: ")
    assert said.endswith("batch 1 to 8, width 1 to 3; rule 'hold' is applied")
