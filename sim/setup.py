"""From a scenario to what the compiled loop reads: numbers in arrays, names turned into codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.sim import policy
from specplan.sim.prefix import ABSENT
from specplan.sim.pricing import packed
from specplan.sim.state import (
    CONFIG,
    GPU,
    LANE,
    NOBODY,
    PLACEMENTS,
    PREFIX,
    REPLICA,
    REQUEST,
    SAMPLE,
    SHARED,
    SPAN,
    Engine,
    Tables,
    rows,
)
from specplan.sim.step import GAP_BINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from specplan.models.acceptance import Acceptance
    from specplan.scenarios.schema import Scenario
    from specplan.sim.workload import Prefixes

SAMPLES = 4096
RING_ROWS = 1 << 16
ENDED_ROOM = 1 << 20
UNLIMITED = 1 << 60
SECONDS = 1 << 17  # of a run whose output tokens are counted second by second: a day and a half


@dataclass(frozen=True, eq=False)
class Laws:
    """The acceptance of all classes in one table, and who draws which row of it."""

    parts: tuple[Acceptance, ...]  # one a class, or one for all
    first: NDArray[np.int64]  # where each part's rows begin in the table

    def draw(
        self,
        cls: NDArray[np.int64],
        luck: NDArray[np.float64],
        alpha_luck: Callable[[], NDArray[np.float64]],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Law and own α (NaN: the law's list) of requests with these classes."""
        law = np.zeros(len(cls), np.int64)
        alpha = np.full(len(cls), np.nan)
        part_of = cls if len(self.parts) > 1 else np.zeros_like(cls)
        for index, part in enumerate(self.parts):
            mine = part_of == index
            row = np.searchsorted(np.cumsum(part.weight), luck[mine], side="right")
            row = np.minimum(row, len(part.weight) - 1)
            law[mine] = self.first[index] + row
            spread = np.isfinite(part.concentration[row])
            if spread.any() and part.positions:
                own = part.request_lists(row, alpha_luck()[mine])[:, 0]
                alpha[mine] = np.where(spread, own, np.nan)
        return law, alpha


def laws(scenario: Scenario, positions: int) -> Laws:
    """Lower the acceptance of every class to so many draft positions."""
    if scenario.workload.accepts_by_class:
        classes = scenario.workload.classes
        parts = tuple(scenario.acceptance(positions, kind.name) for kind in classes)
    else:
        parts = (scenario.acceptance(positions),)
    sizes = [len(part.weight) for part in parts]
    return Laws(parts, np.cumsum([0, *sizes[:-1]]).astype(np.int64))


def gamma_bounds(scenario: Scenario) -> tuple[int, int]:
    """Smallest and largest γ that the scenario's policy may choose."""
    chosen, gamma = scenario.speculation.policy, scenario.gamma
    if gamma == 0:
        return 0, 0
    match chosen.kind:
        case "by_batch" | "off_above":
            depths = [row[2] for row in chosen.rows(gamma)]
            return min(depths), max(depths)
        case "hf_heuristic" | "hf_transient":
            schedule = chosen.hf_heuristic or chosen.hf_transient
            assert schedule is not None
            return schedule.min, schedule.max
        case "goodput" if chosen.goodput is not None:
            return chosen.goodput.min, chosen.goodput.max or gamma
        case _:
            return gamma, gamma


def config(scenario: Scenario, prefixes: Prefixes) -> Any:
    """One row of `sim.state.CONFIG`."""
    row = rows(1, CONFIG)
    c = row[0]
    speculation, draft, scheduler = scenario.speculation, scenario.draft, scenario.scheduler
    c["mask"] = RING_ROWS - 1
    c["max_num_seqs"] = scheduler.max_num_seqs
    c["max_num_batched_tokens"] = scheduler.max_num_batched_tokens
    c["chunked_prefill"] = scheduler.chunked_prefill
    chunks = scheduler.chunked_prefill and scheduler.prefill_chunk
    c["prefill_chunk"] = chunks or UNLIMITED
    c["prefill_first"] = scheduler.prefill_first
    c["gamma"] = scenario.gamma
    c["gamma_min"], c["gamma_max"] = gamma_bounds(scenario)
    c["lanes"] = 2 if draft.ping_pong and c["gamma_max"] else 1
    c["lookahead"] = tree_nodes(scenario, c["gamma_max"])[-1] + 1
    if scenario.kv_cache is not None:
        cache = scenario.kv_cache
        c["blocks"] = scenario.kv_blocks
        c["block_tokens"] = cache.block_tokens
        c["watermark_blocks"] = int(cache.watermark * c["blocks"])
    c["block_tokens"] = max(1, c["block_tokens"])
    c["prefix_tokens"] = prefixes.block_tokens
    c["prefix_blocks"] = prefixes.block_tokens // c["block_tokens"]
    lengths = [scenario.prompt_tokens, *(kind.prompt_tokens for kind in scenario.workload.classes)]
    c["has_prompts"] = any(length is not None and length.fixed != 0 for length in lengths)
    c["placement"] = PLACEMENTS.index(draft.placement) if c["gamma_max"] else 0
    shared = c["placement"] == SHARED
    c["pool_gpus"] = draft.gpus if shared else 0
    c["draft_batch"] = (draft.max_batch or 0) if shared else 0
    c["engines_per_gpu"] = scenario.cluster.engines_per_gpu
    c["transfer_s"] = draft.transfer or 0.0
    c["overhead_s"] = speculation.overhead
    c["draft_call_s"] = draft.per_round
    c["enabled_factor"] = speculation.enabled_factor if scenario.gamma else 1.0
    c["lengths_vary"] = bool(speculation.proposal_lengths)
    c["one_pass"] = speculation.method == "one_pass"
    # A draft that goes on during verification hides it.
    c["extra_draft_step"] = speculation.extra_draft_step and draft.placement != "parallel"
    c["joint_prefill"] = scenario.target_prefill() is None
    if speculation.confidence_stop is not None:
        c["stop_if_accepted"] = speculation.confidence_stop.if_accepted
        c["stop_if_rejected"] = speculation.confidence_stop.if_rejected
    set_policy(scenario, c)
    return row


