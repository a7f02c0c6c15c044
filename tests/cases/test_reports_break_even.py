"""Reports on break-even, closed form and best γ, answered by `calibrate` and the closed form.

The id of a report is its id in ../shared/cases/reports.json; figures are typed in from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specplan.models.acceptance import tokens_per_round_from_alpha, unconditional_from_alpha
from specplan.models.break_even import pays_from_gamma
from specplan.models.round_costs import round_costs
from specplan.models.speedup import predict

# break-even


Answer = Callable[..., dict[str, Any]]


def test_c01_break_even_and_the_overhead_that_no_k_survives() -> None:
    alphas = [unconditional_from_alpha(0.81293, gamma) for gamma in range(1, 6)]
    costs = round_costs(25.458, 25.458, 15.175)
    found = [predict(a, g, costs) for g, a in enumerate(alphas, start=1)]
    assert [float(one.break_even_alpha) for one in found] == pytest.approx(
        [0.5961, 0.7009, 0.7627, 0.8034, 0.8322], abs=5e-4
    )
    assert [float(one.speedup) for one in found] == pytest.approx(
        [1.1359, 1.1285, 1.0799, 1.0188, 0.9554], rel=0.002
    )
    assert int(found[-1].best_gamma) == 1
    assert float(found[-1].speedup_perfect_draft) == pytest.approx(1.5074, rel=0.002)
    assert max(float(one.speedup) for one in found) / 1.99 < 1


def test_c07_the_rate_it_would_take(group: Answer) -> None:
    found = group(
        "gamma=2 rate=0.819 18.75 tok/s", "gamma=3 rate=0.713 17.6 tok/s", baseline="49.75 ms"
    )
    # 72.70 s and 78.02 s of wall time stand for 20.1 and 18.9 tok/s; 139.6 ms a round is derived.
    two = group("gamma=2 rate=0.819 round=139.6 ms", baseline="49.75 ms")["points"][0]
    three = group("gamma=3 rate=0.713 round=178.4 ms", baseline="49.75 ms")["points"][0]
    assert two["break_even_rate"] == pytest.approx(0.903, abs=0.01)
    assert three["break_even_rate"] == pytest.approx(0.862, abs=0.01)
    assert two["speedup"] == pytest.approx(0.935, abs=0.01)
    assert two["break_even_rate"] < 0.918  # the python prompt would pay
    assert all(point["speedup"] < 1 for point in found["points"])


def test_c12_a_draft_call_with_a_fixed_cost(group: Answer) -> None:
    round_ms = 30.74 + 10.9 + 3 * 10.35
    point = group(f"gamma=3 round={round_ms} ms", baseline="30.74 ms")["points"][0]
    assert point["break_even_tokens_per_round"] == pytest.approx(2.365, rel=0.005)
    assert not point["never_pays"]
    assert pays_from_gamma(30.74, 30.74 + 1037.7, 33.03) is None
    assert pays_from_gamma(30.74, 30.74 + 10.9, 10.35) == 1


def test_c13_a_faster_drafter_at_the_same_acceptance() -> None:
    slow, fast = round_costs(30.3, 30.3, 10.5), round_costs(30.3, 30.3, 0.0972 * 30.3)
    gammas = range(1, 6)
    alphas = [
        float(predict(unconditional_from_alpha(0.7, g), g, slow).break_even_alpha) for g in gammas
    ]
    assert alphas == pytest.approx([0.3465, 0.4711, 0.5569, 0.619, 0.666], abs=0.002)
    for g in gammas:
        lists = unconditional_from_alpha(0.7, g)
        assert predict(lists, g, fast).speedup > predict(lists, g, slow).speedup


# closed form


@pytest.mark.parametrize(("gamma", "after"), [(1, 59.79), (2, 60.98), (3, 61.65), (4, 62.07)])
def test_c11_a_cheaper_draft_step_is_worth_two_points_of_acceptance(
    group: Answer, gamma: int, after: float
) -> None:
    line = f"gamma={gamma} 57.07 tok/s rate=0.744 draft=3.13 ms"
    before = group(line, baseline="30 ms")["points"][0]  # the baseline is not in the report
    round_s = before["verify_s"] + gamma * 1.42e-3
    predicted = (1 + gamma * 0.725) / round_s
    assert predicted == pytest.approx(after, rel=0.001)
    assert predicted > 57.07
    if gamma in (2, 3):
        assert predicted == pytest.approx(63.98, rel=0.06)


def test_c15_eighty_percent_accepted_is_no_alpha_of_080(group: Answer) -> None:
    point = group(
        "gamma=5 87.954 tok/s drafted=260 accepted=208 tokens=261 draft=1.614 ms",
        baseline="52.5 tok/s",
    )["points"][0]
    assert point["tokens_per_round"] == pytest.approx(5.02, abs=0.021)
    assert point["alpha"] == pytest.approx(0.9265, abs=0.002)
    assert point["speedup"] == pytest.approx(1.675, rel=0.001)
    predicted = point["tokens_per_round"] / (5 * 1.614e-3 + 49.3e-3)
    assert predicted == pytest.approx(87.954, rel=0.03)
    assert float(tokens_per_round_from_alpha(0.8, 5)) == pytest.approx(3.69, abs=0.005)


def test_d13_the_calculator_that_forgets_the_bonus() -> None:
    tau = float(tokens_per_round_from_alpha(0.8, 4))
    assert tau / 1.4 == pytest.approx(2.4011, rel=0.001)
    assert (tau - 1) / 1.4 == pytest.approx(1.687, abs=0.001)


# best γ

EAGLE1 = (
    (2, 2.10, 4.37, 1.618),
    (3, 2.29, 4.29, 1.648),
    (4, 2.39, 4.48, 1.568),
    (5, 2.43, 4.71, 1.610),
    (6, 2.45, 4.94, 1.544),
    (7, 2.47, 5.20, 1.360),
)


def test_c04_the_best_k_is_3_and_three_stated_speedups_are_of_something_else(group: Answer) -> None:
    lines = [f"gamma={g} tau={tau} tpot={ms} ms speedup={s}" for g, tau, ms, s in EAGLE1]
    found = group(*lines, baseline="7.07 ms")
    assert found["best_gamma"] == 3
    verify, draft = found["fit"]["verify_s"], found["fit"]["draft_step_s"]
    assert 1e3 * verify == pytest.approx(7.686, rel=0.01)
    assert 1e3 * draft == pytest.approx(0.74, rel=0.02)
    for g, tau, ms, _ in EAGLE1:
        assert 1e3 * (verify + g * draft) / tau == pytest.approx(ms, rel=0.015)
    says = [one["says"] for one in found["warnings"] if one["code"] == "inconsistent_speedup"]
    assert [one[:5] for one in says] == ["γ = 4", "γ = 5", "γ = 6"]


def test_c05_positions_3_and_4_accept_less_than_they_need(group: Answer) -> None:
    found = group("k=2 175.49 tok/s al=1.89", "k=4 165.65 tok/s al=2.08", baseline="128.64 tok/s")
    assert found["best_gamma"] == 2
    assert 1e3 * found["points"][1]["round_s"] == pytest.approx(12.56, rel=0.01)
    assert found["needed_acceptance"][0]["needed"] == pytest.approx(0.157, abs=0.002)
    assert found["needed_acceptance"][0]["measured"] == pytest.approx(0.095, abs=1e-3)
    assert [one["speedup"] for one in found["points"]] == pytest.approx([1.364, 1.288], abs=1e-3)


def test_c09_a_plateau_not_a_winner(group: Answer) -> None:
    speeds = (24.6, 28.2, 30.9, 29.9, 31.2, 27.5, 26.8)
    found = group(*(f"gamma={g} {speed} tok/s" for g, speed in enumerate(speeds)))
    assert found["plateau"] == [2, 3, 4]
    assert found["points"][3]["speedup"] == pytest.approx(1.268, rel=0.01)


def test_c10_two_prompts_one_peak_and_two_gains(answered: Answer) -> None:
    runs = {"A": (23.68, 31.42, 32.37, 27.87), "B": (23.74, 31.97, 36.56, 32.46)}
    found = {
        one["label"]: one
        for one in answered(
            *(
                f"label={label} gamma={g} {speed} tok/s"
                for label, speeds in runs.items()
                for g, speed in enumerate(speeds)
            )
        )["groups"]
    }
    assert [found[label]["best_gamma"] for label in "AB"] == [2, 2]
    gains = {label: [one["speedup"] for one in found[label]["points"]] for label in "AB"}
    assert gains["A"] == pytest.approx([1.327, 1.367, 1.177], abs=1e-3)
    assert gains["B"] == pytest.approx([1.347, 1.540, 1.367], abs=1e-3)


def test_c18_gamma_16_is_too_long_and_alpha_is_not_034(group: Answer) -> None:
    found = group(
        "gamma=16 10.781 tok/s drafted=912 accepted=313 tokens=371 draft=10.3 ms",
        baseline="90.9 ms",
    )
    point = found["points"][0]
    assert point["alpha"] == pytest.approx(0.856, abs=0.005)
    assert point["break_even_tokens_per_round"] == pytest.approx(6.53, rel=0.02)
    assert point["speedup"] == pytest.approx(0.98, abs=0.005)
    assert 1e3 * point["verify_s"] == pytest.approx(431, rel=0.02)
    assert "gamma_too_long" in {one["code"] for one in found["warnings"]}
    assert point["cause"] == "verify"
