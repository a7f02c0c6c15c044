"""Published acceptance figures (shared/cases/published.json), answered by `convert`."""

from typing import Any

import pytest

from specplan.results.acceptance.convert_answer import convert_answer
from specplan.scenarios.errors import ScenarioError


def convert(**texts: str) -> dict[str, Any]:
    return convert_answer(texts).json


@pytest.mark.parametrize(
    ("listed", "conditional", "tau"),
    [
        ("0.707,0.453,0.307,0.253", [0.707, 0.640736, 0.677704, 0.824104], 2.72),
        ("0.723,0.455,0.291,0.160", [0.723, 0.629322, 0.63956, 0.549828], 2.63),
        ("0.47", [0.47], 1.47),
    ],
    ids=["vllm-log-perpos-1", "vllm-log-perpos-3", "vllm-log-perpos-4"],
)
def test_vllm_lists_are_unconditional(listed: str, conditional: list[float], tau: float) -> None:
    for name in ("unconditional", "positions"):
        answer = convert(**{name: listed}, length=f"{tau:.2f}")
        assert not answer["ambiguous"]
        assert answer["acceptance_length"] == pytest.approx(tau, abs=0.01)
        assert answer["conditional"] == pytest.approx(conditional, abs=1e-5)


def test_amd_minimax_m3_perpos() -> None:
    """vLLM blog 2026-07-13: the list sums to 2.75, the average over 11 domains is 2.8."""
    answer = convert(unconditional="0.76,0.56,0.43", acceptance_length="2.8")
    assert answer["acceptance_length"] == pytest.approx(2.75, abs=1e-12)
    assert [warning["code"] for warning in answer["warnings"]] == ["figures_disagree"]


@pytest.mark.parametrize(
    ("speedup", "tau", "alpha"),
    [("1.92", 2.9, 0.7236), ("2.01", 3.036, 0.7475), ("2.46", 3.716, 0.851)],
    ids=["xsum nucleus", "xsum greedy", "humaneval"],
)
def test_chen_t1_speedup_and_costs_give_alpha(speedup: str, tau: float, alpha: float) -> None:
    """arXiv 2302.01318 Table 1: 14.1 ms target, 1.8 ms draft, γ 4: R/T = 1 + 4·1.8/14.1."""
    answer = convert(gamma="4", speedup=speedup, round_cost="1.5106383")
    assert answer["acceptance_length"] == pytest.approx(tau, rel=0.02)
    assert answer["alpha"] == pytest.approx(alpha, rel=0.02)


@pytest.mark.parametrize(
    ("alpha", "tau", "overhead"), [("0.85", 1.85, 1.0278), ("0.90", 1.9, 1.0556)]
)
def test_deepseek_v3_mtp(alpha: str, tau: float, overhead: float) -> None:
    """arXiv 2412.19437 §5.4.3: acceptance 85–90 % of the second token, 1.8 times the TPS."""
    answer = convert(gamma="1", alpha=alpha, speedup="1.8")
    assert answer["acceptance_length"] == pytest.approx(tau, rel=0.01)
    assert answer["implied_round_cost_ratio"] == pytest.approx(overhead, rel=0.01)
    read_as_rate = convert(gamma="1", acceptance_rate=alpha)
    assert read_as_rate["acceptance_length"] == pytest.approx(tau, rel=0.01)  # the same at γ = 1


def test_golden_increments_are_the_positions() -> None:
    answer = convert(lengths_by_gamma="1:1.83,2:2.43,3:2.88,4:3.24,5:3.46,6:3.62,7:3.71,8:3.77")
    expected = [0.83, 0.60, 0.45, 0.36, 0.22, 0.16, 0.09, 0.06]  # kimi-k2.5, published.json
    assert answer["unconditional"] == pytest.approx(expected, abs=1e-9)
    assert answer["acceptance_length"] == pytest.approx(3.77)


def test_variance_of_the_minimum_variance_schedule() -> None:
    """published.json synthetic-al: τ 3.5 as (1, 1, .5, 0) has variance .25."""
    answer = convert(conditional="1,1,0.5,0")
    assert answer["acceptance_length"] == pytest.approx(3.5, abs=1e-9)
    assert answer["tokens_per_round_variance"] == pytest.approx(0.25, abs=1e-9)
    assert answer["accepted_length_law"] == pytest.approx([0, 0, 0.5, 0.5, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("batch", "slowest", "fastest"),
    # published.json sync-batch-min: α .8, γ 4; all requests advance by the batch's minimum
    [(1, 3.3616, 3.3616), (2, 2.479516, 4.243684), (8, 1.201434, 4.981736), (32, 1.000793, 5.0)],
)
def test_a_batch_kept_in_step(batch: int, slowest: float, fastest: float) -> None:
    answer = convert(gamma="4", alpha="0.8", batch=str(batch))
    assert answer["tokens_per_round_in_step"] == pytest.approx(slowest, abs=1e-5)
    assert answer["most_tokens_in_step"] == pytest.approx(fastest, abs=1e-5)


@pytest.mark.parametrize("batch", ["2.5", "0", "-1"])
def test_a_batch_is_a_whole_number_of_sequences(batch: str) -> None:
    with pytest.raises(ScenarioError, match="batch"):
        convert(gamma="4", alpha="0.8", batch=batch)
