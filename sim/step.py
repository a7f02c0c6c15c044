"""One engine step of one lane: plan it (who, how deep, how long), and commit it when it is over."""

import numpy as np

from specplan.sim.compiled import inner
from specplan.sim.drafting import draft_seconds_in_turns, ragged_draft_seconds
from specplan.sim.luck import ROUND, STOP, uniform
from specplan.sim.policy import draft_seconds, learn
from specplan.sim.prefix import publish
from specplan.sim.pricing import DRAFT_PREFILL, DRAFT_STEP, NOTHING, STEP, TARGET_PREFILL, price
from specplan.sim.pricing import ROUND as TARGET_ROUND
from specplan.sim.queues import close, deliver, drop_hung_up
from specplan.sim.scheduler import free_blocks, schedule
from specplan.sim.state import ABORTED, COMPLETED, PARALLEL

GAP_SHORTEST_S = 1e-7
GAP_BINS = 27_631  # up to 1e5 s
GAPS_PER_E = 1000.0  # bins are 0.1 % wide


@inner
def plan(config, tables, engine, lane_number, now_s):
    """Choose what a lane does next and price each phase; False when nothing can be done now."""
    lane = engine.lanes[lane_number]
    lane.start_s = now_s
    deliver(config, engine, lane.replica, now_s)
    drop_hung_up(config, engine, lane.replica, now_s)
    gamma = schedule(config, tables, engine, lane_number)
    sequences = np.int64(0)
    tokens = np.int64(0)
    proposed = np.int64(0)
    context = np.int64(0)
    prompts = np.int64(0)
    prompt_tokens = np.int64(0)
    deepest = np.int64(0)
    shallowest = config.gamma_max + 1
    drafting = np.int64(0)
    behind = np.int64(0)
    for i in range(lane.running):
        row = engine.requests[engine.running[lane_number, i] & config.mask]
        if row.chunk > 0:
            prompts += 1
            prompt_tokens += row.chunk
        elif row.proposed >= 0:
            draw(config, tables, row)
            g = row.proposed
            sequences += 1
            tokens += tables.nodes[g] + 1
            proposed += tables.nodes[g]
            context += row.prompt_tokens + row.output_tokens - row.left
            deepest = max(deepest, g)
            shallowest = min(shallowest, g)
            if g > 0:
                drafting += 1
                behind += 1 - row.caught_up
    lane.decodes = sequences
    lane.drafting = drafting
    lane.tokens = tokens
    lane.proposed_tokens = proposed
    lane.overhead_s = config.overhead_s if sequences > 0 and gamma > 0 else 0.0
    lane.draft_s = 0.0
    if drafting > 0:
        if 0 < config.draft_batch < drafting:
            lane.draft_s = draft_seconds_in_turns(
                config, tables, engine, lane_number, sequences, context
            )
        elif shallowest == deepest or config.one_pass:
            seen = context * drafting // sequences
            lane.draft_s = draft_seconds(config, tables, drafting, deepest, seen)
        else:
            lane.draft_s = ragged_draft_seconds(
                config, tables, engine, lane_number, sequences, deepest, context
            )
        if config.extra_draft_step and behind > 0:
            at_once = behind if config.draft_batch == 0 else min(behind, config.draft_batch)
            turns = (behind + at_once - 1) // at_once
            seen = context * at_once // sequences
            lane.draft_s += turns * price(tables, DRAFT_STEP, at_once, at_once, seen, NOTHING)
    lane.verify_s = 0.0
    if sequences > 0:
        which = STEP if tokens == sequences else TARGET_ROUND
        lane.verify_s = price(tables, which, sequences, tokens, context, NOTHING)
    lane.prefill_s = 0.0
    lane.draft_prefill_s = 0.0
    if prompts > 0:
        if config.joint_prefill:
            whole_s = price(
                tables, TARGET_ROUND, sequences + prompts, tokens, context, prompt_tokens
            )
            lane.prefill_s = whole_s - lane.verify_s
        else:
            lane.prefill_s = price(tables, TARGET_PREFILL, prompts, NOTHING, NOTHING, prompt_tokens)
        if config.gamma_max > 0:
            lane.draft_prefill_s = price(
                tables, DRAFT_PREFILL, prompts, NOTHING, NOTHING, prompt_tokens
            )
    lane.verify_s *= config.enabled_factor
    return sequences + prompts > 0


