"""Costs against public reports and the published simulator, numbers typed in from them."""

import numpy as np
import pytest

from specplan.models.cost import Cost, linear, table

# SpecDecode-Bench simulator @2fdccbd6 (arXiv 2601.11580), Llama-3.1-8B on one H100.
OVERHEAD_S = 0.00120683946
TARGET = linear(0.00588590713, 0.0, 2.10103129e-05, 3.92645679e-08).composed(overhead_s=OVERHEAD_S)
DRAFT_FIXED_S, DRAFT_TOKEN_S, DRAFT_KV_S = 0.00213526175, 8.41429603e-07, 2.37768493e-09
BATCHES = np.array([1, 8, 16, 32, 64, 128])
GSM8K_ACCEPTANCE = [0.6651, 0.4334, 0.2755, 0.1815, 0.1141]
# The published row states neither length; these are what GSM8K answers of this model come to.
CONTEXT_TOKENS, OUTPUT_TOKENS = 180, 130


@pytest.mark.parametrize(
    ("gamma", "tau", "published"),
    [
        (1, 1.6972, [1.29, 1.28, 1.26, 1.23, 1.19, 1.14]),
        (3, 2.3937, [1.81, 1.73, 1.65, 1.52, 1.36, 1.18]),
        (5, 2.6696, [2.01, 1.86, 1.73, 1.53, 1.29, 1.07]),
    ],
)
def test_published_simulator_eagle_on_gsm8k(gamma: int, tau: float, published: list[float]) -> None:
    # published.json sdbench-sim-eagle-gsm8k
    # One draft pass of γ·b tokens a round, fitted as a whole by the authors.
    draft = linear(DRAFT_FIXED_S, 0.0, DRAFT_TOKEN_S, DRAFT_KV_S)
    step_s = TARGET.seconds(BATCHES, 1, CONTEXT_TOKENS)
    round_s = TARGET.seconds(BATCHES, gamma + 1, CONTEXT_TOKENS)
    round_s = round_s + draft.seconds(BATCHES, gamma, CONTEXT_TOKENS)
    # The last round of an answer is cut: (E[X²] - E[X]) / 2E[X] tokens are lost (renewal theory).
    second_moment = 1 + sum(
        (2 * i + 1) * rate for i, rate in enumerate(GSM8K_ACCEPTANCE[:gamma], start=1)
    )
    lost = (second_moment - tau) / (2 * tau)
    speedup = tau * OUTPUT_TOKENS / (OUTPUT_TOKENS + lost) * step_s / round_s
    # 2 %, and half a digit of what is printed
    assert np.all(np.abs(speedup - published) <= 0.02 * np.array(published) + 0.005)


def tok_s(batch: int, tau: float, pass_cost: Cost, width: int, context: int) -> float:
    return float(batch * tau / pass_cost.seconds(batch, width, context))


def test_report_c45_the_penalty_shrinks_with_context() -> None:
    # vllm-project/vllm#48944: batch 256, K 3, 2711.7 → 2139.8 tok/s at 400 tokens of context and
    # 1987.1 → 1838.9 at 900. The context term from the two baselines, τ and the token term from the
    # two speculative rates: four numbers, four unknowns.
    per_context_s = (256 / 1987.1 - 256 / 2711.7) / (256 * 500)
    tau = per_context_s * 500 / (1 / 1838.9 - 1 / 2139.8)
    assert 1 < tau < 4  # what K = 3 allows
    per_token_s = (tau / 2139.8 - 1 / 2711.7) / 3
    base_s = 256 / 2711.7 - 256 * per_token_s - 256 * 400 * per_context_s
    priced = linear(base_s, 0.0, per_token_s, per_context_s)
    ratios = [
        tok_s(256, tau, priced, 4, context) / tok_s(256, 1, priced, 1, context)
        for context in (400, 900, 2000)
    ]
    assert ratios[:2] == pytest.approx([0.789, 0.925], rel=0.01)
    assert ratios == sorted(ratios)


def test_report_c69_the_round_jumps_not_the_acceptance() -> None:
    contexts = [4000, 16_000, 64_000, 170_000]
    rounds = table([1], [1], [[[99.5e-3, 100e-3, 101.1e-3, 145e-3]]], contexts)
    tau = 1 + np.array([2.94, 2.93, 3.03, 2.94]) * [0.319, 0.317, 0.355, 0.312]
    assert tau == pytest.approx([1.94, 1.93, 2.08, 1.92], abs=0.01)
    assert tau / rounds.seconds(1, 1, contexts) == pytest.approx([19.5, 19.3, 20.6, 13.3], rel=0.01)


def test_report_c70_implied_round_cost_rises_with_context() -> None:
    # vllm-project/vllm#47602, γ 4: accepted .855, .53, .475 at 100, 34K, 86K; speedups 2.49 … 1.0
    contexts = [100, 34_000, 86_000]
    tau = 1 + 4 * np.array([0.855, 0.53, 0.475])
    implied = tau / [2.49, 1.44, 1.0]
    assert implied[0] == pytest.approx(1.77, rel=0.05)
    assert implied[2] == pytest.approx(2.9, rel=0.15)
    rounds = table([1], [1], [[implied]], contexts)
    assert np.all(np.diff(rounds.seconds(1, 1, [100, 20_000, 34_000, 60_000, 86_000])) > 0)


def test_report_c71_one_context_is_no_curve() -> None:
    # n-gram, free draft: 157 against 150 tok/s at 512 tokens, 92 against 149.6 at 2048
    contexts = [512, 2048]
    on = table([1], [1], [[[1 / 157, 1 / 92]]], contexts)
    off = table([1], [1], [[[1 / 150, 1 / 149.6]]], contexts)
    speedup = off.seconds(1, 1, contexts) / on.seconds(1, 1, contexts)
    assert speedup == pytest.approx([1.047, 0.614], rel=0.02)
    with pytest.raises(ValueError, match="context 8192 is outside"):
        on.seconds(1, 1, 8192)
