"""The roofline of one pass: a datasheet and an architecture to coefficients in seconds.

The formula takes the larger of memory time and compute time for each kind of work (Williams et al.,
CACM 52(4), 2009, eq. 1), adds the work that overlaps with nothing, and counts what the weights of
an MoE layer really cost: the experts that the tokens of the pass touch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specplan.models.hardware import dtype_bytes
from specplan.models.layers import LatentAttention

if TYPE_CHECKING:
    from specplan.models.hardware import Gpu, Model

Amount = float | NDArray[np.floating[Any]]

_HALVINGS = 128.0  # 2^7: exp(x) = exp(x/128)^128, see exp_of_negative
_LEAST_EXPONENT = -64.0  # e^-64 is 1.6e-28: 1 - e^x is 1 to the last bit


def exp_of_negative(x: Amount) -> Amount:
    """Compute eˣ for x ≤ 0 by arithmetic alone, relative error below 1e-13 for x > -64.

    Taylor to the 13th power on x/128, squared seven times: NumPy's and LLVM's own exponentials
    differ in the last bit, and the formulas must not.

    >>> round(exp_of_negative(-1.0), 12)
    np.float64(0.367879441171)
    """
    small = np.maximum(x, _LEAST_EXPONENT) / _HALVINGS
    series = 1.0 + small / 13.0
    series = 1.0 + small / 12.0 * series
    series = 1.0 + small / 11.0 * series
    series = 1.0 + small / 10.0 * series
    series = 1.0 + small / 9.0 * series
    series = 1.0 + small / 8.0 * series
    series = 1.0 + small / 7.0 * series
    series = 1.0 + small / 6.0 * series
    series = 1.0 + small / 5.0 * series
    series = 1.0 + small / 4.0 * series
    series = 1.0 + small / 3.0 * series
    series = 1.0 + small / 2.0 * series
    power: Amount = 1.0 + small * series
    power = power * power
    power = power * power
    power = power * power
    power = power * power
    power = power * power
    power = power * power
    return power * power


def larger_of(memory_s: Amount, compute_s: Amount) -> Amount:
    """Take the larger of memory and compute time, the corner rounded: (m⁴ + c⁴)^¼.

    Verify passes live at that corner. Measured bf16 GEMMs of 192 to 384 positions are in the median
    10 % above a plain max and 1 % above this (aiconfigurator @095f58a51, H100 SXM, vLLM 0.14.0).

    >>> round(larger_of(3.0, 3.0), 4), round(larger_of(3.0, 1.0), 4)
    (np.float64(3.5676), np.float64(3.0092))
    """
    memory, compute = memory_s * memory_s, compute_s * compute_s
    longer: Amount = np.sqrt(np.sqrt(memory * memory + compute * compute))
    return longer


def roofline_seconds(
    coefficients: NDArray[np.float64],
    sequences: Amount,
    tokens: Amount,
    context_tokens: Amount,
    prefill_tokens: Amount,
) -> Amount:
    """Price a pass by the roofline; 0 without work. Coefficients are `Roofline`'s, in order.

    Weights are read once, the cache once per sequence, and of E experts E·(1 − (1 − k/E)^n) are
    read when n tokens choose k each, independently and evenly. Each decode position attends to the
    mean context; the prompt positions count as one prompt that attends to itself.
    """
    positions: Amount = tokens + prefill_tokens
    share_touched = 1.0 - exp_of_negative(coefficients[4] * positions)
    present = np.maximum(sequences, 1.0)
    pairs = tokens * (context_tokens / present) + 0.5 * prefill_tokens * prefill_tokens
    seen = np.minimum(context_tokens, coefficients[10] * present)
    seen_pairs = np.minimum(pairs, coefficients[10] * positions)
    priced: Amount = (
        coefficients[0]
        + larger_of(coefficients[1], coefficients[2] * positions)
        + larger_of(coefficients[3] * share_touched, coefficients[5] * positions)
        + larger_of(coefficients[6], coefficients[7] * tokens)
        + larger_of(coefficients[8] * context_tokens, coefficients[9] * pairs)
        + larger_of(coefficients[11] * seen, coefficients[12] * seen_pairs)
        + coefficients[13] * sequences
        + coefficients[14] * positions
    )
    worked: Amount = priced * (positions > 0)
    return worked


@dataclass(frozen=True)
class Roofline:
    """The coefficients of `roofline_seconds`, in order; in seconds unless said otherwise."""

    fixed_s: float
    dense_read_s: float
    dense_s_per_position: float
    expert_read_s: float
    log_untouched_per_position: float  # ln(1 - k/E), no unit
    expert_s_per_position: float
    head_read_s: float
    head_s_per_token: float
    cache_s_per_context_token: float
    attention_s_per_pair: float
    window_tokens: float
    window_cache_s_per_context_token: float
    window_attention_s_per_pair: float
    s_per_sequence: float
    s_per_position: float

    def coefficients(self) -> NDArray[np.float64]:
        """Lower to the vector that `roofline_seconds` reads."""
        return np.array([getattr(self, x.name) for x in fields(self)], dtype=np.float64)

    def slower(self, slowdown: float) -> Roofline:
        """Multiply what grows with the work, and leave the latencies of launches as they are."""
        unscaled = {"fixed_s", "log_untouched_per_position", "window_tokens"}
        changed = {
            x.name: getattr(self, x.name) * slowdown for x in fields(self) if x.name not in unscaled
        }
        return replace(self, **changed)


@dataclass(frozen=True)
class Efficiency:
    """Shares of the datasheet that kernels reach, and latencies that no datasheet has.

    Defaults are medians over one stack's measured *kernels* (aiconfigurator @095f58a51, H100 SXM,
    vLLM 0.14.0, and the sources named at a field), not over the steps they are checked against.
    """

    memory: float = 0.90  # bf16 GEMM, m ≤ 64, weights ≥ 128 MB; attention, cache ≥ 1 GB
    experts: float = 0.84  # grouped fp8 GEMM on H800, 3.35 TB/s (alibaba/InferSim @f2293da)
    compute: float = 0.80  # bf16 GEMM, m ≥ 1024
    compute_narrow: float = 0.50  # fp8 GEMM with dynamic activation scales, m ≥ 1024
    link: float = 0.40  # custom all-reduce, 64 MB and more, of NVLink one way
    gemm_s: float = 4e-6  # bf16 GEMM: what is left beyond bytes / (0.9 × bandwidth)
    gemm_narrow_s: float = 13e-6  # fp8 GEMM, likewise, with the quantisation of activations
    attention_s: float = 11e-6  # decode attention of one layer over an empty cache
    pointwise_s: float = 8.5e-6  # two norms, rotary, activation at one token (LLMServingSim)
    all_reduce_s: float = 4.5e-6  # custom all-reduce inside a CUDA graph, 128 bytes, 2 to 8 GPUs

    def says(self) -> str:
        """Say which shares are reached, for the provenance of a cost.

        >>> Efficiency().says()
        'kernels of one H100 stack: 90 % of the bandwidth, 80 % of the FLOP/s (narrow types 50 %)'
        """
        compute = f"{100 * self.compute:.3g} % of the FLOP/s"
        if self.compute_narrow != self.compute:
            compute += f" (narrow types {100 * self.compute_narrow:.3g} %)"
        known = Efficiency()
        kept = (self.memory, self.compute) == (known.memory, known.compute)
        whose = "kernels of one H100 stack" if kept else "as stated"
        return f"{whose}: {100 * self.memory:.3g} % of the bandwidth, {compute}"

    def __post_init__(self) -> None:
        for x in fields(self):
            value = getattr(self, x.name)
            if x.name.endswith("_s") and not 0 <= value < np.inf:
                raise ValueError(f"{x.name} is {value} (a finite duration, 0 or more)")
            if not x.name.endswith("_s") and not 0 < value <= 1:
                raise ValueError(f"efficiency {x.name} is {value} (above 0, at most 1)")


def roofline_of(gpu: Gpu, model: Model, shards: int, efficiency: Efficiency) -> Roofline:
    """Work out the roofline of `model` on `shards` GPUs of one kind.

    Raises ValueError for a tensor-parallel size below 1 or one that does not divide the heads.
    """
    model.check_shards(shards)
    read = 1.0 / (gpu.bandwidth * efficiency.memory)
    attention, mlp = model.attention_parameters(shards), model.mlp_parameters(shards)
    dense_bytes = attention * dtype_bytes(model.attention_dtype) + mlp * dtype_bytes(
        model.mlp_dtype
    )
    experts = model.expert_parameters(shards)
    share = _share_of_experts_per_token(model)
    head = model.head_parameters(shards)
    windows = {x.attention.window for x in model.layers if x.attention.window}
    if len(windows) > 1:
        raise ValueError(f"{model.name} has windows of {sorted(windows)} tokens (at most one size)")
    wide_s = _flop_s(gpu, "bf16", efficiency)
    return Roofline(
        fixed_s=_fixed_s(model, shards, efficiency),
        dense_read_s=dense_bytes * read,
        dense_s_per_position=2 * attention * _flop_s(gpu, model.attention_dtype, efficiency)
        + 2 * mlp * _flop_s(gpu, model.mlp_dtype, efficiency),
        expert_read_s=experts
        * dtype_bytes(model.expert_dtype)
        / (gpu.bandwidth * efficiency.experts),
        log_untouched_per_position=float(np.log1p(-share)) if share < 1 else _LEAST_EXPONENT,
        expert_s_per_position=2 * experts * share * _flop_s(gpu, model.expert_dtype, efficiency),
        head_read_s=head * dtype_bytes(model.head_dtype) * read,
        head_s_per_token=2 * head * _flop_s(gpu, model.head_dtype, efficiency),
        cache_s_per_context_token=model.kv_bytes_per_token(shards, windowed=False) * read,
        attention_s_per_pair=_pair_flops(model, shards, windowed=False) * wide_s,
        window_tokens=float(windows.pop()) if windows else 0.0,
        window_cache_s_per_context_token=(
            model.kv_bytes_per_token(shards) - model.kv_bytes_per_token(shards, windowed=False)
        )
        * read,
        window_attention_s_per_pair=_pair_flops(model, shards, windowed=True) * wide_s,
        s_per_sequence=2 * model.state_bytes(shards) * read,
        s_per_position=_activation_bytes(model, shards) * read
        + _all_reduce_bytes(model, shards) / (gpu.link_bandwidth * efficiency.link),
    )


def _share_of_experts_per_token(model: Model) -> float:
    shares = {x.mlp.experts_per_token / x.mlp.experts for x in model.layers if x.mlp.experts}
    if len(shares) > 1:
        raise ValueError(f"{model.name} routes to different shares of experts by layer (one share)")
    return shares.pop() if shares else 0.0


def _flop_s(gpu: Gpu, dtype: str, efficiency: Efficiency) -> float:
    """Time one FLOP, seconds: narrow tensor-core types reach a smaller share of a higher rate."""
    rate = gpu.flops_per_s(dtype)
    narrow = rate > gpu.flops_per_s("bf16")
    return 1.0 / (rate * (efficiency.compute_narrow if narrow else efficiency.compute))


def _fixed_s(model: Model, shards: int, efficiency: Efficiency) -> float:
    """Add up the latencies of the kernels of a pass: GEMMs, attention, pointwise, all-reduces."""
    reduce_s = 2 * efficiency.all_reduce_s if shards > 1 else 0.0
    total = efficiency.gemm_s  # the head
    for layer in model.layers:
        latent = isinstance(layer.attention, LatentAttention)
        projections = 5 if latent else 2  # q_a, q_b, kv_a, absorbed kv_b, o | qkv, o
        attention_gemm_s = _gemm_s(model.attention_dtype, efficiency)
        mlp_gemm_s = _gemm_s(model.mlp_dtype, efficiency)
        gemms_s = projections * attention_gemm_s
        gemms_s += 2 * mlp_gemm_s if layer.mlp.intermediate else 0.0
        gemms_s += 3 * _gemm_s(model.expert_dtype, efficiency) if layer.mlp.experts else 0.0
        total += layer.count * (
            gemms_s + efficiency.attention_s + efficiency.pointwise_s + reduce_s
        )
    return total


def _gemm_s(dtype: str, efficiency: Efficiency) -> float:
    return efficiency.gemm_narrow_s if dtype in {"fp8", "int8"} else efficiency.gemm_s


def _pair_flops(model: Model, shards: int, *, windowed: bool) -> float:
    return sum(
        x.count * x.attention.flops_per_pair(shards)
        for x in model.layers
        if bool(x.attention.window) == windowed
    )


def _activation_bytes(model: Model, shards: int) -> float:
    """Size what the kernels between the GEMMs read and write for one position, 16 bits a number.

    Per layer: both residual norms read and write two vectors of `hidden`, the GEMMs read two and
    write two; the rest passes through the query, key, value and feed-forward widths twice.
    """
    total = 0.0
    for x in model.layers:
        inner = x.mlp.intermediate + x.mlp.experts_per_token * x.mlp.expert_intermediate
        heads = x.attention.parameters(model.hidden, shards) / model.hidden
        total += x.count * 2 * (12 * model.hidden + 2 * heads + 6 * inner / shards)
    return total


def _all_reduce_bytes(model: Model, shards: int) -> float:
    """Size what a ring all-reduce sends for one position: 2 per layer, 2(n − 1)/n of a vector."""
    return model.layer_count * 2 * (2 * (shards - 1) / shards) * model.hidden * 2