@inner
def draw(config, tables, row):
    """Decide a round by its luck: whether it drafts, how deep, and how much of it is kept."""
    g = row.proposed
    row.accepted = 0
    if g <= 0:
        return
    hit = tables.unconditional[row.law, 0]
    if len(tables.recorded) > 0:
        begin = np.int64(row.key >> np.uint64(11))
        kept = min(g, tables.recorded[(begin + row.rounds) % len(tables.recorded)])
    else:
        u = uniform(row.key, row.rounds, ROUND)
        if u >= hit:
            row.proposed = 0
            return
        if config.lengths_vary:
            g = proposal(tables, hit, g, u)
            row.proposed = g
        kept = 0
        if row.alpha >= 0.0:
            bar = hit * row.alpha
            while kept < g and u < bar:
                kept += 1
                bar *= row.alpha
        else:
            while kept < g and u < tables.unconditional[row.law, kept + 1]:
                kept += 1
    if config.stop_if_accepted > 0.0 or config.stop_if_rejected > 0.0:
        u = uniform(row.key, row.rounds, STOP)
        going = 1.0
        depth = 0
        while depth < g:
            depth += 1
            stop = config.stop_if_accepted if depth <= kept else config.stop_if_rejected
            going *= 1.0 - stop
            if u >= going:
                break
        row.proposed = depth
        kept = min(kept, depth)
    row.accepted = kept


@inner
def proposal(tables, hit, gamma, u):
    """Length of a proposal, by the round's own number: never shorter than what it keeps."""
    length = np.int64(0)
    while length < gamma and u < hit * tables.proposing[length + 1]:
        length += 1
    return length


@inner
def commit(config, tables, engine, lane_number, end_s):
    """Apply a planned step at its end: tokens to clients, finished requests out, blocks back."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    engine.batch_time_s[min(lane.running, config.max_num_seqs)] += end_s - lane.start_s
    rep.engine_steps += 1
    lane.finished_last_step = 0
    wasted = 0
    kept = 0
    for i in range(lane.running):
        request = engine.running[lane_number, i]
        row = engine.requests[request & config.mask]
        tokens = np.int64(0)
        if row.chunk > 0:
            row.to_prefill -= row.chunk
            if config.prefix_tokens > 0:
                publish(config, tables, engine, lane.replica, row)
            if row.to_prefill == 0:
                tokens = np.int64(1)
        elif row.deadline_s <= end_s:
            wasted += throw_round_away(tables, rep, row)
        elif row.proposed >= 0:
            tokens = row.accepted + 1
            wasted += finish_round(config, tables, engine, lane, row)
        if tokens > 0 and row.deadline_s > end_s:
            hand_over(config, engine, rep, row, tokens, end_s)
        if row.left == 0 or row.deadline_s <= end_s:
            free_blocks(config, tables, engine, lane.replica, row)
            if row.left == 0:
                close(engine, rep, row, COMPLETED, end_s)
            else:
                close(engine, rep, row, ABORTED, row.deadline_s)
            lane.finished_last_step += 1
        else:
            engine.running[lane_number, kept] = request
            kept += 1
    lane.running = kept
    if lane.proposed_tokens > 0:
        rep.wasted_draft_s += lane.draft_s * min(1.0, wasted / lane.proposed_tokens)
    rep.prefill_s += lane.prefill_s
    rep.draft_prefill_s += lane.draft_prefill_s
    rep.draft_s += lane.draft_s
    rep.verify_s += lane.verify_s
    rep.overhead_s += lane.overhead_s
    lane.clock_s = end_s


@inner
def finish_round(config, tables, engine, lane, row):
    """Count a round of one request; returns its drafted tokens that were for nothing."""
    rep = engine.replicas[lane.replica]
    drafted = tables.nodes[row.proposed]
    row.rounds += 1
    row.drafted_tokens += drafted
    row.accepted_tokens += row.accepted
    rep.rounds += 1
    rep.drafted_tokens += drafted
    rep.accepted_tokens += row.accepted
    wasted = drafted - row.accepted
    if row.proposed > 0:
        engine.kept_rounds[row.accepted] += 1
        row.caught_up = 1 if row.accepted < row.proposed else 0
        if config.placement == PARALLEL and row.accepted < row.proposed:
            rep.discarded_tokens += drafted
    learn(config, lane, row)
    return wasted


@inner
def throw_round_away(tables, rep, row):
    """Count the drafted tokens of a round whose client hung up before its end."""
    drafted = tables.nodes[max(row.proposed, np.int64(0))]
    rep.discarded_tokens += drafted
    return drafted


@inner
def hand_over(config, engine, rep, row, tokens, end_s):
    """Send a chunk of tokens to the client and note its gap to the one before."""
    if np.isnan(row.first_token_s):
        row.first_token_s = end_s
    elif row.request >= config.warmup_requests and row.arrival_s >= config.warmup_s:
        gap_s = end_s - row.last_chunk_s
        rep.gaps += 1
        rep.gaps_s += gap_s
        rep.gaps_squared += gap_s * gap_s
        rep.gap_min_s = min(rep.gap_min_s, gap_s)
        rep.gap_max_s = max(rep.gap_max_s, gap_s)
        place = 0
        if gap_s > GAP_SHORTEST_S:
            place = min(GAP_BINS - 1, int(np.log(gap_s / GAP_SHORTEST_S) * GAPS_PER_E))
        engine.gaps[0, place] += 1.0
        engine.gaps[1, place] += gap_s
    row.last_chunk_s = end_s
    row.left -= tokens
    if end_s < len(engine.second_tokens):
        engine.second_tokens[int(end_s)] += tokens
