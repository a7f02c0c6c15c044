"""What is meant is said: the nearest name, both numbers, the file and the key that would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("predict", "toy-20ms", "--set", "target.gpu=h10"), "did you mean `h100-sxm`?"),
        (("acceptance", "convert", "engine=vlm", "rate=.5", "gamma=3"), "did you mean vllm?"),
        (("acceptance", "export", "toy-20ms", "--engine", "vlm"), "did you mean vllm?"),
        (("acceptance", "convert", "engne=vllm"), "did you mean engine?"),
        (("acceptance", "convert", "tok=3"), "did you mean token_shares?"),
        (("acceptance", "convert", "xyz=3"), "one of "),
        (
            ("acceptance", "convert", "gamma=3", "histogram=10,20,30,40,50"),
            "50 rounds that accepted 4 drafts and gamma is 3",
        ),
        (("acceptance", "convert", "gamma=3", "fill=last", "rate=.5"), "fill: last (last_ratio"),
    ],
)
def test_refused(specplan_cli: Cli, words: tuple[str, ...], says: str) -> None:
    found = specplan_cli(*words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


@pytest.mark.parametrize("spelling", ["trtllm", "TRT-LLM", "tensorrt_llm", "TensorRT-LLM"])
def test_spellings_of_an_engine(specplan_cli: Cli, spelling: str) -> None:
    found = specplan_cli("acceptance", "convert", f"engine={spelling}", "rate=.5", "gamma=3")
    assert found.code == 0
    assert specplan_cli("acceptance", "export", "toy-20ms", "--engine", spelling).code == 0


def test_a_pass_without_a_price_names_the_table_and_the_rules(
    specplan_cli: Cli, tmp_path: Path
) -> None:
    table = tmp_path / "passes.csv"
    table.write_text("batch,width,ms\n1,1,10\n1,3,11\n4,1,12\n4,3,14\n")
    words = ["--set", "target={round: {table: " + str(table) + "}}"]
    words += ["--set", "workload.arrivals={streams: 8}", "--set", "scheduler.max_num_seqs=8"]
    found = specplan_cli("simulate", "toy-20ms", *words)
    assert found.code == 2
    for part in ("target.round: ", str(table), "batch 1 to 4, width 1 to 3", "`outside: hold`"):
        assert part in found.err


def test_a_gpu_of_a_roofline_is_found_in_the_file(specplan_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("{}")
    file = tmp_path / "roof.yaml"
    file.write_text(
        "name: roof\ntarget:\n  round:\n    roofline:\n      gpu: h10\n      model: model.json\n"
        "speculation: {method: none}\n"
        "workload: {arrivals: {streams: 1}, requests: 9, prompt_tokens: 0, output_tokens: 9}\n"
    )
    found = specplan_cli("predict", str(file))
    assert found.code == 2
    assert "roof.yaml:5:12: target.round.roofline.gpu: there is no GPU `h10`" in found.err
    assert "did you mean `h100-sxm`?" in found.err
