"""What people type into `acceptance convert`, and that nothing typed ends in a traceback."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specplan.models.statements import Figure
from specplan.results.acceptance.convert_answer import convert_answer
from specplan.scenarios.acceptance_figures import NAMES, read_stated, stated_texts
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.shares import read_number, read_share, read_shares, read_whole


@pytest.mark.parametrize(
    "words",
    [
        ["--gamma", "4", "--acceptance-rate", "57.5%"],
        ["--gamma=4", "--acceptance_rate=57.5%"],
        ["gamma=4", "acceptance-rate=57.5%"],
    ],
)
def test_options_and_pairs_are_the_same(words: list[str]) -> None:
    assert stated_texts(words) == ({"gamma": "4", "acceptance_rate": "57.5%"}, None)


def test_a_bare_word_is_a_scenario() -> None:
    assert stated_texts(["toy-20ms"]) == ({}, "toy-20ms")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gamma"], "--gamma: has no value"),
        (["--gamma", "--alpha", "0.5"], "--gamma: has no value"),
        (["gamma=4", "--gamma", "5"], "gamma: is stated twice, as 4 and 5"),
        (["toy-20ms", "--gamma", "4"], "`toy-20ms` is a scenario beside other input"),
        (["a", "b"], "`b` is a scenario beside other input"),
    ],
)
def test_words_that_do_not_fit_together(words: list[str], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        stated_texts(words)


@pytest.mark.parametrize(
    ("text", "value", "rounding"),
    [("2.17", 2.17, 0.005), ("3", 3, 0), ("2.5", 2.5, 0.005), ("2.1700", 2.17, 5e-5)],
)
def test_numbers_keep_the_rounding_of_their_digits(
    text: str, value: float, rounding: float
) -> None:
    assert read_number(text, "x") == Figure(value, rounding)


@pytest.mark.parametrize(
    ("text", "value"), [("0.84", 0.84), ("84%", 0.84), ("84 %", 0.84), ("84", 0.84), ("1", 1)]
)
def test_shares(text: str, value: float) -> None:
    assert read_share(text, "x")[0].value == pytest.approx(value)


def test_a_list_has_one_scale() -> None:
    figures, warnings = read_shares("99.2 / 95.5 / 1", "x")
    assert [figure.value for figure in figures] == pytest.approx([0.992, 0.955, 0.01])
    assert [code for code, _ in warnings] == ["percent_assumed", "one_is_ambiguous"]
    with pytest.raises(ScenarioError, match="mixes % and plain numbers"):
        read_shares("99.2%, 0.955", "x")


@pytest.mark.parametrize("text", ["", "abc", "0.5.1", "-0.1", "101", "1.5", "nan", "1e999", "--5"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        read_share(text, "x")


@pytest.mark.parametrize("text", ["2.5", "-1", "true", "", "four"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        read_whole(text, "gamma")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"taau": "3"}, "taau: is no acceptance figure"),
        ({"gama": "3"}, "did you mean gamma"),
        ({"gamma": "3", "block_size": "3"}, "block_size: 3 is the verify width and means gamma 2"),
        ({"itl": "8.2"}, "tpot: is missing"),
        ({"accepted_per_position": "5,4"}, "has no denominator"),
        ({"engine": "vlm"}, "engine: vlm"),
        ({"fill": "hold"}, "fill: hold"),
        ({"lengths_by_gamma": "1:1.8,1:2.5"}, "rising whole numbers"),
        ({"lengths_by_gamma": "1:2.8"}, "between 1 and gamma"),
        ({"speedup": "0"}, "speedup: 0 is not above 0"),
        ({"speedup": "1e-320"}, "speedup: 1e-320 is out of any range \\(from 1e-09 to 1e\\+09"),
        ({"tokens_per_s": "1e300"}, "tokens_per_s: 1e300 is out of any range"),
    ],
)
def test_faults_name_the_field(texts: dict[str, str], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        read_stated(texts)


def test_units_of_times() -> None:
    figures = read_stated({"itl": "8.23 ms", "tpot": "2380 us"}).evidence.figures
    assert figures["itl/tpot"].value == pytest.approx(3.458, abs=0.001)


def test_thousands_separators_of_logs() -> None:
    assert read_stated({"accepted": "1,500", "drafts": "1,000"}).evidence.counts.accepted == 1500


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(str),
    st.floats(0, 1).map(lambda share: f"{share:.3f}"),
    st.integers(-3, 10**7).map(str),
    st.lists(st.floats(-0.5, 1.5).map(lambda share: f"{share:.3g}"), max_size=6).map(",".join),
    st.text(max_size=12),
)


@settings(max_examples=600)
@given(st.dictionaries(st.sampled_from(NAMES), NUMBERS, max_size=5))
def test_nothing_typed_ends_in_a_traceback(texts: dict[str, str]) -> None:
    rows, refusal = converted(texts)
    assert len(refusal.splitlines()) <= 1
    for row in rows:
        tau, gamma = row["acceptance_length"], row["gamma"]
        if tau is not None and gamma is not None:
            assert 1 - 1e-6 <= tau <= gamma + 1 + 0.01


def converted(texts: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    """Return the quantities under each reading, or none and the refusal."""
    try:
        answer = convert_answer(texts).json
    except ScenarioError as error:
        return [], str(error)
    rows = answer.get("readings", [answer])
    return [row for row in rows if "acceptance_length" in row], ""
