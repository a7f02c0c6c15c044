"""Public reports of misread acceptance, D01 to D36 of shared/cases/reports.json, and `convert`.

Inputs and expectations are typed in by hand from the case named in each test's id or docstring.
"""

import io
from typing import Any

import pytest
from rich.console import Console

from specplan.results.acceptance.convert_answer import convert_answer, convert_scenario_answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load


def convert(**texts: str) -> dict[str, Any]:
    return convert_answer(texts).json


def codes(answer: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in answer["warnings"]}


def tau_by_reading(answer: dict[str, Any], name: str) -> dict[str, float]:
    return {row["reading"][name]: row["acceptance_length"] for row in answer["readings"]}


def test_d01_bonus_or_not() -> None:
    assert convert(gamma="3", accepted="1500", drafts="1000")["acceptance_length"] == 2.5
    assert convert(gamma="3", acceptance_length="2.5")["acceptance_length"] == 2.5
    assert convert(gamma="3", accepted_per_round="1.5")["acceptance_length"] == 2.5
    open_question = convert(gamma="3", length="1.5")
    assert open_question["ambiguous"]
    assert tau_by_reading(open_question, "length") == {
        "acceptance_length": 1.5,
        "accepted_per_round": 2.5,
    }
    assert "bonus" in open_question["settle_with"][0]
    assert convert(gamma="3", length="0.4")["acceptance_length"] == pytest.approx(1.4)
    with pytest.raises(ScenarioError, match=r"acceptance_length is 0\.4; with the bonus token"):
        convert(gamma="3", acceptance_length="0.4")


def test_d01_one_more_number_decides() -> None:
    settled = convert(gamma="3", length="1.5", acceptance_rate="0.50")
    assert settled["reading"]["length"] == "accepted_per_round"
    assert settled["acceptance_length"] == 2.5


def test_d02_above_gamma_includes_the_bonus() -> None:
    answer = convert(gamma="3", length="3.72", rate="90.7%", speedup="1.545")
    assert answer["reading"] == {"length": "acceptance_length", "rate": "acceptance_rate"}
    assert answer["acceptance_length"] == pytest.approx(3.72)
    assert answer["acceptance_rate"] == pytest.approx(0.9067, abs=0.001)
    assert answer["implied_round_cost_ratio"] == pytest.approx(2.408, rel=0.01)
    alone = convert(gamma="3", length="3.72")
    assert alone["reading"]["length"] == "acceptance_length"


@pytest.mark.parametrize(
    ("length", "rate", "true_rate"),
    [
        ("2.17", "0.54", 0.390),
        ("1.95", "0.49", 0.317),
        ("1.80", "0.45", 0.267),
        ("2.05", "0.51", 0.350),
    ],
)
def test_d03_old_sglang_rate(length: str, rate: str, true_rate: float) -> None:
    answer = convert(acceptance_length=length, rate=rate, engine="sglang")
    assert answer["reading"]["rate"] == "efficiency"
    assert answer["gamma"] == 3
    assert answer["acceptance_rate"] == pytest.approx(true_rate, abs=0.005)


@pytest.mark.parametrize(
    ("length", "tok_s"), [("1.95", "178.86"), ("1.80", "165.41"), ("2.05", "188.68")]
)
def test_d03_one_round_time(length: str, tok_s: str) -> None:
    answer = convert(acceptance_length=length, tokens_per_s=tok_s)
    assert answer["round_s"] == pytest.approx(10.88e-3, rel=0.005)


@pytest.mark.parametrize(("length", "rate"), [("2.17", ".54"), ("1.95", ".49"), ("1.80", ".45")])
def test_d03_an_old_rate_under_the_new_name_finds_no_gamma(length: str, rate: str) -> None:
    """Denominator of the case: 4.0, so γ 3; (τ − 1)/rate is no whole number."""
    with pytest.raises(ScenarioError, match=r"no whole gamma .* fit gamma 3 exactly"):
        convert(acceptance_length=length, acceptance_rate=rate)
    assert convert(acceptance_length=length, efficiency=rate)["gamma"] == 3
    assert "gamma_inferred" not in codes(convert(acceptance_length=length, gamma="3"))


