"""The questions of a plan, on scenarios where theory or arithmetic knows the answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.planning.answer import Plan, make_plan, plan_answer
from specplan.results.planning.as_json import plan_json
from specplan.results.planning.gammas import Schedule, choices, schedule_rows, token_rates
from specplan.results.planning.loads import Planner, at_rate, gpus, offered_rate, plain
from specplan.results.planning.objectives import objectives_of
from specplan.results.planning.placements import placed
from specplan.results.planning.sensitivity import evidence_of, inputs, scaled
from specplan.results.planning.text import plan_text, recommendation
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, override
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

GROWING = (
    "target.round.linear={base: 6 ms, per_token: 200 us}",
    "target.step.linear={base: 6 ms, per_token: 200 us}",
    "draft.step=1 ms",
    "scheduler.max_num_seqs=64",
    "workload.arrivals={rate: 20/s}",
    "workload.output_tokens=32",
    "slo.tpot_p95=14 ms",
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    scenario = load("toy-20ms", [*GROWING, "cluster.price_per_gpu_hour=3"])
    with ThreadPoolExecutor(1) as executor:
        planner = Planner.on(executor, objectives_of(scenario), requests=400, tolerance=0.2)
        return make_plan(scenario, planner)


def test_every_answer_states_how_sure_it_is(plan: Plan) -> None:
    value = plan_json(plan)
    assert value["feasible"]
    for way in value["ways"].values():
        low, high = way["interval"]
        assert 0 < low < high
        assert way["max_rate"] == low
    assert {row["gamma"] for row in value["gammas"]} >= {0, 1, 2}
    assert [row["placement"] for row in value["placements"]] == [
        "colocated",
        "dedicated",
        "shared",
        "parallel",
    ]
    cost = value["ways"]["speculative"]
    assert cost["cost_per_million_tokens"] == pytest.approx(
        cost["gpu_seconds_per_million_tokens"] * 3 / 3600
    )
    assert "toy-20ms" in recommendation(plan)
    assert plan_text(plan).renderables


def test_the_rate_is_met_by_a_run_of_its_own(plan: Plan) -> None:
    """Other seeds, a longer run: what was met for sure stays met, what was missed stays missed."""
    low, high = plan.ways["speculative"].capacity.interval
    for rate, met in ((low, True), (high, False)):
        scenario = override(at_rate(plan.scenario, rate), ["workload.requests=8000", "seed=99"])
        rows = simulate(scenario).requests
        tpot = (rows["finish_s"] - rows["first_token_s"]) / (rows["output_tokens"] - 1)
        assert (np.quantile(tpot[800:], 0.95) <= 0.014 * (1.03 if met else 0.97)) == met


def test_the_schedule_never_loses_to_one_gamma(plan: Plan) -> None:
    made = plan.schedule
    assert made is not None
    assert made.against_fixed is not None
    assert made.against_fixed.low <= 1.01
    scheduled = override(plan.scenario, made.settings())
    assert scheduled.speculation.policy.by_batch == made.rows


def test_the_schedule_takes_the_best_gamma_of_the_closed_form_at_every_batch() -> None:
    scenario = load("toy-20ms", GROWING)
    rows = schedule_rows(scenario)
    for batch in (1, 5, 9, 20, 64):
        at = override(scenario, [f"workload.arrivals={{streams: {batch}}}"])
        gamma = next(g for low, high, g in rows if low <= batch <= high)
        speeds = [predict(override(at, [f"speculation.gamma={g}"])).tpot_s for g in range(9)]
        assert float(speeds[gamma]) <= 1.002 * float(min(speeds))


def test_token_rates_are_those_of_predict() -> None:
    scenario = load("toy-20ms")
    rates = token_rates(scenario, np.array([1]))[0]
    for gamma in choices(scenario):
        one = predict(override(scenario, [f"speculation.gamma={gamma}"]))
        assert rates[gamma] == pytest.approx(1 / float(one.tpot_s))


def test_rows_in_the_form_of_vllm() -> None:
    made = Schedule(((1, 8, 5), (9, 32, 3), (33, 64, 0)), None, None)
    assert "[[1, 8, 5], [9, 32, 3], [33, 64, 0]]" in made.vllm()
    assert made.off_above == 32
    assert Schedule(((1, 64, 3),), None, None).off_above is None
    assert override(load("toy-20ms"), made.settings()).deepest_gamma == 5


@pytest.mark.parametrize(
    ("sets", "rate"),
    [
        (("workload.arrivals={rate: 3/s}",), 3.0),
        (("workload.arrivals={interval: 250 ms}",), 4.0),
        (("workload.arrivals={on_off: {rate: 6/s, on: 1 s, off: 2 s}}",), 2.0),
        ((), None),
    ],
)
def test_loads_keep_their_pattern(sets: tuple[str, ...], rate: float | None) -> None:
    scenario = load("toy-20ms", [*sets, "cluster.replicas=2"])
    assert offered_rate(scenario) == (None if rate is None else pytest.approx(rate))
    faster = at_rate(scenario, 5.0)
    assert offered_rate(faster) == pytest.approx(10.0)
    if rate is not None:
        assert faster.workload.arrivals.kind == scenario.workload.arrivals.kind


def test_gpus_of_a_replica() -> None:
    scenario = load("toy-20ms", ["cluster.gpus_per_replica=4"])
    assert gpus(scenario) == 4
    assert gpus(placed(scenario, "dedicated", 2)) == 5
    assert gpus(placed(scenario, "shared", 2)) == 4.5
    assert gpus(plain(placed(scenario, "shared", 2))) == 4


def test_out_of_reach_is_named_with_its_distance(tmp_path: Path) -> None:
    """An idle toy takes 80 ms per token with drafts and 100 ms without (MODEL.md § 3)."""
    scenario = load("toy-20ms", ["workload.output_tokens=400", "speculation.acceptance.alpha=1"])
    answer: Any = plan_answer(scenario, ["tpot mean < 40 ms"], requests=200, workers=1)
    assert answer.exit_code == 1
    # α = 1: 3 tokens in a round of 140 ms
    spec = answer.json["ways"]["speculative"]["out_of_reach"][0]
    assert spec["times_over"] == pytest.approx(140 / 3 / 40, rel=0.01)
    base = answer.json["ways"]["plain"]["out_of_reach"][0]
    assert base["times_over"] == pytest.approx(100 / 40, rel=1e-6)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "theirs").write_text("")
    with pytest.raises(ScenarioError, match="exists already"):
        plan_answer(scenario, ["tpot mean < 40 ms"], output=taken)


def test_inputs_of_a_tornado_scale_one_at_a_time() -> None:
    scenario = load("toy-20ms", [*GROWING, "speculation.overhead=1 ms"])
    names = list(inputs(scenario))
    assert {"target.round.linear.base", "target.round.linear.per_token", "draft.step",
            "speculation.overhead", "speculation.acceptance"} <= set(names)  # fmt: skip
    for name in names:
        moved = scaled(scenario, name, 1.1)
        assert moved is not None
        assert moved != scenario
    slower = scaled(scenario, "draft.step", 1.1)
    assert slower is not None
    assert slower.draft.step.constant == pytest.approx(1.1e-3)
    more = scaled(scenario, "speculation.acceptance", 1.1)
    assert more is not None
    np.testing.assert_allclose(more.acceptance(2).unconditional[0], [0.55, 0.55**2])


def test_the_tornado_knows_its_noise(plan: Plan) -> None:
    """A slower pass costs rate for sure; what never happens (a pass of no tokens) is not shown."""
    by = {swing.field: swing for swing in plan.swings}
    base = by["target.round.linear.per_token"]
    assert not base.within_noise
    assert base.noise > 0
    assert all(row["noise"] is not None for row in plan_json(plan)["sensitivity"])
    sure = [swing for swing in plan.swings if swing.steady]
    assert sorted(sure, key=lambda s: s.within_noise) == sure


def test_a_run_has_the_requests_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What --requests says is not cut off at a number of our own."""
    scenario = load("toy-20ms", ["workload.arrivals={rate: 1/s}"])
    with ThreadPoolExecutor(1) as executor:
        objectives = objectives_of(scenario, ["queue mean < 1 s"])
        planner = Planner.on(executor, objectives, requests=20_000)
    asked: list[int] = []
    monkeypatch.setattr(planner.trials, "figures", lambda _s, _r, n: asked.append(n))
    planner.figures(scenario, 2)
    assert asked == [20_000]


def test_evidence_is_that_of_the_block_then_of_the_record() -> None:
    scenario = load("toy-20ms", ["draft.step.evidence=measured"])
    assert evidence_of(scenario, "draft.step.constant") == "measured"
    assert evidence_of(scenario, "target.round.constant") == "assumed"
    stated = override(scenario, ["record.evidence={target.round: 'fitted: a line'}"])
    assert evidence_of(stated, "target.round.constant") == "fitted"