def set_policy(scenario: Scenario, c: Any) -> None:
    """Write the γ policy into a config row."""
    chosen = scenario.speculation.policy
    match chosen.kind:
        case "hf_heuristic" | "hf_transient":
            schedule = chosen.hf_heuristic or chosen.hf_transient
            assert schedule is not None
            heuristic = chosen.kind == "hf_heuristic"
            c["policy"] = policy.HF_HEURISTIC if heuristic else policy.HF_TRANSIENT
            c["gamma_increase"], c["gamma_decrease"] = schedule.increase, schedule.decrease
        case "goodput" if chosen.goodput is not None:
            c["policy"] = policy.GOODPUT
            c["hold_steps"] = chosen.goodput.hold_rounds
        case _:
            c["policy"] = policy.BY_BATCH
            c["hysteresis"], c["patience"] = chosen.hysteresis, chosen.patience


def tree_nodes(scenario: Scenario, gamma_max: int) -> NDArray[np.int64]:
    """Drafted tokens down to each depth 0 … γ_max; a chain drafts as many as it is deep."""
    if scenario.speculation.method != "tree":
        return np.arange(gamma_max + 1)
    paths = scenario.speculation.tree_paths
    levels = np.bincount([len(path) for path in paths], minlength=gamma_max + 1)
    return np.cumsum(levels)[: gamma_max + 1]


def gamma_by_batch(scenario: Scenario) -> NDArray[np.int64]:
    """γ at each running batch 0 … max_num_seqs; batches beyond the table keep its last γ."""
    table = np.full(scenario.scheduler.max_num_seqs + 1, scenario.gamma, np.int64)
    for low, _, gamma in scenario.speculation.policy.rows(scenario.gamma) if scenario.gamma else ():
        table[low:] = gamma
    return table


def tables(scenario: Scenario, laws: Laws, gamma_max: int, prefixes: Prefixes) -> Tables:
    """Everything that stays as it is during a run."""
    costs, cost_index = packed(
        [
            scenario.target_step(),
            scenario.target_round(),
            scenario.target_prefill() or scenario.target_round(),
            scenario.draft_step(),
            scenario.draft_prefill(),
        ]
    )
    unconditional = np.ones((sum(len(part.weight) for part in laws.parts), gamma_max + 1))
    unconditional[:, 1:] = np.concatenate([part.unconditional for part in laws.parts])
    hit = np.concatenate([part.draft_probability for part in laws.parts])
    recorded = laws.parts[0].recorded if len(laws.parts) == 1 else None
    everybody = scenario.acceptance(gamma_max)
    proposing = scenario.speculation.proposing(gamma_max)
    tokens = [1.0, *(float(everybody.tokens_per_round(g)) for g in range(1, gamma_max + 1))]
    return Tables(
        costs=costs,
        cost_index=cost_index,
        unconditional=unconditional * hit[:, None],
        proposing=np.array([1.0, *(proposing or np.ones(gamma_max))]),
        nodes=tree_nodes(scenario, gamma_max),
        gamma_by_batch=gamma_by_batch(scenario),
        tokens_by_gamma=np.array(tokens),
        recorded=np.zeros(0, np.int64) if recorded is None else recorded,
        prefix_ids=prefixes.ids,
        prefix_starts=prefixes.starts,
        by_depth=np.zeros(gamma_max + 2, np.int64),
    )


def engine(scenario: Scenario, config_row: Any, spans: int, prefixes: Prefixes) -> Engine:
    """Empty replicas with room for the ring of requests."""
    c = config_row[0]
    replicas = scenario.cluster.replicas
    lanes = rows(replicas * c["lanes"], LANE)
    lanes["replica"] = np.arange(len(lanes)) // c["lanes"]
    lanes["gamma_learned"] = c["gamma"]
    lanes["gamma_held"] = policy.UNDECIDED
    state = rows(replicas, REPLICA)
    state["free_blocks"] = c["blocks"]
    state["inbox_head"] = state["inbox_tail"] = NOBODY
    state["oldest_idle"] = state["newest_idle"] = NOBODY
    state["earliest_finish_s"] = state["gap_min_s"] = np.inf
    state["sample_every"] = 1
    cached = rows((replicas, prefixes.different), PREFIX)
    cached["holders"] = ABSENT
    per_gpu = int(c["engines_per_gpu"])
    turns = -(-replicas // per_gpu) if per_gpu > 1 else 0
    priorities = len({kind.priority for kind in scenario.workload.classes}) or 1
    return Engine(
        requests=rows(int(c["mask"]) + 1, REQUEST),
        lanes=lanes,
        replicas=state,
        running=np.zeros((len(lanes), int(c["max_num_seqs"])), np.int64),
        queues=np.full((replicas, priorities, 2), NOBODY, np.int64),
        cached=cached,
        batch_time_s=np.zeros(int(c["max_num_seqs"]) + 1),
        gaps=np.zeros((2, GAP_BINS)),
        samples=rows((replicas, SAMPLES), SAMPLE),
        spans=rows((replicas, spans), SPAN),
        ended=np.zeros(ENDED_ROOM, np.int64),
        kept_rounds=np.zeros(int(c["gamma_max"]) + 1, np.int64),
        second_tokens=np.zeros(SECONDS, np.int64),
        gpus=rows(int(c["pool_gpus"]) + turns, GPU),
    )
