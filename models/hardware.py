"""A GPU's datasheet and a model's architecture: bytes and FLOPs on one GPU of a group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.layers import Layer, LinearAttention

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Bytes a weight takes. The 4-bit formats include their scales: one fp8 scale per 16 weights (fp4 is
# NVFP4), one byte per 32 (mxfp4, OCP Microscaling v1.0), one fp16 per 128 (int4 of AWQ and GPTQ).
DTYPE_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp4": 0.5625,
    "mxfp4": 0.53125,
    "int4": 0.515625,
}


def dtype_bytes(dtype: str) -> float:
    """Look up the bytes of one stored number, scales included.

    Raises ValueError for a dtype that is not in `DTYPE_BYTES`.

    >>> dtype_bytes("fp8"), dtype_bytes("mxfp4")
    (1.0, 0.53125)
    """
    if dtype not in DTYPE_BYTES:
        raise ValueError(f"dtype {dtype!r} is not known (one of {', '.join(DTYPE_BYTES)})")
    return DTYPE_BYTES[dtype]


@dataclass(frozen=True)
class Gpu:
    """One GPU's datasheet: dense FLOP/s by dtype, bandwidth and link (one way) in bytes/s."""

    name: str
    memory_bytes: float
    bandwidth: float
    flops: dict[str, float]
    link_bandwidth: float
    source: str = ""

    def flops_per_s(self, dtype: str) -> float:
        """Look up the dense FLOP/s in which weights of `dtype` are multiplied.

        Weights of a type that the tensor cores do not multiply (int4, fp8 on an A100) are widened
        to bf16. Raises ValueError for an unknown dtype and for fp32.

        >>> Gpu("a100", 80e9, 2.039e12, {"bf16": 312e12}, 300e9).flops_per_s("fp8")
        312000000000000.0
        """
        dtype_bytes(dtype)
        named = {"fp16": "bf16", "mxfp4": "fp4"}.get(dtype, dtype)
        if named == "fp32":
            raise ValueError("fp32 weights have no tensor-core rate (bf16, fp16 or narrower)")
        return self.flops.get(named, self.flops["bf16"])


