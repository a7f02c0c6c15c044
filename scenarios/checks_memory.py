"""Contradictions about memory: a cache that holds nothing, and GPUs that are counted twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.gpus import gpu_name
from specplan.scenarios.memory import pool_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specplan.scenarios.schema import Scenario

Contradiction = tuple[tuple[str, ...], str, str]


def memory_contradictions(scenario: Scenario) -> Iterator[Contradiction]:
    """Find what contradicts itself in the memory of one engine and in its GPUs."""
    yield from _gpus(scenario)
    cache = scenario.kv_cache
    if cache is None:
        return
    if cache.prefix_caching and not (scenario.workload.arrivals.trace or scenario.workload.lengths):
        wrong = "needs prompts with hash ids, and there is no trace"
        yield ("kv_cache", "prefix_caching"), wrong, "a trace such as Mooncake's"
    classes = [kind.prompt_tokens for kind in scenario.workload.classes]
    if cache.prefix_caching and not all(
        lengths.trace for lengths in (scenario.prompt_tokens, *classes) if lengths
    ):
        wrong = "prompts have lengths of their own, and only those of a trace have hash ids"
        yield ("kv_cache", "prefix_caching"), wrong, "`prompt_tokens: trace`, or no prefix caching"
    try:
        pool = pool_of(scenario, with_draft=scenario.drafts_on_target)
    except ScenarioError as error:
        for fault in error.faults:
            if fault.field == "gpu":  # an unknown one is named where it is written
                continue
            path = tuple(fault.field.split(".")) if fault.field.startswith("kv_cache") else ()
            said = [fault.file, "" if path else fault.field, fault.wrong]
            yield path or ("kv_cache",), ": ".join(filter(None, said)), fault.right
        return
    prompt, output = scenario.prompt_tokens.smallest or 0, scenario.output_tokens.smallest or 1
    needed = -(-(prompt + output + scenario.gamma) // cache.block_tokens)
    if pool is not None and pool.blocks < needed:
        wrong = f"{pool.blocks} blocks of {cache.block_tokens} tokens hold not even one request"
        if pool.memory is not None and pool.memory.target.state_bytes():
            wrong += f", beside the states of {scenario.scheduler.max_num_seqs} sequences"
        yield ("kv_cache", cache.stated or "model"), wrong, f"at least {needed} blocks"


def _gpus(scenario: Scenario) -> Iterator[Contradiction]:
    """Hold the GPUs of a target's roofline against those that the scenario counts."""
    roofline = scenario.target.round.roofline
    if roofline is None:
        return
    named, counted = scenario.target.gpu, scenario.cluster.gpus_per_replica
    if named is not None and gpu_name(named) != gpu_name(roofline.gpu):
        wrong = f"is {named}, and target.round.roofline is of {roofline.gpu}"
        yield ("target", "gpu"), wrong, "one GPU, or no target.gpu"
    if counted != roofline.tensor_parallel:
        wrong = f"is {counted}, and target.round.roofline shares a pass among "
        wrong += f"{roofline.tensor_parallel} GPUs"
        right = f"`cluster: {{gpus_per_replica: {roofline.tensor_parallel}}}`"
        yield ("cluster", "gpus_per_replica"), wrong, right
