"""Published curves over γ: InferenceX's acceptance lengths, and another simulator's speedups.

Ids as in ../shared/cases/published.json; figures are typed in from there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from specplan.models.acceptance import Acceptance
from specplan.models.cost import linear
from specplan.models.round_costs import round_costs
from specplan.results.acceptance.convert_answer import convert_answer

# golden acceptance lengths, SemiAnalysisAI/InferenceX golden_al_distribution/*.yaml @843c6254
GOLDEN: dict[str, tuple[list[float], list[float]]] = {
    "golden-glm-5.2-fp8-mtp-thinking_on": (
        [1.84, 2.5, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06],
        [1.84, 2.546, 3.138, 3.636, 4.054, 4.406, 4.701, 4.949],
    ),
    "golden-kimi-k2.5-nvfp4-eagle3-thinking_on": (
        [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77],
        [1.83, 2.519, 3.091, 3.565, 3.959, 4.286, 4.557, 4.783],
    ),
    "golden-kimi-k3-dspark-thinking_on": (
        [1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88],
        [1.84, 2.546, 3.138, 3.636, 4.054, 4.406, 4.701, 4.949],
    ),
    "golden-kimi-k3-dspark-block-rejection-thinking_on": (
        [1.85, 2.51, 3.0, 3.36, 3.62, 3.75, 3.84, 4.0],
        [1.85, 2.573, 3.187, 3.709, 4.152, 4.529, 4.85, 5.123],
    ),
    "golden-minimax-m3-eagle3-thinking_on": (
        [1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74],
        [1.78, 2.388, 2.863, 3.233, 3.522, 3.747, 3.923, 4.06],
    ),
    "golden-minimax-m3-eagle3-thinking_off": (
        [1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06],
        [1.84, 2.546, 3.138, 3.636, 4.054, 4.406, 4.701, 4.949],
    ),
    "golden-minimax-m3-eagle3_gqa-thinking_on": (
        [1.79, 2.39, 2.78, 3.02, 3.21, 3.3, 3.52, 3.51],
        [1.79, 2.414, 2.907, 3.297, 3.604, 3.847, 4.039, 4.191],
    ),
    "golden-minimax-m3-eagle3_gqa-thinking_off": (
        [1.83, 2.46, 2.97, 3.29, 3.72, 3.76, 3.75, 3.93],
        [1.83, 2.519, 3.091, 3.565, 3.959, 4.286, 4.557, 4.783],
    ),
    "golden-qwen3.5-397b-a17b-nvfp4-mtp-thinking_on": (
        [1.93, 2.73, 3.39, 3.97, 4.41, 4.8, 5.04, 5.21],
        [1.93, 2.795, 3.599, 4.347, 5.043, 5.69, 6.292, 6.851],
    ),
    "golden-qwen3.5-397b-a17b-nvfp4-mtp-thinking_off": (
        [1.92, 2.7, 3.33, 3.83, 4.2, 4.48, 4.73, 4.71],
        [1.92, 2.766, 3.545, 4.261, 4.921, 5.527, 6.085, 6.598],
    ),
}


@pytest.mark.parametrize(("measured", "iid"), GOLDEN.values(), ids=GOLDEN.keys())
def test_golden_curves(measured: list[float], iid: list[float]) -> None:
    """Position rates are the increments; iid from γ 1 overestimates each curve, by ≤ .6 at γ 3."""
    alpha = measured[0] - 1
    predicted = [float(Acceptance.from_alpha(alpha, 8).tokens_per_round(g)) for g in range(1, 9)]
    assert predicted == pytest.approx(iid, abs=0.001)
    assert all(i >= m - 1e-9 for i, m in zip(predicted, measured, strict=True))
    assert predicted[2] - measured[2] <= 0.6
    answer = convert_answer(
        {"lengths_by_gamma": ",".join(f"{k}:{tau}" for k, tau in enumerate(measured, start=1))}
    ).json
    gains = [after - before for before, after in pairwise([1.0, *measured])]
    fitted = answer["unconditional"]
    assert all(0 <= after <= before for before, after in pairwise(fitted))
    falling = all(after <= before + 1e-9 for before, after in pairwise(gains)) and min(gains) >= 0
    codes = {one["code"] for one in answer["warnings"]}
    assert ("not_monotone" in codes) is not falling
    if falling:
        assert fitted == pytest.approx(gains, abs=1e-9)
    # Pooling neighbours keeps the total; a curve that ends below its maximum is pooled as a whole.
    assert 1 + sum(fitted) == pytest.approx(measured[-1], abs=0.03)


# SpecDecode-Bench's simulator, rerun at B 1, 8, 32 (sdbench-sim-others): speedup by γ
SDBENCH_OTHERS: dict[str, dict[int, list[float]]] = {
    "eagle cnn": {1: [1.28, 1.26, 1.21], 3: [1.76, 1.65, 1.44], 5: [1.94, 1.76, 1.45]},
    "eagle instructcoder": {1: [1.34, 1.32, 1.26], 3: [2.03, 1.91, 1.65], 5: [2.38, 2.17, 1.74]},
    "eagle sharegpt": {1: [1.26, 1.25, 1.22], 3: [1.74, 1.67, 1.50], 5: [1.93, 1.80, 1.51]},
    "ngram cnn": {1: [1.20, 1.18, 1.13], 3: [1.33, 1.28, 1.17], 5: [1.38, 1.30, 1.15]},
    "ngram gsm8k": {1: [1.10, 1.09, 1.07], 3: [1.15, 1.13, 1.08], 5: [1.16, 1.13, 1.05]},
    "ngram instructcoder": {1: [1.42, 1.38, 1.28], 3: [1.86, 1.73, 1.46], 5: [2.10, 1.89, 1.47]},
    "ngram sharegpt": {1: [1.16, 1.15, 1.12], 3: [1.28, 1.25, 1.18], 5: [1.33, 1.29, 1.18]},
}
# predictor.py @2fdccbd6, as in tests/models/test_cost_reports.py
SDBENCH_TARGET = linear(5.88590713e-3, 0.0, 2.10103129e-5, 3.92645679e-8).composed(
    overhead_s=1.20683946e-3
)
SDBENCH_EAGLE = linear(2.13526175e-3, 0.0, 8.41429603e-7, 2.37768493e-9)


@pytest.mark.parametrize(
    ("name", "by_gamma"),
    SDBENCH_OTHERS.items(),
    ids=[f"sdbench-sim-others {name}" for name in SDBENCH_OTHERS],
)
def test_sdbench_other_datasets(name: str, by_gamma: dict[int, list[float]]) -> None:
    """The published coefficients with what each row leaves out found from it: within .02.

    The rows state neither lengths nor acceptance. One context, one prefill per output token (in
    both arms, b prompts at the token price) and for n-gram one share of rounds that draft are
    looked for per dataset, the τ of each γ comes from its B = 1; B = 8 and 32 are then six values
    from three numbers at most. Without the prompts the EAGLE rows of cnn and instructcoder are
    .06 to .08 off: end-to-end speedups are diluted by prefill, more so in large batches.
    """
    ngram = name.startswith("ngram")
    batch = np.array([1.0, 8.0, 32.0])
    context = np.linspace(50, 1250, 25)[:, None, None, None]
    prompt_s = np.linspace(0, 6e-5, 13)[:, None, None] * batch
    hit = np.linspace(0.2, 1.0, 17)[:, None] if ngram else np.ones((1, 1))
    step = SDBENCH_TARGET.seconds(batch, 1, context)
    wrong = np.zeros((len(context), len(prompt_s), len(hit), 1))
    taus = []
    for gamma, published in by_gamma.items():
        verify = SDBENCH_TARGET.seconds(batch, gamma + 1, context)
        draft = SDBENCH_EAGLE.seconds(batch, gamma, context)
        draft = 0.005875 * verify if ngram else draft
        costs = round_costs(step, verify[..., None], draft, one_pass=True)
        drafting_s, verify_s, _ = costs.parts(gamma, hit, 0.0)
        round_s = drafting_s + verify_s
        alone = (step + prompt_s)[..., :1] / published[0] - prompt_s[..., :1]
        tau = round_s[..., :1] / alone
        found = (step + prompt_s) / (round_s / tau + prompt_s)
        wrong = np.maximum(wrong, np.abs(found - published).max(axis=-1, keepdims=True))
        taus.append(tau)
    best = np.unravel_index(np.argmin(wrong), wrong.shape)
    assert wrong[best] <= 0.02
    likely = [float(np.broadcast_to(tau, wrong.shape)[best]) for tau in taus]
    assert all(1 <= tau <= g + 1 for g, tau in zip(by_gamma, likely, strict=True))
    assert likely == sorted(likely)
