"""Reports of users about load, batches, queues and γ under load, each answered as it should be.

The id of a report is its id in ../shared/cases/reports.json; figures are typed in from there.
Reports of kind `regime` are answered in test_reports_costs.py.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specplan.models.rounds import tokens_per_round
from specplan.results.calibrate.answer import calibrate_answer
from specplan.results.metrics import summary
from specplan.results.planning.gammas import schedule_rows
from specplan.results.planning.loads import Planner, at_rate, plain
from specplan.results.planning.objectives import parse_objective
from specplan.results.planning.rates import crossover
from specplan.results.spending import cost_per_million
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

REPORTS = Path(__file__).parents[3] / "shared" / "cases" / "reports.json"
KINDS = {"dynamic_gamma", "batch_contention", "capacity", "arrivals_queue"}


@pytest.mark.skipif(not REPORTS.is_file(), reason="../shared/cases/reports.json is absent")
def test_every_report_about_load_is_here() -> None:
    reports = json.loads(REPORTS.read_text(encoding="utf-8"))
    wanted = {one["id"].lower() for one in reports if one["kind"] in KINDS}
    answered_here = {name.split("_")[1] for name in globals() if name.startswith("test_")}
    assert wanted <= answered_here


def points(*lines: str, baseline: str = "") -> list[dict[str, Any]]:
    value = calibrate_answer(points=lines, baseline=baseline).json
    return [point for group in value["groups"] for point in group["points"]]


def codes(*lines: str) -> set[str]:
    value = calibrate_answer(points=lines).json
    return {one["code"] for group in value["groups"] for one in group["warnings"]}


def table(tmp_path: Path, *rows: tuple[int, int, float]) -> str:
    """Write a table of pass times (batch, width, ms) and return its path."""
    file = tmp_path / "passes.csv"
    lines = [f"{batch},{width},{ms}" for batch, width, ms in rows]
    file.write_text("\n".join(["batch,width,ms", *lines]) + "\n")
    return str(file)


# Batches


@pytest.mark.parametrize(
    ("streams", "round_ms", "observed"),
    [(1, {4: 55.7, 2: 42.1}, {4: 55.6, 2: 54.9}), (8, {4: 118.1, 2: 60.9}, {4: 210.0, 2: 303.6})],
)
def test_c08_two_or_four_drafts_for_one_user_and_for_eight(
    streams: int, round_ms: dict[int, float], observed: dict[int, float]
) -> None:
    lists = {4: [0.844, 0.599, 0.385, 0.271], 2: [0.766, 0.545]}
    assert float(tokens_per_round(np.array(lists[4]))) == pytest.approx(3.099, abs=0.002)
    assert float(tokens_per_round(np.array(lists[2]))) == pytest.approx(2.311, abs=0.002)
    speeds = {}
    for gamma, unconditional in lists.items():
        scenario = load(
            "toy-20ms",
            [
                f"target.round={round_ms[gamma]} ms",
                "draft.step=0 ms",
                f"speculation.gamma={gamma}",
                f"speculation.acceptance.unconditional={unconditional}",
                f"workload.arrivals.streams={streams}",
                f"scheduler.max_num_seqs={streams}",
                "workload.output_tokens=512",
                "workload.requests=80",
            ],
        )
        speeds[gamma] = summary(simulate(scenario))["output_throughput"]
        assert speeds[gamma] == pytest.approx(observed[gamma], rel=0.03)
    if streams == 1:
        assert speeds[4] == pytest.approx(speeds[2], rel=0.03)
    else:
        assert speeds[2] > 1.4 * speeds[4]


def test_c32_two_tokens_cost_two_steps_at_batch_256(tmp_path: Path) -> None:
    rows = {4: (2180, 1918, 1.6), 32: (17408, 15371, 1.5), 128: (69988, 61143, 1.35),
            256: (139286, 122973, 1.0)}  # fmt: skip
    implied = {4: 1.175, 32: 1.255, 128: 1.388, 256: 1.883}
    passes = []
    for batch, (drafted, accepted, gain) in rows.items():
        tau = 1 + accepted / drafted
        point = points(f"batch={batch} gamma=1 tau={tau:.5f} speedup={gain}")[0]
        assert point["round_cost_ratio"] == pytest.approx(implied[batch], rel=0.02)
        passes += [(batch, 1, 10.0), (batch, 2, 10.0 * implied[batch])]
    file = table(tmp_path, (1, 1, 10.0), (1, 2, 11.7), *passes)
    scenario = load(
        "toy-20ms",
        [f"target.round={{table: {file}}}", f"target.step={{table: {file}}}", "draft.step=0 ms",
         "speculation.gamma=1", "speculation.acceptance.alpha=0.883", "scheduler.max_num_seqs=256"],
    )  # fmt: skip
    *on, (first_off, last, gamma) = schedule_rows(scenario)
    assert all(row[2] == 1 for row in on)
    assert (last, gamma) == (256, 0)
    assert 240 < first_off <= 256


def test_c34_never_pays_below_batch_64_and_the_series_is_noisy() -> None:
    tau = {1: 2.542, 4: 2.556, 8: 2.578, 32: 2.56, 64: 2.553}
    plain_speed = {1: 218.89, 4: 507.49, 8: 677.14, 32: 1128.30, 64: 1237.84}
    speed = {1: 185.64, 4: 476.37, 8: 673.14, 32: 927.11, 64: 1307.95}
    found = {
        batch: points(
            f"batch={batch} gamma=0 {plain_speed[batch]} tok/s",
            f"batch={batch} gamma=4 {speed[batch]} tok/s tau={tau[batch]}",
        )[0]
        for batch in tau
    }
    assert found[1]["break_even_tokens_per_round"] == pytest.approx(3.0, rel=0.01)
    speedups = [found[batch]["speedup"] for batch in (1, 4, 8, 32, 64)]
    assert speedups == pytest.approx([0.848, 0.939, 0.994, 0.822, 1.057], rel=0.01)
    assert all(found[batch]["speedup"] < 1 for batch in (1, 4, 8, 32))
    steps = np.sign(np.diff(speedups))  # up, up, down, up: no curve, but noise between runs
    assert steps.tolist() == [1, 1, -1, 1]


def test_c37_the_baseline_of_one_stream_is_no_baseline_for_eight() -> None:
    speedups = {1: (56.2, 2.00), 2: (61.3, 2.18), 4: (70.5, 2.51), 8: (73.7, 2.62)}
    for speed, stated in speedups.values():
        assert speed / stated == pytest.approx(28.1, rel=0.01)
    lines = ["batch=1 gamma=0 28.1 tok/s"]
    lines += [f"batch={batch} {speed} tok/s tau=2" for batch, (speed, _) in speedups.items()]
    assert "other_batch" in codes(*lines)


def test_c39_no_crossover_up_to_128(tmp_path: Path) -> None:
    concurrency = (1, 2, 4, 8, 16, 32, 64, 128)
    base = (106.8, 211.2, 412.4, 810.1, 1505.7, 2838.1, 3829.9, 4365.9)
    spec = (537.2, 1022.9, 1964.5, 3222.6, 6506.9, 9682.3, 12185.0, 13899.2)
    tau = 5.5  # not reported: anything between 5.03, which the speedup needs, and 8
    rows = []
    for count, without, with_drafts in zip(concurrency, base, spec, strict=True):
        rows += [(count, 1, 1e3 * count / without), (count, 8, 1e3 * tau * count / with_drafts)]
    file = table(tmp_path, *rows)
    scenario = load(
        "toy-20ms",
        [f"target.round={{table: {file}}}", f"target.step={{table: {file}}}", "draft.step=0 ms",
         "speculation.method=one_pass", "speculation.gamma=7", "scheduler.max_num_seqs=128",
         f"speculation.acceptance={{acceptance_length: {tau}, at_gamma: 7}}"],
    )  # fmt: skip
    assert all(gamma > 0 for *_, gamma in schedule_rows(scenario))
    least = predict(load("toy-20ms", ["target.round=1 s", "target.step=1 s", "draft.step=0 ms"]))
    needed = spec[0] / base[0]  # speedup ≤ τ where a round is no shorter than a step
    assert needed == pytest.approx(5.03, abs=0.01)
    assert float(least.speedup) == pytest.approx(float(least.tokens_per_round))


def test_c43_zero_draft_cost_is_not_free_at_600_running() -> None:
    for accepted, drafted, unconditional, tau in (
        (150, 387, [0.543, 0.357, 0.264], 2.163),
        (725, 1488, None, 2.462),
        (5306, 8703, None, 2.829),
    ):
        assert 1 + accepted / (drafted / 3) == pytest.approx(tau, abs=0.005)
        if unconditional:
            assert float(tokens_per_round(np.array(unconditional))) == pytest.approx(tau, abs=0.005)
    share = 2901 * 2.829 / 33991  # of the tokens of 10 s that came from rounds with a draft
    assert share == pytest.approx(0.24, abs=0.005)
    # 2901 rounds drafted, the other tokens came one a round: tokens per sequence and step
    rounds = 2901 + (33991 - 2901 * 2.829)
    assert 33991 / rounds == pytest.approx(1.2, abs=0.03)
    wide = load(
        "toy-20ms",
        ["target.round.linear={base: 5 ms, per_token: 100 us}", "draft.step=0 ms",
         "target.step.linear={base: 5 ms, per_token: 100 us}", "speculation.method=ngram",
         "speculation.gamma=3", "speculation.acceptance.unconditional=[0.7, 0.6, 0.529]",
         "workload.arrivals.streams=610", "scheduler.max_num_seqs=610"],
    )  # fmt: skip
    few = predict(load("toy-20ms", [*_sets(wide), "workload.arrivals.streams=1"]))
    assert float(predict(wide).speedup) < 1 < float(few.speedup)


def _sets(scenario: Any) -> list[str]:
    """Everything the scenario states about costs and drafts, as settings."""
    data = scenario.resolved()
    blocks = {
        "target.round": data["target"]["round"],
        "target.step": data["target"]["step"],
        "draft.step": data["draft"]["step"],
        "speculation": data["speculation"],
        "scheduler.max_num_seqs": data["scheduler"]["max_num_seqs"],
    }
    return [f"{path}={json.dumps(block)}" for path, block in blocks.items()]


def test_c47_no_price_beyond_the_last_captured_width(tmp_path: Path) -> None:
    assert 6 * (6 + 1) == 42
    file = table(tmp_path, (1, 1, 7.0), (1, 7, 7.5), (5, 1, 7.5), (5, 7, 8.0))  # 5 × 7 = 35 ≤ 40
    sets = [f"target.round={{table: {file}}}", f"target.step={{table: {file}}}", "draft.step=0 ms",
            "speculation.gamma=6", "scheduler.max_num_seqs=6"]  # fmt: skip
    predict(load("toy-20ms", [*sets, "workload.arrivals.streams=5"]))
    with pytest.raises((ScenarioError, ValueError), match="batch"):
        predict(load("toy-20ms", [*sets, "workload.arrivals.streams=6"]))


# γ that changes


def test_c44_gamma_zero_is_the_baseline_and_what_it_costs_to_have_it_on() -> None:
    sets = ["workload.arrivals={streams: 2}", "scheduler.max_num_seqs=2", "workload.requests=40"]
    off = simulate(load("toy-20ms", [*sets, "speculation.method=none"]))
    never = simulate(load("toy-20ms", [*sets, "speculation.policy={by_batch: [[1, 2, 0]]}"]))
    for name, column in off.requests.items():
        np.testing.assert_array_equal(column, never.requests[name])
    assert float(predict(load("toy-20ms", ["speculation.gamma=0"])).speedup) == 1.0
    for batch, before, after in ((2, 14.374, 15.317), (189, 77.164, 93.820)):
        tpot = [
            summary(simulate(load("toy-20ms", [
                "speculation.gamma=0", f"target.step={step} ms", f"scheduler.max_num_seqs={batch}",
                f"workload.arrivals={{streams: {batch}}}", f"workload.requests={batch}",
            ])))["mean_tpot_ms"]
            for step in (before, after)
        ]  # fmt: skip
        assert tpot[0] / tpot[1] == pytest.approx(before / after, rel=1e-9)
    assert before / after == pytest.approx(0.8225, rel=0.002)


# Arrivals


def test_c40_one_crossover_and_the_first_token_suffers_first() -> None:
    # T 13.2 ms at 1/s and the ratio of TPOT are the report's; costs per token and α are assumed.
    scenario = load(
        "toy-20ms",
        ["target.round.linear={base: 12 ms, per_token: 110 us}",
         "target.step.linear={base: 12 ms, per_token: 110 us}",
         "target.prefill.linear={per_token: 60 us}", "draft.step=0.9 ms", "speculation.gamma=3",
         "speculation.acceptance.alpha=0.46", "workload.prompt_tokens=1000",
         "workload.output_tokens=250", "workload.arrivals={rate: 1/s}",
         "scheduler.max_num_seqs=256", "scheduler.max_num_batched_tokens=8192"],
    )  # fmt: skip
    with ThreadPoolExecutor(1) as executor:
        planner = Planner.on(executor, [parse_objective("tpot mean < 1 s")], requests=500)
        ratios = {}
        for rate in (1.0, 2.0, 3.0):
            one = planner.figures(at_rate(scenario, rate), 3)
            other = planner.figures(at_rate(plain(scenario), rate), 3)
            ratios[rate] = {
                k: float((one[k] / other[k]).mean()) for k in ("tpot_mean", "ttft_mean")
            }
        found = crossover(planner, scenario)
    assert ratios[1.0]["tpot_mean"] == pytest.approx(0.735, rel=0.05)
    assert ratios[1.0]["tpot_mean"] < ratios[2.0]["tpot_mean"] < ratios[3.0]["tpot_mean"] < 1
    assert ratios[1.0]["ttft_mean"] > 1
    low, high = found.interval
    assert 4 <= low < high <= 8


def test_c42_an_overloaded_server_is_limited_by_throughput() -> None:
    with_drafts, without = 3.06, 3.75
    assert with_drafts * 25.05 == pytest.approx(76.7, rel=0.05)  # L = λ W (Little 1961)
    assert with_drafts / without == pytest.approx(0.816, rel=0.02)
    # 20/s offered: everything is in flight, and completions go by τ·T(b)/R(b) at the full batch.
    sets = ["workload.arrivals={rate: 20/s}", "workload.requests=200", "scheduler.max_num_seqs=77",
            "workload.output_tokens=78", "draft.step=0 ms"]  # fmt: skip
    tau = 1.75
    slow = load("toy-20ms", [*sets, f"target.round={tau / 0.816 * 250} ms", "target.step=250 ms"])
    runs = [summary(simulate(scenario)) for scenario in (slow, plain(slow))]
    ratio = runs[0]["output_throughput"] / runs[1]["output_throughput"]
    assert ratio == pytest.approx(0.816, rel=0.07)  # 200 requests fill the batch 2.6 times only
    assert float(predict(slow).speedup) == pytest.approx(0.816, rel=1e-6)


def test_c68_prefill_first_stops_decoding_for_all_pending_prompts() -> None:
    # One stream decodes at 90/s when two prompts of 300,000 tokens arrive, 160 s each.
    gaps = {}
    for first in (True, False):
        for method in ("none", "draft_model"):
            scenario = load(
                "toy-20ms",
                [f"target.step={1e3 / 90} ms", f"target.round={1e3 / 90} ms", "draft.step=0 ms",
                 f"target.prefill.linear={{per_token: {160.1 / 300000 * 1e6} us}}",
                 f"speculation.method={method}", "workload.output_tokens=2000",
                 "workload.arrivals={interval: 1 s}", "workload.requests=3",
                 "workload.prompt_tokens={choice: [300000]}", "scheduler.max_num_seqs=8",
                 "scheduler.max_num_batched_tokens=8192",
                 f"scheduler.prefill_first={str(first).lower()}"],
            )  # fmt: skip
            gaps[first, method] = summary(simulate(scenario))["max_itl_ms"] / 1e3
    # The first request's own prompt is done when the other two are waiting.
    for method in ("none", "draft_model"):
        assert gaps[True, method] == pytest.approx(320.2, rel=0.01)
        chunk_s = 8192 * 160.1 / 300000
        assert gaps[False, method] <= chunk_s + 0.1


# Cost


def test_c78_a_price_per_token_is_a_throughput_turned_over() -> None:
    before = cost_per_million(1.0, 1, 1000.0)
    assert before == pytest.approx(1e6 / 3600 / 1000)
    factor = before / (before * (1 - 0.194))
    assert factor == pytest.approx(1.241, rel=0.005)
    assert cost_per_million(1.0, 1, 1000.0 * factor) == pytest.approx(before * (1 - 0.194))
    # +10 … +21 % of throughput save 9 … 17 %: −19.4 % is another workload.
    saved = [1 - cost_per_million(1.0, 1, 1000 * (1 + gain)) / before for gain in (0.10, 0.21)]
    assert saved == pytest.approx([0.0909, 0.1736], abs=1e-4)
    assert max(saved) < 0.194
