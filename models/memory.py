"""What fits on the GPUs of one engine: weights, draft, reserve, and the KV cache that is left.

A block of the KV cache lives on every GPU of the tensor-parallel group, so the fullest GPU limits
the pool of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specplan.models.hardware import Gpu, Model

#: Share of the memory that an engine takes: vLLM's default `gpu_memory_utilization`.
UTILIZATION = 0.9
#: Activations, workspaces, graphs, context: `other_mem` of aiconfigurator @095f58a51, h100_sxm.
RESERVE_BYTES = 3758096384.0
#: Where a draft's weights and cache are: split like the target, whole on the first GPU, or on each.
DRAFT_PLACES = ("split", "first", "each")


class NoRoomError(ValueError):
    """The weights and the reserve leave nothing for the KV cache: the message has the sizes."""


@dataclass(frozen=True)
class GpuShare:
    """What one GPU of the group holds, bytes; `kv_bytes_per_token` counts target and draft."""

    usable_bytes: float
    target_bytes: float
    draft_bytes: float
    reserve_bytes: float
    kv_bytes_per_token: float

    @property
    def kv_bytes(self) -> float:
        """Size what is left for the KV cache; negative where the rest does not fit."""
        return self.usable_bytes - self.target_bytes - self.draft_bytes - self.reserve_bytes

    @property
    def kv_tokens(self) -> float:
        """Count the tokens whose keys and values fit."""
        return self.kv_bytes / self.kv_bytes_per_token


def limiting_gpu(shares: tuple[GpuShare, ...]) -> int:
    """Name the GPU whose KV cache holds the fewest tokens, the first of several alike.

    >>> with_draft = GpuShare(64e9, 35e9, 16e9, 0.0, 81920.0)
    >>> without = GpuShare(64e9, 35e9, 0.0, 0.0, 81920.0)
    >>> limiting_gpu((with_draft, without, without, without))
    0
    """
    return min(range(len(shares)), key=lambda gpu: shares[gpu].kv_tokens)


def max_concurrency(kv_tokens: float, context_tokens: int, block_tokens: int = 1) -> int:
    """Count the requests of one length that a cache holds at once: ⌊blocks / ⌈context / block⌉⌋.

    Raises ValueError for a context or block below one token.

    >>> max_concurrency(409_552, 8192), max_concurrency(519_753, 8192)
    (49, 63)
    """
    if context_tokens < 1 or block_tokens < 1:
        raise ValueError(
            f"context {context_tokens}, block {block_tokens} tokens (1 or more tokens each)"
        )
    return int(kv_tokens // block_tokens) // ceil(context_tokens / block_tokens)


@dataclass(frozen=True)
class Memory:
    """The memory of one engine: what each GPU holds, and the KV blocks that all of them share.

    `gpu_bytes` is all memory of one GPU, of which `usable_bytes` are a share.
    """

    target: Model
    draft: Model | None
    draft_place: str
    shares: tuple[GpuShare, ...]
    block_tokens: int
    gpu_bytes: float

    @property
    def limiting_gpu(self) -> int:
        """Name the GPU that limits the pool."""
        return limiting_gpu(self.shares)

    def blocks(self, sequences: int = 0) -> int:
        """Count the whole KV blocks beside the recurrent states of `sequences`; none below 0.

        A sliding window counts as if every layer kept every token.
        """
        return max(0, min(self._blocks(gpu, sequences) for gpu in range(len(self.shares))))

    def _blocks(self, gpu: int, sequences: int) -> int:
        share, models = self.shares[gpu], [(self.target, len(self.shares))]
        if self.draft is not None and (
            shards := _draft_shards(self.draft_place, gpu, len(self.shares))
        ):
            models.append((self.draft, shards))
        states = sequences * sum(model.state_bytes(shards) for model, shards in models)
        return int((share.kv_bytes - states) / share.kv_bytes_per_token // self.block_tokens)

    def sequence_bytes(self, gpu: int, context_tokens: int, lookahead_tokens: int = 0) -> float:
        """Size what GPU number `gpu` holds for one sequence, in whole blocks, windows honoured.

        `lookahead_tokens` are the slots that a verify pass writes beyond the context: γ + 1.
        """
        length = ceil((context_tokens + lookahead_tokens) / self.block_tokens) * self.block_tokens
        held = float(self.target.kv_bytes(length, len(self.shares)))
        if self.draft is not None:
            shards = _draft_shards(self.draft_place, gpu, len(self.shares))
            held += float(self.draft.kv_bytes(length, shards)) if shards else 0.0
        return held

    def max_concurrency(self, context_tokens: int, lookahead_tokens: int = 0) -> int:
        """Count the requests of one length that fit at once on the GPU where fewest do."""
        return min(
            int(share.kv_bytes // self.sequence_bytes(gpu, context_tokens, lookahead_tokens))
            for gpu, share in enumerate(self.shares)
        )


def memory_of(
    gpu: Gpu,
    target: Model,
    draft: Model | None = None,
    *,
    tensor_parallel: int = 1,
    draft_place: str = "split",
    utilization: float = UTILIZATION,
    reserve_bytes: float = RESERVE_BYTES,
    block_tokens: int = 16,
) -> Memory:
    """Divide the memory of `tensor_parallel` GPUs: usable − weights − draft − reserve = KV cache.

    Raises ValueError for an unknown place of the draft and a utilisation outside (0, 1],
    NoRoomError where the weights leave nothing for the cache (with the GPU and the sizes).
    """
    if draft_place not in DRAFT_PLACES:
        raise ValueError(f"draft place {draft_place!r} (one of {', '.join(DRAFT_PLACES)})")
    if not 0 < utilization <= 1:
        raise ValueError(f"utilization is {utilization} (above 0, at most 1)")
    if tensor_parallel < 1 or block_tokens < 1:
        raise ValueError(
            f"tensor_parallel is {tensor_parallel}, block_tokens {block_tokens} (1 or more each)"
        )
    target.check_shards(tensor_parallel)
    if draft and draft_place == "split":
        draft.check_shards(tensor_parallel)
    shares = []
    for number in range(tensor_parallel):
        shards = _draft_shards(draft_place, number, tensor_parallel) if draft else 0
        draft_bytes = draft.weights_bytes(shards) if draft and shards else 0.0
        draft_kv = draft.kv_bytes_per_token(shards) if draft and shards else 0.0
        share = GpuShare(
            usable_bytes=gpu.memory_bytes * utilization,
            target_bytes=target.weights_bytes(tensor_parallel),
            draft_bytes=draft_bytes,
            reserve_bytes=reserve_bytes,
            kv_bytes_per_token=target.kv_bytes_per_token(tensor_parallel) + draft_kv,
        )
        if share.kv_bytes <= 0:
            raise NoRoomError(_too_much(number, share))
        shares.append(share)
    return Memory(target, draft, draft_place, tuple(shares), block_tokens, gpu.memory_bytes)


def _draft_shards(place: str, gpu: int, tensor_parallel: int) -> int:
    """Say over how many GPUs the draft's part on this GPU is split; 0 where there is none."""
    if place == "split":
        return tensor_parallel
    return 1 if place == "each" or (place == "first" and gpu == 0) else 0


def _too_much(number: int, share: GpuShare) -> str:
    parts = f"target {share.target_bytes / 1e9:.1f} GB"
    if share.draft_bytes:
        parts += f", draft {share.draft_bytes / 1e9:.1f} GB"
    return (
        f"GPU {number}: {parts} and reserve {share.reserve_bytes / 1e9:.1f} GB leave nothing of "
        f"{share.usable_bytes / 1e9:.1f} GB for the KV cache (more GPUs, or fewer bytes a weight)"
    )
