"""The roofline against hand-computed passes, and the laws it must keep."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models import cost
from specplan.models.calibration import ScatterError, UndeterminedError
from specplan.models.cost import Cost
from specplan.models.hardware import Gpu, Model
from specplan.models.layers import Attention, Layer, LinearAttention, Mlp
from specplan.models.roofline import Efficiency, exp_of_negative, larger_of, roofline_of
from specplan.models.roofline_fit import fit_roofline

# Round numbers: 1 GB takes 1 ms, 1 TFLOP takes 10 ms.
GPU = Gpu("round", 100e9, 1e12, {"bf16": 1e14, "fp8": 2e14}, 1e11)
IDEAL = Efficiency(
    memory=1.0,
    experts=1.0,
    compute=1.0,
    compute_narrow=1.0,
    link=1.0,
    gemm_s=0.0,
    gemm_narrow_s=0.0,
    attention_s=0.0,
    pointwise_s=0.0,
    all_reduce_s=0.0,
)
DENSE = Model("dense", 1024, 50_000, (Layer(Attention(16, 4, 64), Mlp(4096), 10),))
MOE = Model("moe", 1024, 50_000, (Layer(Attention(16, 4, 64), Mlp(0, 64, 4, 512), 10),))


def ideal(model: Model) -> Cost:
    return cost.roofline(GPU, model, efficiency=IDEAL)


def test_exponential_without_exp() -> None:
    x = np.linspace(-63.9, 0, 1001)
    assert np.asarray(exp_of_negative(x)) == pytest.approx(np.exp(x), rel=2e-13)
    assert exp_of_negative(-1e4) < 1e-27


seconds = st.just(0.0) | st.floats(1e-30, 1)  # fourth powers of far less are rounded away


@given(seconds, seconds)
def test_the_rounded_corner_is_between_the_larger_and_the_sum(
    memory: float, compute: float
) -> None:
    longer = larger_of(memory, compute)
    largest = max(memory, compute)
    assert (1 - 1e-12) * largest <= longer <= 2**0.25 * largest * (1 + 1e-12)


def test_one_token_reads_every_weight_once() -> None:
    shape = roofline_of(GPU, DENSE, 1, IDEAL)
    layers = 10 * (2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 4096)
    assert shape.dense_read_s == 2 * layers / 1e12
    assert shape.head_read_s == 2 * 1024 * 50_000 / 1e12
    assert shape.dense_s_per_position == pytest.approx(2 * layers / 1e14)
    # KV: 10 layers · 2 · 4 heads · 64 · 2 bytes a token
    assert shape.cache_s_per_context_token == 10_240 / 1e12
    assert shape.attention_s_per_pair == pytest.approx(10 * 4 * 16 * 64 / 1e14)


def test_a_wide_batch_is_bound_by_compute() -> None:
    # 4096 tokens: 41 times the FLOPs that the memory time of the weights would hide
    seconds = float(ideal(DENSE).seconds(4096, 1))
    shape = roofline_of(GPU, DENSE, 1, IDEAL)
    flops_s = (shape.dense_s_per_position + shape.head_s_per_token + shape.s_per_position) * 4096
    assert seconds == pytest.approx(flops_s, rel=1e-6)


@pytest.mark.parametrize("tokens", [1, 4, 16, 64, 1000])
def test_expected_experts_touched(tokens: int) -> None:
    # E·(1 - (1 - k/E)^n): each of n tokens leaves an expert alone with chance 1 - 4/64
    shape = roofline_of(GPU, MOE, 1, IDEAL)
    touched = 64 * (1 - (1 - 4 / 64) ** tokens)
    memory_s = touched * 10 * 3 * 1024 * 512 * 2 / 1e12
    compute_s = tokens * 4 * 10 * 3 * 1024 * 512 * 2 / 1e14
    assert shape.expert_read_s * (
        1 - exp_of_negative(shape.log_untouched_per_position * tokens)
    ) == (pytest.approx(memory_s, rel=1e-12))
    assert shape.expert_s_per_position * tokens == pytest.approx(compute_s)


def test_two_tokens_of_a_sparse_model_cost_nearly_two_reads() -> None:
    sparse, dense = ideal(MOE), ideal(DENSE)
    assert sparse.seconds(1, 2) / sparse.seconds(1, 1) > 1.2
    assert dense.seconds(1, 2) / dense.seconds(1, 1) < 1.01


def test_window_bounds_what_attention_reads() -> None:
    sliding = Model("w", 1024, 1000, (Layer(Attention(16, 4, 64, window=256), Mlp(4096), 10),))
    priced = ideal(sliding)
    assert priced.seconds(8, 1, 256) == priced.seconds(8, 1, 100_000)
    assert priced.seconds(8, 1, 256) - priced.seconds(8, 1, 0) == pytest.approx(
        8 * 256 * 10_240 / 1e12, rel=1e-3
    )


def test_recurrent_state_is_read_and_written_once_per_sequence() -> None:
    state = LinearAttention(16, 16, 64, 64, 4)
    model = Model("s", 1024, 1000, (Layer(state, Mlp(4096), 10),))
    shape = roofline_of(GPU, model, 1, IDEAL)
    assert shape.s_per_sequence == pytest.approx(2 * model.state_bytes() / 1e12)
    assert shape.cache_s_per_context_token == 0


def test_latencies_add_up() -> None:
    # per layer: 4 GEMMs, attention, pointwise; with two GPUs two all-reduces; one GEMM for the head
    shape = roofline_of(GPU, DENSE, 2, Efficiency())
    layer_s = 4 * 4e-6 + 11e-6 + 8.5e-6 + 2 * 4.5e-6
    assert shape.fixed_s == pytest.approx(10 * layer_s + 4e-6)


def test_all_reduce_sends_two_vectors_a_layer() -> None:
    free = replace(GPU, link_bandwidth=1e30)
    linked, unlinked = (roofline_of(gpu, DENSE, 2, IDEAL).s_per_position for gpu in (GPU, free))
    # ring over 2: 2·(2 - 1)/2 of 1024 numbers of 2 bytes, twice a layer, at 100 GB/s
    assert linked - unlinked == pytest.approx(10 * 2 * 1024 * 2 / 1e11)


@given(
    st.sampled_from([DENSE, MOE]),
    st.integers(1, 64),
    st.integers(1, 16),
    st.integers(0, 8192),
    st.sampled_from([1, 2, 4]),
)
def test_more_work_never_costs_less(
    model: Model, batch: int, width: int, context: int, shards: int
) -> None:
    priced = cost.roofline(GPU, model, tensor_parallel=shards)
    least = priced.seconds(batch, width, context)
    assert priced.seconds(batch + 1, width, context) >= least
    assert priced.seconds(batch, width + 1, context) >= least
    assert priced.seconds(batch, width, context + 1) >= least
    assert priced.seconds(batch, width, context, 1) >= least


def test_provenance_names_the_sources() -> None:
    priced = cost.roofline(GPU, DENSE)
    assert priced.provenance == "datasheet"
    assert priced.source.startswith("round × dense, TP 1; ")
    assert priced.source.endswith("90 % of the bandwidth, 80 % of the FLOP/s (narrow types 50 %)")
    stated = cost.roofline(GPU, DENSE, efficiency=Efficiency(memory=0.7))
    assert "; as stated: 70 % of the bandwidth" in stated.source


@given(
    slowdown=st.floats(0.5, 3.0),
    floor=st.floats(0.0, 1.0),
    work=st.lists(st.floats(1e-3, 1e-1), min_size=3, max_size=12, unique=True),
)
def test_fitting_recovers_the_slowdown_and_floor_it_was_made_with(
    slowdown: float, floor: float, work: list[float]
) -> None:
    """Passes made as max(s · work + latencies, floor), one on the roofline at least."""
    done = np.array(sorted(work)) * np.linspace(1, 2, len(work))
    fixed = 1e-3
    busy = slowdown * done + fixed
    floor_s = busy[0] + floor * (busy[-1] - busy[0]) * 0.9
    fit = fit_roofline(done, fixed, np.maximum(busy, floor_s))
    assert fit.slowdown == pytest.approx(slowdown, rel=1e-6)
    assert fit.worst < 1e-6
    assert fit.floor_s == pytest.approx(floor_s, rel=1e-6) or fit.floor_s == 0.0


def test_passes_that_only_the_roofline_explains_have_no_floor() -> None:
    fit = fit_roofline([0.01, 0.02, 0.04], 0.001, [0.016, 0.031, 0.061])
    assert (round(fit.slowdown, 9), fit.floor_s) == (1.5, 0.0)


def test_a_slower_roofline_keeps_its_latencies() -> None:
    shape = roofline_of(GPU, DENSE, 1, Efficiency())
    plain, slow = (
        float(Cost("roofline", s.coefficients()).seconds(8, 4, 512))
        for s in (shape, shape.slower(1.5))
    )
    assert slow - shape.fixed_s == pytest.approx(1.5 * (plain - shape.fixed_s))
    with pytest.raises(ValueError, match=r"slowdown is 0 \(a finite number above 0\)"):
        cost.roofline(GPU, DENSE, slowdown=0)


def test_fitting_refuses_what_is_not_determined() -> None:
    with pytest.raises(UndeterminedError, match=r"1 pass is measured and two unknowns"):
        fit_roofline(1e-3, 0.0, 2e-3)
    with pytest.raises(UndeterminedError, match="slow work and a launch floor look alike"):
        fit_roofline([1e-3, 1.05e-3], 0.0, [2e-3, 2e-3])
    with pytest.raises(ValueError, match=r"a measured time is 0 s \(finite and above 0\)"):
        fit_roofline([1e-3, 2e-3], 0.0, [0.0, 1.0])
    with pytest.raises(ScatterError, match=r"4 passes scatter by \d+ % around the best roofline"):
        fit_roofline([1e-3, 2e-3, 3e-3, 4e-3], 0.0, [5e-3, 1e-3, 9e-3, 1e-3])


def test_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"tensor_parallel is 3 \(a divisor of the 16 heads of dense\)"
    ):
        cost.roofline(GPU, DENSE, tensor_parallel=3)
    with pytest.raises(ValueError, match=r"tensor_parallel is 0 \(1 or more\)"):
        cost.roofline(GPU, DENSE, tensor_parallel=0)
    with pytest.raises(ValueError, match=r"efficiency memory is 1.2 \(above 0, at most 1\)"):
        Efficiency(memory=1.2)
    with pytest.raises(ValueError, match="gemm_s is -1"):
        Efficiency(gemm_s=-1)
    windows = (
        Layer(Attention(16, 4, 64, window=128), Mlp(64), 1),
        Layer(Attention(16, 4, 64, window=256), Mlp(64), 1),
    )
    with pytest.raises(ValueError, match=r"windows of \[128, 256\] tokens"):
        cost.roofline(GPU, Model("two", 1024, 10, windows))
