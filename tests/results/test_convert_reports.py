"""Public reports of misread acceptance, C14 to C76 of shared/cases/reports.json, and `convert`.

Inputs and expectations are typed in by hand from the case named in each test's id or docstring.
"""

from typing import Any

import pytest

from specplan.results.acceptance.convert_answer import convert_answer
from specplan.scenarios.errors import ScenarioError


def convert(**texts: str) -> dict[str, Any]:
    return convert_answer(texts).json


def codes(answer: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in answer["warnings"]}


def tau_by_reading(answer: dict[str, Any], name: str) -> dict[str, float]:
    return {row["reading"][name]: row["acceptance_length"] for row in answer["readings"]}


def test_worked_example_of_model_2() -> None:
    answer = convert(gamma="4", conditional="0.85,0.78,0.72,0.65")
    assert answer["unconditional"] == pytest.approx([0.850, 0.663, 0.477, 0.310], abs=5e-4)
    assert answer["accepted_per_round"] == pytest.approx(2.301, abs=5e-4)
    assert answer["acceptance_length"] == pytest.approx(3.301, abs=5e-4)
    assert answer["acceptance_rate"] == pytest.approx(0.575, abs=5e-4)
    assert answer["alpha"] == pytest.approx(0.791, abs=5e-4)
    assert answer["tensorrt_llm_acceptance_length"] == pytest.approx(2.301, abs=5e-4)


def test_misreading_the_worked_example() -> None:
    """MODEL.md §2: the rate read as α is −33 % in τ, the bonus counted twice +30 %."""
    as_alpha = convert(gamma="4", alpha="0.575")["acceptance_length"]
    assert as_alpha / 3.301 - 1 == pytest.approx(-0.33, abs=0.005)
    twice = convert(gamma="4", accepted_per_round="3.301")["acceptance_length"]
    assert twice / 3.301 - 1 == pytest.approx(0.30, abs=0.005)


@pytest.mark.parametrize(
    ("gamma", "tau", "rate"), [("1", "1.39", 0.39), ("2", "1.75", 0.375), ("3", "2.43", 0.4767)]
)
def test_c14_break_even_in_every_unit(gamma: str, tau: str, rate: float) -> None:
    answer = convert(gamma=gamma, acceptance_length=tau)
    assert answer["acceptance_rate"] == pytest.approx(rate, abs=0.002)


def test_c15_counts_of_llama_cpp() -> None:
    answer = convert(gamma="5", drafted="260", accepted="208", emitted="261")
    assert answer["acceptance_length"] == pytest.approx(5.02, abs=0.02)
    assert answer["alpha"] == pytest.approx(0.9265, abs=0.002)
    assert answer["counts"]["rounds"] == 52


def test_c17_rate_is_not_alpha() -> None:
    answer = convert(gamma="5", drafted="730", accepted="526", emitted="673", tokens_per_s="55.473")
    assert answer["alpha"] == pytest.approx(0.8927, abs=0.002)
    assert answer["acceptance_length"] == pytest.approx(4.6, abs=0.03)
    assert answer["round_s"] == pytest.approx(0.0831, abs=0.0005)
    assert 30.78e-3 * 4.603 / answer["round_s"] == pytest.approx(1.707, rel=0.01)
    by_reading = tau_by_reading(convert(gamma="5", rate="72%"), "rate")
    assert by_reading["acceptance_rate"] == pytest.approx(4.60, abs=0.03)
    assert by_reading["alpha"] == pytest.approx(3.08, abs=0.03)


@pytest.mark.parametrize(
    ("drafted", "accepted", "emitted", "effective", "tau"),
    [("132", "47", "129", 1.61, 1.573), ("112", "36", "136", 1.12, 1.36)],
    ids=["C19", "C20"],
)
def test_effective_gamma(
    drafted: str, accepted: str, emitted: str, effective: float, tau: float
) -> None:
    answer = convert(gamma="8", drafted=drafted, accepted=accepted, emitted=emitted)
    assert answer["drafted_per_round"] == pytest.approx(effective, abs=0.02)
    assert answer["acceptance_length"] == pytest.approx(tau, abs=0.01)
    assert "effective_gamma" in codes(answer)
    assert answer["alpha"] is None  # nothing may be converted with the configured gamma
    assert any("baseline" in missing for missing in answer["missing"])


def test_c23_wasted_drafts() -> None:
    high = convert(accepted="31", drafted="33")
    low = convert(accepted="51", drafted="171")
    assert [high["counts"]["wasted"], low["counts"]["wasted"]] == [2, 120]
    assert high["acceptance_rate"] == pytest.approx(0.9394, abs=0.001)
    assert low["acceptance_rate"] == pytest.approx(0.2982, abs=0.001)
    assert high["acceptance_length"] is None
    assert "gamma" in high["missing"][0]


@pytest.mark.parametrize(
    ("block", "rate", "speedup", "tau", "cost"),
    [
        ("2", "0.877", "1.36", 1.877, 1.38),
        ("3", "0.728", "1.23", 2.456, 2.00),
        ("3", "0.895", "1.34", 2.790, 2.08),
        ("6", "0.731", "1.90", 4.655, 2.45),
    ],
)
def test_c29_block_size_and_implied_cost(
    block: str, rate: str, speedup: str, tau: float, cost: float
) -> None:
    answer = convert(block_size=block, acceptance_rate=rate, speedup=speedup)
    assert answer["acceptance_length"] == pytest.approx(tau, abs=0.005)
    assert answer["implied_round_cost_ratio"] == pytest.approx(cost, rel=0.01)


