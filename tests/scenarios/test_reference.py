"""The written reference is that of the schema, and what `init` writes runs."""

from pathlib import Path

import pytest

from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.scenarios.reference import scenario_reference
from specplan.scenarios.starter import QUESTIONS, starter

DOCS = Path(__file__).resolve().parents[2] / "docs" / "scenario.md"


@pytest.mark.skipif(not DOCS.parent.is_dir(), reason="docs/ is not in the source distribution")
def test_the_reference_is_current() -> None:
    says = "run: python -m specplan.scenarios.reference docs/scenario.md"
    assert DOCS.read_text(encoding="utf-8") == scenario_reference(), says


def test_the_reference_has_every_kind_of_row() -> None:
    lines = scenario_reference().splitlines()
    assert "| `step` | block | `0 ms` | One draft step: one token for draft_model, " in "\n".join(
        lines
    )
    assert "## `slo`" in lines
    assert "The fields of `speculation.acceptance`, and:" in lines


def test_the_starter_runs(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(starter(), encoding="utf-8")
    assert float(predict(load(path)).speedup) > 1


def test_answers_are_written() -> None:
    text = starter(
        {
            "step": "20 ms",
            "draft_step": "2 ms",
            "gamma": "3",
            "acceptance": "{unconditional: [0.7, 0.45, 0.3]}",
            "arrivals": "{rate: 2/s}",
        }
    )
    assert "  round: 20 ms\n" in text
    assert "  acceptance: {unconditional: [0.7, 0.45, 0.3]}\n" in text


def test_a_trace_is_taken_whole() -> None:
    text = starter(
        {"arrivals": "{trace: azure.csv}", "prompt_tokens": "trace", "output_tokens": "trace"}
    )
    assert "\n  requests:" not in text


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"step": "20"}, "step=20: 20 has no unit"),
        ({"gama": "3"}, r"gama: unknown question \(did you mean `gamma`\?\)"),
        ({"name": "a\nb: c"}, "name: has several lines"),
        ({"gamma": "5", "acceptance": "{conditional: [0.5]}"}, "states 1 draft positions"),
    ],
)
def test_wrong_answers_are_refused(answers: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        starter(answers)


def test_every_question_has_its_own_key() -> None:
    assert len({question.key for question in QUESTIONS}) == len(QUESTIONS)