@pytest.mark.parametrize(
    ("figures", "gamma", "says"),
    [
        ({"acceptance_length": "3.4928", "acceptance_rate": ".3116"}, 8, "give 8, taken as 8"),
        ({"acceptance_length": "3.3616", "alpha": ".8"}, 4, "fit 4 best"),
        ({"accepted": "31", "drafted": "33", "emitted": "64"}, 1, "1 drafted in each round"),
    ],
)
def test_a_gamma_that_nobody_stated_says_where_it_is_from(
    figures: dict[str, str], gamma: int, says: str
) -> None:
    answer = convert_answer(figures)
    assert answer.json["gamma"] == gamma
    assert any("gamma is not stated" in note and says in note for note in answer.notes)


def test_notes_of_several_readings_say_which_one_they_are_about() -> None:
    """C38, one stream: 3.894 if unconditional, 3.837 if conditional, 3.879 measured."""
    answer = convert_answer(
        {"gamma": "3", "positions": "99.2,95.5,94.7", "acceptance_length": "3.879"}
    )
    disagree = [note for note in answer.notes if "disagree" in note]
    assert [note.partition(":")[0] for note in disagree] == [
        "positions = unconditional",
        "positions = conditional",
    ]
    assert answer.json["settle_with"] == [
        "positions: the other figures fit each of them; counts settle it"
    ]


def test_what_would_settle_it_was_not_given_already() -> None:
    open_question = convert(gamma="4", length="2.5", engine="tensorrt-llm")
    assert "so does --engine" not in open_question["settle_with"][0]
    assert "so does --engine" in convert(gamma="4", length="2.5")["settle_with"][0]


def test_d03_a_rate_above_one_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"1\.2 is above 1"):
        convert(rate="1.2")


def test_d04_no_bonus_after_full_acceptance() -> None:
    answer = convert(gamma="4", accepted="1735", drafted="2648", emitted="2149")
    assert answer["acceptance_length"] == pytest.approx(3.246, abs=0.005)
    assert answer["efficiency"] == pytest.approx(0.649, abs=0.001)
    assert answer["acceptance_rate"] == pytest.approx(0.655, abs=0.001)
    assert codes(answer) == {"no_bonus"}
    assert "248" in answer["warnings"][0]["text"]


def test_d05_counters_that_contradict_each_other() -> None:
    answer = convert(gamma="4", accepted="32594", drafted="53716", emitted="34244")
    assert answer["acceptance_length"] == pytest.approx(2.55, abs=0.005)
    assert codes(answer) == {"inconsistent_counters"}


def test_d06_beyond_any_chain() -> None:
    with pytest.raises(ScenarioError) as caught:
        convert(gamma="5", alpha="0.65", acceptance_length="3.25")
    said = str(caught.value)
    for part in ("0.65", "2.642", "3.25", "2.857", "tree", "0.7449"):
        assert part in said


@pytest.mark.parametrize(
    ("second", "a2", "conditional"), [("0.80", 0.72, 0.818), ("0.50", 0.12, 0.136)]
)
def test_d07_second_position_from_two_rates(second: str, a2: float, conditional: float) -> None:
    answer = convert(rates_by_gamma=f"1:0.88,2:{second}")
    assert answer["unconditional"][1] == pytest.approx(a2, abs=0.005)
    assert answer["conditional"][1] == pytest.approx(conditional, abs=0.005)
    assert "same_first_positions" in codes(answer)


def test_d08_a_budget_of_fifteen() -> None:
    answer = convert(
        gamma="15",
        accepted="89",
        drafted="975",
        unconditional="0.600,0.385,0.215,0.108,0.062,0,0,0,0,0,0,0,0,0,0",
    )
    assert answer["acceptance_length"] == pytest.approx(2.37, abs=0.005)
    assert answer["counts"]["rounds"] == 65
    assert answer["by_gamma"][4]["acceptance_rate"] == pytest.approx(0.274, abs=0.002)
    assert answer["by_gamma"][4]["acceptance_length"] == pytest.approx(2.37, abs=0.005)
    assert answer["conditional"][:5] == pytest.approx([0.6, 0.642, 0.558, 0.502, 0.574], abs=0.001)
    assert answer["conditional"][6:] == [None] * 9


@pytest.mark.parametrize(("budget", "rate"), [("4", 0.6667), ("8", 0.2857), ("16", 0.1333)])
def test_d09_rate_falls_with_the_budget(budget: str, rate: float) -> None:
    # Reports have (3 − 1)/(budget − 1) with the same accept length, so the same tokens per round.
    answer = convert(block_size=budget, acceptance_length="3.0")
    assert answer["acceptance_rate"] == pytest.approx(rate, abs=0.001)
    assert answer["acceptance_length"] == 3.0


