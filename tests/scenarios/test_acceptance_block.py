"""Every statement about acceptance means what its name says."""

from pathlib import Path

import pytest

from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, override
from specplan.scenarios.schema import Scenario


def stating(text: str, *sets: str) -> Scenario:
    return load("toy-20ms", [f"speculation.acceptance={text}", *sets])


@pytest.mark.parametrize(
    ("text", "unconditional"),
    [
        ("{alpha: 80 %}", [0.8, 0.64]),
        ("{conditional: [0.8, 0.5]}", [0.8, 0.4]),
        ("{unconditional: [0.8, 0.5, 0.4]}", [0.8, 0.5]),
        ("{acceptance_length: 1.75}", [0.5, 0.25]),  # α = 0.5: 1 + 0.5 + 0.25
        ("{acceptance_length: 1.75, shape: minimum_variance}", [0.75, 0.0]),
        ("{acceptance_length: 2.5, shape: minimum_variance}", [1.0, 0.5]),
        # MODEL.md §3: p = (.6,.3,.1), q = (.5,.25,.25) → β .85
        ("{pq: [{p: [.6,.3,.1], q: [.5,.25,.25]}, {p: [.6,.4], q: [.6,.4]}]}", [0.85, 0.85]),
        ("{histogram: [2, 1, 1]}", [0.5, 0.25]),
        ("{recorded: [0, 2, 1, 0]}", [0.5, 0.25]),
        ("{recorded_tokens: [0, 1, 1, 1, 1, 0, 0]}", [0.5, 0.25]),  # rounds of 0, 2, 1 and 0
    ],
)
def test_readings(text: str, unconditional: list[float]) -> None:
    found = stating(text).acceptance(2).unconditional[0].tolist()
    assert found == pytest.approx(unconditional)


def test_model_md_worked_example() -> None:
    # MODEL.md §2: a = (.85, .78, .72, .65) → A = (.850, .663, .477, .310), τ 3.301
    scenario = stating("{conditional: [.85, .78, .72, .65]}", "speculation.gamma=4")
    law = scenario.acceptance(4)
    assert law.unconditional[0].tolist() == pytest.approx([0.85, 0.663, 0.477, 0.31], abs=5e-4)
    assert float(law.tokens_per_round(4)) == pytest.approx(3.301, abs=5e-4)


def test_a_mixture_is_harmonic_over_its_requests() -> None:
    # τ = 1/Σ w/τ: α .5 gives 1.75 and α .9 gives 2.71 at γ 2.
    law = stating("{mixture: [{weight: 3, alpha: .5}, {weight: 1, alpha: .9}]}").acceptance(2)
    assert law.weight.tolist() == [0.75, 0.25]
    assert float(law.tokens_per_round(2)) == pytest.approx(1 / (0.75 / 1.75 + 0.25 / 2.71))


def test_classes_make_a_mixture() -> None:
    scenario = load(
        "toy-20ms",
        ["workload.classes={a: {weight: 3}, b: {acceptance: {alpha: 0.9}, draft_probability: .5}}"],
    )
    law = scenario.acceptance(2)
    assert law.weight.tolist() == [0.75, 0.25]
    assert law.draft_probability.tolist() == [1.0, 0.5]
    assert scenario.acceptance(2, "b").unconditional.tolist() == [[0.9, pytest.approx(0.81)]]


def test_heterogeneous_requests() -> None:
    assert stating("{alpha: .8, concentration: 10}").acceptance(2).concentration.tolist() == [10.0]


def test_a_tree_keeps_what_its_nodes_say() -> None:
    # Sequoia: expected accepted length = Σ over nodes of the product of ranks on the path.
    scenario = stating(
        "{ranks: [0.6, 0.2]}",
        "speculation.method=tree",
        "speculation.tree={nodes: [[0], [1], [0, 0], [0, 1]]}",
    )
    assert (scenario.gamma, scenario.verify_width) == (2, 5)
    law = scenario.acceptance(2)
    assert float(law.tokens_per_round(2)) == pytest.approx(1 + 0.6 + 0.2 + 0.36 + 0.12)


# Sequoia acceptance-rate-vector.pt @0ff3ff71, ranks printed to 4 digits: hence 1.5e-4 below.
SEQUOIA = "[0.6342, 0.1079, 0.057, 0.0225, 0.0195, 0.015, 0.0045, 0.003]"


@pytest.mark.parametrize(
    ("budget", "tokens"),
    # published.json sequoia-tree, F(n) of tree_search.py: max_depth 10 counts the root, n does, too
    [(2, 1.63418), (3, 2.03637), (4, 2.29143), (8, 2.73217), (16, 3.13029), (32, 3.50074),
     (64, 3.85231)],
)  # fmt: skip
def test_a_budget_buys_the_best_tree(budget: int, tokens: float) -> None:
    scenario = stating(
        f"{{ranks: {SEQUOIA}}}",
        "speculation.method=tree",
        "speculation.gamma=null",
        f"speculation.tree={{budget: {budget}, depth: 9}}",
    )
    assert scenario.verify_width == budget
    assert float(predict(scenario).tokens_per_round) == pytest.approx(tokens, abs=1.5e-4)
    again = override(scenario, ["seed=2"])  # its tree follows other ranks, and is not written out
    assert again.resolved()["speculation"]["tree"] == {"budget": budget, "depth": 9}


