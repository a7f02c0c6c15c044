"""Engine settings that reproduce an acceptance: bonus conventions and laws (FORMATS.md A6–A9)."""

import json
import re

import numpy as np
import pytest

from specplan.models.acceptance import Acceptance
from specplan.models.sampler import chi_square
from specplan.results.acceptance.convert_answer import convert_scenario_answer
from specplan.results.acceptance.export_answer import export_answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.exporters import ENGINES, export
from specplan.scenarios.load import load
from specplan.scenarios.synthetic import Wanted, wanted

WORKED = "speculation.acceptance={conditional: [0.85, 0.78, 0.72, 0.65]}"


def what(*sets: str) -> Wanted:
    return wanted(load("toy-20ms", ["speculation.gamma=4", *sets]), "DRAFT")


def speculative_config(arguments: tuple[str, ...]) -> dict[str, object]:
    match = re.fullmatch(r"--speculative-config '(.*)'", arguments[0])
    assert match is not None
    config: dict[str, object] = json.loads(match[1])
    return config


def test_vllm_rates_are_the_scenarios_law() -> None:
    rates, length = export(what(WORKED), "vllm")
    config = speculative_config(rates.arguments)
    assert config["method"] == "draft_model"
    assert config["model"] == "DRAFT"
    assert config["num_speculative_tokens"] == 4
    assert config["rejection_sample_method"] == "synthetic"
    assert config["synthetic_acceptance_rates"] == [0.85, 0.663, 0.47736, 0.310284]
    assert rates.differences == ()
    assert speculative_config(length.arguments)["synthetic_acceptance_length"] == 3.300644
    assert any("variance 0.2103 instead of 2.105" in line for line in length.differences)


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("vllm", "synthetic_acceptance_length = 3.5"),
        ("sglang", "SGLANG_SIMULATE_ACC_LEN = 3.5"),
        ("tensorrt-llm", "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS = 2.5"),
    ],
)
def test_bonus_conventions_and_minimum_variance(engine: str, setting: str) -> None:
    """published.json synthetic-al: τ 3.5 is (1, 1, .5, 0) with variance .25; TRT-LLM is AL − 1."""
    made = export(what("speculation.acceptance={acceptance_length: 3.5}"), engine)[-1]
    assert made.setting == setting
    assert made.unconditional == pytest.approx([1, 1, 0.5, 0], abs=1e-9)
    assert made.acceptance_length == pytest.approx(3.5, abs=1e-9)
    assert made.variance == pytest.approx(0.25, abs=1e-9)


def test_llama_cpp_length_is_a_constant_conditional() -> None:
    rates, length = export(what("speculation.acceptance={acceptance_length: 3.5}"), "llama.cpp")
    ratios = length.unconditional[1:] / length.unconditional[:-1]
    assert ratios == pytest.approx(length.unconditional[0])
    assert length.arguments[-1] == "--spec-synth-len 3.5"
    assert length.acceptance_length == pytest.approx(3.5)
    assert rates.arguments[-1].startswith("--spec-synth-rates ")


def test_sglang_counts_the_root() -> None:
    [made] = export(what(WORKED), "sglang")
    assert "--speculative-num-steps 4" in made.arguments
    assert "--speculative-num-draft-tokens 5" in made.arguments
    assert made.environment["SGLANG_SIMULATE_ACC_METHOD"] == "match-expected"
    assert any("whole batch" in line for line in made.differences)


def test_a_tree_keeps_its_width_where_the_engine_has_trees() -> None:
    tree = "speculation={method: tree, acceptance: {ranks: [.6, .2]}, tree: {budget: 8}}"
    whole = wanted(load("toy-20ms", [tree]), "DRAFT")
    [made] = export(whole, "sglang")
    assert "--speculative-eagle-topk 2" in made.arguments
    assert "--speculative-num-draft-tokens 8" in made.arguments
    for engine in ("vllm", "tensorrt-llm", "llama.cpp"):
        assert any("drafts a chain" in line for line in export(whole, engine)[0].differences)


def test_tensorrt_llm_cannot_force_zero() -> None:
    with pytest.raises(ScenarioError, match="0 means off"):
        export(what("speculation.acceptance={alpha: 0}"), "tensorrt-llm")
    [whole] = export(what("speculation.acceptance={acceptance_length: 3}"), "tensorrt-llm")
    assert whole.environment == {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "2"}
    assert not any("fractional" in line for line in whole.differences)


