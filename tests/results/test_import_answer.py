"""`acceptance import`: the block, the notes, the exit code, the file it writes."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from specplan.results.import_answer import import_answer
from specplan.scenarios.errors import ScenarioError

LINE = (
    "INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.87, "
    "Accepted: 489 tokens, Drafted: 1572 tokens, Per-position acceptance rate: 0.740, 0.473, "
    "0.309, 0.187, 0.099, 0.057, Avg Draft acceptance rate: 31.1%\n"
)
GOLDEN = "m:\n  thinking_on:\n    1: 1.84\n    2: 2.50\n  thinking_off:\n    1: 1.80\n    2: 2.33\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text(LINE)
    return path


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden.yaml"
    path.write_text(GOLDEN)
    return path


def printed(text: object, width: int) -> str:
    stream = StringIO()
    Console(width=width, highlight=False, file=stream).print(text)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 200])
def test_what_is_printed_is_yaml(log: Path, width: int) -> None:
    answer = import_answer([log])
    loaded = YAML(typ="safe").load(printed(answer.text, width))
    assert loaded["speculation"]["gamma"] == 6
    rates = loaded["speculation"]["acceptance"]["unconditional"]
    assert rates == [0.74, 0.473, 0.309, 0.187, 0.099, 0.057]
    assert answer.exit_code == 0
    assert answer.notes == ["τ 2.866 tokens per round with a draft; accepted/drafted 31.1 %."]


def test_json_names_every_quantity(log: Path) -> None:
    (group,) = import_answer([log]).json["groups"]
    assert group["drafting_rounds"] == 262
    assert group["draftless_rounds"] is None
    assert group["draft_probability"] is None
    assert group["acceptance_rate"] == pytest.approx(489 / 1572)
    assert group["source"]["kind"] == "vllm-log"
    assert group["provenance"][0].endswith("262 rounds with a draft, 489 of 1,572 accepted")
    json.dumps(group, allow_nan=False)


def test_several_groups_are_a_table_and_a_choice(golden: Path) -> None:
    answer = import_answer([golden])
    assert [(g["label"], g["gamma"]) for g in answer.json["groups"]] == [
        ("thinking_on", 1),
        ("thinking_on", 2),
        ("thinking_off", 1),
        ("thinking_off", 2),
    ]
    assert "thinking_off" in printed(answer.text, 100)
    assert "4 groups" in answer.notes[0]
    (chosen,) = import_answer([golden], gamma=2, label="thinking_off").json["groups"]
    assert chosen["speculation"] == {
        "method": "draft_model",
        "gamma": 2,
        "acceptance": {"acceptance_length": 2.33, "at_gamma": 2},
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gamma": 7}, r"no evidence for γ = 7 \(γ of the files: 1, 2, 1, 2\)"),
        ({"label": "x"}, r"no evidence labelled 'x' \(labels: thinking_off, thinking_on\)"),
        ({"model": "n"}, r"no evidence for model 'n' \(models: m\)"),
    ],
)
def test_no_such_choice(golden: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        import_answer([golden], **options)  # type: ignore[arg-type]


def test_writes_the_block_once(log: Path, golden: Path, tmp_path: Path) -> None:
    output = tmp_path / "block.yaml"
    answer = import_answer([log], output=output)
    assert YAML(typ="safe").load(output.read_text())["speculation"]["gamma"] == 6
    assert answer.notes[-1] == f"written to {output}"
    with pytest.raises(ScenarioError, match=r"block\.yaml: exists"):
        import_answer([log], output=output)
    with pytest.raises(ScenarioError, match="4 groups for one file"):
        import_answer([golden], output=tmp_path / "other.yaml")
    assert not (tmp_path / "other.yaml").exists()


def test_gamma_that_the_file_does_not_state(tmp_path: Path) -> None:
    path = tmp_path / "response.json"
    path.write_text('{"predicted_n": 100, "predicted_ms": 900.0, "draft_n": 90, '
                    '"draft_n_accepted": 59}')  # fmt: skip
    (unknown,) = import_answer([path]).json["groups"]
    assert unknown["speculation"] == {
        "method": "draft_model",
        "acceptance": {"acceptance_length": 2.475},
    }
    assert "# gamma: not in the file; --gamma states it" in unknown["block"]
    (stated,) = import_answer([path], gamma=3).json["groups"]
    assert stated["speculation"]["gamma"] == 3


def test_a_stated_gamma_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "response.json"
    path.write_text('{"predicted_n": 100, "predicted_ms": 900.0, "draft_n": 90, '
                    '"draft_n_accepted": 59}')  # fmt: skip
    with pytest.raises(ScenarioError, match=r"above γ \+ 1 = 2"):
        import_answer([path], gamma=1)


def test_latencies_alone_answer_no(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"completed": 1, "mean_tpot_ms": 6.43, "mean_ttft_ms": 40}')
    answer = import_answer([path])
    assert answer.exit_code == 1
    assert answer.json["groups"] == []
    assert "6.43 ms" in printed(answer.text, 100)
