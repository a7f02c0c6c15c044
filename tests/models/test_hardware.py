"""Bytes, parameters and rates by hand, and what tensor parallelism splits and copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.hardware import Gpu, Model, dtype_bytes
from specplan.models.layers import Attention, LatentAttention, Layer, LinearAttention, Mlp

H100 = Gpu("h100-sxm", 80 * 2**30, 3.35e12, {"bf16": 989e12, "fp8": 1979e12}, 450e9)
LLAMA_8B = Model("8B", 4096, 128256, (Layer(Attention(32, 8, 128), Mlp(14336), 32),))


@pytest.mark.parametrize(
    ("dtype", "bits"), [("fp32", 32), ("bf16", 16), ("int8", 8), ("fp4", 4.5), ("mxfp4", 4.25)]
)
def test_bits_of_a_number(dtype: str, bits: float) -> None:
    assert dtype_bytes(dtype) * 8 == bits


def test_unknown_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"dtype 'fp3' is not known \(one of fp32, bf16"):
        LLAMA_8B.with_dtype("fp3")
    with pytest.raises(ValueError, match="fp32 weights have no tensor-core rate"):
        H100.flops_per_s("fp32")


def test_rates_widen_to_what_the_gpu_multiplies() -> None:
    assert (
        H100.flops_per_s("fp16") == H100.flops_per_s("int4") == H100.flops_per_s("mxfp4") == 989e12
    )
    assert H100.flops_per_s("fp8") == 1979e12


def test_dtype_narrows_layers_and_keeps_the_head() -> None:
    fp8 = LLAMA_8B.with_dtype("fp8", kv_dtype="fp8")
    saved = LLAMA_8B.weights_bytes() - fp8.weights_bytes()
    assert saved == 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    assert fp8.kv_bytes_per_token() == 65_536
    assert LLAMA_8B.with_dtype("fp32").weights_bytes() > 1.9 * LLAMA_8B.weights_bytes()


def test_kv_heads_are_copied_once_they_run_out() -> None:
    assert LLAMA_8B.kv_bytes_per_token(8) == 131_072 / 8
    assert LLAMA_8B.kv_bytes_per_token(16) == LLAMA_8B.kv_bytes_per_token(8)


def test_latent_cache_is_not_split() -> None:
    mla = LatentAttention(128, 1536, 512, 64, 128, 128)
    assert mla.kv_elements(8) == mla.kv_elements(1) == 576
    # one query with one position: 128 heads · (576 for the score + 512 for the sum) · 2
    assert mla.flops_per_pair() == 128 * (576 + 512) * 2


def test_cache_stops_at_the_window_and_state_stays() -> None:
    layers = (
        Layer(Attention(8, 2, 64), Mlp(256), 3),
        Layer(Attention(8, 2, 64, window=128), Mlp(256), 2),
        Layer(LinearAttention(4, 4, 16, 16, 4), Mlp(256), 1),
    )
    model = Model("mixed", 512, 1000, layers)
    state = 4 * 4 * 16 * 16 + 2 * (3 * 64) * 3
    per_token = 2 * 2 * 64 * 2
    assert model.kv_bytes([0, 100, 1000]).tolist() == [
        state,
        state + 5 * per_token * 100,
        state + 3 * per_token * 1000 + 2 * per_token * 128,
    ]


@given(st.sampled_from([1, 2, 4, 8]))
def test_sharded_weights_never_sum_to_less_than_the_whole(shards: int) -> None:
    moe = Model("moe", 2048, 1000, (Layer(Attention(32, 4, 128), Mlp(64, 16, 2, 768), 4),))
    for model in (LLAMA_8B, moe):
        assert shards * model.weights_bytes(shards) >= model.weights_bytes()