@dataclass(frozen=True)
class Model:
    """A decoder: layers between an embedding and an output head, and what each is stored in.

    A draft head has `input_width` 2 where its first projections take an embedding beside a hidden
    state, `fused_states` hidden states of the target that it projects down, an `output_vocab` that
    may be smaller than `vocab`, and the target's embedding or head where it has none of its own.
    """

    name: str
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    tied_embeddings: bool = False
    attention_dtype: str = "bf16"
    mlp_dtype: str = "bf16"
    expert_dtype: str = "bf16"
    head_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    input_width: int = 1
    fused_states: int = 0
    output_vocab: int = 0
    own_embedding: bool = True
    own_head: bool = True

    def __post_init__(self) -> None:
        for part in ("attention_dtype", "mlp_dtype", "expert_dtype", "head_dtype", "kv_dtype"):
            dtype_bytes(getattr(self, part))

    @property
    def layer_count(self) -> int:
        """Count the layers."""
        return sum(layer.count for layer in self.layers)

    def with_dtype(self, dtype: str | None, kv_dtype: str | None = None) -> Model:
        """Store the layers' weights as `dtype`; embedding and head stay at 16 bits, as engines do.

        None keeps the type of the weights, or of the cache.
        """
        cached = replace(self, kv_dtype=kv_dtype or self.kv_dtype)
        if dtype is None:
            return cached
        wide = dtype if dtype_bytes(dtype) >= 2 else self.head_dtype
        return replace(
            cached, attention_dtype=dtype, mlp_dtype=dtype, expert_dtype=dtype, head_dtype=wide
        )

    def check_shards(self, shards: int) -> None:
        """Raise ValueError for a tensor-parallel size below 1 or one that splits a head."""
        if shards < 1:
            raise ValueError(f"tensor_parallel is {shards} (1 or more)")
        for layer in self.layers:
            one = layer.attention
            heads = one.key_heads if isinstance(one, LinearAttention) else one.heads
            if heads % shards:
                wrong = f"tensor_parallel is {shards}"
                raise ValueError(f"{wrong} (a divisor of the {heads} heads of {self.name})")

    def attention_parameters(self, shards: int = 1) -> float:
        """Count the attention weights of all layers, with a draft head's fusing projection."""
        inputs = self.input_width * self.hidden
        fused = self.fused_states * self.hidden * self.hidden / shards
        return fused + sum(
            layer.count * layer.attention.parameters(self.hidden, shards, inputs)
            for layer in self.layers
        )

    def mlp_parameters(self, shards: int = 1) -> float:
        """Count the feed-forward weights every token passes, routers and shared experts too."""
        return sum(x.count * x.mlp.dense_parameters(self.hidden) for x in self.layers) / shards

    def expert_parameters(self, shards: int = 1) -> float:
        """Count the weights of all routed experts."""
        return (
            sum(x.count * x.mlp.experts * x.mlp.expert_parameters(self.hidden) for x in self.layers)
            / shards
        )

    def head_parameters(self, shards: int = 1) -> float:
        """Count the weights of the output head."""
        return self.hidden * (self.output_vocab or self.vocab) / shards

    def parameters(self) -> float:
        """Count all weights that are this model's own, norms included.

        Tied embeddings count once; what a draft head borrows from its target does not count.
        """
        embedding = self.hidden * self.vocab if self.own_embedding else 0
        head = self.head_parameters() if self.own_head and not self.tied_embeddings else 0.0
        norms = self.hidden * (2 * self.layer_count + 1)
        layers = self.attention_parameters() + self.mlp_parameters() + self.expert_parameters()
        return embedding + head + norms + layers

    def weights_bytes(self, shards: int = 1) -> float:
        """Size the weights that one GPU holds; embedding and head are split over the vocabulary."""
        embedding = self.hidden * self.vocab / shards if self.own_embedding else 0.0
        head = self.head_parameters(shards) if self.own_head and not self.tied_embeddings else 0.0
        norms = self.hidden * (2 * self.layer_count + 1)
        return (
            (embedding + head) * dtype_bytes(self.head_dtype)
            + norms * 2
            + self.attention_parameters(shards) * dtype_bytes(self.attention_dtype)
            + self.mlp_parameters(shards) * dtype_bytes(self.mlp_dtype)
            + self.expert_parameters(shards) * dtype_bytes(self.expert_dtype)
        )

    def kv_bytes_per_token(self, shards: int = 1, windowed: bool = True) -> float:
        """Size what one GPU caches for a token: Σ over layers of the cached numbers × their bytes.

        `windowed` False leaves out the sliding-window layers: the growth beyond their window.

        >>> from specplan.models.layers import Attention, Layer, Mlp
        >>> llama_8b = (Layer(Attention(32, 8, 128), Mlp(14336), 32),)
        >>> Model("Llama-3.1-8B", 4096, 128256, llama_8b).kv_bytes_per_token()
        131072.0
        """
        cached = sum(
            layer.count * layer.attention.kv_elements(shards)
            for layer in self.layers
            if windowed or not layer.attention.window
        )
        return cached * dtype_bytes(self.kv_dtype)

    def kv_bytes(self, context_tokens: ArrayLike, shards: int = 1) -> NDArray[np.float64]:
        """Size what one GPU holds for one sequence: cache, no longer than the window, and state."""
        context = np.asarray(context_tokens, dtype=np.float64)
        size = np.full(context.shape, self.state_bytes(shards))
        for layer in self.layers:
            seen = np.minimum(context, layer.attention.window or np.inf)
            cached = layer.count * layer.attention.kv_elements(shards)
            size = size + seen * cached * dtype_bytes(self.kv_dtype)
        return size

    def state_bytes(self, shards: int = 1) -> float:
        """Size the recurrent state that one sequence keeps, whatever its length."""
        return sum(
            layer.count * layer.attention.state_bytes(shards)
            for layer in self.layers
            if isinstance(layer.attention, LinearAttention)
        )
