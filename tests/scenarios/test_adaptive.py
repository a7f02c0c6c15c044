"""Hugging Face's heuristic schedule in the closed form of a scenario."""

import pytest

from specplan.results.prediction import predict_answer
from specplan.scenarios.adaptive import long_run
from specplan.scenarios.closed_form import operating_point
from specplan.scenarios.load import load
from specplan.scenarios.schema import Scenario

LONG = "speculation.policy={hf_heuristic: {max: 150}}"


def toy(*sets: str) -> Scenario:
    return load("toy-20ms", [LONG, *sets])


@pytest.mark.parametrize(
    ("alpha", "gamma", "tokens", "speedup"),
    # published.json hf-heuristic-chain, draft/target .1
    [
        (0.5, 2.27291, 1.72514, 1.40565),
        (0.7, 3.65399, 2.58158, 1.89071),
        (0.8, 5.44828, 3.67324, 2.37777),
        (0.9, 10.93314, 7.00007, 3.34401),
    ],
)
def test_the_published_chain(alpha: float, gamma: float, tokens: float, speedup: float) -> None:
    scenario = toy(f"speculation.acceptance.alpha={alpha}", "draft.step=10 ms")
    answer = predict_answer(scenario, None, force=False).json["adaptive_gamma"]
    assert answer["mean_gamma"] == pytest.approx(gamma, rel=5e-4)
    assert answer["tokens_per_round"] == pytest.approx(tokens, rel=5e-4)
    assert answer["speedup"] == pytest.approx(speedup, rel=5e-4)
    assert answer["tpot_s"] == pytest.approx(0.1 / speedup, rel=5e-4)


@pytest.mark.parametrize(
    "other",
    [
        "speculation.policy=fixed",
        "speculation.policy={hf_transient: {max: 20}}",
        "speculation.confidence_stop={if_rejected: .5, if_accepted: .1}",
        "speculation.draft_probability=0.5",
        "speculation.acceptance={mixture: [{weight: 1, alpha: .5}, {weight: 1, alpha: .9}]}",
        "speculation.acceptance={alpha: .8, concentration: 5}",
    ],
)
def test_what_has_no_one_chain_is_left_out(other: str) -> None:
    scenario = toy(other)
    assert long_run(scenario, operating_point(scenario)) is None
