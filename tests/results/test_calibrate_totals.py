"""`vllm bench latency` and `throughput`, with what their files lack stated beside them.

Fields as in vllm/benchmarks/latency.py and throughput.py; the times are made from costs we know.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

PREFILL_S, STEP_S, ROUND_S, TAU = 0.3, 0.02, 0.035, 2.5


def latency(folder: Path, name: str, seconds: float) -> Path:
    path = folder / name
    found = {"avg_latency": seconds, "latencies": [seconds] * 3, "percentiles": {"50": seconds}}
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def throughput(folder: Path, **changed: Any) -> Path:
    path = folder / "throughput.json"
    found = {
        "elapsed_time": 40.0,
        "num_requests": 64,
        "total_num_tokens": 64 * 1152,
        "requests_per_second": 1.6,
        "tokens_per_second": 1843.2,
    }
    path.write_text(json.dumps(found | changed), encoding="utf-8")
    return path


def test_two_output_lengths_take_the_prefill_out(tmp_path: Path) -> None:
    files, stated = [], []
    for output in (128, 512):
        for gamma, token_s in ((0, STEP_S), (3, ROUND_S / TAU)):
            name = f"{gamma}-{output}.json"
            files.append(latency(tmp_path, name, PREFILL_S + output * token_s))
            more = f" gamma={gamma} tau={TAU}" if gamma else " gamma=0"
            stated.append(f"batch=8 input=1024 output={output}{more}")
    [found] = calibrate_answer(files, stated=stated).json["groups"]
    assert found["batch"] == 8
    assert found["baseline"]["step_s"] == pytest.approx(STEP_S)
    [point] = found["points"]
    assert point["round_s"] == pytest.approx(ROUND_S)
    assert point["speedup"] == pytest.approx(TAU * STEP_S / ROUND_S)
    assert found["warnings"] == []


def test_one_output_length_says_that_the_prefill_is_inside(tmp_path: Path) -> None:
    file = latency(tmp_path, "plain.json", PREFILL_S + 128 * STEP_S)
    answer = calibrate_answer([file], stated=["batch=8,input=1024,output=128"])
    [found] = answer.json["groups"]
    assert found["baseline"]["step_s"] == pytest.approx(STEP_S + PREFILL_S / 128)
    assert {one["code"] for one in found["warnings"]} == {"prefill_inside", "gamma_assumed"}


def test_plain_runs_of_several_batches_are_fitted(tmp_path: Path) -> None:
    files, stated = [], []
    for batch in (1, 8, 32):
        for output in (128, 512):
            seconds = PREFILL_S + output * (6e-3 + 20e-6 * batch)
            files.append(latency(tmp_path, f"{batch}-{output}.json", seconds))
            stated.append(f"batch={batch} input=1024 output={output} gamma=0")
    [fitted] = calibrate_answer(files, stated=stated).json["passes"]
    assert fitted["base_s"] == pytest.approx(6e-3, rel=1e-3)
    assert fitted["per_token_s"] == pytest.approx(20e-6, rel=0.01)


def test_throughput_needs_the_batch_that_ran(tmp_path: Path) -> None:
    # 64 requests in waves of 16: 4 waves of 10 s for 128 tokens each
    answer = calibrate_answer([throughput(tmp_path)], stated=["batch=16 input=1024 output=128"])
    [found] = answer.json["groups"]
    assert found["baseline"]["step_s"] == pytest.approx(10 / 128)
    assert found["baseline"]["tokens_per_s"] == pytest.approx(64 * 128 / 40)


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ((), "does not hold batch, input, output"),
        (("batch=8 output=128",), "does not hold input"),
        (("batch=8 input=1024 output=0",), "output=0"),
        (("batch=8 input=1024 output=128", "batch=4 input=1 output=2"), "1 results"),
        (("batch=8 input=1024 output=128 temp=1",), "temp"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    tmp_path: Path, stated: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        calibrate_answer([latency(tmp_path, "a.json", 3.0)], stated=stated)


def test_lengths_that_the_file_contradicts(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="the file counts 73728"):
        calibrate_answer([throughput(tmp_path)], stated=["batch=16 input=512 output=128"])


def test_longer_outputs_take_longer(tmp_path: Path) -> None:
    files = [latency(tmp_path, "a.json", 3.0), latency(tmp_path, "b.json", 2.0)]
    stated = ["batch=8 input=1024 output=128", "batch=8 input=1024 output=512"]
    with pytest.raises(ScenarioError, match="a longer output takes longer"):
        calibrate_answer(files, stated=stated)


def test_with_belongs_to_such_files() -> None:
    with pytest.raises(ScenarioError, match="no file is a result of vllm bench"):
        calibrate_answer(points=["gamma=0 10 ms"], stated=["batch=8 input=1 output=2"])
