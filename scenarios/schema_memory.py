"""The block about memory: the KV cache of one engine, stated or sized from GPU and model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from specplan.scenarios.fields import Bytes, Count, FilePath, Fraction, Section, fault
from specplan.scenarios.schema_costs import KvDtype, WeightDtype

if TYPE_CHECKING:
    from pydantic_core import PydanticCustomError

#: Stands for the multi-token-prediction module that the target's own config announces.
MTP = "mtp"
CAPACITIES = ("blocks", "tokens", "memory")
_OF_CAPACITY = {
    "plain_tokens": "tokens",
    "bytes_per_token": "memory",
    "draft_bytes_per_token": "memory",
    "draft_weights": "memory",
}
_OF_SIZE = (
    *("model", "dtype", "kv_dtype", "draft", "draft_dtype", "draft_place"),
    *("utilization", "reserve"),
)


def _or_mtp(value: object, path: ValidatorFunctionWrapHandler) -> str:
    return MTP if value == MTP else str(path(value))


DraftConfig = Annotated[FilePath, WrapValidator(_or_mtp)]


class KvCache(Section):
    """Memory for keys and values, in blocks; a scenario without this block has no limit.

    The capacity is stated (blocks, tokens or memory), or sized: memory of the GPU × utilization −
    weights of target and draft − reserve. What is sized runs on `target.gpu`,
    `cluster.gpus_per_replica` of them; a roofline in `target.round` or `draft.step` stands for
    GPU, model, types and tensor_parallel that are not written.
    """

    blocks: Count | None = Field(
        default=None, description="Capacity in blocks (an engine's log: GPU blocks)."
    )
    tokens: Count | None = Field(
        default=None,
        description="Capacity in tokens (vLLM's log: `GPU KV cache size`), the draft loaded.",
    )
    plain_tokens: Count | None = Field(
        default=None, description="The same without a draft; absent: `tokens`."
    )
    memory: Bytes | None = Field(
        default=None, description="Capacity as memory left for KV; needs bytes_per_token."
    )
    bytes_per_token: Bytes | None = Field(
        default=None, description="Keys and values of one token in the target: 128 KiB for an 8B."
    )
    draft_bytes_per_token: Bytes = Field(
        default=0.0, description="Those of one token in a draft on the same GPU."
    )
    draft_weights: Bytes = Field(
        default=0.0, description="Memory that the weights of a draft on the same GPU take away."
    )
    model: FilePath | None = Field(
        default=None,
        description="Sized: the target's Hugging Face `config.json`, relative to this file.",
    )
    dtype: WeightDtype | None = Field(
        default=None, description="Type of the target's weights; absent: what the config says."
    )
    kv_dtype: KvDtype | None = Field(
        default=None,
        description="Type of both caches, target's and draft's; absent: what each config says.",
    )
    draft: DraftConfig | None = Field(
        default=None,
        description="Sized: the draft's `config.json`, or `mtp` for the module that the target's "
        "own config announces; absent: the one of a roofline in `draft.step`, or none.",
    )
    draft_dtype: WeightDtype | None = Field(
        default=None, description="Type of the draft's weights; absent: what the config says."
    )
    draft_place: Literal["split", "first", "each"] | None = Field(
        default=None,
        description="A colocated draft's weights and cache: split over the target's GPUs, whole on "
        "the first, or whole on each; absent: split.",
    )
    utilization: Fraction | None = Field(
        default=None,
        description="Sized: share of the GPU's memory that the engine takes, as vLLM's "
        "gpu_memory_utilization; absent: 90 %.",
    )
    reserve: Bytes | None = Field(
        default=None,
        description="Sized: activations, workspaces, graphs and context on each GPU; absent: 3.5 "
        "GiB, as on an H100 (aiconfigurator).",
    )
    block_tokens: Count = Field(default=16, description="Tokens in a block.")
    watermark: Fraction = Field(
        default=0.01, description="Share of blocks kept free when a request is admitted."
    )
    prefix_caching: bool = Field(
        default=False, description="Prompts share blocks by the hash ids of a trace (Mooncake)."
    )

    @property
    def stated(self) -> str | None:
        """Name the field that states the capacity; None where it is sized."""
        return next((name for name in CAPACITIES if getattr(self, name)), None)

    @model_validator(mode="after")
    def _one_capacity(self) -> Self:
        written = [name for name in CAPACITIES if getattr(self, name)]
        if len(written) > 1:
            raise fault(f"{' and '.join(written)} given", "exactly one of blocks, tokens, memory")
        if self.memory is not None and not self.bytes_per_token:
            raise fault("memory without bytes_per_token", "e.g. `bytes_per_token: 128 KiB`")
        for name in self.model_fields_set:
            if name in _OF_SIZE and written and getattr(self, name) is not None:
                raise _beside(name, written[0], "a cache sized from GPU and model")
            owner = _OF_CAPACITY.get(name)
            if owner and owner not in written and getattr(self, name):
                if not written:
                    raise fault("no capacity given", f"`{owner}` beside {name}")
                raise _beside(name, written[0], f"`{owner}`")
        if self.utilization == 0:
            raise fault("utilization is 0", "above 0, such as `90 %`")
        return self

    def capacity_blocks(self, *, draft_on_gpu: bool) -> int:
        """Whole blocks of a stated capacity; a draft on the same GPU takes its weights and its KV.

        >>> KvCache(tokens=1000).capacity_blocks(draft_on_gpu=False)
        62
        """
        if self.blocks is not None:
            return self.blocks
        if self.tokens is not None:
            held = self.tokens if draft_on_gpu else self.plain_tokens or self.tokens
            return held // self.block_tokens
        token_bytes = self.bytes_per_token or math.inf
        left = self.memory or 0.0
        if draft_on_gpu:
            token_bytes += self.draft_bytes_per_token
            left -= self.draft_weights
        return max(0, math.floor(left / (token_bytes * self.block_tokens)))


def _beside(name: str, capacity: str, owner: str) -> PydanticCustomError:
    return fault(f"{name} does not apply to {capacity}", f"only to {owner}")