def test_d11_a_list_shorter_than_gamma() -> None:
    with pytest.raises(ScenarioError, match="2 positions of conditional are given and gamma is 4"):
        convert(gamma="4", conditional="0.85,0.3")
    zero = convert(gamma="4", conditional="0.85,0.3", fill="zero")
    assert zero["acceptance_length"] == pytest.approx(2.105, abs=0.001)
    repeat = convert(gamma="4", conditional="0.85,0.3", fill="last_ratio")
    assert repeat["acceptance_length"] == pytest.approx(2.2045, abs=0.001)
    unconditional = convert(gamma="4", unconditional="0.85,0.3", fill="zero")
    assert unconditional["acceptance_length"] == pytest.approx(2.15, abs=0.001)
    assert "positions_changed" in codes(zero)


def test_d12_no_acceptance_from_a_speedup_alone() -> None:
    with pytest.raises(ScenarioError, match=r"\(speedup − 1\)/gamma is not an acceptance"):
        convert(speedup="1.675", gamma="5")


def test_d13_the_calculator_that_forgets_the_bonus() -> None:
    answer = convert(alpha="0.8", gamma="4", round_cost="1.4")
    assert answer["speedup"] == pytest.approx(2.4011, rel=0.001)
    assert answer["accepted_per_round"] / 1.4 == pytest.approx(1.687, abs=0.001)


def test_d14_percent_or_fraction() -> None:
    fraction = convert(gamma="1", acceptance_rate="0.84%")
    assert fraction["acceptance_rate"] == pytest.approx(0.0084)
    assert "percent_below_one" in codes(fraction)
    percent = convert(gamma="1", acceptance_rate="84%")
    assert percent["acceptance_rate"] == pytest.approx(0.84)
    assert not codes(percent)
    bare = convert(gamma="1", acceptance_rate="84")
    assert bare["acceptance_rate"] == pytest.approx(0.84)
    assert codes(bare) == {"percent_assumed"}
    with pytest.raises(ScenarioError, match="184%` is outside"):
        convert(gamma="1", acceptance_rate="184%")


def test_d16_the_first_token_is_not_from_a_round() -> None:
    answer = convert(emitted="271001", drafts="83803", requests="500")
    assert answer["acceptance_length"] == pytest.approx(3.2278, abs=0.0005)
    biased = convert(emitted="271001", drafts="83803")
    assert biased["acceptance_length"] == pytest.approx(3.233786, abs=1e-5)
    assert "first_tokens" in codes(biased)


def test_d17_the_inverse_ratio() -> None:
    answer = convert(accepted_per_position="800,600,450", drafted_per_position="1000,1000,1000")
    assert answer["unconditional"] == pytest.approx([0.8, 0.6, 0.45])
    assert answer["acceptance_length"] == pytest.approx(2.85)
    with pytest.raises(ScenarioError, match="the inverse ratio"):
        convert(accepted_per_position="1000,1000", drafted_per_position="800,600")


def test_d19_engines_are_summed_before_dividing() -> None:
    answer = convert(drafts="8280", accepted="12336")
    assert answer["acceptance_length"] == pytest.approx(2.4899, abs=0.0005)


def test_d21_rounds_without_a_draft() -> None:
    answer = convert(emitted="1140", drafts="3", drafted="192", accepted="12")
    assert answer["tokens_per_round"] == pytest.approx(1.0106, abs=0.002)
    assert answer["acceptance_length"] == 5
    assert answer["draft_probability"] == pytest.approx(0.003, abs=0.0005)
    with pytest.raises(ScenarioError, match="nothing was drafted"):
        convert(emitted="630", drafts="0", drafted="0", accepted="0")


def test_d22_nothing_is_ever_accepted() -> None:
    answer = convert(gamma="13", alpha="0", round_cost="1.65")
    assert answer["acceptance_length"] == pytest.approx(1, abs=1e-12)
    assert answer["speedup"] == pytest.approx(0.6061, abs=0.001)
    assert "nothing_accepted" in codes(answer)


def test_d23_gamma_zero_is_the_baseline() -> None:
    answer = convert(gamma="0", alpha="0.8")
    assert answer["acceptance_length"] == 1
    assert answer["acceptance_rate"] is None


def test_d25_two_log_intervals_pooled() -> None:
    answer = convert(gamma="6", accepted="944", drafted="3162")
    assert answer["counts"]["rounds"] == 527
    assert answer["acceptance_length"] == pytest.approx(2.7913, abs=0.001)


