"""The KV cache of a scenario's engine: as it states it, or sized from its GPUs and models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.models.memory import (
    RESERVE_BYTES,
    UTILIZATION,
    Memory,
    NoRoomError,
    max_concurrency,
    memory_of,
)
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.gpus import find_gpu
from specplan.scenarios.model_config import mtp_head, read_model
from specplan.scenarios.schema_memory import MTP

if TYPE_CHECKING:
    from specplan.models.hardware import Gpu, Model
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_memory import KvCache


class DoesNotFitError(ScenarioError):
    """Weights and reserve leave nothing for the KV cache."""


@dataclass(frozen=True)
class Pool:
    """The blocks of one engine's KV cache; `memory` says what sized it, None where it is stated."""

    blocks: int
    block_tokens: int
    memory: Memory | None = None

    @property
    def tokens(self) -> int:
        """Count the tokens of all blocks."""
        return self.blocks * self.block_tokens

    def max_concurrency(self, context_tokens: int, lookahead_tokens: int = 0) -> int:
        """Count the sequences of one length that fit at once, windows honoured where known."""
        if self.memory is not None:
            return self.memory.max_concurrency(context_tokens, lookahead_tokens)
        return max_concurrency(self.tokens, context_tokens + lookahead_tokens, self.block_tokens)


def pool_of(scenario: Scenario, *, with_draft: bool) -> Pool | None:
    """Find the KV cache of one engine, with the draft on its GPUs or without; None: no limit.

    Recurrent states (linear attention) are taken off for `max_num_seqs` sequences.

    Raises ScenarioError where a sized cache lacks its GPU or model, DoesNotFitError where nothing
    is left.
    """
    cache = scenario.kv_cache
    if cache is None:
        return None
    if cache.stated:
        blocks = cache.capacity_blocks(draft_on_gpu=with_draft)
        return Pool(blocks, cache.block_tokens)
    draft = draft_model(scenario) if with_draft else None
    utilization, reserve = _assumed(cache)
    try:
        memory = memory_of(
            gpu_of(scenario),
            target_model(scenario),
            draft,
            tensor_parallel=scenario.cluster.gpus_per_replica,
            draft_place=cache.draft_place or "split",
            utilization=utilization,
            reserve_bytes=reserve,
            block_tokens=cache.block_tokens,
        )
    except ValueError as error:
        wrong, _, right = str(error).rstrip(")").rpartition(" (")
        if isinstance(error, NoRoomError):
            raise DoesNotFitError(Fault(wrong, right, field="kv_cache")) from None
        # Heads that the GPUs do not share.
        raise ScenarioError(Fault(wrong, right, field="cluster.gpus_per_replica")) from None
    return Pool(memory.blocks(scenario.scheduler.max_num_seqs), cache.block_tokens, memory)


def sized_from(scenario: Scenario) -> str:
    """Say what a sized cache rests on, as evidence: the datasheet, and what is assumed beside it.

    Raises ScenarioError as `pool_of` does.
    """
    assert scenario.kv_cache is not None  # asked for caches only
    utilization, reserve = _assumed(scenario.kv_cache)
    gpu, gpus = gpu_of(scenario), scenario.cluster.gpus_per_replica
    cache = scenario.kv_cache
    beside: dict[str, list[str]] = {}
    for said, is_stated in (
        (f"{100 * utilization:.3g} % of it", cache.utilization is not None),
        (f"reserve {reserve / 2**30:.3g} GiB", cache.reserve is not None),
    ):
        beside.setdefault("stated" if is_stated else "assumed", []).append(said)
    shares = "; ".join(f"{kind}: {', '.join(said)}" for kind, said in beside.items())
    return (
        f"datasheet ({gpu.name} × {gpus}, {gpu.memory_bytes / 2**30:.4g} GiB each: {gpu.source}; "
        f"{shares})"
    )


def _assumed(cache: KvCache) -> tuple[float, float]:
    """Give the share of memory that the engine takes, and the reserve in bytes."""
    utilization = UTILIZATION if cache.utilization is None else cache.utilization
    return utilization, RESERVE_BYTES if cache.reserve is None else cache.reserve


def gpu_of(scenario: Scenario) -> Gpu:
    """Find the GPU that the target runs on; raises ScenarioError where none is named."""
    roofline = scenario.target.round.roofline
    name = scenario.target.gpu or (roofline.gpu if roofline else None)
    if name is None:
        right = "`target: {gpu: h100-sxm}`, or state tokens, blocks or memory"
        raise ScenarioError(Fault("there is no GPU to size it from", right, field="kv_cache"))
    return find_gpu(name)


def target_model(scenario: Scenario) -> Model:
    """Read the target's config, in the types that the scenario stores it in.

    Raises ScenarioError where no model is named, and for what is wrong with its config.
    """
    cache, roofline = scenario.kv_cache, scenario.target.round.roofline
    path = (cache.model if cache else None) or (roofline.model if roofline else None)
    if cache is None or path is None:
        right = "exactly one of blocks, tokens, memory, or `model: config.json` to size it from"
        raise ScenarioError(Fault("no capacity given", right, field="kv_cache"))
    dtype = cache.dtype or (roofline.dtype if roofline else None)
    kv_dtype = cache.kv_dtype or (roofline.kv_dtype if roofline else None)
    return read_model(Path(path)).with_dtype(dtype, kv_dtype)


def draft_model(scenario: Scenario) -> Model | None:
    """Read the draft's config; None where the scenario names none, as n-gram has none.

    Raises ScenarioError for what is wrong with the config, and for a draft whose roofline runs on
    other GPUs than the target where `draft_place` does not say which.
    """
    cache, roofline = scenario.kv_cache, scenario.draft.step.roofline
    if cache is None or (cache.draft is None and roofline is None):
        return None
    target = scenario.target.round.roofline
    path, mtp, dtype = cache.draft, cache.draft == MTP, cache.draft_dtype
    if path is None and roofline is not None:
        path, mtp = roofline.model, roofline.mtp
    elif mtp:
        path = cache.model or (target.model if target else None)
        dtype = dtype or cache.dtype or (target.dtype if target else None)
    if path is None:  # `mtp` of no model, which sizing the target refuses
        return None
    gpus, drafting = scenario.cluster.gpus_per_replica, roofline.tensor_parallel if roofline else 0
    if roofline and cache.draft_place is None and drafting != gpus:
        wrong = f"draft.step.roofline runs on {drafting} of the target's {gpus} GPUs"
        right = "`first` where one GPU holds it, `each` where all hold a copy"
        raise ScenarioError(Fault(wrong, right, field="kv_cache.draft_place"))
    model = mtp_head(Path(path)) if mtp else read_model(Path(path))
    kv_dtype = cache.kv_dtype or (roofline.kv_dtype if roofline else None)
    return model.with_dtype(dtype or (roofline.dtype if roofline else None), kv_dtype)
