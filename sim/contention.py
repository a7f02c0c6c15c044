"""GPUs that several engines want: a shared draft pool, and targets that engines take turns on.

The compiled loop over events where a step is no whole: a lane plans its step, waits for a draft
GPU, pays the transfer, waits for its target GPU, and commits. All lists are served in the order in
which lanes came; at one moment lanes come first, then GPUs become free, so that who comes at that
moment is in the batch that begins then.
"""

import numpy as np

from specplan.sim.compiled import entry, inner, outlined
from specplan.sim.kernel import (
    BROKEN,
    DONE,
    MORE,
    STUCK,
    UNPRICED,
    blocks_add_up,
    unpriced,
)
from specplan.sim.queues import next_start_s
from specplan.sim.state import DRAFT, DRAFT_GPU, SHARED, TARGET_GPU, Engine, Tables
from specplan.sim.step import commit, plan
from specplan.sim.timeline import record, record_target, sample

READY, WAITS_TO_DRAFT, JOINS, DRAFTED, WAITS_FOR_TARGET = range(5)  # stages of a lane


@entry
def contend(
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
    """Run all lanes and shared GPUs over all events before `until_s`; as `kernel.advance`."""
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
        bound_s = until_s
        chosen = np.int64(-1)
        at_s = np.inf
        for number in range(len(lanes)):
            lane = engine.lanes[number]
            if stop_at_finish:
                bound_s = min(bound_s, engine.replicas[lane.replica].earliest_finish_s)
            if lane.stage == READY:
                candidate_s = next_start_s(config, engine, number)
            elif lane.stage == DRAFTED:
                candidate_s = lane.drafted_s
            else:
                continue
            if candidate_s < at_s:
                at_s = candidate_s
                chosen = number
        released = next_release(config, engine)
        if released >= 0 and engine.gpus[released].free_s < at_s:
            if engine.gpus[released].free_s >= bound_s:
                return DONE
            how = serve_next(config, tables, engine, released)
        elif chosen < 0 or at_s >= bound_s:
            return DONE
        elif engine.lanes[chosen].stage == DRAFTED:
            how = want_target(config, tables, engine, chosen, at_s)
        else:
            how = begin(config, tables, engine, chosen, at_s)
        if how != DONE:
            return how
    return MORE


@inner
def begin(config, tables, engine, number, now_s):
    """Plan the next step of a lane and let it ask for the GPU that it needs first."""
    lane = engine.lanes[number]
    if not plan(config, tables, engine, number, now_s):
        lane.clock_s = now_s
        return STUCK if next_start_s(config, engine, number) <= now_s else DONE
    if unpriced(lane):
        return UNPRICED
    if config.placement != SHARED or lane.draft_prefill_s + lane.draft_s <= 0.0:
        return want_target(config, tables, engine, number, now_s)
    lane.stage = WAITS_TO_DRAFT
    lane.asked_s = now_s
    engine.gpus[0].waiting += 1
    if engine.gpus[0].waiting == 1:
        for gpu in range(config.pool_gpus):
            if engine.gpus[gpu].free_s <= now_s:
                draft_batch(config, engine, gpu, now_s)
                break
    return DONE


@inner
def next_release(config, engine):
    """Find the GPU that is the first to become free for somebody who waits; −1: nobody does.

    All draft GPUs have one waiting list, counted at the first.
    """
    first = np.int64(-1)
    for gpu in range(len(engine.gpus)):
        waiting = engine.gpus[0 if gpu < config.pool_gpus else gpu].waiting
        if waiting > 0 and (first < 0 or engine.gpus[gpu].free_s < engine.gpus[first].free_s):
            first = gpu
    return first


@inner
def serve_next(config, tables, engine, gpu):
    """Let a GPU that becomes free begin with who waits for it."""
    now_s = engine.gpus[gpu].free_s
    if gpu < config.pool_gpus:
        draft_batch(config, engine, gpu, now_s)
        return DONE
    engine.gpus[gpu].waiting -= 1
    number = first_in_line(config, engine, WAITS_FOR_TARGET, gpu)
    return run_target(config, tables, engine, number, now_s)


@outlined
def draft_batch(config, engine, gpu, now_s):
    """Draft for as many lanes as a batch may hold, first come first served.

    The batch takes as long as its longest member: drafting is bound by reading the weights.
    """
    lasts_s = 0.0
    sequences = np.int64(0)
    while engine.gpus[0].waiting > 0:
        number = first_in_line(config, engine, WAITS_TO_DRAFT, gpu)
        lane = engine.lanes[number]
        if lasts_s > 0.0 and 0 < config.draft_batch < sequences + lane.drafting:
            break
        drafting_s = lane.draft_prefill_s + lane.draft_s
        record(config, engine, lane, DRAFT_GPU + gpu, DRAFT, now_s, now_s + drafting_s)
        lane.stage = JOINS
        engine.gpus[0].waiting -= 1
        sequences += lane.drafting
        lasts_s = max(lasts_s, drafting_s)
    engine.gpus[gpu].free_s = now_s + lasts_s
    engine.gpus[gpu].busy_s += lasts_s
    for number in range(len(engine.lanes)):
        lane = engine.lanes[number]
        if lane.stage == JOINS:
            lane.stage = DRAFTED
            lane.drafted_s = now_s + lasts_s
            if lane.drafting > 0:
                lane.drafted_s += config.transfer_s


@inner
def first_in_line(config, engine, stage, gpu):
    """Find the lane that has waited longest for a draft GPU, or for this target GPU."""
    first = np.int64(-1)
    for number in range(len(engine.lanes)):
        lane = engine.lanes[number]
        waits = lane.stage == stage and (gpu < config.pool_gpus or target_of(config, lane) == gpu)
        if waits and (first < 0 or lane.asked_s < engine.lanes[first].asked_s):
            first = number
    return first


@inner
def target_of(config, lane):
    """Tell on which of the GPUs that engines take turns on a lane runs."""
    return config.pool_gpus + lane.replica // config.engines_per_gpu


@outlined
def want_target(config, tables, engine, number, now_s):
    """Let a lane run its target pass, or wait while another engine holds the GPU."""
    lane = engine.lanes[number]
    if config.engines_per_gpu > 1:
        gpu = target_of(config, lane)
        if engine.gpus[gpu].waiting > 0 or engine.gpus[gpu].free_s > now_s:
            lane.stage = WAITS_FOR_TARGET
            lane.asked_s = now_s
            engine.gpus[gpu].waiting += 1
            return DONE
    return run_target(config, tables, engine, number, now_s)


@outlined
def run_target(config, tables, engine, number, start_s):
    """Run the target's phases of a planned step from `start_s` on, and commit it at their end.

    Without a pool the draft's phases come first, on the same GPU.
    """
    lane = engine.lanes[number]
    lane.stage = READY
    busy_s = lane.prefill_s + lane.verify_s + lane.overhead_s
    pass_start_s = start_s
    if config.placement != SHARED:
        drafting_s = lane.draft_prefill_s + lane.draft_s
        busy_s += drafting_s
        pass_start_s += drafting_s
        record(config, engine, lane, TARGET_GPU, DRAFT, start_s, pass_start_s)
    record_target(config, engine, lane, pass_start_s)
    if config.engines_per_gpu > 1:
        engine.gpus[target_of(config, lane)].free_s = start_s + busy_s
    commit(config, tables, engine, number, start_s + busy_s)
    sample(config, engine, number)
    if config.check_blocks and not blocks_add_up(config, engine, number):
        return BROKEN
    return DONE
