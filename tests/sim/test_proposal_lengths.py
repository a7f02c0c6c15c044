"""n-gram proposals of varying length, and the fixed cost of drafting: simulation = theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.round_costs import round_costs
from specplan.models.rounds import finite_output, generation_s_moments
from specplan.models.speedup import predict
from specplan.scenarios import closed_form
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

N = 40
LENGTHS = (2, 1, 1)  # of 4 drafting rounds 2 propose one token, 1 two and 1 three
PROPOSING = (1.0, 0.5, 0.25)
KEPT = (0.6, 0.4, 0.2)  # of all rounds that draft, as engines print it
NGRAM = (
    "speculation.method=ngram",
    "draft.step=0 ms",
    "speculation.gamma=3",
    "speculation.draft_probability=0.7",
    f"speculation.proposal_lengths={list(LENGTHS)}",
    f"speculation.acceptance={{unconditional: {list(KEPT)}}}",
    "target.round={linear: {base: 90 ms, per_token: 10 ms}}",
    "target.step={linear: {base: 90 ms, per_token: 10 ms}}",
    f"workload.output_tokens={N}",
    "workload.requests=2000",
)


def assert_mean(values: object, expected: float) -> None:
    found = np.asarray(values, dtype=np.float64)
    error = found.std() / np.sqrt(found.size)
    assert abs(found.mean() - expected) <= 4 * error + 1e-12


def test_rounds_tokens_and_seconds_of_lengths_that_vary(run: Callable[..., Run]) -> None:
    done = run(*NGRAM).requests
    proposed = np.concatenate([[0.0], np.cumsum(PROPOSING)])
    exact = finite_output(KEPT, 3, N, 0.7, proposed)
    assert_mean(done["rounds"], float(exact.rounds))
    assert_mean(done["drafted_tokens"], float(exact.drafted_tokens))
    assert_mean(done["accepted_tokens"], float(exact.accepted_tokens))
    costs = round_costs(0.1, [0.11, 0.12, 0.13], 0.0, proposing=PROPOSING)
    mean, _ = generation_s_moments(KEPT, 3, N, costs, 0.7)
    assert_mean(done["finish_s"] - done["arrival_s"], float(mean))


def test_the_scenario_predicts_what_it_simulates(toy: Callable[..., Scenario]) -> None:
    found = closed_form.predict(toy(*NGRAM))
    assert float(found.tokens_per_round) == pytest.approx(1 + 0.7 * 1.2)
    assert float(found.drafted_per_round) == pytest.approx(0.7 * 1.75)
    # A round without a match costs 100 ms; with one 110, 120 or 130 ms by its length.
    drafting = 0.5 * 0.11 + 0.25 * 0.12 + 0.25 * 0.13
    assert float(found.round_s) == pytest.approx(0.7 * drafting + 0.3 * 0.1)
    # Break-even: .7 (α + .5 α² + .25 α³) = R/T − 1
    alpha = float(found.break_even_alpha)
    gained = 0.7 * (alpha + 0.5 * alpha**2 + 0.25 * alpha**3)
    assert gained == pytest.approx(float(found.round_cost_ratio) - 1)


def test_proposals_that_are_always_gamma_long_change_nothing(run: Callable[..., Run]) -> None:
    without = [text for text in NGRAM if "proposal_lengths" not in text]
    with_all = run(*without, "speculation.proposal_lengths=[0, 0, 1]").requests
    plain = run(*without).requests
    for name in ("finish_s", "rounds", "drafted_tokens"):
        assert with_all[name].tolist() == plain[name].tolist()


def test_one_round_is_never_kept_beyond_its_proposal(run: Callable[..., Run]) -> None:
    """Everything that is proposed is kept: no drafted token is wasted, whatever its length."""
    kept = "speculation.acceptance={unconditional: [1, 0.5, 0.25]}"
    done = run(*NGRAM, kept).requests
    assert (done["drafted_tokens"] == done["accepted_tokens"]).all()
    assert done["accepted_tokens"].sum() > 0


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("speculation.acceptance={alpha: 0.8}",), "keeps position 2 in 0.64 of the rounds"),
        (("speculation.method=draft_model",), "does not apply to method draft_model"),
        (("speculation.proposal_lengths=[0, 0]",), "every share is zero"),
        (("speculation.acceptance={recorded: [0, 1]}",), "proposal_lengths"),
        (("draft.per_round=1 ms",), "no draft to price"),
    ],
)
def test_contradictions(toy: Callable[..., Scenario], sets: tuple[str, ...], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        closed_form.predict(toy(*NGRAM, *sets))


@pytest.mark.parametrize("placement", ["colocated", "parallel"])
def test_a_fixed_cost_in_every_round_that_drafts(run: Callable[..., Run], placement: str) -> None:
    """γ 2, α 1, 7 tokens: rounds of 3, 3 and 1; the last drafts nothing and pays no 30 ms."""
    sets = [
        "speculation.acceptance={alpha: 1}",
        "draft.per_round=30 ms",
        "workload.output_tokens=7",
        "workload.requests=1",
        f"draft.placement={placement}",
    ]
    spent = 2 * (0.1 + 0.03 + 2 * 0.02) + 0.1 if placement == "colocated" else 3 * 0.1
    assert run(*sets).requests["finish_s"][0] == pytest.approx(spent)
    slow = run(*sets, "draft.step=50 ms").requests["finish_s"][0]
    in_parallel = 2 * max(0.1, 0.03 + 2 * 0.05) + 0.1
    assert slow == pytest.approx(2 * 0.23 + 0.1 if placement == "colocated" else in_parallel)


def test_the_fixed_cost_in_the_closed_form() -> None:
    costs = round_costs(0.1, 0.1, 0.02, draft_call_s=0.03)
    found = predict([0.5, 0.25], 2, costs, output_tokens=2)
    assert float(found.round_s) == pytest.approx(0.17)
    # R = τ T leaves 75 ms for two steps and the call
    assert float(found.break_even_draft_step_s) == pytest.approx((0.175 - 0.1 - 0.03) / 2)
    # 2 tokens: a round that drafts 1 (150 ms), and with chance .5 a plain one
    assert float(found.generation_s) == pytest.approx(0.15 + 0.5 * 0.1)
