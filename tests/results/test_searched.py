"""The best γ says where it is only the end of what was searched, and how to look further."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.closed_curves import curves
from specplan.results.planning.answer import make_plan
from specplan.results.planning.as_json import plan_json
from specplan.results.planning.loads import Planner
from specplan.results.planning.objectives import objectives_of
from specplan.results.planning.text import plan_text
from specplan.results.prediction import predict_answer
from specplan.results.searched import search_note
from specplan.results.sections import closed_sections
from specplan.scenarios.closed_form import predict
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FREE = ["draft.step=1 ms", "speculation.gamma=4"]
EXTEND = "--set speculation.acceptance.extend=last_ratio"


@pytest.mark.parametrize(
    ("acceptance", "hint"),
    [
        ("{acceptance_length: 3.9}", EXTEND),
        ("{conditional: [.9, .9, .9, .9]}", EXTEND),
        ("{unconditional: [.9, .8, .7, .6]}", EXTEND),
        ("{histogram: [1, 1, 1, 1, 9]}", EXTEND),
        ("{recorded: [4, 4, 3, 4]}", "rounds recorded at a larger γ"),
        ("{mixture: [{weight: 1, acceptance_length: 4.1}, {weight: 1, alpha: .9}]}",
         "`extend: last_ratio` in each acceptance"),
    ],
)  # fmt: skip
def test_at_the_last_known_position_the_way_on_is_named(acceptance: str, hint: str) -> None:
    scenario = load("toy-20ms", [*FREE, f"speculation.acceptance={acceptance}"])
    value = predict_answer(scenario, None, force=False).json
    assert (value["best_gamma"], value["best_gamma_searched_to"]) == (4, 4)
    assert value["best_gamma_note"].startswith("best within the 4 positions that are known")
    assert value["best_gamma_note"].endswith(hint)


def test_the_setting_that_is_named_looks_further() -> None:
    sets = [*FREE, "speculation.acceptance={acceptance_length: 3.9}"]
    setting = EXTEND.removeprefix("--set ")
    found = predict(load("toy-20ms", [*sets, setting]))
    assert int(found.best_gamma) > 4
    assert int(found.best_gamma_searched_to) == 32


def test_a_perfect_draft_has_no_best_gamma_but_the_end_of_the_search() -> None:
    """α = 1, d < T: the speedup (γ + 1)/(1 + γ d/T) rises for ever (MODEL.md §3)."""
    for gamma, last in ((2, 32), (64, 64), (1000, 1000)):
        sets = ["speculation.acceptance.alpha=1", f"speculation.gamma={gamma}"]
        scenario = load("toy-20ms", sets)
        found = predict(scenario)
        assert (int(found.best_gamma), int(found.best_gamma_searched_to)) == (last, last)
        note = search_note(scenario, last, last)
        assert note
        assert note.endswith(f"speculation.gamma={2 * last}") == (last < 500)


def test_inside_the_search_nothing_is_said() -> None:
    value = predict_answer(load("toy-20ms"), None, force=False).json
    assert value["best_gamma"] == 1
    assert value["best_gamma_note"] is None


def test_the_end_of_a_cost_table(tmp_path: Path) -> None:
    table = tmp_path / "costs.csv"
    table.write_text("batch,width,ms\n1,1,100\n1,3,100\n8,1,120\n8,3,150\n")
    sets = [f"target.round.table={table}", f"target.step.table={table}", "draft.step=0 ms"]
    value = predict_answer(load("toy-20ms", sets), None, force=False).json
    assert (value["best_gamma"], value["best_gamma_searched_to"]) == (2, 2)
    assert "the cost table, which ends at width 3" in value["best_gamma_note"]


def test_without_speculation_nothing_was_searched(specplan_cli: Callable[..., Any]) -> None:
    off = specplan_cli("predict", "toy-20ms", "--set", "speculation.gamma=0")
    assert "not looked for: speculation is off" in off.out


def test_the_words_keep_the_setting_in_one_piece(specplan_cli: Callable[..., Any]) -> None:
    sets = [word for s in (*FREE, "speculation.acceptance={acceptance_length: 3.9}")
            for word in ("--set", s)]  # fmt: skip
    lines = specplan_cli("predict", "toy-20ms", *sets).out.splitlines()
    assert EXTEND in [line.strip() for line in lines]


def test_the_report_says_so_too() -> None:
    scenario = load("toy-20ms", [*FREE, "speculation.acceptance={acceptance_length: 3.9}"])
    which = next(s for s in closed_sections(curves(scenario)) if s.title == "Which γ")
    assert "within the 4 positions that are known" in " ".join(which.sentences)


def test_a_plan_says_how_deep_it_simulated() -> None:
    sets = [*FREE, "speculation.acceptance={acceptance_length: 3.9}", "workload.output_tokens=16",
            "workload.arrivals={rate: 0.1/s}", "slo.tpot_p95=300 ms"]  # fmt: skip
    scenario = load("toy-20ms", sets)
    with ThreadPoolExecutor(1) as executor:
        planner = Planner.on(executor, objectives_of(scenario), requests=300, tolerance=0.3)
        plan = make_plan(scenario, planner)
    value = plan_json(plan)
    assert (value["best_gamma"], value["best_gamma_searched_to"]) == (4, 4)
    assert value["best_gamma_note"].endswith(EXTEND)
    assert any(EXTEND in str(part) for part in plan_text(plan).renderables)
