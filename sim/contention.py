"""GPUs that several engines want: a shared draft pool, and targets that engines take turns on.

Here every phase of a step is a SimPy event: a lane plans its step, waits for a draft GPU, pays the
transfer, waits for its target GPU, and commits.
"""

from __future__ import annotations

from collections import deque
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy
from simpy.events import EventPriority

from specplan.sim import kernel
from specplan.sim.cluster import Cluster
from specplan.sim.state import DRAFT, DRAFT_GPU, SHARED

if TYPE_CHECKING:
    from collections.abc import Generator

    from specplan.sim.cluster import Progress
    from specplan.sim.ring import Ring
    from specplan.sim.state import Tables
    from specplan.sim.workload import Workload


LAST = EventPriority(2)  # after everything else of the same moment


class Released(simpy.Event):
    """The end of a GPU's work, after all arrivals of the same moment: these join the next step."""

    def __init__(
        self, env: simpy.Environment, gpu: int, duration_s: float, batch: list[simpy.Event]
    ) -> None:
        super().__init__(env)
        self._ok, self._value = True, self
        self.gpu, self.batch, self.begun_s = gpu, batch, env.now
        env.schedule(self, LAST, duration_s)


class Gpus:
    """Equal GPUs with one waiting list, first come first served; a draft pool serves batches."""

    def __init__(self, env: simpy.Environment, count: int, most_sequences: float) -> None:
        self.env, self.most_sequences = env, most_sequences
        self.free = list(range(count))[::-1]
        self.waiting: deque[tuple[simpy.Event, float, int]] = deque()
        self.busy_s = 0.0

    def serve(self, duration_s: float, sequences: int) -> simpy.Event:
        """Ask for a GPU for so long; the event, with a `Released`, is its end."""
        if self.free:
            return self._run(duration_s, [])
        done = self.env.event()
        self.waiting.append((done, duration_s, sequences))
        return done

    def _run(self, duration_s: float, batch: list[simpy.Event]) -> simpy.Event:
        self.busy_s += duration_s
        over = Released(self.env, self.free.pop(), duration_s, batch)
        over.callbacks.append(self._end)
        return over

    def _end(self, over: Released) -> None:
        """Tell a batch that it is done, and begin the next with as many as it may hold.

        A batch takes as long as its longest member: drafting is bound by reading the weights.
        """
        self.free.append(over.gpu)
        for done in over.batch:
            done.succeed(over)
        if not self.waiting:
            return
        done, duration_s, sequences = self.waiting.popleft()
        batch = [done]
        while self.waiting and sequences + self.waiting[0][2] <= self.most_sequences:
            done, other_s, more = self.waiting.popleft()
            duration_s = max(duration_s, other_s)
            sequences += more
            batch.append(done)
        self._run(duration_s, batch)


class ContendedCluster(Cluster):
    """A cluster whose lanes queue for GPUs that others hold."""

    def __init__(
        self,
        workload: Workload,
        config_row: Any,
        tables: Tables,
        ring: Ring,
        progress: Progress | None,
    ) -> None:
        super().__init__(workload, config_row, tables, ring, progress)
        self.routed_ahead = False  # a lane that idles is woken by its next request
        draft, per_gpu = self.scenario.draft, self.scenario.cluster.engines_per_gpu
        shared = int(config_row["placement"][0]) == SHARED
        most = np.inf if draft.max_batch is None else draft.max_batch
        self.pool = Gpus(self.env, draft.gpus, most) if shared else None
        # A target that one engine has to itself needs no waiting list.
        gpus = -(-self.replicas // per_gpu) if per_gpu > 1 else 0
        self.targets = [Gpus(self.env, 1, 0) for _ in range(gpus)]
        self.noting = [True] * self.replicas  # while there is room in the timeline
        self.idle: dict[int, simpy.Event] = {}
        for lane in range(len(self.engine.lanes)):
            self.env.process(self._lane(lane))

    def run(self) -> None:
        """Let every request arrive and end; the steps are the lanes' own processes."""
        self._start()
        self.env.run()

    def _send(self, request: int) -> None:
        super()._send(request)
        replica = int(self.engine.requests["replica"][request & self.ring.mask])
        waiting = self.idle.pop(replica, None)
        if waiting is not None:
            waiting.succeed()

    def _lane(self, number: int) -> Generator[simpy.Event, Any, None]:
        env, config_row, tables, pool = self.env, self.config_row, self.tables, self.pool
        replica = int(self.engine.lanes["replica"][number])
        per_gpu = self.scenario.cluster.engines_per_gpu
        target = self.targets[replica // per_gpu] if per_gpu > 1 else None
        transfer_s = float(config_row["transfer_s"][0])
        planned = False
        engine = self.ring.engine
        arrays = (config_row, *tables, *engine)
        while True:
            if engine is not self.ring.engine:  # it has grown
                engine = self.ring.engine
                arrays = (config_row, *tables, *engine)
            drafting_s, target_s, drafting = kernel.turn(
                *arrays, number, env.now, planned, self.closed
            )
            if isnan(target_s):
                raise self._unpriced()
            planned = target_s >= 0
            if self.closed and engine.ended[0]:
                self._notice_ends()
                if not planned:
                    yield env.timeout(0)  # the next requests of those clients come first
                    continue
            if not planned:
                self.idle[replica] = env.event()
                yield self.idle[replica]
                continue
            if pool is None:
                target_s += drafting_s
            elif drafting_s > 0:
                work = yield pool.serve(drafting_s, drafting)
                if self.noting[replica]:
                    self._note_draft(number, work, drafting_s)
                if transfer_s > 0 and drafting:
                    yield env.timeout(transfer_s)
            if target is None:
                yield Released(env, 0, target_s, [])
            else:
                yield target.serve(target_s, 1)

    def _note_draft(self, number: int, work: Released, drafting_s: float) -> None:
        """Note which GPU of the pool drafted for a lane, while there is room in the timeline."""
        engine = self.engine
        lane = engine.lanes[number]
        replica = int(lane["replica"])
        place, end_s = int(engine.replicas["spans"][replica]), work.begun_s + drafting_s
        self.noting[replica] = place < engine.spans.shape[1]
        if self.noting[replica] and end_s > self.config_row["spans_from_s"][0]:
            span = engine.spans[replica][place]
            span["start_s"], span["end_s"], span["replica"] = work.begun_s, end_s, replica
            span["gpu"], span["phase"] = DRAFT_GPU + work.gpu, DRAFT
            span["sequences"] = lane["running"]
            engine.replicas["spans"][replica] += 1
