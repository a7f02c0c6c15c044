"""What `specplan law` answers, asserted on MODEL.md §3's seed cases."""

import io
import json

import pytest
from rich.console import Console

from specplan.models.sampling_rules import SamplingRules
from specplan.results.acceptance.law_answer import LawQuestion, law_answer
from specplan.scenarios.errors import ScenarioError

P, Q = [0.6, 0.3, 0.1], [0.5, 0.25, 0.25]


def test_one_position_answers_everything() -> None:
    answer = law_answer(LawQuestion([P], [Q])).json
    assert answer["acceptance"] == pytest.approx([1, 1, 0.4], abs=1e-12)
    assert answer["accepted_mass"] == pytest.approx([0.5, 0.25, 0.1], abs=1e-12)
    assert answer["beta"] == pytest.approx(0.85, abs=1e-12)
    assert answer["residual"] == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-12)
    assert answer["output"] == pytest.approx(P, abs=1e-12)
    assert answer["proof"]["output_sum"] == pytest.approx(1, abs=1e-12)
    assert answer["proof"]["equals_target"] is True
    shortcut = answer["unchanged_target"]
    assert shortcut["output"] == pytest.approx([0.59, 0.295, 0.115], abs=1e-12)
    assert shortcut["error"] == pytest.approx([-0.01, -0.005, 0.015], abs=1e-12)
    assert answer["independent_matching"] == pytest.approx(0.4, abs=1e-12)
    assert answer["greedy"] == {"target_token": 0, "draft_token": 0, "acceptance": 1.0}
    assert answer["tokens_per_round"] == pytest.approx(1.85, abs=1e-12)


def test_equal_laws_have_no_residual() -> None:
    answer = law_answer(LawQuestion([P], [P])).json
    assert answer["beta"] == pytest.approx(1, abs=1e-12)
    assert answer["residual"] is None
    assert answer["independent_matching"] == pytest.approx(0.46, abs=1e-12)


def test_a_list_of_positions_gives_the_conditional_list() -> None:
    answer = law_answer(LawQuestion([P, P, [0.5, 0.3, 0.2]], [Q, P, [0.2, 0.5, 0.3]])).json
    assert answer["conditional"] == pytest.approx([0.85, 1, 0.7], abs=1e-12)
    assert answer["unconditional"] == pytest.approx([0.85, 0.85, 0.595], abs=1e-12)
    assert answer["tokens_per_round"] == pytest.approx(3.295, abs=1e-12)
    assert "beta" not in answer


def test_sampling_rules_apply_to_both_laws() -> None:
    question = LawQuestion([P], [[0.5, 0.1, 0.4]], sampling=SamplingRules(top_k=2))
    answer = law_answer(question).json
    assert answer["p"] == pytest.approx([2 / 3, 1 / 3, 0])
    assert answer["q"] == pytest.approx([5 / 9, 0, 4 / 9])
    assert answer["beta"] == pytest.approx(5 / 9)
    assert answer["acceptance"] == [1.0, None, 0.0]


def test_greedy_is_all_or_nothing() -> None:
    greedy = SamplingRules(temperature=0)
    agree = law_answer(LawQuestion([P], [Q], sampling=greedy)).json
    differ = law_answer(LawQuestion([P], [[0.1, 0.2, 0.7]], sampling=greedy)).json
    assert (agree["beta"], differ["beta"]) == (1, 0)
    assert differ["residual"] == [1, 0, 0]


def test_lenience_is_reported_as_a_loss() -> None:
    # published.json lev-beta: β .7 at l = 1, 1.0 at l = .5
    answer = law_answer(LawQuestion([[0.5, 0.3, 0.2]], [[0.2, 0.5, 0.3]], lenience=0.5))
    assert answer.json["beta"] == pytest.approx(1)
    assert answer.json["output"] == pytest.approx([0.2, 0.5, 0.3])
    assert answer.json["beta_exact"] == pytest.approx(0.7)
    assert answer.json["proof"]["equals_target"] is False
    assert answer.exit_code == 1
    assert "trades the law for speed" in answer.notes[0]


