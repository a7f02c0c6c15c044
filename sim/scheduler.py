"""Who takes part in a replica's next engine step: token budget, KV blocks, preemption, admission.

As vLLM's V1 scheduler: running requests first, in order of admission, then the waiting list; every
decoding sequence is charged its lookahead (γ + 1 positions) in budget and KV blocks; out of blocks,
the youngest is preempted and later recomputes; nobody is admitted in a step that preempted.
"""

import numpy as np

from specplan.sim.compiled import inner, outlined
from specplan.sim.policy import request_gamma, step_gamma
from specplan.sim.prefix import evict, prefix_hit, release, share
from specplan.sim.queues import blocks_for, first_waiting, leave_queue, requeue
from specplan.sim.state import NOBODY


@inner
def schedule(config, tables, engine, lane_number):
    """Fill the step: each running row's `chunk` and `proposed` (draft depth, −1: sits out).

    Returns γ of the step.
    """
    lane = engine.lanes[lane_number]
    gamma = choose_gamma(config, tables, engine, lane_number)
    budget = config.max_num_batched_tokens
    if config.prefill_first and config.has_prompts:
        before = budget
        budget = continue_prefills(config, engine, lane_number, budget)
        budget = admit(config, tables, engine, lane_number, gamma, budget)
        if budget < before:
            return gamma  # prompts stall the decoding sequences of this step
    running = lane.running
    budget = continue_running(config, tables, engine, lane_number, gamma, budget)
    if lane.running == running:
        admit(config, tables, engine, lane_number, gamma, budget)
    return gamma


@inner
def choose_gamma(config, tables, engine, lane_number):
    """Count the sequences that will decode and ask the policy."""
    lane = engine.lanes[lane_number]
    decodes = np.int64(0)
    context = np.int64(0)
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        row.chunk = 0
        row.proposed = -1
        if row.to_prefill == 0:
            decodes += 1
            context += row.prompt_tokens + row.output_tokens - row.left
    if not config.has_prompts:
        room = lane_room(config, engine, lane_number) - lane.running
        decodes += min(max(room, 0), engine.replicas[lane.replica].waiting)
    return step_gamma(config, tables, lane, decodes, context)


