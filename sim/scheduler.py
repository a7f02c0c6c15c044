"""Who takes part in a replica's next engine step: token budget, KV blocks, preemption, admission.

As vLLM's V1 scheduler: running requests first, in order of admission, then the waiting list; every
decoding sequence is charged its lookahead (γ + 1 positions) in budget and KV blocks; out of blocks, the
youngest is preempted and later recomputes; nobody is admitted in a step that preempted.
"""

from specplan.sim.compiled import inner
from specplan.sim.policy import request_gamma, step_gamma
from specplan.sim.queues import blocks_for, drop_hopeless, first_waiting, leave_queue, requeue
from specplan.sim.state import NOBODY


@inner
def schedule(config, tables, engine, lane_number):  # type: ignore[no-untyped-def]
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
def choose_gamma(config, tables, engine, lane_number):  # type: ignore[no-untyped-def]
    """Count the sequences that will decode and ask the policy."""
    lane = engine.lanes[lane_number]
    decodes = 0
    context = 0
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
def lane_room(config, engine, lane_number):  # type: ignore[no-untyped-def]
    """How many sequences a lane may run: its share of max_num_seqs, evenly filled."""
    if config.lanes == 1:
        return config.max_num_seqs
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    total = rep.waiting
    for other in range(config.lanes):
        total += engine.lanes[lane.replica * config.lanes + other].running
    return min((config.max_num_seqs + 1) // 2, (total + 1) // 2)


@inner
def continue_prefills(config, engine, lane_number, budget):  # type: ignore[no-untyped-def]
    """Give running requests that still prefill their next chunk."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        if row.to_prefill > 0 and row.chunk == 0 and budget > 0:
            chunk = min(row.to_prefill, budget, config.prefill_chunk)
            total = row.prompt_tokens + row.output_tokens - row.left
            need = needed_blocks(config, row, total - row.to_prefill + chunk)
            if need > rep.free_blocks:
                break
            hold_blocks(config, rep, row, need)
            row.chunk = chunk
            budget -= chunk
    return budget


@inner
def continue_running(config, tables, engine, lane_number, gamma, budget):  # type: ignore[no-untyped-def]
    """Schedule the running requests in order of admission; preempt from the young end."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    width = tables.nodes[gamma] + 1
    i = 0
    while i < lane.running and budget > 0:
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        total = row.prompt_tokens + row.output_tokens - row.left
        if row.to_prefill > 0:
            chunk = min(row.to_prefill, budget, config.prefill_chunk)
            need = needed_blocks(config, row, total - row.to_prefill + chunk)
        else:
            chunk = 0
            need = needed_blocks(config, row, total + width)
            if budget < width:
                i += 1
                continue
        while need > rep.free_blocks and lane.running > i:
            preempt_youngest(config, engine, lane_number)
        if lane.running <= i:
            break  # it was itself the youngest
        hold_blocks(config, rep, row, need)
        if chunk > 0:
            row.chunk = chunk
            budget -= chunk
        else:
            depth = request_gamma(config, lane, row, gamma)
            row.proposed = min(depth, row.left - 1)
            budget -= width
        i += 1
    return budget


@inner
def needed_blocks(config, row, positions):  # type: ignore[no-untyped-def]
    """KV blocks to add to what a request holds so that it can hold so many positions."""
    if config.blocks == 0:
        return 0
    return max(0, blocks_for(config, positions) - row.blocks)


@inner
def hold_blocks(config, rep, row, blocks):  # type: ignore[no-untyped-def]
    """Move free blocks to a request."""
    if config.blocks > 0:
        rep.free_blocks -= blocks
        row.blocks += blocks


@inner
def free_blocks(config, rep, row):  # type: ignore[no-untyped-def]
    """Take all blocks back from a request."""
    if config.blocks > 0:
        rep.free_blocks += row.blocks
        row.blocks = 0


@inner
def preempt_youngest(config, engine, lane_number):  # type: ignore[no-untyped-def]
    """Throw the last admitted request out; it will recompute prompt and output so far."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    request = engine.running[lane_number, lane.running - 1]
    row = engine.requests[request & config.mask]
    lane.running -= 1
    free_blocks(config, rep, row)
    row.to_prefill = row.prompt_tokens + row.output_tokens - row.left
    row.preemptions += 1
    rep.preemptions += 1
    requeue(config, engine, lane.replica, request)


@inner
def admit(config, tables, engine, lane_number, gamma, budget):  # type: ignore[no-untyped-def]
    """Take requests from the waiting list while sequences, budget and KV blocks allow."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    if first_waiting(engine, lane.replica) == NOBODY:
        return budget
    width = tables.nodes[gamma] + 1
    room = lane_room(config, engine, lane_number)
    while lane.running < room and budget > 0:
        request = drop_hopeless(config, engine, lane.replica, lane.start_s)
        if request == NOBODY:
            break
        row = engine.requests[request & config.mask]
        if row.to_prefill > 0:
            if row.to_prefill > budget and not config.chunked_prefill:
                break
            chunk = min(row.to_prefill, budget, config.prefill_chunk)
            total = row.prompt_tokens + row.output_tokens - row.left
            need = needed_blocks(config, row, total - row.to_prefill + chunk)
        else:
            chunk = 0
            need = needed_blocks(config, row, row.output_tokens - row.left + width)
            if budget < width:
                break
        alone = rep.free_blocks == config.blocks
        if need > rep.free_blocks - (0 if alone else config.watermark_blocks):
            break
        leave_queue(config, engine, lane.replica, request)
        hold_blocks(config, rep, row, need)
        engine.running[lane_number, lane.running] = request
        lane.running += 1
        if row.preemptions == 0:
            row.admitted_s = lane.start_s
        row.chunk = chunk
        if chunk > 0:
            row.proposed = -1
            budget -= chunk
        else:
            depth = request_gamma(config, lane, row, gamma)
            row.proposed = min(depth, row.left - 1)
            budget -= width
    return budget
