"""Measurements typed as lines: what they say, what follows, and what is refused with its reason."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.commands.measured import calibrate
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers import costs_lines
from specplan.scenarios.importers.costs_groups import groups
from specplan.scenarios.importers.costs_lines import parse_baseline, parse_clock, parse_point


@given(st.floats(1.0, 9.0), st.floats(1.0, 1e4), st.integers(1, 256))
def test_a_round_is_tokens_times_the_time_of_one(tau: float, speed: float, batch: int) -> None:
    point = parse_point(f"gamma=8 batch={batch} {speed!r} tok/s tau={tau!r}")
    assert point.round_s == pytest.approx(tau * batch / speed)
    assert point.tokens_per_s == pytest.approx(speed)


@pytest.mark.parametrize(
    ("line", "tau"),
    [
        ("gamma=4 rate=0.575 tpot=10 ms", 3.3),  # MODEL.md §2: rate .575 at γ 4
        ("gamma=4 rate=57.5% tpot=10 ms", 3.3),
        ("gamma=4 accepted_per_round=2.301 tpot=10 ms", 3.301),
        ("gamma=2 alpha=0.5 tpot=10 ms", 1.75),
        ("K=4 AL=3.301 round=33.01 ms", 3.301),
        ("gamma=5 drafted=260 accepted=208 tpot=10 ms", 5.0),  # 52 rounds
        ("tokens=261 accepted=208 tpot=10 ms", 5.0),  # 261 − 1 − 208 = 52 rounds
        ("round=9.02 ms tpot=6.43 ms", 1.403),  # vLLM K sweep, FORMATS.md A3: 9.02/6.43
        ("gamma=0 tpot=10 ms", 1.0),
    ],
)
def test_tokens_per_round_from_whatever_states_them(line: str, tau: float) -> None:
    assert parse_point(line).tokens_per_round == pytest.approx(tau, abs=1e-3)


def test_vllms_itl_is_a_round_and_sglangs_a_token() -> None:
    assert parse_point("gamma=2 tau=1.4 itl=9.02 ms engine=vllm").round_s == pytest.approx(9.02e-3)
    sglang = parse_point("gamma=3 tau=3.48 itl=7.80 ms engine=sglang")  # GLM-5, FORMATS.md A7
    assert sglang.token_s == pytest.approx(7.80e-3)
    assert sglang.round_s == pytest.approx(3.48 * 7.80e-3)
    with pytest.raises(ScenarioError, match="a round in vLLM and a token in SGLang"):
        parse_point("gamma=2 tau=1.4 itl=9.02 ms")


def test_the_numbers_outvote_the_engine() -> None:
    # sglang issue 12064: 292.29 tok/s and an ITL of 8.72 ms cannot both be of a token.
    point = parse_point("292.29 tok/s itl=8.72 ms engine=sglang")
    assert point.round_s == pytest.approx(8.72e-3)
    assert [one.code for one in point.warnings] == ["gap_is_a_round"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3:12,19", 192.19), ("3:12.19", 192.19), ("1:00:00", 3600.0), ("0:07", 7.0), ("5 ms", 0.005)],
)
def test_stopwatches_write_a_comma_or_a_point(text: str, seconds: float) -> None:
    assert parse_clock(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "an empty line"),
        ("hello", "`hello` says nothing"),
        ("gamma=3 tpot=8.1", "has no unit"),
        ("gama=3 tpot=8 ms", "did you mean `gamma`"),
        ("gamma=3 gamma=4 tpot=8 ms", "gamma is stated twice"),
        ("gamma=x tpot=8 ms", "`x` is not a number"),
        ("gamma=3 tpot=0 ms", "is not a measured time (above 0)"),
        ("gamma=3 0 tok/s", "0 tok/s"),
        ("gamma=3 rate=80", "outside [0, 1]"),
        ("gamma=3 100 tok/s tpot=20 ms", "tok/s says 10 ms a token, tpot 20 ms"),
        ("gamma=3 tau=0.5 100 tok/s", "τ = 0.5 is below 1"),
        ("tpot=8 ms itl=8 ms engine=foo", "engine=foo is not known"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(line: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_point(line)
    assert says in str(refused.value)


def test_all_faults_of_a_line_at_once() -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_point("gama=3 tpot=8 wat")
    assert len(refused.value.faults) == 3


@given(st.text(max_size=60))
def test_any_text_is_a_point_or_a_fault(text: str) -> None:
    try:
        point = parse_point(text)
    except ScenarioError:
        return
    assert point.source == text


def test_a_baseline_is_a_step_a_speed_or_a_line() -> None:
    for text in ("20 ms", "50 tok/s", "gamma=0 tpot=20 ms", "batch=1 50 tok/s ttft=30 ms"):
        assert parse_baseline(text).token_s == pytest.approx(0.02)
    with pytest.raises(ScenarioError, match="a baseline of γ = 3"):
        parse_baseline("gamma=3 50 tok/s")


def test_two_baselines_of_one_system_are_a_question() -> None:
    lines = ["gamma=0 50 tok/s", "gamma=0 100 tok/s", "gamma=3 120 tok/s tau=2.5"]
    with pytest.raises(ScenarioError, match="2 baselines: 20 ms, 10 ms"):
        groups([parse_point(line) for line in lines])


def test_a_baseline_of_another_batch_is_no_baseline() -> None:
    points = [parse_point("gamma=3 batch=8 1000 tok/s tau=2.5")]
    (found,) = groups(points, parse_baseline("10 ms"))
    assert "other_batch" in {one.code for one in found.warnings()}


def test_three_statements_that_disagree_are_kept_and_said() -> None:
    point = parse_point("gamma=3 tau=3 round=20 ms tpot=10 ms")
    assert [one.code for one in point.warnings] == ["tokens_disagree"]


def test_help_lists_what_a_line_may_say() -> None:
    says = set(re.findall(r"[a-z_]+", calibrate.__doc__ or ""))
    assert set(costs_lines._KEYS) | set(costs_lines._WORDS) <= says


def test_tokens_tell_of_rounds_that_drafted_nothing() -> None:
    """vllm-project/vllm#19254: 2,901 drafts of 3 kept 5,306 of 33,990 tokens: τ is 1.185, not 2.83.

    100 requests of 10 tokens have 100 tokens of their prefills: 400 rounds, not 499.
    """
    counts = "gamma=3 accepted=5306 drafted=8703"
    assert parse_point(f"{counts} tokens=33990").tokens_per_round == pytest.approx(1.185, abs=5e-4)
    assert parse_point(counts).tokens_per_round == pytest.approx(2.829, abs=5e-4)
    prefills = parse_point("gamma=2 accepted=500 drafted=800 tokens=1000")
    assert prefills.tokens_per_round == pytest.approx(2.25)
    with pytest.raises(ScenarioError, match="are 693 rounds, 8703 drafted at γ = 3 are 2901"):
        parse_point(f"{counts} tokens=6000")