@pytest.mark.parametrize(
    ("accepted", "drafted", "tau"), [("513", "620", 5.137), ("925", "1175", 4.936)]
)
def test_d26_counts_not_rates(accepted: str, drafted: str, tau: float) -> None:
    answer = convert(gamma="5", accepted=accepted, drafted=drafted)
    assert answer["acceptance_length"] == pytest.approx(tau, abs=0.005)


def test_d31_synthetic_rates_can_be_read_both_ways() -> None:
    answer = convert(gamma="3", positions="0.9 0.8 0.6")
    assert answer["usual_reading"] == {"positions": "unconditional"}
    by_reading = tau_by_reading(answer, "positions")
    assert by_reading["unconditional"] == pytest.approx(3.3)
    assert by_reading["conditional"] == pytest.approx(3.052, abs=0.001)
    vllm = convert(gamma="3", positions="0.9 0.8 0.6", engine="vllm")
    assert vllm["acceptance_length"] == pytest.approx(3.3)
    measured = convert(gamma="3", unconditional="0.9393 0.6789 0.3387")
    assert measured["acceptance_length"] == pytest.approx(2.957, abs=0.001)
    assert measured["conditional"] == pytest.approx([0.939, 0.723, 0.499], abs=0.001)


def test_d32_a_list_that_rises() -> None:
    answer = convert(positions="0.7,0.74,0.78,0.8")
    assert answer["reading"]["positions"] == "conditional"
    assert answer["acceptance_length"] == pytest.approx(2.9453, abs=0.001)
    with pytest.raises(ScenarioError, match="position 2"):
        convert(unconditional="0.7,0.74,0.78,0.8")


def test_d35_implied_round_cost() -> None:
    answer = convert(alpha="0.9", gamma="5", speedup="0.7")
    assert answer["implied_round_cost_ratio"] == pytest.approx(6.69, rel=0.01)


@pytest.mark.parametrize(
    "texts",
    [
        {"gamma": "2.5"},
        {"gamma": "-1"},
        {"gamma": "true"},
        {"alpha": "1.0000001"},
        {"alpha": "-0.1"},
        {"alpha": "nan"},
        {"alpha": "inf"},
        {"alpha": "1e999"},
    ],
)
def test_d36_values_outside_their_range(texts: dict[str, str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        convert_answer({"gamma": "3", "alpha": "0.8"} | texts)
    [name] = texts
    assert str(caught.value).startswith(name)


def test_d11_an_extended_list_has_a_band_and_keeps_its_rule() -> None:
    answer = convert(gamma="4", conditional="0.85,0.3", fill="last_ratio")
    low, high = answer["extrapolation"]["acceptance_length"]
    assert low < answer["acceptance_length"] < high
    assert answer["acceptance_block"] == {
        "unconditional": pytest.approx([0.85, 0.255]),
        "extend": "last_ratio",
    }
    assert "band" in codes(answer)


def test_d21_a_stated_share_of_rounds_that_draft() -> None:
    """FORMATS.md A1: n-gram drafts in 12,022 of 28,202 rounds; 5.01 there is 2.71 over all."""
    answer = convert(gamma="5", acceptance_length="5.01", draft_probability="42.63%")
    assert answer["acceptance_length"] == 5.01
    assert answer["tokens_per_round"] == pytest.approx(2.71, abs=0.005)
    assert answer["draft_probability"] == pytest.approx(0.4263)
    with pytest.raises(ScenarioError, match="stated beside counters"):
        convert(gamma="5", accepted="10", drafts="5", draft_probability="0.5")


def test_d21_a_scenario_that_drafts_in_some_rounds_says_so() -> None:
    sets = ["speculation.draft_probability=0.4", "speculation.acceptance={unconditional: [.5, .3]}"]
    answer = convert_scenario_answer(load("toy-20ms", sets)).json
    assert answer["acceptance_length"] == pytest.approx(1.8)
    assert answer["tokens_per_round"] == pytest.approx(1 + 0.4 * 0.8)
    assert answer["draft_probability"] == pytest.approx(0.4)


def test_the_setting_to_copy_keeps_rounds_without_a_draft() -> None:
    """FORMATS.md A1: n-gram drafts in 43 % of the rounds, which no τ may hide."""
    figures = {"gamma": "5", "acceptance_length": "5.01", "draft_probability": ".4263"}
    stream = io.StringIO()
    Console(width=120, file=stream).print(convert_answer(figures).text)
    assert "--set speculation.draft_probability=0.4263" in stream.getvalue()
