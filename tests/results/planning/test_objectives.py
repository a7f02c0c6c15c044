"""Objectives: how they are written, and what a run says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.results.planning.objectives import (
    Objective,
    measure,
    objectives_of,
    parse_objective,
    parse_rate_option,
)
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.sim.records import Run


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ttft p99 < 500 ms", Objective("ttft", "p99", 0.5)),
        ("TPOT_p95 <= 40ms", Objective("tpot", "p95", 0.04)),
        ("queue mean ≤ 1 s", Objective("queue", "mean", 1.0)),
        ("goodput >= 99 %", Objective("goodput", "", 0.99)),
        ("goodput > 0.9", Objective("goodput", "", 0.9)),
    ],
)
def test_forms(text: str, expected: Objective) -> None:
    assert parse_objective(text) == expected


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("ttft p99 500 ms", "is no objective"),
        ("ttfft p99 < 500 ms", "did you mean `ttft`"),
        ("ttft p98 < 500 ms", "`p98` is not known"),
        ("ttft < 500 ms", "`no statistic` is not known"),
        ("ttft p99 > 500 ms", "has a limit from above"),
        ("goodput < 99 %", "has a limit from below"),
        ("ttft p99 < 500", "ttft p99 < 500"),
        ("ttft p99 < 5 GiB", "unknown unit of time"),
        ("ttft p99 < 0 ms", "no figure meets a limit of 0"),
    ],
)
def test_refused(text: str, wrong: str) -> None:
    with pytest.raises(ScenarioError, match=wrong):
        parse_objective(text)


def test_the_scenario_states_them_where_the_command_does_not() -> None:
    scenario = load("toy-20ms", ["slo={ttft_p99: 500 ms, tpot: 40 ms}"])
    assert [str(o) for o in objectives_of(scenario)] == ["ttft p99 ≤ 500 ms", "goodput ≥ 99 %"]
    assert objectives_of(scenario, ["e2el mean < 2 s"]) == (Objective("e2el", "mean", 2.0),)
    with pytest.raises(ScenarioError, match="no objective to plan for"):
        objectives_of(load("toy-20ms"))
    with pytest.raises(ScenarioError, match="goodput needs limits for single requests"):
        objectives_of(load("toy-20ms"), ["goodput > 99 %"])


def test_rates() -> None:
    assert parse_rate_option(None) is None
    assert parse_rate_option("40/s") == 40
    for text in ("40", "0/s", "inf"):
        with pytest.raises(ScenarioError, match="--rate"):
            parse_rate_option(text)


def test_figures_of_a_run_made_by_hand(make_run: Callable[..., Run]) -> None:
    """TTFT 100 ms, E2EL 200 ms, TPOT 100/3 ms, ITL 100 ms, no queue (conftest)."""
    run = make_run(sets=("slo.ttft=150 ms",))
    wanted = [parse_objective(t) for t in ("itl p99 < 1 s", "ttft p50 < 1 s", "goodput > 0.9")]
    figures = measure(run, wanted)
    assert figures["ttft_mean"] == pytest.approx(0.1)
    assert figures["tpot_mean"] == pytest.approx(0.1 / 3)
    assert figures["e2el_mean"] == pytest.approx(0.2)
    assert figures["queue_mean"] == 0
    assert figures["itl_p99"] == pytest.approx(0.1)
    assert figures["ttft_p50"] == pytest.approx(0.1)
    assert figures["goodput"] == 1
    assert figures["throughput"] == pytest.approx(20)
    assert figures["arrivals_per_s"] == pytest.approx(5)


def test_only_the_middle_of_a_run_counts(make_run: Callable[..., Run]) -> None:
    run = make_run(n=100)
    slow = run.requests["finish_s"].copy()
    slow[:10] += 100
    slow[90:] += 100
    run.requests["finish_s"] = slow
    assert measure(run)["e2el_mean"] == pytest.approx(0.2)


def test_a_run_without_steady_state_meets_nothing(make_run: Callable[..., Run]) -> None:
    run = make_run(saturated=True, sets=("slo.ttft=150 ms",))
    objectives = [parse_objective("tpot p99 < 1 s"), parse_objective("goodput > 99 %")]
    figures = measure(run, objectives)
    for objective in objectives:
        assert objective.ratio(np.array([figures[objective.name]]))[0] > 1


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("foo p99 < 1 ms", "ttft, tpot, itl, e2el, queue, goodput"),
        ("ttft zzz < 1 ms", "mean, p50, p90, p95, p99"),
    ],
)
def test_what_is_close_to_nothing_lists_what_there_is(text: str, listed: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_objective(text)
    assert listed in str(error.value)
    assert "None" not in str(error.value)
