"""The compiled inner loop: advance replicas over every step that nothing outside can influence."""

import numpy as np

from specplan.sim.compiled import entry, inner, outlined
from specplan.sim.queues import assign, next_start_s
from specplan.sim.state import (
    COLOCATED,
    DRAFT,
    DRAFT_GPU,
    PARALLEL,
    TARGET_GPU,
    Engine,
    Tables,
)
from specplan.sim.step import commit, plan
from specplan.sim.timeline import record, record_target, sample

DONE, MORE, UNPRICED, BROKEN, STUCK = range(5)


@entry
def advance(
    config_row,
    costs,
    cost_index,
    unconditional,
    proposing,
    nodes,
    gamma_by_batch,
    tokens_by_gamma,
    recorded,
    prefix_ids,
    prefix_starts,
    by_depth,
    requests,
    lanes,
    replicas,
    running,
    queues,
    cached,
    batch_time_s,
    gaps,
    samples,
    spans,
    ended,
    kept_rounds,
    second_tokens,
    gpus,
    until_s,
    stop_at_finish,
    most_steps,
):
    """Run all replicas over all steps that start before `until_s`.

    With `stop_at_finish` it also stops once a request has finished and every step that starts
    before that moment is done, so that whoever waits for it can act in time. Returns how it went:
    DONE; MORE when `most_steps` came first, so that a person can interrupt; UNPRICED when a cost
    table has no price for the step that a lane has planned; BROKEN when KV blocks got lost; STUCK
    when an engine has requests and can run none of them.

    Called as `advance(config_row, *tables, *engine, …)`: a call with single arrays takes a third of
    the time of a call with tuples of them.
    """
    tables = Tables(
        costs,
        cost_index,
        unconditional,
        proposing,
        nodes,
        gamma_by_batch,
        tokens_by_gamma,
        recorded,
        prefix_ids,
        prefix_starts,
        by_depth,
    )
    engine = Engine(
        requests,
        lanes,
        replicas,
        running,
        queues,
        cached,
        batch_time_s,
        gaps,
        samples,
        spans,
        ended,
        kept_rounds,
        second_tokens,
        gpus,
    )
    config = config_row[0]
    for _ in range(most_steps):
        chosen = np.int64(-1)
        start_s = np.inf
        bound_s = until_s
        for replica in range(len(replicas)):
            if stop_at_finish:
                bound_s = min(bound_s, engine.replicas[replica].earliest_finish_s)
            for lane in range(replica * config.lanes, (replica + 1) * config.lanes):
                candidate_s = next_start_s(config, engine, lane)
                if candidate_s < start_s:
                    start_s = candidate_s
                    chosen = lane
        if chosen < 0 or start_s >= bound_s:
            return DONE
        if plan(config, tables, engine, chosen, start_s):
            if unpriced(engine.lanes[chosen]):
                return UNPRICED
            end_s = pass_time(config, engine, chosen, start_s)
            commit(config, tables, engine, chosen, end_s)
            sample(config, engine, chosen)
            if config.check_blocks and not blocks_add_up(config, engine, chosen):
                return BROKEN
        elif config.lanes == 1 and next_start_s(config, engine, chosen) <= start_s:
            return STUCK
        else:
            wait_for_other_lane(config, engine, chosen, start_s)
    return MORE


@inner
def unpriced(lane):
    """Tell whether a cost table gave no price for the planned step."""
    return np.isnan(lane.draft_prefill_s + lane.draft_s + lane.prefill_s + lane.verify_s)


@outlined
def blocks_add_up(config, engine, lane_number):
    """Check that a replica's KV blocks are all free, cached or held by a running request."""
    replica = engine.lanes[lane_number].replica
    rep = engine.replicas[replica]
    held = rep.free_blocks + rep.cached_blocks
    for lane in range(replica * config.lanes, (replica + 1) * config.lanes):
        for i in range(engine.lanes[lane].running):
            held += engine.requests[engine.running[lane, i] & config.mask].blocks
    idle = 0 <= rep.idle_blocks <= rep.cached_blocks
    return held == config.blocks and rep.free_blocks >= 0 and idle


@inner
def pass_time(config, engine, lane_number, start_s):
    """Lay a planned step's phases onto the replica's GPUs; returns when the step is over.

    colocated: one GPU, phases in series. dedicated: draft, transfer, then the target; with two
    lanes each waits for a GPU that the other holds. parallel: the draft runs during verification.
    """
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    drafting_s = lane.draft_prefill_s + lane.draft_s
    target_s = lane.prefill_s + lane.verify_s + lane.overhead_s
    if config.placement == COLOCATED:
        record(config, engine, lane, TARGET_GPU, DRAFT, start_s, start_s + drafting_s)
        record_target(config, engine, lane, start_s + drafting_s)
        return start_s + (drafting_s + target_s)
    if config.placement == PARALLEL:
        record(config, engine, lane, DRAFT_GPU, DRAFT, start_s, start_s + drafting_s)
        record_target(config, engine, lane, start_s)
        busy_s = max(drafting_s, lane.prefill_s + lane.verify_s) + lane.overhead_s
        return start_s + busy_s + (config.transfer_s if lane.drafting > 0 else 0.0)
    drafted_s = start_s
    if drafting_s > 0.0:
        draft_start_s = max(start_s, rep.draft_free_s)
        record(config, engine, lane, DRAFT_GPU, DRAFT, draft_start_s, draft_start_s + drafting_s)
        drafted_s = draft_start_s + drafting_s
        rep.draft_free_s = drafted_s
    if lane.drafting > 0:
        drafted_s += config.transfer_s
    target_start_s = max(drafted_s, rep.target_free_s)
    record_target(config, engine, lane, target_start_s)
    rep.target_free_s = target_start_s + target_s
    return rep.target_free_s


@inner
def wait_for_other_lane(config, engine, lane_number, start_s):
    """Let a lane that cannot start (the other holds all KV blocks) look again after the other."""
    lane = engine.lanes[lane_number]
    lane.clock_s = start_s
    if lane.running == 0 and engine.replicas[lane.replica].waiting == 0:
        return
    for other in range(lane.replica * config.lanes, (lane.replica + 1) * config.lanes):
        if other != lane_number:
            lane.clock_s = max(lane.clock_s, np.nextafter(engine.lanes[other].clock_s, np.inf))


@entry
def assign_range(config_row, requests, replicas, routes, first):
    """Assign the requests from `first` on to the replicas `routes`, in order."""
    for i in range(len(routes)):
        assign(config_row[0], requests, replicas, routes[i], first + i)


@entry
def outstanding(config_row, lanes, replicas, replica, now_s):
    """Count requests a replica has not finished by now; a step under way is not yet finished."""
    count = replicas[replica].assigned - replicas[replica].finished
    each = config_row[0].lanes
    for lane in range(replica * each, (replica + 1) * each):
        if lanes[lane].clock_s > now_s:
            count += lanes[lane].finished_last_step
    return count


@entry
def least_outstanding(config_row, lanes, replicas, now_s):
    """Find the replica with the fewest unfinished requests; the first of equals."""
    best = np.int64(0)
    fewest = outstanding(config_row, lanes, replicas, best, now_s)
    for replica in range(1, len(replicas)):
        count = outstanding(config_row, lanes, replicas, replica, now_s)
        if count < fewest:
            fewest = count
            best = replica
    return best
