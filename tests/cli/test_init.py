"""`specplan init` writes a file that runs, and never over another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer

from specplan.results.planning.sensitivity import evidence_of
from specplan.scenarios.load import validated
from specplan.scenarios.source import parse_source
from specplan.scenarios.starter import starter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_what_is_written_runs(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    answers = ["-a", "step=100 ms", "-a", "draft_step=20 ms", "-a", "gamma=2"]
    written = specplan_cli("init", str(file), *answers, "-a", "acceptance={alpha: 0.5}")
    assert written.code == 0
    assert "# A scenario of specplan" in file.read_text(encoding="utf-8")
    assert specplan_cli("predict", str(file), "--json").json["speedup"] == pytest.approx(1.25)


def test_existing_file_is_kept(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    found = specplan_cli("init", str(tmp_path / "mine.yaml"))
    assert found.code == 2
    assert "exists already" in found.err
    assert (tmp_path / "mine.yaml").read_text() == "precious"


@pytest.mark.parametrize(
    ("answer", "says"), [("gamma", "answers nothing"), ("gama=3", "did you mean `gamma`")]
)
def test_bad_answers(
    specplan_cli: Callable[..., Any], tmp_path: Path, answer: str, says: str
) -> None:
    found = specplan_cli("init", str(tmp_path / "mine.yaml"), "-a", answer)
    assert found.code == 2
    assert says in found.err
    assert list(tmp_path.iterdir()) == []


BENCH = {
    "backend": "vllm", "model_id": "m", "completed": 80, "duration": 60.0, "max_concurrency": 1,
    "total_input_tokens": 40_960, "total_output_tokens": 10_240, "mean_ttft_ms": 30.0,
}  # fmt: skip
PLAIN = {**BENCH, "mean_tpot_ms": 5.0, "mean_itl_ms": 5.0}
# τ = 2.5 at γ = 3: a round of 7.5 ms is 3 ms a token, 5/3 of plain decoding.
SPECULATIVE = {
    **BENCH, "mean_tpot_ms": 3.0, "mean_itl_ms": 7.5, "spec_decode_acceptance_rate": 50.0,
    "spec_decode_acceptance_length": 2.5, "spec_decode_num_drafts": 4000,
    "spec_decode_draft_tokens": 12_000, "spec_decode_accepted_tokens": 6000,
    "spec_decode_per_position_acceptance_rates": [0.7, 0.5, 0.3],
}  # fmt: skip
LOG = (
    "INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.50, "
    "Accepted throughput: 48.90 tokens/s, Drafted throughput: 157.20 tokens/s, Accepted: 600 "
    "tokens, Drafted: 1200 tokens, Per-position acceptance rate: 0.700, 0.500, 0.300, Avg Draft "
    "acceptance rate: 50.0%\n"
)
TRACE = "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1.5,11,21\n"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    texts = {"plain.json": json.dumps(PLAIN), "eagle.json": json.dumps(SPECULATIVE),
             "engine.log": LOG * 3, "trace.csv": TRACE}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in texts}


def test_runs_with_and_without_speculation_answer_costs_acceptance_and_load(
    specplan_cli: Callable[..., Any], given: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    files = ["--from", str(given["plain.json"]), "--from", str(given["eagle.json"])]
    written = specplan_cli("init", str(file), *files, "--json")
    assert written.code == 0, written.err
    assert written.json["assumed"] == ["prefill_per_token", "max_num_seqs", "replicas"]
    assert "holds at γ = 3 only" in written.err
    found = specplan_cli("predict", str(file), "--json").json
    assert found["speedup"] == pytest.approx(5 / 3)
    assert found["tokens_per_round"] == pytest.approx(2.5)
    text = file.read_text(encoding="utf-8")
    assert "evidence: measured" in text
    assert "prompt_tokens: 512" in text  # 40,960 of 80 requests
    assert "output_tokens: 128" in text
    written = validated(parse_source(text, str(file)))
    labels = [evidence_of(written, name) for name in ("speculation.acceptance", "target.prefill")]
    assert labels == ["measured", "assumed"]


def test_a_log_answers_acceptance_and_a_trace_the_load(
    specplan_cli: Callable[..., Any], given: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    files = ["--from", str(given["engine.log"]), "--from", str(given["trace.csv"])]
    written = specplan_cli("init", str(file), *files, "-a", "step=10 ms", "--json")
    assert written.code == 0, written.err
    assert written.json["answers"]["gamma"] == "3"
    assert {"draft_step", "replicas"} <= set(written.json["assumed"])
    assert not {"gamma", "acceptance", "arrivals", "step"} & set(written.json["assumed"])
    assert specplan_cli("predict", str(file), "--json").json["tokens_per_round"] == 2.5
    run = specplan_cli("simulate", str(file), "--json").json
    assert (run["completed"], run["total_output_tokens"]) == (2, 41)


def test_an_answer_goes_before_a_file(
    specplan_cli: Callable[..., Any], given: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    written = specplan_cli(
        "init", str(file), "--from", str(given["engine.log"]), "-a", "gamma=2", "--json"
    )
    assert written.json["answers"]["gamma"] == "2"
    assert "gamma" not in written.json["sources"]


@pytest.mark.parametrize(
    ("names", "says"),
    [(["plain.json", "plain.json"], "given twice"), (["nothing"], "no such file"),
     (["trace.csv", "other.csv"], "2 traces"), (["eagle.json", "engine.log"], "2 acceptances"),
     (["plain.json", "eagle.json", "engine.log"], "2 acceptances"), (["odd.txt"], "odd.txt")],
)  # fmt: skip
def test_files_that_do_not_go_together(
    specplan_cli: Callable[..., Any],
    given: dict[str, Path],
    tmp_path: Path,
    names: list[str],
    says: str,
) -> None:
    assert given
    (tmp_path / "other.csv").write_text(TRACE)
    (tmp_path / "odd.txt").write_text("nothing that any engine writes\n")
    before = set(tmp_path.iterdir())
    files = [word for name in names for word in ("--from", str(tmp_path / name))]
    found = specplan_cli("init", str(tmp_path / "mine.yaml"), *files)
    assert found.code == 2
    assert says in found.err
    assert set(tmp_path.iterdir()) == before


def test_a_run_whose_costs_cannot_be_told_is_named(
    specplan_cli: Callable[..., Any], given: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    (tmp_path / "other.json").write_text(json.dumps({**PLAIN, "max_concurrency": 4}))
    alone = specplan_cli("init", str(file), "--from", str(given["eagle.json"]))
    assert "not used: 3 ms a token, 7.5 ms a round of eagle.json" in alone.err
    files = ["--from", str(given["plain.json"]), "--from", str(tmp_path / "other.json")]
    assert (
        "arrivals: the files differ (1, 4)"
        in specplan_cli("init", "--force", str(file), *files).err
    )


def test_acceptances_that_exclude_each_other_are_listed(
    specplan_cli: Callable[..., Any], given: dict[str, Path], tmp_path: Path
) -> None:
    files = [word for name in ("eagle.json", "engine.log") for word in ("--from", str(given[name]))]
    found = specplan_cli("init", str(tmp_path / "mine.yaml"), *files)
    assert "γ 3, τ 2.5 of eagle.json; γ 3, τ 2.5 of engine.log" in found.err


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("step=0.12", "step=0.12: 0.12 has no unit"),
        ("acceptance=0.7", "acceptance=0.7: `0.7` does not say what it is"),
        ("draft_step=-3 ms", "draft_step=-3 ms: `-3 ms` is negative"),
        ("arrivals=streams: 32", "arrivals=streams: 32: is not YAML"),
    ],
)
def test_a_wrong_answer_is_named_and_not_a_line_of_a_file_that_is_not_there(
    specplan_cli: Callable[..., Any], tmp_path: Path, answer: str, says: str
) -> None:
    found = specplan_cli("init", str(tmp_path / "mine.yaml"), "-a", answer)
    assert found.code == 2
    assert found.err.startswith(says)
    assert len(found.err.splitlines()) == 1


def test_a_draft_step_after_a_full_round_is_kept() -> None:
    text = starter({"extra_draft_step": "true"})
    assert validated(parse_source(text, "mine.yaml")).speculation.extra_draft_step


def test_ctrl_d_at_a_question_writes_nothing(
    specplan_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise typer.Abort

    monkeypatch.setattr("specplan.results.starting_files.answers_from", ends)
    found = specplan_cli("init", str(tmp_path / "mine.yaml"))
    assert (found.code, list(tmp_path.iterdir())) == (130, [])
    assert found.err == "interrupted; nothing was written\n"
