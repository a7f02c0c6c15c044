"""Prefix caching: prompt blocks that a replica keeps, named by the hash ids of a trace.

A hash id stands for a block of a prompt together with everything before it (Mooncake, FAST 2025:
blocks of 512 tokens). A block becomes known once its last position is computed. Requests that run
share it; one that nobody runs with stays until its KV blocks are needed, the least recently used
first, and of one prompt the last block first (as vLLM's V1 block pool). Equal blocks computed twice
at one time are merged (as SGLang's radix tree). Outputs have no ids in traces and are not kept.
"""

import numpy as np

from specplan.sim.compiled import inner, outlined
from specplan.sim.state import NOBODY

ABSENT = np.int64(-1)


@inner
def prefix_place(tables, row):
    """Find where a request's hash ids begin, and how many there are."""
    which = row.request % (len(tables.prefix_starts) - 1)
    begin = tables.prefix_starts[which]
    return begin, tables.prefix_starts[which + 1] - begin


@inner
def prefix_hit(config, tables, engine, replica, row):
    """Count the leading blocks of a prompt that a replica keeps, and how many of them idle.

    At least one position is left to compute: its output is the first token.
    """
    if config.prefix_tokens == 0:
        return np.int64(0), np.int64(0)
    begin, count = prefix_place(tables, row)
    most = min(count, (row.prompt_tokens - 1) // config.prefix_tokens)
    hit = np.int64(0)
    idle = np.int64(0)
    while hit < most:
        holders = engine.cached[replica, tables.prefix_ids[begin + hit]].holders
        if holders == ABSENT:
            break
        idle += 1 if holders == 0 else 0
        hit += 1
    return hit, idle


@inner
def share(config, tables, engine, replica, row, hit):
    """Let a request run with the leading blocks it found."""
    begin, _ = prefix_place(tables, row)
    for place in range(begin, begin + hit):
        hold(config, engine, replica, tables.prefix_ids[place])
    row.shared = hit


@inner
def hold(config, engine, replica, block):
    """Add a holder to a block that is kept; it no longer idles."""
    if engine.cached[replica, block].holders == 0:
        unlink(engine, replica, block)
        engine.replicas[replica].idle_blocks -= config.prefix_blocks
    engine.cached[replica, block].holders += 1


@inner
def publish(config, tables, engine, replica, row):
    """Hand the prompt blocks that a request has computed in full over to the cache."""
    begin, count = prefix_place(tables, row)
    computed = row.prompt_tokens + row.output_tokens - row.left - row.to_prefill
    full = min(count, min(computed, row.prompt_tokens) // config.prefix_tokens)
    rep = engine.replicas[replica]
    while row.shared < full:
        block = tables.prefix_ids[begin + row.shared]
        if engine.cached[replica, block].holders == ABSENT:
            engine.cached[replica, block].holders = 1
            rep.cached_blocks += config.prefix_blocks
        else:
            hold(config, engine, replica, block)
            rep.free_blocks += config.prefix_blocks
        row.blocks -= config.prefix_blocks
        row.shared += 1


@inner
def release(config, tables, engine, replica, row):
    """Let go of a request's shared blocks; the last of the prompt will be evicted first."""
    begin, _ = prefix_place(tables, row)
    rep = engine.replicas[replica]
    while row.shared > 0:
        row.shared -= 1
        block = tables.prefix_ids[begin + row.shared]
        kept = engine.cached[replica, block]
        kept.holders -= 1
        if kept.holders == 0:
            kept.older = rep.newest_idle
            kept.newer = NOBODY
            if rep.newest_idle == NOBODY:
                rep.oldest_idle = block
            else:
                engine.cached[replica, rep.newest_idle].newer = block
            rep.newest_idle = block
            rep.idle_blocks += config.prefix_blocks


@outlined
def evict(config, engine, replica, blocks):
    """Forget idle blocks, the least recently used first, until so many KV blocks are free."""
    rep = engine.replicas[replica]
    while rep.free_blocks < blocks:
        block = rep.oldest_idle
        unlink(engine, replica, block)
        engine.cached[replica, block].holders = ABSENT
        rep.idle_blocks -= config.prefix_blocks
        rep.cached_blocks -= config.prefix_blocks
        rep.free_blocks += config.prefix_blocks


@inner
def unlink(engine, replica, block):
    """Take a block out of the list of those that idle."""
    rep = engine.replicas[replica]
    kept = engine.cached[replica, block]
    if kept.older == NOBODY:
        rep.oldest_idle = kept.newer
    else:
        engine.cached[replica, kept.older].newer = kept.newer
    if kept.newer == NOBODY:
        rep.newest_idle = kept.older
    else:
        engine.cached[replica, kept.newer].older = kept.older
