"""How many tokens to draft: γ for a step or for one request's round.

`fixed`, `by_batch` (vLLM's `num_speculative_tokens_per_batch_size`) and `off_above` (the classic
switch-off threshold) read one table, the latter two with hysteresis and patience.
`hf_heuristic` is Hugging Face's schedule: two more after a round in which everything was accepted,
one less otherwise, carried from request to request; `hf_transient` starts each request afresh
(transformers, generation/candidate_generator.py). `goodput` takes the γ with the most expected
committed tokens per second for the present batch, by the cost model of the run.
"""

import numpy as np

from specplan.sim.compiled import inner, outlined
from specplan.sim.pricing import DRAFT_STEP, NOTHING, ROUND, STEP, price
from specplan.sim.state import COLOCATED, PARALLEL

BY_BATCH, HF_HEURISTIC, HF_TRANSIENT, GOODPUT = range(4)
UNDECIDED = -1  # no γ is held yet


@inner
def step_gamma(config, tables, lane, decodes, context_tokens):
    """Choose γ for a step of so many decoding sequences; per-request schedules give their bound."""
    if config.policy == BY_BATCH:
        if config.hysteresis == 0 and config.patience == 1:
            return tables.gamma_by_batch[min(decodes, config.max_num_seqs)]
        return patient_gamma(config, tables, lane, decodes)
    if config.policy == GOODPUT:
        if lane.hold_steps > 0:
            lane.hold_steps -= 1
            return lane.gamma_held
        lane.hold_steps = config.hold_steps - 1
        lane.gamma_held = best_gamma(config, tables, decodes, context_tokens)
        return lane.gamma_held
    return config.gamma_max


@outlined
def patient_gamma(config, tables, lane, decodes):
    """Read the table at a batch that follows the true one upwards at once and downwards late.

    Between the two is a play of `hysteresis` sequences (the play operator of control theory, so
    that each limit N is a trigger: up above N, down at N − hysteresis). Another γ is taken up only
    after `patience` steps in a row that ask for it. A step in which nobody decodes asks for none.
    """
    if decodes > 0:
        lane.batch_held = min(max(lane.batch_held, decodes), decodes + config.hysteresis)
        asked = tables.gamma_by_batch[min(lane.batch_held, config.max_num_seqs)]
        lane.steps_asked = 0 if asked == lane.gamma_held else lane.steps_asked + 1
        if lane.steps_asked >= config.patience or lane.gamma_held == UNDECIDED:
            lane.gamma_held = asked
            lane.steps_asked = 0
    elif lane.gamma_held == UNDECIDED:
        return tables.gamma_by_batch[0]
    return lane.gamma_held


@outlined
def best_gamma(config, tables, decodes, context_tokens):
    """Find the γ of the highest expected committed tokens per second at this batch.

    A share h of the rounds proposes (n-gram hits; the plain mean over laws), the others are plain
    steps: o + h·(draft + V) + (1 − h)·T, as the closed form prices a mean round.
    """
    best = np.int64(0)
    best_rate = -1.0
    n = max(decodes, np.int64(1))
    hit = tables.unconditional[:, 0].mean()
    plain_s = config.enabled_factor * price(tables, STEP, n, n, context_tokens, NOTHING)
    for gamma in range(config.gamma_min, config.gamma_max + 1):
        width = tables.nodes[gamma] + 1
        if gamma == 0:
            round_s = plain_s
        else:
            draft_s = draft_seconds(config, tables, n, gamma, context_tokens)
            verify_s = price(tables, ROUND, n, n * width, context_tokens, NOTHING)
            drafted_s = config.enabled_factor * verify_s
            if config.placement == PARALLEL:
                drafted_s = max(drafted_s, draft_s)
            else:
                drafted_s += draft_s
            round_s = config.overhead_s + hit * drafted_s + (1.0 - hit) * plain_s
            if config.placement != COLOCATED:
                round_s += config.transfer_s
        rate = tables.tokens_by_gamma[gamma] / round_s
        if rate > best_rate:
            best_rate = rate
            best = gamma
    return best


@outlined
def draft_seconds(config, tables, sequences, gamma, context_tokens):
    """Time to draft down to depth γ for so many sequences that all go that deep.

    A chain costs one step a depth; a tree's step takes the nodes of the level above as its input;
    a one-pass draft costs one step over all its positions. The fixed cost of drafting comes once.
    """
    if gamma == 0 or sequences == 0:
        return 0.0
    call_s = config.draft_call_s
    if config.one_pass:
        drafted = sequences * gamma
        return call_s + price(tables, DRAFT_STEP, sequences, drafted, context_tokens, NOTHING)
    if tables.nodes[gamma] == gamma:
        one_s = price(tables, DRAFT_STEP, sequences, sequences, context_tokens, NOTHING)
        return call_s + gamma * one_s
    total_s = call_s
    inputs = np.int64(1)
    for depth in range(1, gamma + 1):
        total_s += price(tables, DRAFT_STEP, sequences, sequences * inputs, context_tokens, NOTHING)
        inputs = tables.nodes[depth] - tables.nodes[depth - 1]
    return total_s


@inner
def request_gamma(config, lane, row, gamma):
    """Bound a request's draft depth by its own schedule, where it has one."""
    if config.policy in (HF_HEURISTIC, HF_TRANSIENT):
        own = row.gamma
        if own < 0:
            own = config.gamma if config.policy == HF_TRANSIENT else lane.gamma_learned
        return min(gamma, own)
    return gamma


@inner
def learn(config, lane, row):
    """Adapt a request's γ after its round: +2 when all was accepted, −1 otherwise."""
    if config.policy in (HF_HEURISTIC, HF_TRANSIENT) and row.proposed > 0:
        kept_all = row.accepted == row.proposed
        change = config.gamma_increase if kept_all else -config.gamma_decrease
        row.gamma = min(config.gamma_max, max(config.gamma_min, row.gamma + change))
        lane.gamma_learned = row.gamma
