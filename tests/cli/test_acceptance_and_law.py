"""`specplan law`, `acceptance convert` and `acceptance export` as they are typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

P, Q = ".6,.3,.1", ".5,.25,.25"


def test_law_inline(specplan_cli: Callable[..., Any]) -> None:
    answer = specplan_cli("law", "--p", P, "--q", Q, "--json").json
    assert answer["beta"] == pytest.approx(0.85, abs=1e-12)
    assert answer["residual"] == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-12)


def test_law_of_a_file(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([{"p": [0.6, 0.4], "q": [0.5, 0.5]}, {"p": [0.9, 0.1]}]))
    answer = specplan_cli("law", str(path), "--json").json
    assert answer["conditional"] == pytest.approx([0.9])


def test_law_with_a_wrong_rule_says_no(specplan_cli: Callable[..., Any]) -> None:
    words = ["law", "--p", P, "--q", Q, "--draws", "200000"]
    assert specplan_cli(*words).code == 0
    wrong = specplan_cli(*words, "--rule", "unchanged_target")
    assert wrong.code == 1
    assert "REFUTES the target law" in wrong.out


def test_law_with_lenience_and_greedy(specplan_cli: Callable[..., Any]) -> None:
    lenient = specplan_cli(
        "law", "--p", ".5,.3,.2", "--q", ".2,.5,.3", "--lenience", ".5", "--json"
    )
    assert (lenient.json["beta"], lenient.code) == (pytest.approx(1), 1)
    # .95 = .5 + .25 + .1 / .5 and .85 = Σ min(p, q)
    said = specplan_cli("law", "--p", P, "--q", Q, "--lenience", ".5").out
    assert "lenient acceptance Σ q min(1, p/(l q)) = 0.95 beside β = Σ min(p, q) = 0.85" in said
    assert "does not correct" in said
    greedy = specplan_cli("law", "--p", P, "--q", Q, "--temperature", "0", "--json")
    assert greedy.json["beta"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--p", P],
        ["--p", ".6,.3", "--q", Q],
        ["--p", "a,b", "--q", Q],
        ["--p", P, "--q", Q, "--rule", "naive"],
        ["--p", P, "--q", Q, "--top-p", "0"],
        ["nowhere.yaml"],
        ["nowhere.yaml", "--p", P, "--q", Q],
        [],
    ],
)
def test_law_refuses_in_one_line(specplan_cli: Callable[..., Any], words: list[str]) -> None:
    done = specplan_cli("law", *words)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert not done.out


@pytest.mark.parametrize(
    "words",
    [
        ["--gamma", "4", "--conditional", ".85,.78,.72,.65"],
        ["gamma=4", "conditional=.85,.78,.72,.65"],
    ],
)
def test_convert_worked_example(specplan_cli: Callable[..., Any], words: list[str]) -> None:
    answer = specplan_cli("acceptance", "convert", *words, "--json").json
    assert answer["acceptance_length"] == pytest.approx(3.301, abs=5e-4)
    assert answer["alpha"] == pytest.approx(0.791, abs=5e-4)


def test_convert_ambiguity_goes_to_stderr(specplan_cli: Callable[..., Any]) -> None:
    done = specplan_cli("acceptance", "convert", "rate=72%", "gamma=5")
    assert done.code == 0
    assert "4 readings fit" in done.out
    assert "what was divided by what" in done.err


def test_convert_contradiction_shows_both(specplan_cli: Callable[..., Any]) -> None:
    words = ["acceptance_length=3.6", "acceptance_rate=.5", "gamma=4"]
    done = specplan_cli("acceptance", "convert", *words)
    assert done.code == 2
    assert "3.6" in done.err
    assert "0.5 means 3:" in done.err


def test_convert_a_scenario_with_a_setting(specplan_cli: Callable[..., Any]) -> None:
    words = ["toy-20ms", "--set", "speculation.gamma=3", "--json"]
    answer = specplan_cli("acceptance", "convert", *words).json
    assert answer["acceptance_length"] == pytest.approx(1.875)


def test_convert_refuses_a_setting_without_a_scenario(specplan_cli: Callable[..., Any]) -> None:
    done = specplan_cli("acceptance", "convert", "alpha=.5", "--set", "speculation.gamma=3")
    assert done.code == 2
    assert "none is named" in done.err


def test_export_every_engine(specplan_cli: Callable[..., Any]) -> None:
    made = specplan_cli("acceptance", "export", "toy-20ms", "--json").json["exports"]
    assert {row["engine"] for row in made} == {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}


def test_export_an_unknown_engine(specplan_cli: Callable[..., Any]) -> None:
    done = specplan_cli("acceptance", "export", "toy-20ms", "--engine", "vlm")
    assert done.code == 2
    assert "vllm | sglang | tensorrt-llm | llama.cpp" in done.err