def test_the_tree_of_a_budget_follows_the_ranks() -> None:
    tree = ("speculation.method=tree", "speculation.gamma=null", "speculation.tree={budget: 4}")
    # .6, .36, .216 on a chain against .6, .36, .2; with .3 beside .4 the second child is worth more
    chain = stating("{ranks: [0.6, 0.2]}", *tree)
    assert chain.speculation.tree_paths == ((0,), (0, 0), (0, 0, 0))
    assert override(chain, ["speculation.acceptance={ranks: [0.4, 0.3]}"]).gamma == 2


@pytest.mark.parametrize(
    ("rule", "third"),
    # a = (.8, .5): the last goes on, also as the mean of all after the first; α of τ 2.2 is .7042
    [("last_ratio", 0.2), ("plateau", 0.2), ("iid", 0.2817), ("zero", 0.0)],
)
def test_a_rule_goes_on_beyond_what_is_stated(rule: str, third: float) -> None:
    scenario = stating(f"{{conditional: [.8, .5], extend: {rule}}}", "speculation.gamma=3")
    found = scenario.acceptance(3).unconditional[0].tolist()
    assert found == pytest.approx([0.8, 0.4, third], abs=1e-4)


@pytest.mark.parametrize("concentration", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("hit", [1.0, 0.4])
def test_a_stated_tau_comes_out_however_much_requests_differ(
    concentration: float, hit: float
) -> None:
    scenario = stating(
        f"{{acceptance_length: 3.3, concentration: {concentration}}}",
        "speculation.gamma=4",
        f"speculation.draft_probability={hit}",
    )
    # 1 + h·(τ − 1): of all rounds, those that draft nothing included
    tokens = float(predict(scenario).tokens_per_round)
    assert tokens == pytest.approx(1 + hit * 2.3, abs=1e-9)


def test_recorded_files(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("0\n2\n1\n\n0\n")
    law = stating(f"{{recorded_file: {path}}}").acceptance(2)
    assert law.recorded is not None
    assert law.recorded.tolist() == [0, 2, 1, 0]
    path.write_text("0\ntwo\n")
    with pytest.raises(ScenarioError, match=r"kept\.txt:2: `two` is not a number of tokens"):
        stating(f"{{recorded_file: {path}}}").acceptance(2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{recorded_tokens: [0, 2]}", r"recorded_tokens\.1: is 2 \(1 or less\)"),
        ("{recorded: [0, 5], at_gamma: 2}", "5 tokens recorded in one round, and at_gamma is 2"),
        ("{histogram: [0, 0, 0]}", "every count is zero"),
        ("{ranks: [0.8, 0.5]}", "the ranks sum to 1.3"),
        (
            "{mixture: [{weight: 1, recorded: [0, 2, 0]}, {weight: 1, alpha: .5}]}",
            r"replays one record in order, and a mixture .* \(`histogram: \[2, 0, 1\]`, its law\)",
        ),
        ("{alpha: 0.5, at_gamma: 3}", "at_gamma does not apply to alpha"),
        ("{conditional: [0.5, 0.5], concentration: 3}", "concentration does not apply to cond"),
        ("{}", "nothing is chosen"),
        ("0.5", "`0.5` does not say what it is"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        stating(text)


@pytest.mark.parametrize(
    ("gamma", "by_hand"), [(1, [0, 1, 1, 0, 0, 0]), (2, [0, 2, 1, 0, 0]), (4, [0, 4, 0, 0])]
)
def test_each_gamma_cuts_its_own_rounds_from_a_record_of_tokens(
    gamma: int, by_hand: list[int]
) -> None:
    record = "[0, 1, 1, 1, 1, 0, 0, 0]"
    scenario = stating(f"{{recorded_tokens: {record}}}", f"speculation.gamma={gamma}")
    kept = scenario.acceptance(gamma).recorded
    assert kept is not None
    assert kept.tolist() == by_hand
    tokens = 1 + sum(by_hand) / len(by_hand)
    assert float(predict(scenario).tokens_per_round) == pytest.approx(tokens)


@pytest.mark.parametrize("other", ["{acceptance: {alpha: 0.5}}", "{draft_probability: 0.5}"])
def test_a_record_beside_classes_of_other_laws_is_refused(other: str) -> None:
    text = f"workload.classes={{a: {{acceptance: {{recorded: [0, 1, 2]}}}}, b: {other}}}"
    with pytest.raises(ScenarioError, match=r"classes\.a\.acceptance\.recorded: .*\[1, 1, 1\]"):
        load("toy-20ms", [text])


def test_a_budget_is_not_spent_for_several_kinds() -> None:
    text = "{mixture: [{weight: 1, ranks: [.6, .2]}, {weight: 1, ranks: [.3, .1]}]}"
    tree = ("speculation.method=tree", "speculation.gamma=null", "speculation.tree={budget: 4}")
    with pytest.raises(ScenarioError, match=r"tree\.budget: is spent by one list of ranks"):
        stating(text, *tree)
    # the nodes of a tree by hand serve every kind: A_1 = .45 on average, A_2 = (.36 + .09)/2
    by_hand = stating(text, *tree[:2], "speculation.tree={nodes: [[0], [0, 0]]}")
    weighted = by_hand.acceptance(2)
    assert (weighted.weight @ weighted.unconditional).tolist() == pytest.approx([0.45, 0.225])