@inner
def lane_room(config, engine, lane_number):
    """How many sequences a lane may run: its share of max_num_seqs, and evenly filled.

    With an odd max_num_seqs the first lane has one place more.
    """
    if config.lanes == 1:
        return config.max_num_seqs
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    total = rep.waiting
    for other in range(config.lanes):
        total += engine.lanes[lane.replica * config.lanes + other].running
    places = (config.max_num_seqs + 1 - lane_number % 2) // 2
    return min(places, (total + 1) // 2)


@inner
def continue_prefills(config, engine, lane_number, budget):
    """Give running requests that still prefill their next chunk."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        if row.to_prefill > 0 and row.chunk == 0 and budget > 0:
            chunk = min(row.to_prefill, budget, config.prefill_chunk)
            total = row.prompt_tokens + row.output_tokens - row.left
            need = needed_blocks(config, row, total - row.to_prefill + chunk)
            if need > rep.free_blocks + rep.idle_blocks:
                break
            hold_blocks(config, engine, lane.replica, row, need)
            row.chunk = chunk
            budget -= chunk
    return budget


@inner
def continue_running(config, tables, engine, lane_number, gamma, budget):
    """Schedule the running requests in order of admission; preempt from the young end."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    i = 0
    while i < lane.running and budget > 0:
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        total = row.prompt_tokens + row.output_tokens - row.left
        if row.to_prefill > 0:
            chunk = min(row.to_prefill, budget, config.prefill_chunk)
            need = needed_blocks(config, row, total - row.to_prefill + chunk)
        else:
            chunk = 0
            depth = request_gamma(config, lane, row, gamma)
            width = tables.nodes[depth] + 1
            need = needed_blocks(config, row, total + width)
            if budget < width:
                i += 1
                continue
        while need > rep.free_blocks + rep.idle_blocks and lane.running > i:
            preempt_youngest(config, tables, engine, lane_number)
        if lane.running <= i:
            break  # it was itself the youngest
        hold_blocks(config, engine, lane.replica, row, need)
        if chunk > 0:
            row.chunk = chunk
            budget -= chunk
        else:
            decode(row, depth)
            budget -= width
        i += 1
    return budget


@inner
def decode(row, depth):
    """Let a request draft so deep in this step, or to its last token but one."""
    row.gamma = depth
    row.proposed = min(depth, row.left - 1)


@inner
def needed_blocks(config, row, positions):
    """KV blocks to add to what a request holds so that it can hold so many positions."""
    if config.blocks == 0:
        return 0
    return max(0, blocks_for(config, positions) - row.blocks - row.shared * config.prefix_blocks)


@inner
def hold_blocks(config, engine, replica, row, blocks):
    """Move free blocks to a request; cached ones that idle give way."""
    if config.blocks > 0:
        rep = engine.replicas[replica]
        if blocks > rep.free_blocks:
            evict(config, engine, replica, blocks)
        rep.free_blocks -= blocks
        row.blocks += blocks


@inner
def free_blocks(config, tables, engine, replica, row):
    """Take all blocks back from a request; those of the prefix cache stay there."""
    if config.blocks > 0:
        engine.replicas[replica].free_blocks += row.blocks
        row.blocks = 0
    if row.shared > 0:
        release(config, tables, engine, replica, row)


@outlined
def preempt_youngest(config, tables, engine, lane_number):
    """Throw the last admitted request out; it will recompute prompt and output so far."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    request = engine.running[lane_number, lane.running - 1]
    row = engine.requests[request & config.mask]
    lane.running -= 1
    free_blocks(config, tables, engine, lane.replica, row)
    row.to_prefill = row.prompt_tokens + row.output_tokens - row.left
    row.caught_up = 1
    row.preemptions += 1
    rep.preemptions += 1
    requeue(config, engine, lane.replica, request)


@inner
def promised_blocks(config, engine, replica):
    """Count the KV blocks that prompts under way still need: nobody else is admitted on them.

    Without this, long prompts in chunks push each other out and begin again, over and over; vLLM
    has it as `scheduler_reserve_full_isl`, on by default.
    """
    promised = np.int64(0)
    if config.blocks == 0:
        return promised
    for lane in range(replica * config.lanes, (replica + 1) * config.lanes):
        for i in range(engine.lanes[lane].running):
            row = engine.requests[engine.running[lane, i] & config.mask]
            if row.to_prefill > row.chunk:
                total = row.prompt_tokens + row.output_tokens - row.left
                promised += needed_blocks(config, row, total)
    return promised


@inner
def admit(config, tables, engine, lane_number, gamma, budget):
    """Take requests from the waiting list while sequences, budget and KV blocks allow."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    if first_waiting(engine, lane.replica) == NOBODY:
        return budget
    room = lane_room(config, engine, lane_number)
    promised = promised_blocks(config, engine, lane.replica)
    while lane.running < room and budget > 0:
        request = first_waiting(engine, lane.replica)
        if request == NOBODY:
            break
        row = engine.requests[request & config.mask]
        hit = np.int64(0)
        idle = np.int64(0)
        if row.to_prefill > 0:
            hit, idle = prefix_hit(config, tables, engine, lane.replica, row)
            to_prefill = row.to_prefill - hit * config.prefix_tokens
            whole = not config.chunked_prefill and to_prefill <= config.max_num_batched_tokens
            if whole and to_prefill > budget:
                break  # (a longer one recomputes, in chunks as there is no other way)
            chunk = min(to_prefill, budget, config.prefill_chunk)
            total = row.prompt_tokens + row.output_tokens - row.left
            need = needed_blocks(config, row, total - to_prefill + chunk)
            need -= hit * config.prefix_blocks
            later = needed_blocks(config, row, total) - hit * config.prefix_blocks - need
        else:
            chunk = 0
            later = np.int64(0)
            depth = request_gamma(config, lane, row, gamma)
            width = tables.nodes[depth] + 1
            need = needed_blocks(config, row, row.output_tokens - row.left + width)
            if budget < width:
                break
        available = rep.free_blocks + rep.idle_blocks
        spared = 0 if available == config.blocks else config.watermark_blocks
        if need + later > available - promised - idle * config.prefix_blocks - spared:
            break
        promised += later
        leave_queue(config, engine, lane.replica, request)
        if hit > 0:
            share(config, tables, engine, lane.replica, row, hit)
            row.to_prefill -= hit * config.prefix_tokens
            if row.preemptions == 0:
                row.cached_tokens = hit * config.prefix_tokens
        hold_blocks(config, engine, lane.replica, row, need)
        engine.running[lane_number, lane.running] = request
        lane.running += 1
        if row.preemptions == 0:
            row.admitted_s = lane.start_s
        row.chunk = chunk
        if chunk > 0:
            row.proposed = -1
            budget -= chunk
        else:
            decode(row, depth)
            budget -= width
    return budget
