"""The default efficiencies are what the kernel measurements they name say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specplan.models.roofline import Efficiency, larger_of
from specplan.scenarios.gpus import find_gpu

STEPTIME = Path(__file__).parents[3] / "shared" / "data" / "steptime"
H100_VLLM = STEPTIME / "aiconfigurator" / "h100_sxm_vllm_0.14.0_gemm_perf.parquet"
pytestmark = pytest.mark.skipif(not H100_VLLM.is_file(), reason="shared/data is not here")

DEFAULT = Efficiency()
H100 = find_gpu("h100-sxm")


def gemms(dtype: str, weight_bytes: float, least: float) -> pd.DataFrame:
    rows = pd.read_parquet(H100_VLLM)
    rows = rows[(rows.gemm_dtype == dtype) & (rows.n >= 2048) & (rows.k >= 2048)]
    bytes_ = weight_bytes * rows.n * rows.k
    rows = rows.assign(
        seconds=rows.latency / 1e3,
        memory_s=bytes_ / H100.bandwidth,
        compute_s=2.0
        * rows.m
        * rows.n
        * rows.k
        / H100.flops_per_s("fp8" if weight_bytes == 1 else "bf16"),
    )
    return rows[bytes_ >= least]


def test_memory_and_launch_of_bf16_gemms() -> None:
    rows = gemms("bfloat16", 2, 8e6)
    large = rows[(rows.m <= 64) & (2.0 * rows.n * rows.k >= 128e6)]
    assert (large.memory_s / large.seconds).median() == pytest.approx(DEFAULT.memory, abs=0.05)
    thin = rows[rows.m <= 64]
    left = thin.seconds - thin.memory_s / DEFAULT.memory
    assert left.median() == pytest.approx(DEFAULT.gemm_s, abs=1.5e-6)


def test_compute_of_gemms() -> None:
    bf16 = gemms("bfloat16", 2, 8e6)
    wide = bf16[bf16.m >= 1024]
    assert (wide.compute_s / wide.seconds).median() == pytest.approx(DEFAULT.compute, abs=0.05)
    fp8 = gemms("fp8", 1, 128e6)
    wide = fp8[fp8.m >= 1024]
    share = (wide.compute_s / wide.seconds).median()
    assert share == pytest.approx(DEFAULT.compute_narrow, abs=0.06)


def test_launch_of_fp8_gemms() -> None:
    rows = gemms("fp8", 1, 4e6)
    thin = rows[rows.m <= 64]
    left = thin.seconds - thin.memory_s / DEFAULT.memory
    assert left.median() == pytest.approx(DEFAULT.gemm_narrow_s, abs=3e-6)


def test_the_corner_is_round() -> None:
    rows = gemms("bfloat16", 2, 32e6)
    corner = rows[rows.m.isin([192, 256, 384])]
    memory = corner.memory_s.to_numpy() / DEFAULT.memory
    compute = corner.compute_s.to_numpy() / DEFAULT.compute
    measured = corner.seconds.to_numpy() - DEFAULT.gemm_s
    rounded = np.median(np.asarray(larger_of(memory, compute)) / measured - 1)
    sharp = np.median(np.maximum(memory, compute) / measured - 1)
    assert sharp == pytest.approx(-0.10, abs=0.02)
    assert rounded == pytest.approx(-0.01, abs=0.02)


def test_attention_and_all_reduce() -> None:
    name = "h100_sxm_vllm_0.14.0_generation_attention_perf.parquet"
    rows = pd.read_parquet(H100_VLLM.with_name(name))
    rows = rows[rows.kv_cache_dtype == "bfloat16"]
    cached = rows.batch_size * (rows.isl + rows.step) * 2 * rows.num_key_value_heads * 128 * 2.0
    share = cached / H100.bandwidth / (rows.latency / 1e3)
    assert share[cached >= 1e9].median() == pytest.approx(DEFAULT.memory, abs=0.03)
    empty = rows[(cached < 1e6) & (rows.batch_size <= 8)]
    assert empty.latency.median() / 1e3 == pytest.approx(DEFAULT.attention_s, abs=1.5e-6)
    name = "h100_sxm_vllm_0.14.0_custom_allreduce_perf.parquet"
    reduces = pd.read_parquet(H100_VLLM.with_name(name))
    graph = reduces[reduces.backend == "vllm_graph"]
    small = graph[graph.message_size <= 1024].latency.median() / 1e3
    assert small == pytest.approx(DEFAULT.all_reduce_s, abs=0.3e-6)
    large = graph[graph.message_size >= 64e6]
    hops = 2 * (large.num_gpus - 1) / large.num_gpus * large.message_size
    assert (hops / (large.latency / 1e3) / H100.link_bandwidth).median() == pytest.approx(
        DEFAULT.link, abs=0.05
    )


def test_experts_of_a_grouped_gemm() -> None:
    rows = pd.read_csv(STEPTIME / "infersim" / "h800_grouped_gemm_decode.csv")
    rows = rows[rows.tokens_per_expert.between(2, 16) & (rows.num_local_experts >= 32)]
    weights = rows.num_local_experts * 2 * rows.intermediate_size * rows.hidden_size  # fp8
    share = weights / 3.35e12 / (rows.up_proj_us * 1e-6)
    assert share.median() == pytest.approx(DEFAULT.experts, abs=0.03)


def test_pointwise_kernels() -> None:
    folder = STEPTIME / "llmservingsim" / "RTX4090_Llama-3.1-8B_bf16_tp1"
    rows = pd.read_csv(folder / "dense.csv")
    one = rows[rows.tokens == 1].set_index("layer").time_us
    total = 2 * one["layernorm"] + one["rotary_emb"] + one["act_fn"]
    assert total * 1e-6 == pytest.approx(DEFAULT.pointwise_s, abs=0.2e-6)