def test_c35_break_even_length_of_a_tree() -> None:
    """Steps 8, top-k 8, 60 drafts: accept length 3.2 at 0.798 of the baseline."""
    answer = convert(acceptance_length="3.2", speedup="0.798")
    assert answer["implied_round_cost_ratio"] == pytest.approx(4.01, rel=0.01)


@pytest.mark.parametrize(
    ("positions", "tau"),
    [
        ("91.3,80.9,71.6", "3.066"),
        ("84.6,66.6,52.3", "2.783"),
        ("86.8,70.4,56.0", "2.829"),
    ],
    ids=["n=2", "n=8", "n=32"],
)
def test_c38_tau_decides_the_reading(positions: str, tau: str) -> None:
    answer = convert(gamma="3", positions=positions, acceptance_length=tau)
    assert answer["reading"]["positions"] == "conditional"
    assert answer["acceptance_length"] == pytest.approx(float(tau), rel=0.04)
    assert {"percent_assumed", "figures_disagree"} <= codes(answer)
    if tau == "2.829":
        assert answer["acceptance_length"] == pytest.approx(2.829, abs=0.02)


def test_c38_one_stream_fits_both_readings() -> None:
    answer = convert(gamma="3", positions="99.2,95.5,94.7", acceptance_length="3.879")
    by_reading = tau_by_reading(answer, "positions")
    assert by_reading["unconditional"] == pytest.approx(3.894, abs=0.001)
    assert by_reading["conditional"] == pytest.approx(3.837, abs=0.001)


def test_c58_forty_percent_accepted() -> None:
    no_gamma = tau_by_reading(convert(rate="40%"), "rate")
    assert no_gamma["share_of_output"] == pytest.approx(1.667, abs=0.002)
    assert no_gamma["acceptance_rate"] is None
    four = tau_by_reading(convert(rate="40%", gamma="4"), "rate")
    # 666.7 ms target, 12.86 ms draft on the GPU: 3.62 tok/s for accepted/drafted
    round_s = 0.6667 + 4 * 0.01286
    assert four["acceptance_rate"] / round_s == pytest.approx(3.62, rel=0.01)


def test_c67_gamma_from_one_summary() -> None:
    answer = convert(itl="8.23", tpot="2.38", acceptance_rate="31.16%")
    assert answer["gamma"] == 8
    assert answer["acceptance_length"] == pytest.approx(3.458, rel=0.02)


def test_c74_mixture_is_harmonic_in_time() -> None:
    """876.5 tok/s verbatim (9.84×), 89.4 on prose (1.003×); 10 % of the tokens are verbatim."""
    answer = convert(speedups="9.84,1.003", token_shares="10%,90%")
    assert answer["token_weighted"] == pytest.approx(1.102, rel=0.01)
    assert answer["arithmetic_mean"] > 5


def test_c75_five_domains() -> None:
    answer = convert(speedups="2.19,2.10,2.12,1.79,1.12")
    assert answer["geometric_mean"] == pytest.approx(1.81, rel=0.01)
    assert answer["worst"] == 1.12
    assert answer["token_weighted"] < answer["geometric_mean"]


@pytest.mark.parametrize(
    "texts",
    [
        {"speedups": "2,1", "gamma": "4"},
        {"token_shares": "1"},
        {"speedups": "2,1", "token_shares": "0.5,0.6"},
        {"speedups": "2,1", "token_shares": "1"},
        {"speedups": "2,0"},
        {"speedups": ""},
    ],
)
def test_mixtures_that_do_not_add_up(texts: dict[str, str]) -> None:
    with pytest.raises(ScenarioError):
        convert(**texts)


def test_c76_random_text_is_warned_about() -> None:
    answer = convert(gamma="4", acceptance_length="3.3", dataset="random")
    assert "synthetic_acceptance" in codes(answer)


def test_sglang_clocks_hold_no_tokens_per_round() -> None:
    """FORMATS.md A7: GLM-5 under SGLang accepts 3.48 and has ITL 7.80, TPOT 7.54."""
    with pytest.raises(ScenarioError, match="itl: SGLang divides the gap"):
        convert(gamma="3", itl="7.80", tpot="7.54", engine="sglang")
    told = {warning["code"] for warning in convert(gamma="3", itl="9", tpot="6.4")["warnings"]}
    assert "itl_is_a_round" in told
    vllm = convert(gamma="3", itl="9", tpot="6.4", engine="vllm")
    assert "itl_is_a_round" not in {warning["code"] for warning in vllm["warnings"]}


def test_c67_a_rate_of_unknown_meaning_is_no_alpha_that_no_chain_reaches() -> None:
    """τ 3.458 at a share of .3116: as α it stays below 1/(1 − .3116) = 1.453 for any γ."""
    answer = convert(itl="8.23ms", tpot="2.38ms", rate="31.16%")
    by_reading = {row["reading"]["rate"]: row["gamma"] for row in answer["readings"]}
    # 1 + 8 · .3116 = 3.49 and 11 · .3116 = 3.43 both fit; accepted/drafted is the usual one
    assert by_reading == {"acceptance_rate": 8, "efficiency": 10}
    assert answer["usual_reading"]["rate"] == "acceptance_rate"


def test_alpha_and_tau_settle_gamma() -> None:
    answer = convert(alpha="0.8", acceptance_length="3.36")  # (1 − .8^5)/.2 = 3.3616
    assert answer["gamma"] == 4
    with pytest.raises(ScenarioError, match=r"cannot both hold"):
        convert(alpha="0.65", acceptance_length="3.25")
