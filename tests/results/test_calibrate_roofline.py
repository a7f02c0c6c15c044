"""`specplan calibrate --gpu`: a roofline bent to measured passes, and the scenario it writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path

LLAMA_70B = {
    "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "vocab_size": 32000,
    "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_70B), encoding="utf-8")
    return path


def table(folder: Path, *rows: str) -> Path:
    path = folder / "passes.csv"
    path.write_text("\n".join(["batch,width,context,ms", *rows, ""]), encoding="utf-8")
    return path


def test_the_scenario_prices_the_measured_passes(config: Path, tmp_path: Path) -> None:
    # 140 GB over 4 GPUs at 3.35 TB/s are 10.5 ms at the very least; 25 ms at batch 1 is the host
    passes = table(tmp_path, "1,1,500,25", "64,8,500,45", "128,8,500,70")
    out = tmp_path / "fitted.yaml"
    options: dict[str, Any] = {"model": config, "gpu": "H100 SXM", "tensor_parallel": 4}
    found = calibrate_answer([passes], **options, output=out).json["rooflines"][0]
    assert found["launch_floor_s"] == pytest.approx(25e-3)
    assert found["points"] == 3
    scenario = load(out)
    cost = scenario.target_round()
    assert cost.provenance == "fitted"
    assert float(cost.seconds(1, 1, 500)) == pytest.approx(25e-3)
    fitted = [float(cost.seconds(b, 8, 500)) for b in (64, 128)]
    residuals = [1e3 * s / ms - 1 for s, ms in zip(fitted, (45, 70), strict=True)]
    assert residuals == pytest.approx(found["residuals"][1:], abs=1e-5)
    assert scenario.cluster.gpus_per_replica == 4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gpu": "h100-sxm"}, "--gpu: a roofline needs the model, too"),
        ({"dtype": "fp8"}, "--dtype: is of a roofline"),
        ({"tensor_parallel": 2}, "--tensor-parallel: is of a roofline"),
        ({"gpu": "h10", "model": True}, "GPU 'h10' is not known .did you mean 'h100-sxm'"),
        ({"gpu": "h100-sxm", "model": True, "dtype": "fp88"}, "dtype 'fp88' is not known"),
        ({"gpu": "h100-sxm", "model": True, "tensor_parallel": 3}, "a divisor of the 64 heads"),
    ],
)
def test_bad_input(config: Path, tmp_path: Path, options: dict[str, Any], says: str) -> None:
    passes = table(tmp_path, "1,1,500,25", "64,1,500,45")
    if "model" in options:
        options = options | {"model": config}
    with pytest.raises(ScenarioError, match=says):
        calibrate_answer([passes], **options)


def test_one_pass_is_not_enough_and_points_are_no_passes(config: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"gpu": "h100-sxm", "model": config, "tensor_parallel": 4}
    with pytest.raises(ScenarioError, match="1 pass is measured and two unknowns are wanted"):
        calibrate_answer([table(tmp_path, "1,1,500,25")], **options)
    with pytest.raises(ScenarioError, match="there are no passes to fit a roofline to"):
        calibrate_answer(points=["gamma=3 404 tok/s tau=2.9"], **options)


def test_a_fit_needs_no_whole_grid_and_takes_repeats(tmp_path: Path) -> None:
    # 6 ms + 1 ms a position, at four places of no grid, one of them twice
    passes = table(tmp_path, "1,1,0,7", "2,2,0,10", "2,2,0,10", "4,1,0,10", "8,3,0,30")
    fit = calibrate_answer([passes]).json["passes"][0]
    assert fit["points"] == 5
    assert fit["base_s"] == pytest.approx(6e-3)
    assert fit["per_token_s"] == pytest.approx(1e-3)
