"""The closed form of scenarios: published figures, and operating points that theory knows."""

import math
from pathlib import Path

import pytest

from specplan.scenarios.closed_form import operating_point, predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, override
from specplan.scenarios.schema import Scenario


def toy(*sets: str) -> Scenario:
    return load("toy-20ms", sets)


@pytest.mark.parametrize(
    ("name", "tpot_s", "speedup"),
    [("toy-20ms", 0.08, 1.25), ("toy-50ms", 0.2 / 1.75, 0.875)],  # MODEL.md §3
)
def test_seed_cases_are_exact(name: str, tpot_s: float, speedup: float) -> None:
    found = predict(load(name))
    assert float(found.tpot_s) == pytest.approx(tpot_s, abs=1e-9)
    assert float(found.speedup) == pytest.approx(speedup, abs=1e-9)
    assert float(found.rounds) == pytest.approx(73.46938775510203, abs=1e-9)  # issue 2


@pytest.mark.parametrize(
    ("gamma", "batch", "speedup"),
    # SpecDecode-Bench simulator (arXiv 2601.11580, Fig. 10 g), GSM8K, published to ± 0.02.
    [(1, 1, 1.29), (1, 8, 1.28), (1, 32, 1.23), (3, 1, 1.81), (3, 8, 1.73), (5, 1, 2.01)],
)
def test_the_published_simulator_is_met(gamma: int, batch: int, speedup: float) -> None:
    scenario = load(
        "llama31-8b-eagle3-h100",
        [
            f"speculation.gamma={gamma}",
            f"workload.arrivals.streams={4 * batch}",
            "workload.prompt_tokens=0",
        ],
    )
    assert float(predict(scenario).speedup) == pytest.approx(speedup, abs=0.02)


@pytest.mark.parametrize(
    ("gamma", "tau", "tokens_per_s"), [(3, 2.8981, 404.25), (5, 3.5164, 446.64)]
)
def test_specbundle_rows_come_back(gamma: int, tau: float, tokens_per_s: float) -> None:
    # SpecBundle, Llama-3.1-8B, batch 1, the two rows that the bundled costs were solved from.
    scenario = load(
        "llama31-8b-eagle3-batch1",
        [
            f"speculation.gamma={gamma}",
            f"speculation.acceptance={{acceptance_length: {tau}, at_gamma: {gamma}}}",
        ],
    )
    assert 1 / float(predict(scenario).tpot_s) == pytest.approx(tokens_per_s, rel=5e-4)


def test_chen_2023_table_1() -> None:
    assert float(predict(load("chinchilla-70b-4b")).speedup) == pytest.approx(1.92, abs=0.005)


def test_eight_streams_of_a_70b() -> None:
    # SpecBundle, Llama-3.3-70B, batch 8, γ 5: 1426.37 tokens/s.
    found = predict(load("llama33-70b-eagle3-batch8"))
    assert 8 / float(found.tpot_s) == pytest.approx(1426.37, rel=0.01)


def test_gamma_zero_is_the_baseline() -> None:
    for scenario in (toy("speculation.gamma=0"), toy("speculation.method=none")):
        found = predict(scenario)
        assert float(found.tpot_s) == float(found.baseline_tpot_s) == 0.1
        assert float(found.speedup) == 1.0


def test_processor_sharing_is_met_exactly() -> None:
    # R ∝ b is processor sharing: N = ρ/(1 − ρ) at any time, and an arrival finds that many.
    scenario = toy(
        "speculation.method=none",
        "target.round={per_sequence: 10 ms}",
        "target.step={per_sequence: 10 ms}",
        "workload.arrivals.rate=5/s",
        "workload.output_tokens=16",
        "scheduler.max_num_seqs=1000000",
        "scheduler.max_num_batched_tokens=1000000",
    )
    point = operating_point(scenario)
    assert point.batch == pytest.approx(1 / (1 - 0.8), rel=1e-6)
    assert point.load == pytest.approx(0.8, rel=1e-9)


def test_a_round_that_does_not_care_for_the_batch_gives_littles_law() -> None:
    scenario = toy("workload.arrivals.rate=1/s", "scheduler.max_num_seqs=256")
    rounds = 73.46938775510203
    assert operating_point(scenario).batch == pytest.approx(1 + 1.0 * rounds * 0.14, rel=1e-9)


