"""Reports on regimes, first tokens and missing evidence, answered by `specplan calibrate`.

The id of a report is its id in ../shared/cases/reports.json; figures are typed in from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Answer = Callable[..., dict[str, Any]]


# regimes


def test_c06_no_acceptance_can_repair_this_round(group: Answer) -> None:
    found = group(
        "gamma=1 tau=1.87 40.6 tok/s",
        "gamma=2 tau=2.50 36.0 tok/s",
        "gamma=3 tau=3.06 32.7 tok/s",
        baseline="57.0 tok/s",
    )
    ratios = [one["break_even_tokens_per_round"] for one in found["points"]]
    assert ratios == pytest.approx([2.63, 3.96, 5.34], rel=0.01)
    assert all(one["never_pays"] for one in found["points"])
    assert 1e3 * found["fit"]["draft_step_s"] == pytest.approx(23.8, rel=0.02)
    assert 1e3 * found["fit"]["verify_s"] == pytest.approx(22.3, rel=0.02)
    assert found["fit"]["perfect_draft_pays_from_gamma"] is None


def test_c22_what_is_left_of_a_round_is_overhead(group: Answer) -> None:
    # The report has the sum of draft and verify only, about 12 ms.
    point = group("165.4 tok/s accepted_per_round=3.8 draft_round=0 verify=12 ms")["points"][0]
    assert 1e3 * point["round_s"] == pytest.approx(29.0, rel=0.03)
    assert 1e3 * point["overhead_s"] == pytest.approx(17, abs=3)


def test_c27_all_accepted_and_only_118(group: Answer) -> None:
    point = group("gamma=4 alpha=1 59.69 tok/s", baseline="50.64 tok/s")["points"][0]
    assert point["tokens_per_round"] == pytest.approx(5.0, abs=1e-9)
    assert 1e3 * point["round_s"] == pytest.approx(83.8, rel=0.01)
    assert point["speedup"] == pytest.approx(1.18, abs=0.002)
    assert point["ceiling_speedup"] == pytest.approx(point["speedup"])


def test_c28_acceptance_does_not_order_the_outcomes(group: Answer) -> None:
    found = group(
        "rate=70.45% speedup=0.785", "rate=78.10% speedup=0.690", "rate=90.70% speedup=0.762"
    )
    assert "non_monotonic_in_acceptance" in [one["code"] for one in found["warnings"]]


def test_c30_draft_time_that_no_round_was_charged_for(group: Answer) -> None:
    found = group("gamma=1 47.4 tok/s rate=0.857 draft_round=0 verify=10 ms", baseline="16.95 ms")
    assert found["points"][0]["round_cost_ratio"] == pytest.approx(2.31, rel=0.02)
    assert "phase_sum_mismatch" in [one["code"] for one in found["warnings"]]


def test_c72_five_tokens_a_pass_lose_against_an_asynchronous_loop(answered: Answer) -> None:
    value = answered(
        "label=rename gamma=0 407 tok/s",
        "label=rename 225 tok/s tau=5.44 draft=0",
        "label=table gamma=0 405 tok/s",
        "label=table 223 tok/s tau=1.39 draft=0",
    )
    found = {one["label"]: one for one in value["groups"]}
    rename, other = found["rename"]["points"][0], found["table"]["points"][0]
    assert rename["break_even_tokens_per_round"] == pytest.approx(9.84, rel=0.01)
    assert other["break_even_tokens_per_round"] == pytest.approx(2.52, rel=0.01)
    assert rename["speedup"] == pytest.approx(0.553, abs=1e-3)


def test_c73_runs_of_different_lengths_are_compared_per_token(group: Answer) -> None:
    found = group(
        "gamma=0 total=14.3288 s tokens=1000 ttft=40.7 ms",
        "gamma=5 total=15.3249 s tokens=947 ttft=23.5 ms",
    )
    assert found["points"][0]["speedup"] == pytest.approx(0.8854, rel=0.002)


# first token


def test_c63_the_first_token_pays_the_draft_prefill(group: Answer) -> None:
    found = group(
        "ttft=49.89 ms tpot=7.75 ms round=31.21 ms rate=0.644",
        baseline="ttft=25.59 ms tpot=16.45 ms",
    )
    point = found["points"][0]
    assert point["inferred_gamma"] == 5
    assert point["tokens_per_round"] == pytest.approx(4.03, rel=0.06)
    assert point["break_even_output_tokens"] == pytest.approx(3.8, abs=1.0)
    assert point["ttft_ratio"] == pytest.approx(1.95, abs=0.01)


def test_c64_a_fixed_delay_is_large_beside_a_cached_prompt(group: Answer) -> None:
    found = group("batch=4 ttft=18.77 ms", baseline="batch=4 gamma=0 ttft=14.55 ms")
    assert 1e3 * found["points"][0]["ttft_delta_s"] == pytest.approx(4.22, abs=0.05)
    assert found["points"][0]["ttft_ratio"] == pytest.approx(1.29, abs=0.01)


def test_c65_an_earlier_first_token_is_not_explained(group: Answer) -> None:
    found = group("gamma=3 ttft=115.42 ms draft=0", baseline="gamma=0 ttft=135.34 ms")
    assert "unexplained_ttft" in [one["code"] for one in found["warnings"]]


# not enough to say


def test_d34_no_baseline_no_speedup(answered: Answer) -> None:
    speeds = {"4B": (10.5, 8.5, 4.5), "1.7B": (11.5, 9.5, 7.5), "0.6B": (12.5, 11.5, 9.5)}
    value = answered(
        *(
            f"label={draft} gamma={g} {speed} tok/s"
            for draft, row in speeds.items()
            for g, speed in zip((3, 5, 10), row, strict=True)
        )
    )
    for found in value["groups"]:
        assert found["best_gamma_at_most"] == 3  # the smallest K tried is the fastest
        assert found["best_gamma"] in (None, 3)
        assert "baseline" in found["need"]
        assert all(one["speedup"] is None for one in found["points"])
    assert value["best_absolute"]["label"] == "0.6B"
    assert value["scenarios"] == []


def test_d35_the_round_costs_67_steps(group: Answer) -> None:
    point = group("gamma=5 alpha=0.9 speedup=0.7")["points"][0]
    assert point["round_cost_ratio"] == pytest.approx(6.69, rel=0.01)
