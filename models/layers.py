"""The parts of a transformer layer: weights, cached numbers and FLOPs, on one GPU of a group.

`shards` is the tensor-parallel size. `inputs` is the width of what enters the layer's projections
where that is not `hidden` (an EAGLE-3 head concatenates an embedding and a hidden state).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attention:
    """Multi-head, multi-query or grouped-query attention; `window` 0 sees the whole context."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int = 0
    output_gate: bool = False
    shared_kv_weight: bool = False

    def parameters(self, hidden: int, shards: int = 1, inputs: int = 0) -> float:
        """Count the weights on one GPU; key and value heads are copied once they run out.

        >>> Attention(heads=32, kv_heads=8, head_dim=128).parameters(hidden=4096)
        41943040.0
        """
        inputs = inputs or hidden
        query = inputs * self.heads * self.head_dim * (2 if self.output_gate else 1)
        output = self.heads * self.head_dim * hidden
        projections = 1 if self.shared_kv_weight else 2
        keys_and_values = projections * inputs * self._kv_heads(shards) * self.head_dim
        return (query + output) / shards + keys_and_values

    def kv_elements(self, shards: int = 1) -> float:
        """Count the numbers one GPU caches for a token: a key and a value per head it holds."""
        return 2 * self._kv_heads(shards) * self.head_dim

    def flops_per_pair(self, shards: int = 1) -> float:
        """Count the FLOPs of a query with a cached position: 2 a number for score and for sum."""
        return 4 * self.heads * self.head_dim / shards

    def _kv_heads(self, shards: int) -> float:
        return max(self.kv_heads / shards, 1.0)


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention: one compressed vector per token is cached.

    DeepSeek-V2, arXiv 2405.04434, §2.1; `query_rank` 0 means that queries are not compressed.
    """

    heads: int
    query_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    window: int = 0

    def parameters(self, hidden: int, shards: int = 1, inputs: int = 0) -> float:
        """Count the weights on one GPU: down-projections are copied, the rest is split by heads."""
        inputs = inputs or hidden
        head_dim = self.nope_dim + self.rope_dim
        down = inputs * (self.query_rank + self.kv_rank + self.rope_dim)
        up = (self.query_rank or inputs) * self.heads * head_dim
        up += self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
        return down + (up + self.heads * self.value_dim * hidden) / shards

    def kv_elements(self, shards: int = 1) -> float:  # noqa: ARG002 (not split)
        """Count the numbers cached for one token: every GPU of the group holds the whole latent."""
        return self.kv_rank + self.rope_dim

    def flops_per_pair(self, shards: int = 1) -> float:
        """Count the FLOPs of a query with a cached position, up-projections absorbed (§2.1.2)."""
        return 2 * self.heads * (2 * self.kv_rank + self.rope_dim) / shards


@dataclass(frozen=True)
class LinearAttention:
    """Gated delta rule (Qwen3-Next, Qwen3.5): a fixed state per sequence instead of a KV cache."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    window: int = 0

    def parameters(self, hidden: int, shards: int = 1, inputs: int = 0) -> float:
        """Count the weights on one GPU: q, k, v, z, the two gates, the convolution, the output."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        projections = (inputs or hidden) * (2 * keys + 2 * values + 2 * self.value_heads)
        return (projections + (2 * keys + values) * self.conv_kernel + values * hidden) / shards

    def kv_elements(self, shards: int = 1) -> float:  # noqa: ARG002 (none)
        """Count the numbers cached for one token: none."""
        return 0.0

    def flops_per_pair(self, shards: int = 1) -> float:  # noqa: ARG002 (none)
        """Count the FLOPs that grow with the context: none."""
        return 0.0

    def state_bytes(self, shards: int = 1) -> float:
        """Size one sequence's state: a recurrent matrix in fp32, a convolution's tail in bf16."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        recurrent = 4 * self.value_heads * self.key_dim * self.value_dim
        return (recurrent + 2 * (2 * keys + values) * (self.conv_kernel - 1)) / shards


AnyAttention = Attention | LatentAttention | LinearAttention


@dataclass(frozen=True)
class Mlp:
    """The feed-forward part: a dense block (with MoE: the shared experts) and routed experts."""

    intermediate: int
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    gated: bool = True

    def dense_parameters(self, hidden: int) -> int:
        """Count the weights every token passes through, the router included."""
        return hidden * self.intermediate * (3 if self.gated else 2) + hidden * self.experts

    def expert_parameters(self, hidden: int) -> int:
        """Count the weights of one routed expert."""
        return hidden * self.expert_intermediate * (3 if self.gated else 2)


@dataclass(frozen=True)
class Layer:
    """`count` layers that are alike."""

    attention: AnyAttention
    mlp: Mlp
    count: int
