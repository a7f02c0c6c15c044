"""What a plan claims in words: no more than its numbers bear out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.results.intervals import Interval
from specplan.results.planning.answer import Plan, Way
from specplan.results.planning.gammas import Choice
from specplan.results.planning.loads import Planner
from specplan.results.planning.objectives import objectives_of
from specplan.results.planning.placements import Placed
from specplan.results.planning.rates import Fleet
from specplan.results.planning.sensitivity import Swing
from specplan.results.planning.text import cost_words, plan_text, recommendation
from specplan.scenarios.load import load
from specplan.sim.looks import Capacity, Look
from specplan.sim.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable

INF = float("inf")


def capacity(met: float, missed: float) -> Capacity:
    low, high = (
        Look(rate, np.full((8, 1), ratio), np.zeros(8)) for rate, ratio in ((met, 0.9), (missed, 2))
    )
    return Capacity(low, high, (low, high), 0.1)


def way(met: float, missed: float, replicas: int | None = None, *, sure: bool = True) -> Way:
    """100 tokens a request on 1 GPU a replica; a fleet for 10/s where replicas are stated."""
    fleet = Fleet(replicas, float(replicas), sure, ()) if replicas else None
    return Way(capacity(met, missed), 1.0, fleet, 100.0, 10.0 if replicas else None)


def test_with_a_rate_the_cost_is_that_of_the_fleets() -> None:
    """36 GPUs against 14 are 2.57x, whatever one replica does at full load."""
    assert cost_words(way(3.9, 4.0, 14), way(1.0, 1.02, 36)) == (
        "2.57x cheaper per token than without"
    )
    assert way(3.9, 4.0, 14).gpu_s_per_million == pytest.approx(14 / (10 * 100) * 1e6)


def test_without_a_rate_it_is_that_of_one_replica_at_full_load() -> None:
    assert cost_words(way(2.0, 2.1), way(1.0, 1.05)) == (
        "2x cheaper per token than without at full load of one replica"
    )
    assert cost_words(way(1.0, 1.02), way(1.06, 1.08)).startswith("6 % dearer per token")


def test_no_cost_is_claimed_where_the_intervals_overlap() -> None:
    assert not cost_words(way(1.0, 1.2), way(1.1, 1.3))
    assert not cost_words(way(1.0, 1.2, 2), way(1.1, 1.3, 2))
    assert not cost_words(way(1.0, 1.2, 2), way(1.1, 1.3, 3, sure=False))


@pytest.fixture
def made() -> Plan:
    scenario = load("toy-20ms", ["slo.tpot_p95=1 s"])
    exact, lost = Interval(1.0, 0.0, 8), Interval(INF, float("nan"), 8)
    return Plan(
        scenario,
        Planner(None, objectives_of(scenario), 0.1),  # type: ignore[arg-type]
        10.0,
        10.0,
        {"plain": way(5.0, 5.2, 2), "speculative": way(11.0, 12.0, 1)},
        None,
        [Choice(2, 0.01, 1.0, 9.0, exact), Choice(0, INF, INF, 5.0, lost)],
        None,
        [Placed("colocated", 2.0, exact, capacity(8.0, 12.0))],
        [
            Swing("draft.step", 0.05, None, "assumed"),
            Swing("target.round", 0.2, -0.2, "measured"),
        ],
    )


def page(plan: Plan, printed: Callable[..., str]) -> str:
    return printed(plan_text(plan))


@pytest.fixture
def printed() -> Callable[..., str]:
    from rich.console import Console

    def text(one: object) -> str:
        console = Console(width=100)
        with console.capture() as capture:
            console.print(one)
        return capture.get()

    return text


def test_the_headline_says_what_is_best_and_bounds_nothing_it_cannot(made: Plan) -> None:
    told = recommendation(made)
    assert "γ = 2, the fastest per user at 10/s a replica, 1 replica (1 GPU) against 2 GPUs" in told
    assert "2x cheaper per token" in told
    assert "±" not in told


def test_lines_of_the_page(made: Plan, printed: Callable[..., str]) -> None:
    lines = page(made, printed).splitlines()
    row = next(line for line in lines if line.startswith("0 "))
    assert row.split() == ["0", *["saturated"] * 4]
    placed = next(line for line in lines if line.startswith("colocated"))
    assert placed.split()[-3:] == ["8", "12", "4"]  # met, missed, met per GPU
    assert any("unsteady" in line and "more than 15.0 %" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "To measure first: draft.step" in text
    assert "unsteady: no steady state at this load" in text
    assert "1 GPUs" not in text


def test_a_swing_that_noise_explains_is_called_noise(
    made: Plan, printed: Callable[..., str]
) -> None:
    """Ends of one sign, closer together than their interval, are no finding."""
    noise = Swing("draft.transfer", 0.002, 0.003, "assumed", noise=0.004)
    sure = Swing("target.round", 0.02, -0.02, "measured", noise=0.01)
    assert noise.within_noise
    assert not sure.within_noise
    assert sure.rank > noise.rank
    lines = page(replace(made, swings=[sure, noise]), printed).splitlines()
    row = next(line for line in lines if line.startswith("draft.transfer"))
    assert row.split() == [
        "draft.transfer",
        "+0.2",
        "%",
        "+0.3",
        "%",
        "0.4",
        "%",
        "assumed",
        "noise",
    ]
    assert any("To measure first: target.round" in line for line in lines)
    only = " ".join(page(replace(made, swings=[noise]), printed).split())
    assert "cannot tell what any input does from noise" in only
    assert "To measure first" not in only


def test_an_interval_wider_than_asked_for_says_how_wide_and_what_would_narrow_it(
    made: Plan, printed: Callable[..., str]
) -> None:
    """1/√n: ln(2.42/2)/ln 1.1 = 2, so four times 2,000 requests."""
    planner = replace(made.planner, trials=Trials(lambda _: {}, None, 2000))  # type: ignore[arg-type]
    wide = replace(made, planner=planner, ways={**made.ways, "plain": way(2.0, 2.42)})
    told = " ".join(page(wide, printed).split())
    assert "2/s a replica met for sure; 2.42/s missed (tpot p95 ≤ 1 s); 21.0 % apart, wider" in told
    assert "than the 10.0 % asked for: about --requests 8000 would do" in told


def test_no_input_takes_more_than_all_of_the_rate() -> None:
    assert Swing("draft.step", 0.9, -0.9, "assumed").at_stake == 1
    assert Swing("draft.step", None, None, "assumed").rank > Swing("a", 0.9, -0.9, "assumed").rank
