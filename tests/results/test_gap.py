"""Simulation against closed form: only causes that exist are named, equal is called equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.results import gap, metrics
from specplan.results.simulation import simulate_answer
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

LINEAR = "target.round.linear={base: 90 ms, per_context_token: 10 us}"


def rest(*sets: str) -> str:
    run = simulate(load("toy-20ms", ["workload.requests=50", *sets]))
    steps = gap.explain(run, metrics.summary(run)).steps
    return next(why for name, _, why in steps if name == "rest")


@pytest.mark.parametrize(
    ("sets", "causes"),
    [
        ((), "luck over 50 requests"),
        (("workload.output_tokens.uniform=[20, 60]",),
         "lengths vary around their means; luck over 50 requests"),
        ((LINEAR, "target.step=90 ms"), "context varies around its mean; luck over 50 requests"),
        (("workload.arrivals={streams: 3}", "scheduler.max_num_seqs=3", LINEAR),
         "context and batch vary around their means; luck over 50 requests"),
        (("speculation.gamma=0", "workload.output_tokens.uniform=[20, 60]"),
         "lengths vary around their means"),
        (("speculation.gamma=0",), "what the closed form leaves out"),
    ],
)  # fmt: skip
def test_only_causes_that_exist_in_the_scenario_are_named(
    sets: tuple[str, ...], causes: str
) -> None:
    assert rest(*sets) == causes


def test_a_short_output_clips_the_first_round_too() -> None:
    """γ 4, α .5, 3 tokens. The first round drafts 2; what follows it is by hand.

    One token is kept with ½: then 120 ms, and 100 ms more with ½; two with ¼: 100 ms; three: none.
    (170/2 + 100/4) / 2 further tokens = 55 ms.
    """
    run = simulate(
        load("toy-20ms", ["speculation.gamma=4", "workload.output_tokens=3",
                          "workload.requests=4000"])
    )  # fmt: skip
    steps = {name: s for name, s, _ in gap.explain(run, metrics.summary(run)).steps}
    assert steps["closed form, alone"] + steps["clipping"] == pytest.approx(0.055)
    assert steps["simulated"] == pytest.approx(0.055, rel=0.05)


def test_equal_is_called_equal(specplan_cli: Callable[..., Any]) -> None:
    """γ 0 takes 12 ms a token in both, under Poisson arrivals as well (MODEL.md §1)."""
    sets = ("speculation.gamma=0", "target.step=12 ms", "target.round=12 ms",
            "workload.arrivals={rate: 0.05/s}", "workload.requests=200")  # fmt: skip
    out = specplan_cli("simulate", "toy-20ms", *[w for s in sets for w in ("--set", s)]).out
    assert "equal to the simulation" in " ".join(out.split())
    assert "0.0 % off" not in out
    assert "12 … 12" not in out
    assert "\n\n\n" not in out


def test_too_few_requests_for_an_interval_say_what_to_give() -> None:
    def remarks(requests: int) -> str:
        answer = simulate_answer(
            load("toy-20ms", [f"workload.requests={requests}"]), None, force=False
        )
        assert (answer.json["mean_tpot_ms_ci95"] is None) == (requests < 100)
        return " ".join(answer.json["remarks"])

    assert remarks(100) == ""
    few = remarks(99)
    assert few.startswith("99 requests are too few for intervals: 100 or more")
    assert "workload.requests" in few
    assert "--replications" in few


def test_luck_cannot_be_told_from_error_without_an_interval() -> None:
    run = simulate(load("toy-20ms", ["workload.requests=50"]))
    says = gap.explain(run, metrics.summary(run)).sentences[0]
    assert "too few requests to tell whether that is luck" in says
