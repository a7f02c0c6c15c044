"""What drafting for a running batch takes where its sequences do not all draft alike."""

import numpy as np

from specplan.sim.compiled import outlined
from specplan.sim.pricing import DRAFT_STEP, NOTHING, price


@outlined
def ragged_draft_seconds(config, tables, engine, lane_number, sequences, deepest, context):
    """Draft time when sequences stop at different depths: a step serves those still going."""
    lane = engine.lanes[lane_number]
    tables.by_depth[: deepest + 1] = 0
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        if row.chunk == 0 and row.proposed > 0:
            tables.by_depth[row.proposed] += 1
    return config.draft_call_s + seconds_by_depth(tables, sequences, deepest, context)


@outlined
def draft_seconds_in_turns(config, tables, engine, lane_number, sequences, context):
    """Draft time where a draft GPU serves fewer sequences at a time than there are to draft for.

    `draft_batch` of them at a time, in order of admission, each turn as deep as its deepest.
    """
    lane = engine.lanes[lane_number]
    total_s = config.draft_call_s
    turn = np.int64(0)
    deepest = np.int64(0)
    left = lane.drafting
    tables.by_depth[:] = 0
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        if row.chunk > 0 or row.proposed <= 0:
            continue
        tables.by_depth[row.proposed] += 1
        deepest = max(deepest, row.proposed)
        turn += 1
        left -= 1
        if turn < config.draft_batch and left > 0:
            continue
        if config.one_pass:
            seen = context * turn // sequences
            total_s += price(tables, DRAFT_STEP, turn, turn * deepest, seen, NOTHING)
        else:
            total_s += seconds_by_depth(tables, sequences, deepest, context)
        tables.by_depth[:] = 0
        turn = np.int64(0)
        deepest = np.int64(0)
    return total_s


@outlined
def seconds_by_depth(tables, sequences, deepest, context):
    """Draft steps for the sequences counted in `by_depth`; a step serves those still going."""
    total_s = 0.0
    going = np.int64(0)
    for depth in range(deepest, 0, -1):
        going += tables.by_depth[depth]
        inputs = np.int64(1) if depth == 1 else tables.nodes[depth - 1] - tables.nodes[depth - 2]
        seen = context * going // sequences
        total_s += price(tables, DRAFT_STEP, going, going * inputs, seen, NOTHING)
    return total_s
