"""Several files: none is the baseline of another model, and each gap is said once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from specplan.results.acceptance.import_answer import import_answer
from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

    from specplan.results.answer import Answer

LOG = (
    "INFO 07-01 10:00:10 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 2.87, "
    "Accepted throughput: 187.00 tokens/s, Drafted throughput: 400.00 tokens/s, Accepted: 1870 "
    "tokens, Drafted: 4000 tokens, Per-position acceptance rate: 0.750, 0.520, 0.360, 0.240, Avg "
    "Draft acceptance rate: 46.8%\n"
)


def bench(folder: Path, name: str, model: str, tpot_ms: float, concurrency: int = 1) -> Path:
    """Write a result of `vllm bench serve` that says nothing about speculation."""
    path = folder / name
    value = {
        "date": "20260701-100000", "backend": "vllm", "model_id": model, "num_prompts": 100,
        "request_rate": "inf", "max_concurrency": concurrency, "duration": 60.0, "completed": 100,
        "total_input_tokens": 1000, "total_output_tokens": 10000, "request_throughput": 1.7,
        "output_throughput": 166.0, "mean_ttft_ms": 50.0, "mean_tpot_ms": tpot_ms,
    }  # fmt: skip
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def shown(answer: Answer) -> str:
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        console.print(answer.text)
    return captured.get()


def test_models_are_not_each_others_baseline(tmp_path: Path) -> None:
    files = [
        bench(tmp_path, f"{model}.json", f"org/{model}", 10.0 + n)
        for n, model in enumerate(["one", "two", "three"])
    ]
    with pytest.raises(ScenarioError, match=r"3 models: org/one, org/three, org/two"):
        calibrate_answer(files)


def test_a_silent_run_is_unknown_groups_are_in_order_and_a_need_is_said_once(
    tmp_path: Path,
) -> None:
    files = [bench(tmp_path, f"c{n}.json", "org/one", 10.0 + n, n) for n in (16, 4, 32, 8)]
    answer = calibrate_answer(files)
    assert [group["batch"] for group in answer.json["groups"]] == [4, 8, 16, 32]
    text = " ".join(shown(answer).split())
    assert "speculation none" not in text
    assert "c16.json" in text
    assert "state gamma=0, or gamma and tau" in text
    assert text.count("a measurement without speculation (--baseline)") == 1


def test_a_log_alone_says_what_to_put_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_text(LOG, encoding="utf-8")
    answer = calibrate_answer([log])
    assert any("--point 'gamma=4 tau=2.87 … tok/s' --baseline" in note for note in answer.notes)


def test_file_names_are_not_broken_within_words(tmp_path: Path) -> None:
    names = [f"glm5_fp8_vllm_tp8_isl1024_osl128_conc{n}.json" for n in (4, 16)]
    answer = import_answer([bench(tmp_path, name, "org/one", 10.0) for name in names])
    lines = [line.split()[0] for line in shown(answer).splitlines() if line.strip()]
    assert "conc4.json" in lines
    assert "conc16.json" in lines


def test_files_that_name_no_model_are_pooled_with_a_warning(tmp_path: Path) -> None:
    files = []
    for name in ("deepseek.log", "glm.log"):
        files.append(tmp_path / name)
        files[-1].write_text(LOG, encoding="utf-8")
    (group,) = import_answer(files).json["groups"]
    assert "2 files, nothing in them says that they are one system" in group["warnings"]
    assert "nothing in them says that they are one system" in " ".join(group["block"].split())
    (alone,) = import_answer(files[:1]).json["groups"]
    assert not any("one system" in warning for warning in alone["warnings"])
