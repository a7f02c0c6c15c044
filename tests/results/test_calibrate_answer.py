"""`specplan calibrate` from end to end: measurements in, a scenario out that predicts the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.models.speedup import Prediction

DATA = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(
    not DATA.is_dir(), reason="../shared/data (real files, never copied here) is absent"
)
SPECBUNDLE = ["gamma=3 404.25 tok/s tau=2.8981", "gamma=5 446.64 tok/s tau=3.5164"]


def predicted(block: str, folder: Path, *sets: str) -> Prediction:
    path = folder / "scenario.yaml"
    path.write_text(block, encoding="utf-8")
    return predict(load(path, sets))


def test_specbundle_scenario_predicts_the_rows_it_was_solved_from(tmp_path: Path) -> None:
    value = calibrate_answer(points=SPECBUNDLE, baseline="5.264 ms").json
    fit = value["groups"][0]["fit"]
    assert 1e3 * fit["verify_s"] == pytest.approx(6.113, abs=5e-4)
    assert 1e3 * fit["draft_step_s"] == pytest.approx(0.352, abs=5e-4)
    assert fit["points"] == 2
    (block,) = value["scenarios"]
    five = predicted(block, tmp_path)
    assert 1 / five.tpot_s == pytest.approx(446.64, rel=1e-4)
    assert five.baseline_tpot_s == pytest.approx(5.264e-3)
    three = predicted(
        block,
        tmp_path,
        "speculation.gamma=3",
        "speculation.acceptance={acceptance_length: 2.8981, at_gamma: 3}",
    )
    assert 1 / three.tpot_s == pytest.approx(404.25, rel=1e-4)


def test_every_number_of_the_scenario_says_where_it_is_from() -> None:
    (block,) = calibrate_answer(points=SPECBUNDLE, baseline="5.264 ms").json["scenarios"]
    assert block.count("evidence: fitted") == 2
    assert block.count("evidence: measured") == 1
    assert "solved exactly" in block
    assert "workload:  # assumed" in block
    assert max(map(len, block.splitlines())) <= 80


def test_one_point_is_undetermined_and_holds_at_its_gamma_only(tmp_path: Path) -> None:
    value = calibrate_answer(points=SPECBUNDLE[:1], baseline="5.264 ms").json
    says = value["groups"][0]["fit"]["undetermined"]
    assert "only γ = 3 is measured and two unknowns are wanted" in says
    (block,) = value["scenarios"]
    assert "do not change gamma" in " ".join(block.split())
    assert 1 / predicted(block, tmp_path).tpot_s == pytest.approx(404.25, rel=1e-4)


def test_a_known_draft_step_settles_the_verify_pass(tmp_path: Path) -> None:
    value = calibrate_answer(points=[SPECBUNDLE[0] + " draft=0.352 ms"], baseline="5.264 ms").json
    assert 1e3 * value["groups"][0]["points"][0]["verify_s"] == pytest.approx(6.113, abs=5e-4)
    (block,) = value["scenarios"]
    assert block.count("evidence: fitted") == 1  # the rest of a round; step and draft are measured
    found = predicted(block, tmp_path)
    assert 1 / found.tpot_s == pytest.approx(404.25, rel=1e-4)
    assert found.break_even_draft_step_s == pytest.approx(
        (2.8981 * 5.264e-3 - 6.113e-3) / 3, rel=1e-3
    )


def test_labels_are_systems_and_one_can_be_chosen(tmp_path: Path) -> None:
    points = ["label=a gamma=0 50 tok/s", "label=a gamma=2 80 tok/s tau=2",
              "label=b gamma=0 60 tok/s", "label=b gamma=2 70 tok/s tau=2"]  # fmt: skip
    assert len(calibrate_answer(points=points).json["scenarios"]) == 2
    target = tmp_path / "b.yaml"
    with pytest.raises(ScenarioError, match="2 scenarios for one file"):
        calibrate_answer(points=points, output=target)
    calibrate_answer(points=points, label="b", output=target)
    assert predict(load(target)).speedup == pytest.approx(70 / 60, rel=1e-5)
    with pytest.raises(ScenarioError, match="exists"):
        calibrate_answer(points=points, label="b", output=target)
    with pytest.raises(ScenarioError, match="nothing is labelled 'c'"):
        calibrate_answer(points=points, label="c")


def test_a_baseline_without_a_label_serves_all_labels() -> None:
    points = [
        "gamma=0 50 tok/s",
        "label=a gamma=2 80 tok/s tau=2",
        "label=b gamma=2 70 tok/s tau=2",
    ]
    for value in (calibrate_answer(points=points), calibrate_answer(points=points, label="b")):
        speedups = [one["points"][0]["speedup"] for one in value.json["groups"]]
        assert speedups in ([pytest.approx(1.6), pytest.approx(1.4)], [pytest.approx(1.4)])


def test_no_scenario_without_a_baseline() -> None:
    answer = calibrate_answer(points=SPECBUNDLE)
    assert answer.exit_code == 1
    assert answer.json["scenarios"] == []
    assert answer.json["groups"][0]["need"] == ["baseline"]
    assert all(point["speedup"] is None for point in answer.json["groups"][0]["points"])
    assert "baseline" in answer.notes[-1]


def test_an_impossible_measurement_makes_no_scenario() -> None:
    answer = calibrate_answer(points=["gamma=3 400 tok/s tau=2"], baseline="6 ms")
    assert [one["code"] for one in answer.json["groups"][0]["warnings"]] == ["impossible_round"]
    assert answer.json["scenarios"] == []


def bench(tpot: float, itl: float, **spec: Any) -> dict[str, Any]:
    return {"backend": "vllm", "model_id": "m", "completed": 10, "max_concurrency": 8,
            "total_input_tokens": 100, "total_output_tokens": 1000, "duration": 1.0,
            "mean_ttft_ms": 30.0, "mean_tpot_ms": tpot, "mean_itl_ms": itl, **spec}  # fmt: skip


def test_vllm_bench_serve_with_and_without_speculation(tmp_path: Path) -> None:
    # Qwen3-8B, H100, 8 streams, EAGLE-3 (FORMATS.md D): K 0, 1, 2: ITL 7.03, 8.81, 9.02 ms.
    files = []
    for k, itl, al in ((0, 7.03, 1.0), (1, 8.81, 1.33), (2, 9.02, 1.405)):
        rates = [0.33, 0.075][:k]
        spec = {"spec_decode_acceptance_length": al,
                "spec_decode_per_position_acceptance_rates": rates} if k else {}  # fmt: skip
        files.append(tmp_path / f"{k}.json")
        files[-1].write_text(json.dumps(bench(itl / al, itl, **spec)), encoding="utf-8")
    value = calibrate_answer(files).json
    (found,) = value["groups"]
    assert found["batch"] == 8
    assert [one["round_s"] for one in found["points"]] == pytest.approx([8.81e-3, 9.02e-3])
    assert 1e3 * found["fit"]["draft_step_s"] == pytest.approx(0.21)
    assert [one["gamma"] for one in found["points"]] == [1, 2]
    assert found["points"][1]["speedup"] == pytest.approx(7.03 / (9.02 / 1.405))
    (block,) = value["scenarios"]
    assert predicted(block, tmp_path).speedup == pytest.approx(7.03 / (9.02 / 1.405), rel=1e-3)


def test_a_file_can_be_the_baseline_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(bench(10.0, 10.0)), encoding="utf-8")
    value = calibrate_answer(points=["gamma=2 batch=8 1600 tok/s tau=2"], baseline=str(path)).json
    assert value["groups"][0]["points"][0]["speedup"] == pytest.approx(2.0)


# Real files


@real
def test_amusd_phases_sum_to_the_wall_time_and_show_the_extra_draft_step(tmp_path: Path) -> None:
    # published.json, amusd-trace-humaneval0.
    value = calibrate_answer([DATA / "acceptance" / "amusd" / "humaneval_sample.json"]).json
    (serial,) = (one for one in value["groups"] if one["label"] == "")
    (point,) = serial["points"]
    rounds = 74
    phases = rounds * (point["draft_s"] + point["verify_s"])
    assert phases == pytest.approx(6.962, abs=5e-4)
    assert phases == pytest.approx(6.988, rel=0.01)
    assert rounds * point["round_s"] == pytest.approx(6.988, abs=5e-4)
    assert point["extra_draft_steps"] == pytest.approx(1, abs=0.05)  # (427 − 5 · 74)/58
    assert point["speedup"] == pytest.approx(1.24, abs=0.005)
    assert point["draft_step_ratio"] == pytest.approx(0.525, abs=0.001)
    (block,) = value["scenarios"]
    assert "extra_draft_step: true" in block
    found = predicted(block, tmp_path)
    assert found.tokens_per_round == pytest.approx(5.2568, abs=1e-3)
    assert found.speedup == pytest.approx(1.24, abs=0.005)
    # Without the extra step and with V = T it would be 17 % too high.
    naive = predicted(block, tmp_path, "speculation.extra_draft_step=false",
                      "target.round=22.2513 ms", "speculation.overhead=0 ms")  # fmt: skip
    assert naive.speedup == pytest.approx(1.449, abs=0.005)


@real
def test_drafting_on_a_second_gpu_is_no_serial_scenario() -> None:
    value = calibrate_answer([DATA / "acceptance" / "amusd" / "humaneval_sample.json"]).json
    (parallel,) = (one for one in value["groups"] if one["label"] == "parallel")
    assert [one["code"] for one in parallel["warnings"]] == ["phase_sum_mismatch"]
    assert len(value["scenarios"]) == 1


@real
def test_client_tools_are_read_without_their_traps() -> None:
    guide = calibrate_answer(
        points=["gamma=2 1000 tok/s tau=2"], baseline="1.0 ms"
    ).json  # control: the same baseline stated as a line
    assert guide["groups"][0]["baseline"]["step_s"] == pytest.approx(1e-3)
    engine = DATA / "engine"
    report = engine / "inference_perf" / "vllm" / "stage_0_lifecycle_metrics.json"
    stage = json.loads(report.read_text(encoding="utf-8"))["successes"]
    latency = stage["latency"]
    wanted = (latency["request_latency"]["mean"] - latency["time_to_first_token"]["mean"]) / (
        stage["output_len"]["mean"] - 1
    )
    value = calibrate_answer(points=["gamma=2 300 tok/s tau=2"], baseline=str(report)).json
    assert value["groups"][0]["baseline"]["step_s"] == pytest.approx(wanted)
    # Its own figure counts empty chunks and is about half.
    assert latency["time_per_output_token"]["mean"] < 0.6 * wanted


@real
def test_sglang_bench_rounds_are_itl_times_accept_length() -> None:
    value = calibrate_answer([DATA / "constructed" / "sglang_bench_serving.jsonl"]).json
    rows = [
        json.loads(line)
        for line in (DATA / "constructed" / "sglang_bench_serving.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    rounds = {point["round_s"] for found in value["groups"] for point in found["points"]}
    first = rows[0]
    assert any(
        one == pytest.approx(1e-3 * first["mean_itl_ms"] * first["accept_length"]) for one in rounds
    )


@real
def test_a_table_of_passes_becomes_a_target(tmp_path: Path) -> None:
    value = calibrate_answer([DATA / "constructed" / "vllm_bench_forward.json"]).json
    (block,) = value["scenarios"]
    found = predicted(block, tmp_path)
    assert found.baseline_tpot_s == pytest.approx(5.886e-3 + 21e-6, rel=0.02)
    assert value["passes"][0]["worst_residual"] < 0.01


# Command line


def test_command_line(tmp_path: Path, specplan_cli: Callable[..., Any]) -> None:
    lines = [part for point in SPECBUNDLE for part in ("--point", point)]
    target = tmp_path / "fitted.yaml"
    shown = specplan_cli("calibrate", *lines, "--baseline", "5.264 ms", "-o", str(target))
    assert shown.code == 0
    assert "verify 6.11 ms" in shown.out
    assert specplan_cli("predict", str(target), "--json").json["best_gamma"] >= 5
    value = specplan_cli("calibrate", *lines, "--baseline", "5.264 ms", "--json").json
    assert value["groups"][0]["fit"]["points"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "nothing was measured"),
        (("--point", "gamma=3"), 1, "no scenario"),
        (("--point", "gamma=3 tpot=8"), 2, "has no unit"),
        (("absent.json",), 2, "absent.json"),
        (("--baseline", "5"), 2, "has no unit"),
        (
            (
                "--baseline", "5 ms", "--point", "gamma=1 tau=1.5 round=6 ms",
                "--point", "gamma=2 tau=1.6 round=30 ms",
                "--point", "gamma=3 tau=1.7 round=7 ms",
            ),
            2,
            "do not lie on a line over γ",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...], code: int, says: str, specplan_cli: Callable[..., Any]
) -> None:
    shown = specplan_cli("calibrate", *arguments)
    assert shown.code == code
    assert says in shown.err
    assert "Traceback" not in shown.err


def test_the_verify_pass_is_solved_without_a_baseline(specplan_cli: Callable[..., Any]) -> None:
    # Report C11: draft step 3.13 ms, 74.4 % accepted, 57.07 tok/s; γ is not told, 2 is taken
    found = specplan_cli("calibrate", "--point", "gamma=2 57.07 tok/s rate=.744 draft=3.13ms")
    out = " ".join(found.out.split())
    assert (
        "draft 6.26 ms, verify 37.34 ms (with overhead: verify is the rest)" in out
    )  # 2.488/57.07
    assert "--baseline" in out


def test_the_fastest_placement_is_held_against_the_fastest_plain_one() -> None:
    # Report C57: six placements of a 34B and a 7B; 3:12,19 is 192.19 s
    totals = {"cpu": "3:12,19", "t16": "140.71 s"}
    drafting = {"spec_cpu": 151.80, "t16_dcpu": 120.60, "tcpu_dgpu": 134.21, "t7_dgpu": 119.54}
    points = [f"gamma=0 total={total} label={label}" for label, total in totals.items()]
    points += [f"gamma=4 total={total} s label={label}" for label, total in drafting.items()]
    best = calibrate_answer(points=points).json["best_absolute"]
    assert (best["label"], best["tie"]) == ("t7_dgpu", ["t7_dgpu", "t16_dcpu"])
    assert best["fastest_plain"] == "t16"
    assert best["over_fastest_plain"] == pytest.approx(140.71 / 119.54)


def test_phases_longer_than_the_round_are_no_negative_overhead(
    specplan_cli: Callable[..., Any],
) -> None:
    # Report C15: 260 of γ = 5 in 52 rounds, 80 % accepted; α is 0.9265
    point = "gamma=5 87.954 tok/s drafted=260 accepted=208 tokens=261 draft=1.614ms verify=49.3ms"
    found = specplan_cli("calibrate", "--baseline", "52.5 tok/s", "--point", point)
    out = " ".join(found.out.split())
    assert "draft 8.07 ms, verify 49.3 ms: 0.5221 ms (0.9 %) more than the round" in out
    assert "accepted/drafted 0.800 is an iid α of 0.927" in out


def test_counts_tell_gamma_where_no_list_does(tmp_path: Path) -> None:
    # vLLM's K sweep (Qwen3-8B, H100, concurrency 8): K = 2, ITL 9.02 ms, TPOT 6.43 ms, AL 1.405
    run = {"backend": "vllm", "max_concurrency": 8, "duration": 24.0, "completed": 128}
    run |= {"total_output_tokens": 32894, "output_throughput": 1240.0, "mean_ttft_ms": 35.0}
    run |= {"mean_tpot_ms": 6.43, "mean_itl_ms": 9.02, "spec_decode_num_drafts": 1000}
    run |= {"spec_decode_draft_tokens": 2000, "spec_decode_accepted_tokens": 405}
    file = tmp_path / "k2.json"
    file.write_text(json.dumps(run), encoding="utf-8")
    (group,) = calibrate_answer([file], baseline="7.03 ms batch=8").json["groups"]
    assert group["points"][0]["gamma"] == 2
    file.write_text(json.dumps(run | {"spec_decode_draft_tokens": 1999}), encoding="utf-8")
    (group,) = calibrate_answer([file], baseline="7.03 ms batch=8").json["groups"]
    assert group["points"][0]["gamma"] is None  # some rounds drafted fewer


def test_what_cannot_be_read_names_the_tables_too(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "llama"}', encoding="utf-8")
    assert "A config.json is for --model" in specplan_cli("calibrate", str(config)).err
    assert "a folder without tables" in specplan_cli("calibrate", str(tmp_path)).err


@real
def test_every_table_of_an_operator_fit_is_named() -> None:
    folder = DATA / "steptime" / "llmservingsim" / "RTX4090_Llama-3.1-8B_bf16_tp1"
    model = DATA / "models" / "meta-llama--Meta-Llama-3.1-8B_config.json"
    (fit,) = calibrate_answer([folder], model=model).json["passes"]
    assert all(name in fit["source"] for name in ("attention", "dense", "per_sequence"))


def test_labels_span_a_band_of_speedups() -> None:
    # Report C10 (ggml-org/llama.cpp#23274): two prompts, plain and MTP 1 to 3
    measured = {"A": (23.68, 31.42, 32.37, 27.87), "B": (23.74, 31.97, 36.56, 32.46)}
    points = [
        f"gamma={gamma} {speed} tok/s label={label}"
        for label, speeds in measured.items()
        for gamma, speed in enumerate(speeds)
    ]
    value = calibrate_answer(points=points).json
    assert [group["best_gamma"] for group in value["groups"]] == [2, 2]
    two = value["bands"][1]
    assert (two["gamma"], two["low_label"], two["high_label"]) == (2, "A", "B")
    assert (two["low"], two["high"]) == pytest.approx((1.367, 1.540), abs=1e-3)
    assert calibrate_answer(points=points[:4]).json["bands"] == []
