"""Calibrate with points and a table of target passes: V of the table splits R of the points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path

# SpecBundle, Llama-3.1-8B at batch 1 (MODEL.md): T 5.264 ms, V 6.113 ms and d .352 ms at γ 3
POINT = "gamma=3 404.25 tok/s tau=2.8981"  # a round of 7.169 ms


def table(folder: Path, *rows: str) -> Path:
    path = folder / "passes.csv"
    path.write_text("\n".join(["batch,width,ms", *rows, ""]), encoding="utf-8")
    return path


def test_the_round_is_split_and_the_plain_step_found(tmp_path: Path) -> None:
    file, output = table(tmp_path, "1,1,5.264", "1,4,6.113"), tmp_path / "mine.yaml"
    [found] = calibrate_answer([file], points=[POINT]).json["groups"]
    [point] = found["points"]
    assert found["baseline"]["step_s"] == pytest.approx(5.264e-3)
    assert point["verify_s"] == pytest.approx(6.113e-3)
    assert point["draft_s"] == pytest.approx(3 * 0.352e-3, rel=0.01)
    assert point["round_cost_ratio"] == pytest.approx(7.169 / 5.264, rel=1e-3)
    answer = calibrate_answer([file], points=[POINT], output=output)
    assert len(answer.json["scenarios"]) == 2  # the points', which is written, and the table's own
    assert float(load(output).draft_step().seconds(1, 1)) == pytest.approx(0.352e-3, rel=0.01)


def test_a_stated_baseline_stays(tmp_path: Path) -> None:
    file = table(tmp_path, "1,1,5.264", "1,4,6.113")
    [found] = calibrate_answer([file], points=[POINT], baseline="5.5 ms").json["groups"]
    assert found["baseline"]["step_s"] == pytest.approx(5.5e-3)
    assert found["points"][0]["verify_s"] == pytest.approx(6.113e-3)


def test_another_batch_or_width_is_not_guessed(tmp_path: Path) -> None:
    file = table(tmp_path, "2,1,5.3", "2,4,6.2")
    [found] = calibrate_answer([file], points=[POINT], baseline="5.264 ms").json["groups"]
    assert found["points"][0]["verify_s"] is None


def test_a_table_slower_than_the_round_is_said(tmp_path: Path) -> None:
    file = table(tmp_path, "1,1,5.264", "1,4,8")
    [found] = calibrate_answer([file], points=[POINT]).json["groups"]
    assert "table_disagrees" in {one["code"] for one in found["warnings"]}
    assert found["points"][0]["verify_s"] is None
