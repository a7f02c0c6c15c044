"""Published tables of speed and acceptance, answered by `calibrate` and `acceptance convert`.

Ids are those of ../shared/cases/published.json; figures are typed in from there. Rows that state a
speedup beside τ have one answer: the implied round cost R/T = τ/speedup. Whether a *model* predicts
such rows from others is what `specplan validate` shows (scenarios/published/*.yaml).
Not answered: the Monte Carlo cost of DSI (`dsi-si-exact`, `dsi_cost_mc`): there several copies of
the target verify at once and rejected branches are cut off, whereas the `parallel` placement drafts
ahead of one target; its speculative part (SI) is exact in tests/models/test_rounds.py. The `oracle`
rows of sdbench-sim-*: they know the accepted length of each round before it is drafted; the γ that
one could choose without that is the goodput policy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from specplan.models.acceptance import Acceptance, unconditional_from_alpha
from specplan.models.cost import linear, table
from specplan.models.round_costs import round_costs
from specplan.models.rounds import finite_output
from specplan.models.speedup import predict
from specplan.results.calibrate_answer import calibrate_answer
from specplan.results.convert_answer import convert_answer

# EAGLE-3, arXiv 2503.01840, Table 1 and Spec-Bench Leaderboard.md @fd2c1cd7: speedup, τ, τ/speedup
IMPLIED: dict[str, dict[str, tuple[float, float, float]]] = {
    "eagle3-table1": {
        "V13B EAGLE": (3.05, 3.96, 1.298),
        "V13B EAGLE-2": (4.22, 4.83, 1.145),
        "V13B EAGLE-3": (5.51, 6.62, 1.201),
        "L31-8B EAGLE-2": (3.23, 4.11, 1.272),
        "L31-8B EAGLE-3": (4.44, 6.23, 1.403),
        "L33-70B EAGLE-2": (2.85, 3.78, 1.326),
        "L33-70B EAGLE-3": (4.12, 5.88, 1.427),
    },
    "specbench-3090-vicuna-7b": {
        "SAMD-EAGLE2": (2.38, 4.61, 1.937),
        "EAGLE2": (2.19, 4.35, 1.986),
        "EAGLE": (2.03, 3.57, 1.759),
        "Hydra": (1.91, 3.26, 1.707),
        "SpS": (1.79, 2.28, 1.274),
        "PLD": (1.64, 1.73, 1.055),
        "Medusa": (1.44, 2.32, 1.611),
        "Recycling": (1.40, 2.73, 1.950),
        "REST": (1.28, 1.63, 1.273),
        "Lookahead": (1.13, 1.64, 1.451),
    },
    "specbench-a100-vicuna-7b": {
        "SAMD-EAGLE2": (2.73, 4.58, 1.678),
        "EAGLE2": (2.36, 4.34, 1.839),
        "Recycling": (2.22, 2.73, 1.230),
        "EAGLE": (2.10, 3.58, 1.705),
        "Hydra": (2.07, 3.26, 1.575),
        "Medusa": (1.71, 2.31, 1.351),
        "PLD": (1.66, 1.75, 1.054),
        "SpS": (1.52, 2.28, 1.500),
        "REST": (1.48, 1.82, 1.230),
        "Lookahead": (1.34, 1.64, 1.224),
    },
    "specbench-a100-vicuna-13b": {
        "EAGLE3": (3.02, 5.71, 1.891),
        "EAGLE2": (2.46, 4.43, 1.801),
        "EAGLE": (2.16, 3.64, 1.685),
        "Hydra": (2.20, 3.35, 1.523),
        "Medusa": (1.80, 2.39, 1.328),
        "PLD": (1.56, 1.67, 1.071),
        "SpS": (1.54, 2.19, 1.422),
        "Lookahead": (1.30, 1.63, 1.254),
    },
}


@pytest.mark.parametrize(
    ("system", "speedup", "tau", "ratio"),
    [
        pytest.param(name, *row, id=f"{case} {name}")
        for case, rows in IMPLIED.items()
        for name, row in rows.items()
    ],
)
def test_the_implied_round_cost(system: str, speedup: float, tau: float, ratio: float) -> None:
    answer = convert_answer({"acceptance_length": str(tau), "speedup": str(speedup)}).json
    assert answer["implied_round_cost_ratio"] == pytest.approx(ratio, rel=0.005)
    assert answer["implied_round_cost_ratio"] >= 1, system


def test_one_speculator_costs_more_on_the_smaller_gpu() -> None:
    """Spec-Bench: EAGLE-2 and Medusa accept alike on the 3090 and the A100, and cost more there."""
    small, large = IMPLIED["specbench-3090-vicuna-7b"], IMPLIED["specbench-a100-vicuna-7b"]
    for name in ("EAGLE2", "Medusa", "Hydra", "Lookahead"):
        assert small[name][1] == pytest.approx(large[name][1], rel=0.01)
        assert small[name][2] > 1.05 * large[name][2]


def speedups(plain: list[float], fast: list[float], batches: list[int]) -> list[float]:
    """Give the speedups that `calibrate` finds in tok/s (of one user) at each concurrency."""
    lines = [
        line
        for batch, before, after in zip(batches, plain, fast, strict=True)
        for line in (
            f"label=c{batch} batch={batch} gamma=0 tpot={1 / before:.9g} s",
            f"label=c{batch} batch={batch} gamma=3 tpot={1 / after:.9g} s",
        )
    ]
    groups: list[dict[str, Any]] = calibrate_answer(points=lines).json["groups"]
    return [group["points"][0]["speedup"] for group in groups]


def test_amd_kimi_k25_speedup_falls_with_concurrency() -> None:
    """vLLM blog 2026-07-13, Fig. 4: Kimi-K2.5-MXFP4 on 4 MI355X, tok/s/GPU.

    Each arm has a baseline of its own and only one is plotted, hence the 10 % of published.json.
    """
    plain = [83.0, 142.0, 220.0, 342.0, 533.0]
    found = speedups(plain, [157, 269, 400, 628, 902], [4, 8, 16, 32, 64])
    assert found == pytest.approx([1.9, 1.89, 1.81, 1.83, 1.69], rel=0.1)
    assert found[-1] < found[0]
    found = speedups(plain, [165, 270, 413, 634, 937], [4, 8, 16, 32, 64])
    assert found == pytest.approx([2.0, 1.9, 1.87, 1.85, 1.76], rel=0.1)


def test_eagle31_kimi_k26_per_user_speed() -> None:
    """vLLM blog 2026-05-26, Fig. 2: Kimi-K2.6-NVFP4 on 4 GB200, tok/s per user."""
    found = speedups([157.5, 125.6, 79.6], [320.0, 214.6, 132.1], [1, 4, 16])
    assert found == pytest.approx([2.03, 1.71, 1.66], rel=0.01)


def test_eagle3_sglang_bs1() -> None:
    """EAGLE-3, Table 4: Llama-3.1-8B on one H100 at batch 1, tok/s."""
    value = calibrate_answer(
        points=["label=eagle2 244.10 tok/s", "label=eagle3 373.25 tok/s"], baseline="158.34 tok/s"
    ).json
    found = {group["label"]: group["points"][0]["speedup"] for group in value["groups"]}
    assert found == pytest.approx({"eagle2": 1.5416, "eagle3": 2.3573}, rel=1e-4)


def test_eagle3_sglang_batch_crosses_one_for_eagle_only() -> None:
    """EAGLE-3, Table 3: SGLang 0.4.4, H100, chain of 3: the round cost over τ is 1/speedup.

    That batches between the measured ones follow is held out in `validate eagle3-sglang-h100`.
    """
    batches = [2, 4, 8, 16, 24, 32, 48, 56, 64]
    rows = {
        "eagle": [1.40, 1.38, 1.23, 1.02, 0.93, 0.94, 0.88, 0.99, 0.99],
        "eagle3": [1.81, 1.82, 1.62, 1.48, 1.39, 1.32, 1.38, 1.34, 1.38],
    }
    below = {}
    for name, ratios in rows.items():
        found = speedups([100.0] * 9, [100 * ratio for ratio in ratios], batches)
        assert found == pytest.approx(ratios, rel=1e-6)
        below[name] = [b for b, s in zip(batches, found, strict=True) if s < 1]
    assert below == {"eagle": [24, 32, 48, 56, 64], "eagle3": []}


def test_amusd_readme_synchronous_and_asynchronous() -> None:
    """AMUSD README @c52657aa: Llama-3.1-8B with a 1B draft, γ 5; ms per token."""
    rows = {
        "humaneval": ((22.15, 17.88, 14.08), (1.24, 1.57)),
        "mtbench": ((21.89, 20.64, 16.75), (1.06, 1.31)),
        "refactorchat": ((27.42, 19.18, 13.96), (1.43, 1.96)),
    }
    for name, ((plain, sync, parallel), expected) in rows.items():
        lines = [f"label={name} gamma=5 tpot={ms} ms" for ms in (sync, parallel)]
        value = calibrate_answer(points=lines, baseline=f"{plain} ms").json
        [found] = value["groups"]
        assert [one["speedup"] for one in found["points"]] == pytest.approx(expected, rel=0.02)


def test_vllm_blog_qps_cnndm_the_gain_turns_into_a_loss() -> None:
    """vLLM blog, Figs. 6 and 7: n-gram on Llama3-70B, 4 H100: latency of whole requests by QPS.

    What is read off is the crossing between 4 and 8 QPS; that a queue turns a gain into a loss is
    simulated for C40 in test_reports_planning.
    """
    spec, base = [0.96, 1.22, 1.80, 10.69], [2.73, 2.92, 3.76, 5.72]
    lines = [
        f"label=qps{qps} gamma=4 total={after} s"
        for qps, after in zip((1, 2, 4, 8), spec, strict=True)
    ] + [f"label=qps{qps} gamma=0 total={s} s" for qps, s in zip((1, 2, 4, 8), base, strict=True)]
    value = calibrate_answer(points=lines).json
    found = [group["points"][0]["speedup"] for group in value["groups"]]
    assert found == pytest.approx([2.84, 2.4, 2.09, 0.54], rel=0.01)


def test_p_eagle_al_one_pass_moves_the_best_gamma() -> None:
    """vLLM blog 2026-03-13: γ 3 and 7 on GPT-OSS-20B; one pass for all γ against a chain.

    τ by dataset and γ. P-EAGLE at γ 7 beats γ 3 whatever its one pass costs once the verify pass is
    flat; the chain pays four more steps for .35 to .57 tokens. The draft step is not stated: 15 %
    of the plain step is ours, as is the flat verify pass (batch 1).
    """
    one_pass = {"humaneval": (3.02, 3.94), "speed_bench": (2.87, 3.38), "mt_bench": (2.87, 3.70)}
    chain = {"humaneval": (2.65, 3.03), "speed_bench": (2.24, 2.59), "mt_bench": (2.70, 3.27)}
    for rows, in_one_pass, best in ((one_pass, True, 7), (chain, False, 3)):
        for three, seven in rows.values():
            costs = round_costs(1.0, 1.0, 0.15, one_pass=in_one_pass)
            found = {
                gamma: float(
                    predict(Acceptance.from_acceptance_length(tau, gamma), gamma, costs).speedup
                )
                for gamma, tau in ((3, three), (7, seven))
            }
            assert max(found, key=lambda gamma: found[gamma]) == best


# a verify pass padded to captured graphs: vLLM blog 2026-08-14, Fig. 2 (vllm-dspark-costtable)
DSPARK_TOKENS = (
    1, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 144, 160, 240, 256, 272,
    288, 304, 320, 416, 432, 448, 480, 576, 592, 608, 624, 640, 656, 768, 800, 816, 832, 864, 881,
    895, 912, 929, 960, 976, 992, 1008, 1025, 2047, 4097, 8185, 16384,
)  # fmt: skip
DSPARK_MS = (
    5.109, 5.162, 5.345, 5.592, 6.084, 6.262, 6.827, 6.94, 7.128, 7.9, 8.214, 8.506, 8.701, 8.773,
    9.048, 9.198, 9.466, 9.904, 11.32, 11.39, 11.508, 12.52, 12.624, 13.904, 14.106, 14.578, 14.668,
    15.665, 15.991, 16.222, 16.662, 17.078, 17.254, 17.361, 17.685, 17.758, 17.905, 18.09, 18.165,
    18.58, 18.695, 19.162, 19.48, 19.56, 19.681, 20.09, 20.173, 20.256, 20.634, 104.489, 133.452,
    135.665, 234.892,
)  # fmt: skip


def test_vllm_dspark_costtable_is_a_staircase() -> None:
    """Tokens of a step are padded up: 512 cost what 576 do, 1024 what 1025 do, 2048 the next."""
    cost = table(list(DSPARK_TOKENS), [1], [[1e-3 * ms] for ms in DSPARK_MS], pads_batch=True)
    found = {
        tokens: 1e3 * float(cost.seconds(tokens, 1)) for tokens in (1, 16, 128, 256, 512, 1024)
    }
    expected = {1: 5.109, 16: 5.592, 128: 9.466, 256: 11.508, 512: 16.222, 1024: 20.634}
    assert found == pytest.approx(expected, rel=0.01)
    # The decoded polyline has 2047 where its label says 2048: within the jump of the graph limit.
    assert 1e3 * float(cost.seconds(2047, 1)) == pytest.approx(104.489, rel=0.01)
    draft = table([1, 64, 256], [1], [[0.883e-3], [2.274e-3], [5.38e-3]], pads_batch=True)
    drafted = [1e3 * float(draft.seconds(b, 1)) for b in (1, 64, 256)]
    assert drafted == pytest.approx([0.883, 2.274, 5.38], rel=1e-9)


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


def test_magicdec_a100_the_gain_grows_with_the_batch() -> None:
    """MagicDec index.html @09cd671c: at long context KV reads dominate, and the draft skips them.

    Speedup = τ/(γ·T_D/T_T + T_V/T_T): the cost of the target grows with batch × context, that of
    the draft over 512 cached tokens does not. Held out within 10 % in `validate magicdec-a100`;
    here the bytes of 8 A100 (2.039 TB/s at 90 %) and any α above .5 give the direction.
    """
    published = {
        "Llama3.1-8B 32K": {32: 1.22, 64: 1.38, 128: 1.47},
        "Llama2-7B 8K": {32: 1.18, 64: 1.48, 128: 1.63},
    }
    weights_s = {"Llama3.1-8B 32K": 1.094e-3, "Llama2-7B 8K": 0.918e-3}
    kv_s = {"Llama3.1-8B 32K": 8.928e-9, "Llama2-7B 8K": 35.71e-9}  # 131 and 524 kB a token
    context = {"Llama3.1-8B 32K": 32_000, "Llama2-7B 8K": 8_000}
    fixed_s = 6e-3  # launches and all-reduces of 32 layers on 8 GPUs: an order of magnitude, ours
    for name, row in published.items():
        assert list(row.values()) == sorted(row.values())
        found = []
        for batch in row:
            target = weights_s[name] + fixed_s + batch * context[name] * kv_s[name]
            draft = weights_s[name] + fixed_s + batch * 512 * kv_s[name]
            lists = unconditional_from_alpha(0.8, 3)
            found.append(float(predict(lists, 3, round_costs(target, target, draft)).speedup))
        assert found == sorted(found)
        assert found[-1] > 1


def test_hf_blog_mbpp_static_and_oracle_lookahead() -> None:
    """huggingface/blog dynamic_speculation_lookahead.md: γ 5 needs 38 passes and 192 drafts.

    An oracle needs 27 passes and 129 drafts for the same text: if it drafts just what is kept that
    is 27 + 129 tokens. The acceptance that gives 38 rounds at γ 5 gives the drafts, too: 5 a round
    but for the last ones; within 5 % of the 192 (38·5 = 190, two more by the library's schedule).
    """
    tokens = 27 + 129
    found = [
        finite_output(unconditional_from_alpha(alpha, 5), 5, tokens)
        for alpha in np.linspace(0.5, 0.98, 49)
    ]
    nearest = min(found, key=lambda one: abs(float(one.rounds) - 38))
    assert float(nearest.rounds) == pytest.approx(38, abs=0.5)
    assert float(nearest.draft_steps()) == pytest.approx(192, rel=0.05)
    assert float(nearest.draft_steps()) <= 38.5 * 5
