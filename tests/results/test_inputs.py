"""What a prediction rests on, and inputs that contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.handoff import handoff
from specplan.results.inputs import doubts, evidence
from specplan.scenarios.closed_form import predict
from specplan.scenarios.load import bundled, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., Any]


def test_a_round_below_a_plain_step_is_said(specplan_cli: Cli) -> None:
    found = specplan_cli("predict", "toy-20ms", "--set", "target.round=23 ms")
    out = " ".join(found.out.split())
    assert "the verify pass costs 23 ms and a plain step 100 ms" in out
    assert "a round below one plain step (63 ms)" in out  # 23 + 2 · 20
    slow = doubts(predict(load("toy-20ms", ["target.round=80 ms"])))
    assert [one.code for one in slow] == ["impossible_verify"]  # 80 + 2 · 20 ms is above 100 ms
    assert not doubts(predict(load("toy-20ms", ["target.round=99 ms"])))  # within 2 %
    assert not doubts(predict(load("toy-20ms", ["target.round=23 ms", "speculation.gamma=0"])))


@pytest.mark.parametrize("name", bundled())
def test_no_bundled_scenario_is_in_doubt(name: str) -> None:
    if name == "azure-conversation-trace":  # needs the trace
        return
    assert not doubts(predict(load(name)))


def test_durations_without_a_label_of_their_own_are_named() -> None:
    sets = ["speculation.overhead=2 ms", "draft.per_round=5 ms", "workload.prompt_tokens=10"]
    said = evidence(load("toy-20ms", [*sets, "target.prefill={per_token: 1 us}"]))
    assert said["speculation.overhead"] == "assumed"
    assert said["draft.per_round"] == "assumed (--set draft.per_round=5 ms)"
    assert said["target.prefill"].startswith("assumed")
    labelled = ['record.evidence={speculation.overhead: "measured: nsys"}', *sets]
    assert evidence(load("toy-20ms", labelled))["speculation.overhead"] == "measured (nsys)"
    assert "speculation.overhead" not in evidence(load("toy-20ms", [*sets, "speculation.gamma=0"]))


def test_a_calibrated_scenario_labels_all_it_measured(specplan_cli: Cli, tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    points = ("--point", "gamma=2 400 tok/s rate=.7 draft=0.5ms verify=4.5 ms")
    assert specplan_cli("calibrate", "--baseline", "4 ms", *points, "-o", str(made)).code == 0
    scenario = load(str(made))
    inputs = handoff(scenario, predict(scenario)).inputs
    kinds = {name: kind for name, (kind, _) in inputs.items()}
    assert kinds == {
        "target.round": "measured",
        "target.step": "measured",
        "draft.step": "measured",
        "speculation.overhead": "measured",
        "speculation.acceptance": "measured",
        "workload": "assumed",
    }
