"""What was overridden is no longer what somebody measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from specplan.cli import app
from specplan.scenarios.load import load, override, to_yaml

if TYPE_CHECKING:
    from pathlib import Path

FITTED = "llama31-8b-eagle3-h100"


def inputs(*arguments: str) -> dict[str, Any]:
    ran = CliRunner().invoke(app, ["predict", *arguments, "--json"])
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)["handoff"]["inputs"]
    return found


@pytest.mark.parametrize(
    ("field", "setting"),
    [
        ("speculation.acceptance", "speculation.acceptance.alpha=0.7"),
        ("speculation.acceptance", "speculation.acceptance={alpha: 0.7}"),
        ("draft.step", "draft.step=0.7 ms"),
        ("draft.step", "draft.step.base=0.7 ms"),
        ("target.round", "target.round.linear.per_token=10 us"),
        ("workload.output_tokens", "workload.output_tokens=100"),
        ("kv_cache.memory", "kv_cache.memory=10 GiB"),
    ],
)
def test_an_overridden_input_is_assumed_and_its_old_label_is_gone(field: str, setting: str) -> None:
    before, after = inputs(FITTED), inputs(FITTED, "--set", setting)
    assert after.pop(field) == {"evidence": "assumed", "source": f"--set {setting}"}
    before.pop(field, None)
    if field == "target.round":  # a plain step is the pass of width 1
        before.pop("target.step")
        after.pop("target.step")
    assert after == before


def test_one_label_for_all_stays_for_the_others_only() -> None:
    found = inputs("toy-20ms", "--set", "draft.step=1 ms")
    assert found["draft.step"]["source"] == "--set draft.step=1 ms"
    assert "all inputs" not in found
    assert found["all other inputs"]["source"].startswith("a worked example")
    assert found["speculation.acceptance"]["evidence"] == "assumed"


def test_a_setting_may_say_itself_where_it_is_from() -> None:
    mine = "draft.step={constant: 0.7 ms, evidence: measured, source: my run}"
    assert inputs(FITTED, "--set", mine)["draft.step"] == {
        "evidence": "measured",
        "source": "my run",
    }
    apart = ["--set", "draft.step.base=1 ms", "--set", "draft.step.evidence=measured"]
    found = inputs(FITTED, *apart)["draft.step"]
    assert found == {"evidence": "measured", "source": "--set draft.step.base=1 ms"}


def test_choices_leave_the_labels_alone() -> None:
    sets = ["speculation.gamma=5", "scheduler.max_num_seqs=8", "cluster.replicas=2", "seed=3"]
    assert override(load(FITTED), sets).record == load(FITTED).record


def test_the_report_says_so_too(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    setting = "speculation.acceptance.alpha=0.7"
    small = ["--set", "workload.requests=50", "--set", "slo={}"]
    ran = CliRunner().invoke(app, ["report", FITTED, "--set", setting, *small, "-o", str(page)])
    assert ran.exit_code == 0, ran.output
    text = page.read_text(encoding="utf-8").replace("<wbr>", "")
    assert f"assumed: --set {setting}" in text
    assert "GSM8K" not in text


def test_the_label_is_in_the_file_that_is_written(tmp_path: Path) -> None:
    changed = load(FITTED, ["draft.step.base=1 ms"])
    file = tmp_path / "scenario.yaml"
    file.write_text(to_yaml(changed), encoding="utf-8")
    assert load(file) == changed
