"""Points of several batches, as users reported them (cases of ../shared/cases/reports.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer

if TYPE_CHECKING:
    from collections.abc import Sequence


def series(*points: str, baseline: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    value = calibrate_answer(points=points, baseline=baseline).json
    (one,) = value["batches"]
    return one, value


def lines(template: str, batches: Sequence[int], speeds: str) -> list[str]:
    pairs = zip(batches, speeds.split(), strict=True)
    return [template.format(batch=batch, speed=speed) for batch, speed in pairs]


def test_the_gain_that_ends_at_a_batch() -> None:
    """HabanaAI/vllm-fork#1264: 1.6x, 1.5x, 1.35x, none, the acceptance constant."""
    template = "batch={batch} gamma=1 tau=1.88 speedup={speed}"
    found, _ = series(*lines(template, (4, 32, 128, 256), "1.6 1.5 1.35 1.0"))
    assert found["crossover_batch"] == [128, 256]
    assert found["says"] == "it pays up to batch 128 and no longer at 256"
    assert [one["round_cost_ratio"] for one in found["points"]] == pytest.approx(
        [1.175, 1.253, 1.393, 1.88], abs=0.001
    )


def test_no_crossover_and_the_least_acceptance_that_a_speedup_needs() -> None:
    """sgl-project/sglang-jax#1632: 5.03x falls to 3.18x and never crosses; τ ≥ 5.03 of 8."""
    batches = [2**i for i in range(8)]
    plain = "106.8 211.2 412.4 810.1 1505.7 2838.1 3829.9 4365.9"
    drafted = "537.2 1022.9 1964.5 3222.6 6506.9 9682.3 12185.0 13899.2"
    found, value = series(
        *lines("batch={batch} gamma=0 {speed} tok/s", batches, plain),
        *lines("batch={batch} gamma=7 {speed} tok/s", batches, drafted),
    )
    assert found["crossover_batch"] is None
    assert "1 to 128: no crossover" in found["says"]
    assert found["turns"]  # 3.98x at 8, 4.32x at 16
    (row,) = value["groups"][0]["points"]
    assert row["least_tokens_per_round"] == pytest.approx(5.03, abs=0.01)


def test_a_series_that_turns_is_called_noise() -> None:
    """Tencent/AngelSlim#163: slower up to 32, faster at 64."""
    batches = (1, 4, 8, 32, 64)
    found, _ = series(
        *lines(
            "batch={batch} gamma=0 {speed} tok/s", batches, "218.89 507.49 677.14 1128.3 1237.84"
        ),
        *lines(
            "batch={batch} gamma=4 tau=2.56 {speed} tok/s",
            batches,
            "185.64 476.37 673.14 927.11 1307.95",
        ),
    )
    assert found["crossover_batch"] is None
    assert found["turns"]
    assert "noise from run to run" in found["says"]


def test_speedups_against_the_baseline_of_another_batch_are_named_and_dropped() -> None:
    """MLX batched DFlash: every stated speedup is relative to the one stream of 28.1 tok/s."""
    found, value = series(
        "batch=1 gamma=8 56.2 tok/s accepted_per_round=4.1 speedup=2.0",
        "batch=2 gamma=8 61.3 tok/s accepted_per_round=2.69 speedup=2.18",
        "batch=8 gamma=8 73.7 tok/s accepted_per_round=1.22 speedup=2.62",
        baseline="28.1 tok/s",
    )
    assert [one["speedup"] for one in found["points"]] == [pytest.approx(2.0), None, None]
    codes = [[w["code"] for w in group["warnings"]] for group in value["groups"]]
    assert "baseline_batch_mismatch" not in codes[0]
    assert all("baseline_batch_mismatch" in one for one in codes[1:])
    assert "28.1 tok/s" in str(value["groups"][1]["warnings"])
    assert "τ goes from 5.1 at 1 to 2.22 at 8" in found["says"]


def test_one_batch_is_no_series() -> None:
    assert not calibrate_answer(points=["gamma=2 tau=2 speedup=1.2"]).json["batches"]


def test_served_requests_are_a_speedup_only_at_overload() -> None:
    """vllm-project/vllm#2607: 3.06 served of 20 offered against 3.75 of 20 is 0.816x."""

    def speedup(plain: str, drafted: str) -> Any:
        points = [f"gamma=0 {plain}", f"gamma=4 {drafted}"]
        return calibrate_answer(points=points).json["groups"][0]["points"][0]["speedup"]

    found = speedup("offered=20/s served=3.75/s", "offered=20/s served=3.06/s")
    assert found == pytest.approx(0.816)
    assert speedup("offered=3/s served=3/s", "offered=20/s served=3.06/s") is None