@pytest.mark.parametrize(
    ("rule", "exit_code"), [("exact", 0), ("unchanged_target", 1), ("skip_rejected", 1)]
)
def test_monte_carlo_verdict_is_the_exit_code(rule: str, exit_code: int) -> None:
    question = LawQuestion([P], [Q], draws=200_000, gamma=3, rule=rule)
    answer = law_answer(question)
    assert answer.exit_code == exit_code
    run = answer.json["monte_carlo"]
    assert run["gamma"] == 3
    assert run["target_law_preserved"] is (exit_code == 0)
    assert sum(run["accepted_lengths"]) == 200_000
    if rule != "skip_rejected":
        # 1 + .85 + .85² + .85³
        assert run["tokens_per_round_exact"] == pytest.approx(3.186625, abs=1e-12)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (LawQuestion([P, P], [Q]), "laws of p: 2, laws of q: 1"),
        (LawQuestion([P, [0.5, 0.6, 0]], [Q, Q]), "position 2: p sums to 1.1"),
        (LawQuestion([P], [Q], gamma=0), "gamma: 0"),
        (LawQuestion([P], [Q], gamma=10**8), "gamma: 100000000 \\(1 to 1000 draft positions"),
        (LawQuestion([P], [Q], draws=10**12), "draws is 1000000000000 of 1 drafts"),
        (LawQuestion([P], [Q], draws=10, seed=-1), "seed is -1"),
        (LawQuestion([P, P], [Q, Q], gamma=3), "gamma: 3 while 2 positions"),
        (LawQuestion([P], [Q], draws=-1), r"draws is -1 \(at least 0"),
        (LawQuestion([P], [Q], rule="naive"), "rule: naive"),
        (LawQuestion([P], [Q], bonus=[1.0], draws=10), "bonus has 1 tokens"),
        (LawQuestion([P, [1.0]], [Q, [1.0]], draws=10), "position 2 has 1 tokens"),
    ],
)
def test_what_cannot_be_answered_is_refused(question: LawQuestion, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        law_answer(question)


def test_ties_of_the_argmax_are_told() -> None:
    assert any("tied in q" in note for note in law_answer(LawQuestion([P], [[0.5, 0.5, 0]])).notes)


def test_the_json_is_strict_and_the_text_prints() -> None:
    answer = law_answer(LawQuestion([P, [0.6, 0.4, 0]], [Q, [0, 0.3, 0.7]], draws=1000))
    json.dumps(answer.json, allow_nan=False)
    console = Console(width=120, file=io.StringIO())
    with console.capture() as printed:
        console.print(answer.text)
    assert "β = Σ min(p, q) = 0.85" in printed.get()


def test_a_wrong_rule_without_a_run_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"rule: skip_rejected is shown failing by a run.*draws"
    ):
        law_answer(LawQuestion([P], [Q], rule="skip_rejected"))


def test_gamma_repeats_a_position_without_a_run_too() -> None:
    answer = law_answer(LawQuestion([P], [Q], gamma=3)).json
    # β .85 three times: 1 + .85 + .7225 + .614125
    assert answer["conditional"] == pytest.approx([0.85] * 3)
    assert answer["tokens_per_round"] == pytest.approx(3.186625)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (LawQuestion([P], [Q], draws=200, rule="unchanged_target"), "does not refute"),
        (LawQuestion([[1.0, 0.0]], [[0.5, 0.5]], draws=1000), "nothing to test"),
    ],
)
def test_a_run_too_short_to_tell_is_no_agreement(question: LawQuestion, says: str) -> None:
    stream = io.StringIO()
    Console(width=100, file=stream).print(law_answer(question).text)
    assert says in stream.getvalue()
    assert "agrees with the target law" not in stream.getvalue()