def test_one_engine_that_cannot_be_told_does_not_silence_the_others() -> None:
    answer = export_answer(load("toy-20ms", ["speculation.acceptance.alpha=0"]))
    assert {made["engine"] for made in answer.json["exports"]} == set(ENGINES) - {"tensorrt-llm"}
    assert list(answer.json["refused"]) == ["tensorrt-llm"]
    assert "0 accepted tokens cannot be forced" in answer.notes[0]
    assert "-0.0" not in json.dumps(answer.json)
    with pytest.raises(ScenarioError, match="cannot be forced"):
        export_answer(load("toy-20ms", ["speculation.acceptance.alpha=0"]), "tensorrt-llm")


@pytest.mark.parametrize(
    ("engine", "token_by_token"),
    [("vllm", False), ("sglang", False), ("tensorrt-llm", True), ("llama.cpp", True)],
)
def test_a_draft_of_one_pass_is_told_where_an_engine_has_none(
    engine: str, token_by_token: bool
) -> None:
    for made in export(what("speculation.method=one_pass"), engine):
        told = any("4 steps where the scenario takes one" in line for line in made.differences)
        assert told is token_by_token


@pytest.mark.parametrize(
    ("name", "setting", "says"),
    [
        ("toy-20ms", "policy=hf_heuristic", r"changes γ \(hf_heuristic\); here it is 2 in every"),
        ("toy-20ms", "policy={off_above: 4}", r"changes γ \(off_above\)"),
        ("toy-20ms", "confidence_stop={if_rejected: .5, if_accepted: .1}", "stops drafting early"),
        ("llama31-8b-ngram-h100", "proposal_lengths=[1,1,1,1,20]", "fewer than 5 tokens"),
    ],
)
def test_rounds_that_do_not_draft_gamma_tokens_are_told(name: str, setting: str, says: str) -> None:
    scenario = load(name, [f"speculation.{setting}"])
    for made in export_answer(scenario).json["exports"]:
        assert any(re.search(says, line) for line in made["differences"])
    assert any(re.search(says, note) for note in convert_scenario_answer(scenario).notes)


def test_a_head_is_given_its_own_name() -> None:
    """FORMATS.md A6 and A7: vLLM eagle3 and mtp, SGLang EAGLE3 and NEXTN."""
    assert any("eagle3 or mtp in vLLM" in note for note in export_answer(load("toy-20ms")).notes)
    ngram = load("toy-20ms", ["speculation.method=ngram", "draft.step=0 ms"])
    assert not any("eagle3" in note for note in export_answer(ngram).notes)


def test_a_mixture_is_pooled_by_rounds_and_keeps_tau() -> None:
    mixture = "{mixture: [{weight: 1, alpha: 0.5}, {weight: 1, alpha: 0.9}]}"
    pooled = what(f"speculation.acceptance={mixture}")
    parts = [Acceptance.from_alpha(0.5, 4), Acceptance.from_alpha(0.9, 4)]
    harmonic = Acceptance.mixture([0.5, 0.5], parts).tokens_per_round(4)
    assert pooled.acceptance_length == pytest.approx(float(harmonic))
    assert pooled.requests_differ
    assert any("requests differ" in line for line in export(pooled, "vllm")[0].differences)


def test_rounds_without_a_draft_are_told() -> None:
    hit = "speculation.draft_probability=0.43"
    made = export(what("speculation.method=ngram", "draft.step=0 ms", hit), "vllm")[0]
    assert speculative_config(made.arguments)["method"] == "ngram"
    assert any("0.43 of the rounds" in line for line in made.differences)


def test_without_speculation_there_is_nothing_to_export() -> None:
    with pytest.raises(ScenarioError, match="without speculation"):
        wanted(load("toy-20ms", ["speculation.method=none"]))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ScenarioError, match="vlm is no known engine"):
        export(what(), "vlm")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_export_keeps_the_length(engine: str) -> None:
    for made in export(what(WORKED), engine):
        assert made.acceptance_length == pytest.approx(3.300644, abs=1e-6)
        assert (np.diff(made.unconditional) <= 1e-12).all()


def test_sglang_match_expected_draws_the_law_we_state() -> None:
    """The engine's own recipe: floor(τ), or one more with the fractional chance."""
    [made] = export(what(WORKED), "sglang")
    rng = np.random.default_rng(1)
    accepted = 2 + (rng.random(100_000) < 0.300644)
    counts = np.bincount(accepted, minlength=5)
    padded = np.concatenate([[1.0], made.unconditional, [0.0]])
    assert chi_square(counts, -np.diff(padded)).p_value > 1e-3
