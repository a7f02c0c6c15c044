"""Reports on context length, answered by `calibrate` with a context beside each point.

The id of a report is its id in ../shared/cases/reports.json; figures are typed in from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from specplan.cli import app

Answer = Callable[..., dict[str, Any]]


def series(value: dict[str, Any]) -> dict[str, Any]:
    (only,) = value["contexts"]
    found: dict[str, Any] = only
    return found


def test_c45_the_penalty_shrinks_with_context(answered: Answer) -> None:
    # vllm-project/vllm#48944: batch 256, K 3
    found = series(
        answered(
            "context=400 batch=256 gamma=0 2711.7 tok/s",
            "context=400 batch=256 gamma=3 2139.8 tok/s",
            "context=900 batch=256 gamma=0 1987.1 tok/s",
            "context=900 batch=256 gamma=3 1838.9 tok/s",
        )
    )
    speedups = [one["speedup"] for one in found["points"]]
    assert speedups == pytest.approx([0.789, 0.925], rel=0.01)
    assert "a cost over batch alone does not show that" in found["says"]
    assert found["off_at_context"] is None


def test_c69_the_round_jumps_not_the_acceptance(answered: Answer) -> None:
    found = series(
        answered(
            *(
                f"context={context} gamma={drafts} rate={rate} tpot={tpot} ms"
                for context, drafts, rate, tpot in (
                    (170_000, 2.94, 0.312, 75.5),
                    (4000, 2.94, 0.319, 51.3),
                    (16_000, 2.93, 0.317, 51.8),
                    (64_000, 3.03, 0.355, 48.6),
                )
            )
        )
    )
    taus = [one["tokens_per_round"] for one in found["points"]]
    assert taus == pytest.approx([1.94, 1.93, 2.08, 1.92], abs=0.01)
    rounds_ms = [1e3 * one["round_s"] for one in found["points"]]
    assert rounds_ms == pytest.approx([99.5, 100.0, 101.1, 145.0], rel=0.005)
    assert found["decides"] == "round"


def test_c70_both_move_and_it_stops_paying_near_86k(answered: Answer) -> None:
    # vllm-project/vllm#47602: mid-points of the ranges stated
    found = series(
        answered(
            "context=100 gamma=4 rate=0.855 speedup=2.49",
            "context=34000 gamma=4 rate=0.53 speedup=1.44",
            "context=86000 gamma=4 rate=0.475 speedup=1.0",
        )
    )
    implied = [one["round_cost_ratio"] for one in found["points"]]
    assert implied[0] == pytest.approx(1.77, rel=0.05)
    assert implied[2] == pytest.approx(2.9, rel=0.15)
    assert found["decides"] == "both"
    assert found["off_at_context"] == pytest.approx(86_000)


def test_c71_one_context_is_no_curve(answered: Answer) -> None:
    short = ("context=512 gamma=0 150 tok/s", "context=512 157 tok/s draft=0")
    assert series(answered(*short))["says"] == (
        "one context is no curve: measure a longer one, too"
    )
    more = ("ctx=2048 gamma=0 149.6 tok/s", "ctx=2048 92 tok/s draft=0")
    found = series(answered(*short, *more))
    speedups = [one["speedup"] for one in found["points"]]
    assert speedups == pytest.approx([1.047, 0.614], rel=0.02)
    assert 512 < found["off_at_context"] < 2048


def test_a_baseline_of_another_context_is_told(answered: Answer) -> None:
    value = answered("context=400 gamma=0 100 tok/s", "context=900 gamma=3 150 tok/s tau=3")
    codes = {one["code"] for group in value["groups"] for one in group["warnings"]}
    assert "other_context" in codes


def test_the_terminal_shows_contexts_baselines_and_the_marginal_rule() -> None:
    def shown(*points: str) -> str:
        words = [word for point in points for word in ("--point", point)]
        return " ".join(CliRunner().invoke(app, ["calibrate", *words]).stdout.split())

    assert "By context: batch 1, γ = 4" in shown(
        "context=100 gamma=4 rate=0.855 speedup=2.49", "context=86000 gamma=4 rate=0.475 speedup=1"
    )
    # C05: the marginal rule; C15: a rate is no α; C50: absolute speed beside the ratio
    text = shown("gamma=0 128.64 tok/s", "k=2 175.49 tok/s al=1.89", "k=4 165.65 tok/s al=2.08")
    assert "Drafts 3 to 4 must be accepted 0.157 of the time each to pay, and are 0.095" in text
    assert "accepted/drafted 0.744 is an iid α of" in shown(
        "gamma=0 30 tok/s", "k=2 50 tok/s rate=0.744"
    )
    text = shown("label=a gamma=0 72.4 tok/s", "label=a gamma=2 68.6 tok/s rate=0.71",
                 "label=b gamma=0 28.9 tok/s", "label=b gamma=2 52.1 tok/s rate=0.74")  # fmt: skip
    assert "Fastest of all a, plain decoding, 72.4 tok/s" in text
    assert "each speedup is against its own; count the one you would run" in text


def test_jobs_of_one_length_give_the_round_cost_too(answered: Answer) -> None:
    # C07: 72.70 s plain, 78.02 s at γ 2 with .819 accepted: (2.638 · 78.02/72.70 − 1)/2
    (group,) = answered("gamma=2 total=78.02 s rate=0.819", baseline="total=72.70 s")["groups"]
    assert group["points"][0]["round_cost_ratio"] == pytest.approx(2.831, abs=1e-3)
    assert group["points"][0]["break_even_rate"] == pytest.approx(0.9155, abs=1e-3)


def test_a_stated_speedup_above_tau_is_impossible(answered: Answer) -> None:
    (group,) = answered("gamma=3 speedup=3.5 tau=2.9", baseline="5.264 ms")["groups"]
    assert [one["code"] for one in group["warnings"]] == ["impossible_round"]
    assert group["points"][0]["break_even_rate"] is None