def test_think_time_leaves_fewer_running() -> None:
    scenario = toy(
        "workload.arrivals={streams: 10, think_time: 10 s}", "scheduler.max_num_seqs=256"
    )
    running_s = 73.46938775510203 * 0.14
    assert operating_point(scenario).batch == pytest.approx(10 * running_s / (running_s + 10))


def test_streams_spread_over_replicas_and_wait_for_a_place() -> None:
    spread = toy("workload.arrivals.streams=8", "cluster.replicas=2", "scheduler.max_num_seqs=64")
    assert operating_point(spread).batch == 4
    capped = operating_point(toy("workload.arrivals.streams=8", "scheduler.max_num_seqs=3"))
    assert capped.batch == 3
    assert "8 streams on 3 places: requests wait for one" in capped.notes


def test_saturation_is_said() -> None:
    generation_s = 73.46938775510203 * 0.14
    point = operating_point(toy("workload.arrivals.rate=0.2/s"))
    assert point.load == pytest.approx(0.2 * generation_s)
    assert point.saturated
    assert not operating_point(toy("workload.arrivals.rate=0.05/s")).saturated


def test_prompts_take_their_share() -> None:
    # One stream: each request costs 100 tokens × 1 ms of prefill, then 127 tokens in rounds.
    scenario = toy("workload.prompt_tokens=100", "target.prefill.per_token=1 ms")
    point, found = operating_point(scenario), predict(scenario)
    decode_s = float(found.rounds) * 0.14
    assert point.prefill_share == pytest.approx(0.1 / (0.1 + decode_s))
    assert point.context_tokens == 100 + 64
    assert float(found.rounds) == pytest.approx(73.46938775510203 - 1 / 1.75, abs=1e-6)


def test_the_kv_cache_caps_the_batch() -> None:
    scenario = toy(
        "workload.arrivals.streams=64",
        "scheduler.max_num_seqs=64",
        "kv_cache={blocks: 100, watermark: 0.0}",
    )
    # 64 tokens of mean context + 2 of lookahead are 5 blocks of 16.
    assert operating_point(scenario).batch == pytest.approx(20)


@pytest.mark.parametrize(
    ("sets", "round_s"),
    [
        (["draft.placement=parallel"], 0.1),
        (["draft.placement=parallel", "draft.step=60 ms"], 0.12),
        (["draft.placement=dedicated", "draft.transfer=1 ms"], 0.141),
        (["speculation.overhead=5 ms"], 0.145),
        (["speculation.method=one_pass"], 0.12),
        (["speculation.method=ngram", "draft.step=0 ms"], 0.1),
        (["speculation.extra_draft_step=true"], 0.14 + 0.25 * 0.02),
        (["speculation.draft_probability=0.5"], 0.1 + 0.5 * 0.04),
        (["draft.step={constant: 20 ms, launch_floor: 30 ms}"], 0.16),
        (
            [
                "speculation.method=tree",
                "speculation.tree={width: 2, depth: 2}",
                "target.round={base: 100 ms, per_token: 1 ms}",
            ],
            0.04 + 0.1 + 7 * 0.001,
        ),
    ],
)
def test_round_costs_of_the_kinds_of_draft(sets: list[str], round_s: float) -> None:
    assert float(predict(toy(*sets)).round_s) == pytest.approx(round_s, rel=1e-12)


def test_policies_choose_gamma_for_the_batch() -> None:
    rows = "speculation.policy.by_batch=[[1, 4, 2], [5, 64, 0]]"
    few = toy(rows, "workload.arrivals.streams=4", "scheduler.max_num_seqs=64")
    assert int(predict(few).gamma) == 2
    many = override(few, ["workload.arrivals.streams=8"])
    assert int(predict(many).gamma) == 0
    goodput = predict(toy("speculation.policy.goodput={max: 8}"))
    assert int(goodput.gamma) == int(goodput.best_gamma) == 1


def test_the_best_gamma_is_not_sought_beyond_what_is_stated() -> None:
    measured = toy(
        "speculation.acceptance={acceptance_length: 2.9, at_gamma: 2}", "draft.step=0 ms"
    )
    assert int(predict(measured).best_gamma) == 2
    extended = override(measured, ["speculation.acceptance.extend=iid"])
    assert int(predict(extended).best_gamma) > 2


