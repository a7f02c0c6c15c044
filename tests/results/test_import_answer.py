"""`acceptance import`: the block, the notes, the exit code, the file it writes."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from specplan.results.acceptance.convert_answer import convert_answer
from specplan.results.acceptance.import_answer import import_answer
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.scenarios.schema import Scenario

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
        ({"gamma": 7}, r"no evidence for γ = 7 \(γ of the files: 1, 2\)"),
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
    with pytest.raises(ScenarioError, match=r"block\.yaml: exists .*--force"):
        import_answer([log], output=output)
    output.write_text("old")
    import_answer([log], output=output, force=True)
    assert YAML(typ="safe").load(output.read_text())["speculation"]["gamma"] == 6
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


# InferenceX golden_al_distribution @843c6254, minimax-m3 eagle3, thinking_off
CURVE = "minimax-m3:\n  thinking_off:\n" + "".join(
    f"    {gamma}: {tau}\n"
    for gamma, tau in enumerate([1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06], start=1)
)


def test_tau_at_several_gamma_is_one_block(tmp_path: Path) -> None:
    file, block = tmp_path / "golden.yaml", tmp_path / "block.yaml"
    file.write_text(CURVE)
    answer = import_answer([file], output=block)
    [curve] = answer.json["curves"]
    # .41 and .48 pool to .445; −.02, .28, .21 to .47/3
    expected = [0.84, 0.68, 0.445, 0.445, 0.18, *[0.47 / 3] * 3]
    assert curve["unconditional"] == pytest.approx(expected, abs=1e-9)
    assert any("0.41, 0.48, 0.18, -0.02, 0.28, 0.21" in text for text in curve["warnings"])
    block_text = block.read_text()
    assert "pooled (isotonic regression)" in " ".join(block_text.replace("#", "").split())
    assert "their mean is of none" not in block_text
    toy = load("toy-20ms").resolved()
    found = Scenario.model_validate({**toy, **YAML(typ="safe").load(block_text)})
    assert float(predict(found).tokens_per_round) == pytest.approx(4.06, abs=1e-5)


def test_two_curves_are_not_one_block(tmp_path: Path) -> None:
    file = tmp_path / "golden.yaml"
    file.write_text(CURVE + "  thinking_on:\n    1: 1.78\n    2: 2.38\n")
    answer = import_answer([file])
    assert len(answer.json["curves"]) == 2
    assert any("2 curves over γ" in note for note in answer.notes)
    with pytest.raises(ScenarioError, match="10 groups for one file"):
        import_answer([file], output=tmp_path / "block.yaml")
    [curve] = import_answer([file], label="thinking_on").json["curves"]
    assert curve["unconditional"] == pytest.approx([0.78, 0.6])


def test_gaps_between_measured_gamma_are_said(tmp_path: Path) -> None:
    file = tmp_path / "golden.yaml"
    file.write_text("m:\n  humaneval:\n    3: 3.02\n    7: 3.94\n")  # vLLM's P-EAGLE post
    [curve] = import_answer([file]).json["curves"]
    assert curve["unconditional"] == pytest.approx([2.02 / 3] * 3 + [0.92 / 4] * 4)
    assert any("between the γ measured" in text for text in curve["warnings"])


def test_a_single_curve_is_no_choice_left_open(tmp_path: Path) -> None:
    """A block of all γ is printed: nothing asks to choose, unless other evidence came with it."""
    path = tmp_path / "golden.yaml"
    path.write_text("m:\n  on:\n    1: 1.84\n    2: 2.50\n")
    assert import_answer([path]).notes == [
        "the block is of all γ together; --gamma keeps a single one"
    ]
    log = tmp_path / "a.log"
    log.write_text(LINE)
    mixed = import_answer([path, log])
    assert mixed.notes == ["3 groups: --gamma, --model or --label choose one"]
    with pytest.raises(ScenarioError, match="3 groups for one file"):
        import_answer([path, log], output=tmp_path / "block.yaml")


def test_a_curve_that_falls_says_what_tau_it_gives(tmp_path: Path) -> None:
    """FORMATS.md A11: dsv4 has τ 3.73 at γ 7 and 3.47 at γ 8; a draft cannot lose tokens."""
    path = tmp_path / "golden.yaml"
    path.write_text("m:\n  on:\n    7: 3.73\n    8: 3.47\n")
    (curve,) = import_answer([path]).json["curves"]
    assert curve["unconditional"][-1] == 0
    assert any(
        "a draft cannot lose tokens (0 instead), which gives 3.73 tokens per round at gamma 8 where"
        " 3.47 was measured" in said
        for said in curve["warnings"]
    )
    assert not any("isotonic" in said for said in curve["warnings"])


def test_what_a_log_cannot_say_has_a_command_that_can(tmp_path: Path) -> None:
    """60 of 100 at K 4: 25 rounds, τ 1 + 60/25 = 3.4 (the form of vLLM before PR 16665)."""
    path = tmp_path / "old.log"
    path.write_text(
        "INFO 04-01 10:00:00 [metrics.py:61] SpecDecoding metrics: Draft acceptance rate: 60.0%,"
        " Accepted: 60 tokens, Drafted: 100 tokens\n"
    )
    with pytest.raises(ScenarioError, match="convert gamma=K accepted=60 drafted=100` with its K"):
        import_answer([path], gamma=4)
    told = convert_answer({"gamma": "4", "accepted": "60", "drafted": "100"})
    assert told.json["acceptance_length"] == pytest.approx(3.4)


def test_one_file_under_two_paths_is_not_counted_twice(log: Path) -> None:
    (log.parent / "b").symlink_to(log)
    with pytest.raises(ScenarioError, match="b: given twice"):
        import_answer([log, log.parent / "b"])
