"""Memory of one engine: the public reports, and capacities by hand."""

import pytest

from specplan.models.hardware import Gpu, Model
from specplan.models.layers import Attention, Layer, LinearAttention, Mlp
from specplan.models.memory import GpuShare, limiting_gpu, max_concurrency, memory_of

GPU = Gpu("h100-sxm", 80e9, 3.35e12, {"bf16": 989e12}, 450e9)
LLAMA_70B = Model("70B", 8192, 128256, (Layer(Attention(64, 8, 128), Mlp(28672), 80),))
LLAMA_8B = Model("8B", 4096, 128256, (Layer(Attention(32, 8, 128), Mlp(14336), 32),))


def test_report_c59_concurrency_lost_to_draft_copies() -> None:
    # sgl-project/sglang#32468: 409,552 tokens with the draft's copies, 519,753 without, 8K each
    assert max_concurrency(409_552, 8192) == 49
    assert max_concurrency(519_753, 8192) == 63
    # ... and its derived bytes per token and rank: 2.37 GB over 110,201 tokens
    share = GpuShare(24e9, 0.0, 2.37e9, 0.0, 21506.0)
    without = GpuShare(24e9, 0.0, 0.0, 0.0, 21506.0)
    assert without.kv_tokens - share.kv_tokens == pytest.approx(110_201, rel=1e-4)


def test_report_c61_the_gpu_with_the_draft_limits() -> None:
    # vllm-project/vllm#9995: 35 GB of target on each of 4 GPUs, 16 GB of draft on the first
    memory = memory_of(GPU, LLAMA_70B, LLAMA_8B, tensor_parallel=4, draft_place="first")
    assert memory.limiting_gpu == 0
    assert memory.shares[0].target_bytes / 1e9 == pytest.approx(35, abs=0.5)
    assert [share.draft_bytes for share in memory.shares[1:]] == [0.0, 0.0, 0.0]
    assert memory.shares[0].kv_bytes == memory.shares[1].kv_bytes - LLAMA_8B.weights_bytes()
    # sized from the target alone, the pool of GPU 0 overlaps the draft: out of memory
    shares = tuple(GpuShare(0.99 * 80e9, 35e9, 16e9 * (n == 0), 0.0, 81920.0) for n in range(4))
    assert limiting_gpu(shares) == 0
    pool = shares[1].kv_bytes
    assert 35e9 + 16e9 + pool > 80e9


def test_report_c62_memory_of_the_draft_in_kv_tokens() -> None:
    # ggml-org/llama.cpp#10664: 20.57 → 22.12 GiB; a 32B model of 64 layers, 8 × 128 KV, fp16
    share = GpuShare((22.12 - 20.57) * 2**30, 0.0, 0.0, 0.0, 64 * 2 * 8 * 128 * 2)
    assert share.kv_bytes / 2**30 == pytest.approx(1.55, abs=0.01)
    assert share.kv_tokens == pytest.approx(6348.8, abs=0.1)  # 1.55 · 2³⁰ / 262,144


def test_capacity_by_hand() -> None:
    # .9 · 80e9 - 16,060,522,496 - 0 = 55,939,477,504 bytes; blocks of 16 · 131,072 bytes
    memory = memory_of(GPU, LLAMA_8B, reserve_bytes=0.0)
    assert memory.blocks() == 26_674
    # 1000 tokens are 63 blocks; with 5 of lookahead still 63, with 9 they are 64
    assert memory.max_concurrency(1000) == 26_674 // 63
    assert memory.max_concurrency(1000, lookahead_tokens=5) == 26_674 // 63
    assert memory.max_concurrency(1000, lookahead_tokens=9) == 26_674 // 64


@pytest.mark.parametrize(("place", "draft_gb"), [("split", 4.015), ("each", 16.06)])
def test_where_the_draft_is(place: str, draft_gb: float) -> None:
    memory = memory_of(GPU, LLAMA_70B, LLAMA_8B, tensor_parallel=4, draft_place=place)
    weights = [share.draft_bytes / 1e9 for share in memory.shares]
    assert weights == pytest.approx([draft_gb] * 4, rel=1e-3)
    plain = memory_of(GPU, LLAMA_70B, tensor_parallel=4)
    assert memory.blocks() < plain.blocks()
    assert memory.max_concurrency(4096) < plain.max_concurrency(4096)


def test_recurrent_states_come_out_of_the_pool() -> None:
    # a layer of 16 × 64 · 64 · 4 bytes and a tail of (2 · 1024 + 1024) · 3 · 2 bytes a sequence
    linear = Layer(LinearAttention(16, 16, 64, 64, 4), Mlp(14336), 1)
    memory = memory_of(GPU, Model("h", 4096, 128256, (*LLAMA_8B.layers, linear)))
    state, block = 16 * 64 * 64 * 4 + 3 * 1024 * 3 * 2, 16 * 131_072
    free = memory.shares[0].kv_bytes
    assert memory.blocks(256) == int((free - 256 * state) // block)
    assert memory.max_concurrency(1600) == int(free // (100 * block + state))


def test_windows_let_more_requests_in() -> None:
    sliding = Layer(Attention(32, 8, 128, window=1024), Mlp(14336), 16)
    hybrid = Model("h", 4096, 128256, (Layer(Attention(32, 8, 128), Mlp(14336), 16), sliding))
    at_once = memory_of(GPU, hybrid).max_concurrency(16384)
    # half the layers keep 1024 of 16384 tokens: 1 / (.5 + .5 / 16) = 1.88 times as many
    assert at_once / memory_of(GPU, LLAMA_8B).max_concurrency(16384) == pytest.approx(
        1.88, rel=0.05
    )


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"GPU 0: target 141.1 GB and reserve 3.8 GB"):
        memory_of(GPU, LLAMA_70B)
    with pytest.raises(ValueError, match=r"draft place 'rank 0' \(one of split, first"):
        memory_of(GPU, LLAMA_8B, draft_place="rank 0")
    with pytest.raises(ValueError, match=r"utilization is 90 \(above 0, at most 1\)"):
        memory_of(GPU, LLAMA_8B, utilization=90)
    with pytest.raises(ValueError, match="context 0, block 16 tokens"):
        max_concurrency(1000, 0, 16)