def test_mixed_classes_are_averaged() -> None:
    scenario = toy(
        "workload.classes={a: {weight: 3, output_tokens: 100}, b: {output_tokens: 20}}",
        "scheduler.max_num_seqs=4",
    )
    assert operating_point(scenario).output_tokens == 80


def test_what_is_left_out_is_named() -> None:
    notes = operating_point(toy("speculation.policy=hf_transient")).notes
    assert "policy hf_transient is left out: γ stays 2" in notes


def test_beyond_a_table_there_is_no_price(tmp_path: Path) -> None:
    table = tmp_path / "costs.csv"
    table.write_text("batch,width,ms\n1,1,100\n1,3,110\n8,1,120\n8,3,150\n")
    sets = [f"target.round.table={table}", f"target.step.table={table}", "draft.step=0 ms"]
    assert float(predict(toy(*sets)).round_s) == pytest.approx(0.11)
    assert int(predict(toy(*sets)).best_gamma) == 2  # as far as the table goes
    wide = toy(*sets, "workload.arrivals.streams=64", "scheduler.max_num_seqs=64")
    with pytest.raises(ScenarioError, match="64"):
        predict(wide)


def test_time_per_token_under_load_contains_the_prompts_of_others() -> None:
    # Two streams: in W = rounds × R + 2 P a request makes its 127 tokens and both prompts run.
    scenario = toy(
        "workload.prompt_tokens=100",
        "target.prefill.per_token=1 ms",
        "workload.arrivals.streams=2",
        "scheduler.max_num_seqs=2",
    )
    point, found = operating_point(scenario), predict(scenario)
    whole_s = float(found.rounds) * 0.14 + 2 * 0.1
    assert point.tpot_s == pytest.approx(whole_s / 127)
    assert point.requests_per_s == pytest.approx(2 / whole_s)


def test_everything_at_once_fills_the_batch() -> None:
    scenario = toy(
        "workload.arrivals.rate=inf", "workload.requests=40", "scheduler.max_num_seqs=64"
    )
    point = operating_point(scenario)
    assert (point.batch, point.saturated) == (40, True)
    assert math.isfinite(point.tpot_s)


def test_one_token_of_output_is_made_by_the_prefill() -> None:
    scenario = toy("workload.prompt_tokens=100", "workload.output_tokens=1")
    found = predict(scenario)
    assert (float(found.rounds), float(found.generation_s)) == (0.0, 0.0)
    assert operating_point(scenario).tpot_s == 0.0


def test_fewer_streams_than_replicas_run_alone() -> None:
    """One stream before two replicas: a request always runs in a batch of itself."""
    alone = operating_point(load("toy-20ms"))
    spread = operating_point(load("toy-20ms", ["cluster.replicas=2"]))
    assert spread.batch == alone.batch == 1.0
    assert spread.requests_per_s == pytest.approx(alone.requests_per_s / 2)  # of each replica


@pytest.mark.parametrize(
    ("sets", "step_s"),
    [
        ([], 0.0875),  # γ = 2 and τ·T = 175 ms: 2 d = 175 ms; drafting up to 100 ms is hidden
        (["speculation.method=one_pass"], 0.175),
        (["draft.per_round=5 ms"], 0.085),
        (["speculation.overhead=5 ms"], 0.085),
        (["target.round=180 ms"], math.nan),  # more than 175 ms without a draft
    ],
)
def test_a_draft_that_runs_beside_the_verifying_breaks_even_later(
    sets: list[str], step_s: float
) -> None:
    """R = max(V, c + γ·d) + o = τ·T with τ = 1.75, T = V = 100 ms (MODEL.md § 3, parallel)."""
    found = predict(load("toy-20ms", ["draft.placement=parallel", *sets]))
    assert float(found.break_even_draft_step_s) == pytest.approx(step_s, nan_ok=True)
    if not math.isnan(step_s):
        slow = predict(load("toy-20ms", ["draft.placement=parallel", *sets,
                                         f"draft.step={1e3 * step_s} ms"]))  # fmt: skip
        assert float(slow.speedup) == pytest.approx(1.0)
