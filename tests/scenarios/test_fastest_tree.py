"""The fastest tree for a scenario's costs, against trees set one by one."""

import pytest

from specplan.results.prediction import predict_answer
from specplan.scenarios.closed_form import operating_point, predict
from specplan.scenarios.fastest_tree import fastest_for
from specplan.scenarios.load import load
from specplan.scenarios.schema import Scenario

RANKS = "[0.63, 0.11, 0.06, 0.02]"
SLOPE = "target.round={linear: {base: 96 ms, per_token: 4 ms}}"


def tree(shape: str, *sets: str) -> Scenario:
    spec = f"speculation={{method: tree, acceptance: {{ranks: {RANKS}}}, tree: {shape}}}"
    return load("toy-20ms", [spec, SLOPE, *sets])


def test_no_budget_and_depth_is_faster() -> None:
    scenario = tree("{budget: 40}")
    best = fastest_for(scenario, operating_point(scenario))
    assert best is not None
    around = [
        float(predict(tree(f"{{budget: {width}, depth: {depth}}}")).tpot_s)
        for width in range(2, 16)
        for depth in range(1, min(width, 7))
    ]
    assert best.tpot_s == pytest.approx(min(around), rel=1e-9)


def test_the_answer_can_be_copied() -> None:
    answer = predict_answer(tree("{nodes: [[0], [1], [0, 0]]}"), None, force=False)
    best = answer.json["fastest_tree"]
    shape = f"{{budget: {best['verify_width']}, depth: {best['depth']}}}"
    found = predict(tree(shape))
    assert float(found.speedup) == pytest.approx(best["speedup"])
    assert float(found.tokens_per_round) == pytest.approx(best["tokens_per_round"])
    assert found.speedup > answer.json["speedup"]
    again = predict_answer(tree(shape), None, force=False)
    assert again.json["fastest_tree"]["nodes"] == again.json["tree"]


def test_a_budgets_own_depth_is_kept() -> None:
    scenario = tree("{budget: 8, depth: 1}")
    best = fastest_for(scenario, operating_point(scenario))
    assert best is not None
    assert best.depth == 1


def test_where_every_tree_loses_there_is_none() -> None:
    dear = "target.round={linear: {base: 50 ms, per_token: 50 ms}}"
    answer = predict_answer(tree("{budget: 4}", dear, "draft.step=90 ms"), None, force=False)
    assert answer.json["fastest_tree"]["nodes"] == []
    assert answer.json["fastest_tree"]["speedup"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "other",
    [
        "speculation.draft_probability=0.5",
        "draft.placement=parallel",
        "workload.classes={a: {acceptance: {ranks: [0.5, 0.1, 0.05, 0.01]}}}",
        "speculation.acceptance={acceptance_length: 2.1}",
    ],
)
def test_where_ranks_do_not_describe_every_round_none_is_named(other: str) -> None:
    shape = "{nodes: [[0], [1], [0, 0]]}"
    scenario = tree(shape, other)
    assert fastest_for(scenario, operating_point(scenario)) is None
