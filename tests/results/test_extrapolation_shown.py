"""An extrapolated acceptance shows its band and its warning wherever γ is chosen."""

import io

import pytest
from rich.console import Console

from specplan.results.acceptance.convert_answer import convert_scenario_answer
from specplan.results.acceptance.export_answer import export_answer
from specplan.results.closed_curves import curves
from specplan.results.figures.closed import speedup_by_gamma
from specplan.results.planning.answer import plan_answer
from specplan.results.prediction import predict_answer
from specplan.results.sections import closed_sections
from specplan.results.simulation import simulate_answer
from specplan.results.sweep.answer import Means, sweep_answer
from specplan.scenarios.load import load
from specplan.scenarios.schema import Scenario
from specplan.sim.design import parse_design

ONE = "speculation.acceptance={acceptance_length: 1.7, at_gamma: 1, extend: iid}"
THREE = "speculation.acceptance={unconditional: [.7, .45, .3], extend: plateau}"
OVERESTIMATES = "overestimated tokens per round at gamma 8"


def toy(*sets: str) -> Scenario:
    return load("toy-20ms", list(sets))


def printed(answer: object) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(answer)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_predict_gives_both_ends_and_the_warning() -> None:
    answer = predict_answer(toy(ONE, "speculation.gamma=3"), None, force=False)
    found = answer.json["extrapolation"]
    assert (found["stated_positions"], found["rules"]) == (1, ["iid"])
    here = found["by_gamma"][0]
    assert here["gamma"] == 3
    # A_1 = .7; A_2, A_3 from 0 to .7: τ 1.7 to 3.1, at 160 ms a round
    assert here["tokens_per_round"] == pytest.approx([1.7, 3.1])
    assert here["speedup"] == pytest.approx([1.7 / 1.6, 3.1 / 1.6])
    assert OVERESTIMATES in " ".join(answer.notes)
    assert "beyond the 1 positions stated, by iid; γ = 3: 1.7 to 3.1" in printed(answer.text)


def test_nothing_is_said_where_all_is_stated() -> None:
    answer = predict_answer(toy(THREE.replace(", extend: plateau", "")), None, force=False)
    assert answer.json["extrapolation"] is None
    assert "Extrapolated" not in printed(answer.text)


def test_a_sweep_has_columns_and_notes() -> None:
    design = parse_design(["speculation.gamma=2..5", "draft.step=10 ms,20 ms"])
    answer = sweep_answer(toy(THREE), design, Means(), None)
    low, high, middle = (
        answer.json["columns"][name] for name in ("speedup_low", "speedup_high", "speedup")
    )
    assert [value is None or value != value for value in low] == [True] * 4 + [False] * 4
    assert all(a < b < c for a, b, c in zip(low[4:], middle[4:], high[4:], strict=True))
    assert any("beyond the 3 positions stated" in note for note in answer.notes)


def test_a_simulated_sweep_has_the_warning() -> None:
    scenario = toy(ONE, "workload.requests=5", "workload.output_tokens=8")
    answer = sweep_answer(
        scenario, parse_design(["speculation.gamma=1,2"]), Means("simulate"), None
    )
    assert OVERESTIMATES in " ".join(answer.notes)


def test_the_figure_and_the_page_draw_the_band() -> None:
    made = curves(toy(THREE))
    traces = {trace["name"]: trace for trace in speedup_by_gamma(made)["data"]}
    assert traces["band of the extrapolation"]["x"][:2] == [3, 4]
    which = next(one for one in closed_sections(made) if one.title == "Which γ")
    assert any(
        "Extrapolated beyond the 3 positions stated, by plateau" in s for s in which.sentences
    )


def test_a_plan_gives_both_ends() -> None:
    scenario = toy(ONE, "workload.output_tokens=16")
    answer = plan_answer(scenario, ["tpot p50 < 200 ms"], requests=60, tolerance=0.5)
    found = answer.json["extrapolation"]
    assert [row["gamma"] for row in found["by_gamma"]] == list(range(2, 9))
    assert OVERESTIMATES in " ".join(answer.notes)
    assert "Acceptance is extrapolated beyond the 1 positions stated" in printed(answer.text)


def test_simulate_export_and_convert_say_so_too() -> None:
    scenario = toy(ONE, "speculation.gamma=3", "workload.requests=3", "workload.output_tokens=8")
    answers = [
        simulate_answer(scenario, None, force=False),
        export_answer(scenario),
        convert_scenario_answer(scenario),
    ]
    for answer in answers:
        told = " ".join(answer.notes)
        assert "acceptance beyond the 1 positions stated is extrapolated by iid" in told
        assert OVERESTIMATES in told
