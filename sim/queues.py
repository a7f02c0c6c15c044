"""Waiting lists of a replica: linked through the requests' rows, so every move is one step.

An *inbox* holds assigned requests whose arrival lies ahead; at its time a request moves to the
waiting list of its priority. Preempted requests go back to the head of theirs.
"""

import numpy as np

from specplan.sim.compiled import inner, outlined
from specplan.sim.state import ABORTED, NOBODY, REJECTED

_NEVER = np.inf


@inner
def assign(config, requests, replicas, replica, request):
    """Put a request behind the others in a replica's inbox; arrivals come in order of time."""
    rep = replicas[replica]
    row = requests[request & config.mask]
    row.replica = replica
    row.next = NOBODY
    if rep.inbox_tail == NOBODY:
        rep.inbox_head = request
    else:
        requests[rep.inbox_tail & config.mask].next = request
    rep.inbox_tail = request
    rep.assigned += 1


@inner
def deliver(config, engine, replica, now_s):
    """Move what has arrived by now to the waiting lists; refuse what can never fit."""
    rep = engine.replicas[replica]
    while rep.inbox_head != NOBODY:
        request = rep.inbox_head
        row = engine.requests[request & config.mask]
        if row.arrival_s > now_s:
            break
        rep.inbox_head = row.next
        if rep.inbox_head == NOBODY:
            rep.inbox_tail = NOBODY
        row.next = NOBODY
        if never_fits(config, row):
            close(engine, rep, row, REJECTED, row.arrival_s)
            continue
        queue = engine.queues[replica, row.priority]
        if queue[1] == NOBODY:
            queue[0] = request
        else:
            engine.requests[queue[1] & config.mask].next = request
        queue[1] = request
        rep.waiting += 1


@inner
def first_waiting(engine, replica):
    """Find the request to admit next: first come first served within the best priority."""
    for priority in range(engine.queues.shape[1]):
        if engine.queues[replica, priority, 0] != NOBODY:
            return engine.queues[replica, priority, 0]
    return NOBODY


@inner
def leave_queue(config, engine, replica, request):
    """Take the head of a waiting list off it."""
    row = engine.requests[request & config.mask]
    queue = engine.queues[replica, row.priority]
    queue[0] = row.next
    if queue[0] == NOBODY:
        queue[1] = NOBODY
    row.next = NOBODY
    engine.replicas[replica].waiting -= 1


@outlined
def requeue(config, engine, replica, request):
    """Put a preempted request at the head of its waiting list."""
    row = engine.requests[request & config.mask]
    queue = engine.queues[replica, row.priority]
    row.next = queue[0]
    if queue[0] == NOBODY:
        queue[1] = request
    queue[0] = request
    engine.replicas[replica].waiting += 1


@inner
def close(engine, rep, row, status, finish_s):
    """End a request: completed, given up by its client, or refused."""
    row.status = status
    row.finish_s = finish_s
    rep.finished += 1
    rep.earliest_finish_s = min(rep.earliest_finish_s, finish_s)
    if engine.ended[0] + 1 < len(engine.ended):
        engine.ended[0] += 1
        engine.ended[engine.ended[0]] = row.request


@inner
def never_fits(config, row):
    """Tell whether a request has no place even alone: too large for the KV cache or the budget.

    Its widest pass begins with one output token left at least.
    """
    positions = row.prompt_tokens + row.output_tokens - 1 + config.lookahead
    too_large = config.blocks > 0 and blocks_for(config, positions) > config.blocks
    return too_large or (
        not config.chunked_prefill and row.prompt_tokens > config.max_num_batched_tokens
    )


@inner
def drop_hung_up(config, engine, replica, now_s):
    """Take waiting requests off whose clients have hung up by now.

    All clients are equally patient, so within a priority the first in line hangs up first.
    """
    rep = engine.replicas[replica]
    for priority in range(engine.queues.shape[1]):
        request = engine.queues[replica, priority, 0]
        while request != NOBODY:
            row = engine.requests[request & config.mask]
            if row.deadline_s > now_s:
                break
            leave_queue(config, engine, replica, request)
            close(engine, rep, row, ABORTED, row.deadline_s)
            request = engine.queues[replica, priority, 0]


@inner
def blocks_for(config, positions):
    """KV blocks that hold so many positions."""
    return (positions + config.block_tokens - 1) // config.block_tokens


@inner
def next_start_s(config, engine, lane_number):
    """When a lane can start its next step: now if it has work, else at the next arrival."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    if lane.running > 0 or rep.waiting > 0:
        return lane.clock_s
    if rep.inbox_head != NOBODY:
        return max(lane.clock_s, engine.requests[rep.inbox_head & config.mask].arrival_s)
    return _NEVER
