"""What is noted of a run as it goes: who held which GPU, and batch, queue and KV use over time."""

from specplan.sim.compiled import inner, outlined
from specplan.sim.state import OVERHEAD, PREFILL, TARGET_GPU, VERIFY


@inner
def record_target(config, engine, lane, start_s):
    """Note the target GPU's phases for the timeline."""
    verify_s = start_s + lane.prefill_s
    overhead_s = verify_s + lane.verify_s
    record(config, engine, lane, TARGET_GPU, PREFILL, start_s, verify_s)
    record(config, engine, lane, TARGET_GPU, VERIFY, verify_s, overhead_s)
    record(config, engine, lane, TARGET_GPU, OVERHEAD, overhead_s, overhead_s + lane.overhead_s)


@outlined
def record(config, engine, lane, gpu, phase, start_s, end_s):
    """Note who held which GPU, while there is room in the timeline."""
    rep = engine.replicas[lane.replica]
    wanted = end_s > start_s and end_s > config.spans_from_s
    if wanted and rep.spans < engine.spans.shape[1]:
        span = engine.spans[lane.replica, rep.spans]
        span.start_s = start_s
        span.end_s = end_s
        span.replica = lane.replica
        span.gpu = gpu
        span.phase = phase
        span.sequences = lane.running
        rep.spans += 1


@inner
def sample(config, engine, lane_number):
    """Note batch, queue and KV use now and then; when the room is full, keep every second."""
    lane = engine.lanes[lane_number]
    rep = engine.replicas[lane.replica]
    if rep.engine_steps % rep.sample_every != 0:
        return
    room = engine.samples.shape[1]
    if rep.samples == room:
        for i in range(room // 2):
            engine.samples[lane.replica, i] = engine.samples[lane.replica, 2 * i + 1]
        rep.samples = room // 2
        rep.sample_every *= 2
        if rep.engine_steps % rep.sample_every != 0:
            return
    kept = engine.samples[lane.replica, rep.samples]
    kept.time_s = lane.clock_s
    running = 0
    for other in range(lane.replica * config.lanes, (lane.replica + 1) * config.lanes):
        running += engine.lanes[other].running
    kept.running = running
    kept.waiting = rep.waiting
    kept.kv_blocks = config.blocks - rep.free_blocks - rep.idle_blocks
    kept.replica = lane.replica
    rep.samples += 1
