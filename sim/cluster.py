"""SimPy's part: time, arrivals, clients, router; between its events the compiled loop runs on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import simpy

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.sim import kernel
from specplan.sim.luck import request_uniforms
from specplan.sim.state import ABORTED
from specplan.sim.workload import ROUTE, ROUTE_AGAIN, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from specplan.sim.ring import Ring
    from specplan.sim.state import Engine, Tables

    Progress = Callable[[int, int], None]

BLIND = ("round_robin", "random")  # routers that do not look at the replicas
CHUNK = 1 << 14
FIRST_STEPS = 1 << 10  # in one call; more when they are quick
BETWEEN_LOOKS_S = 0.05  # for interrupts and progress


class Cluster:
    """Replicas behind a router, fed by open arrivals or by clients in a closed loop.

    `advance` is the compiled loop: `kernel.advance`, or `contention.contend` where GPUs are shared.
    """

    def __init__(  # noqa: PLR0917
        self,
        workload: Workload,
        config_row: Any,
        tables: Tables,
        ring: Ring,
        advance: Callable[..., int],
        progress: Progress | None,
    ) -> None:
        self.workload, self.scenario = workload, workload.scenario
        self.config_row, self.tables = config_row, tables
        self.ring, self.advance = ring, advance
        self.env = simpy.Environment(0.0)  # an integer would compile the loop once more
        self.progress = progress
        self.replicas = self.scenario.cluster.replicas
        self.closed = not self.scenario.workload.arrivals.open
        self.routed_ahead = self.replicas == 1 or self.scenario.cluster.router in BLIND
        self.patience_s = self.scenario.workload.timeout or np.inf
        self.awaited: set[int] = set()  # requests whose clients may still hang up
        self.issued = 0
        self.steps = FIRST_STEPS

    @property
    def engine(self) -> Engine:
        """The replicas' rows; the ring replaces them when it grows."""
        return self.ring.engine

    def run(self) -> None:
        """Let every request arrive and end."""
        self._start()
        while True:
            until_s = self.env.peek()
            self._advance(until_s)
            if self.closed and self._notice_ends():
                continue  # the loop stopped at the first end, perhaps before `until_s`
            if until_s == np.inf:
                return
            self.env.step()

    def _start(self) -> None:
        if self.closed:
            self._start_streams()
        else:
            self.env.process(self._open_arrivals())

    def _advance(self, until_s: float) -> None:
        """Run everything that nobody outside can influence before `until_s`."""
        while True:
            begun = time.perf_counter()
            how = self.advance(
                self.config_row,
                *self.tables,
                *self.engine,
                until_s,
                self.closed,
                self.steps,
            )
            if how == kernel.UNPRICED:
                raise self._unpriced()
            if how == kernel.BROKEN:
                raise RuntimeError("KV blocks do not add up: this is a fault of specplan")
            if how == kernel.STUCK:
                raise RuntimeError("requests wait and none can run: this is a fault of specplan")
            self._report()
            if how == kernel.DONE:
                return
            if time.perf_counter() - begun < BETWEEN_LOOKS_S:
                self.steps *= 2
            elif self.steps > FIRST_STEPS:
                self.steps //= 2

    def _unpriced(self) -> ScenarioError:
        """Say which pass a cost table has no price for."""
        lanes = self.engine.lanes
        lane = lanes[np.flatnonzero(np.isnan(lanes["verify_s"] + lanes["draft_s"]))[0]]
        scenario = self.scenario
        which, block, cost = "target.round", scenario.target.round, scenario.target_round()
        if np.isnan(lane["draft_s"]):
            which, block, cost = "draft.step", scenario.draft.step, scenario.draft_step()
        elif scenario.target.step and lane["tokens"] == lane["decodes"]:
            which, block, cost = "target.step", scenario.target.step, scenario.target_step()
        return ScenarioError(
            Fault(
                f"{block.table} has no price for a pass of {lane['decodes']} sequences and "
                f"{lane['tokens']} positions, which the run needs at {lane['start_s']:.3f} s; it "
                f"reaches {cost.reach()}",
                "measure up to there, lower scheduler.max_num_seqs, or name a rule: `outside: "
                "hold` or `outside: extend`",
                field=which,
            )
        )

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(int(self.engine.replicas["finished"].sum()), self.workload.requests)

    # Open arrivals

    def _open_arrivals(self) -> Generator[simpy.Event, None, None]:
        begin_s = 0.0
        while self.issued < self.workload.requests:
            count = min(CHUNK, self.workload.requests - self.issued)
            made = self.workload.chunk(self.issued, count, begin_s)
            first = self.ring.add(made)
            begin_s = float(made["arrival_s"][-1])
            self.issued += count
            if self.routed_ahead:
                numbers = np.arange(first, first + count)
                self._assign(self._blind_routes(numbers), first)
                yield self.env.timeout(begin_s - self.env.now)
            else:
                for request, arrival_s in enumerate(made["arrival_s"].tolist(), start=first):
                    if arrival_s > self.env.now:
                        yield self.env.timeout(arrival_s - self.env.now)
                    self._send(request)
            self._report()

    def _blind_routes(self, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        """Replicas of requests under a router that does not look at the replicas."""
        if self.scenario.cluster.router == "random":
            luck = request_uniforms(self.scenario.seed, numbers, ROUTE)
            return np.floor(luck * self.replicas).astype(np.int64)
        return numbers % self.replicas

    def _send(self, request: int) -> None:
        """Route one request by the state of the replicas now."""
        if self.replicas == 1:
            chosen = 0
        elif self.scenario.cluster.router == "least_outstanding":
            chosen = kernel.least_outstanding(
                self.config_row, self.engine.lanes, self.engine.replicas, self.env.now
            )
        elif self.scenario.cluster.router == "power_of_two":
            chosen = self._less_loaded_of_two(request)
        else:
            chosen = int(self._blind_routes(np.array([request]))[0])
        self._assign(np.array([chosen]), request)

    def _assign(self, routes: Any, first: int) -> None:
        """Put requests from `first` on into the inboxes of their replicas."""
        engine = self.engine
        kernel.assign_range(self.config_row, engine.requests, engine.replicas, routes, first)

    def _less_loaded_of_two(self, request: int) -> int:
        """Draw two different replicas and take the one with fewer unfinished requests."""
        number, seed = np.array([request]), self.scenario.seed
        one = int(request_uniforms(seed, number, ROUTE)[0] * self.replicas)
        other = int(request_uniforms(seed, number, ROUTE_AGAIN)[0] * (self.replicas - 1))
        other += other >= one
        loads = [
            kernel.outstanding(
                self.config_row, self.engine.lanes, self.engine.replicas, replica, self.env.now
            )
            for replica in (one, other)
        ]
        return one if loads[0] <= loads[1] else other

    # Closed loop

    def _start_streams(self) -> None:
        streams = self.scenario.workload.arrivals.streams or 0
        for _ in range(min(streams, self.workload.requests)):
            self._send_next(0.0)

    def _send_next(self, at_s: float) -> None:
        """Let one client send its next request at a moment, or now where that has passed."""
        self._at(at_s).callbacks.append(self._issue)

    def _at(self, at_s: float, value: int | None = None) -> simpy.Event:
        """Make an event at a moment to the last bit: a moment later a step may have begun."""
        now_s = self.env.now
        pause_s = max(0.0, at_s - now_s)
        if now_s + pause_s > at_s > now_s:
            pause_s = np.nextafter(pause_s, 0.0)
        return self.env.timeout(pause_s, value)

    def _issue(self, _: simpy.Event) -> None:
        if self.issued == self.workload.requests:
            return
        if self.issued == self.ring.newest:
            count = min(CHUNK, self.workload.requests - self.issued)
            made = self.workload.chunk(self.issued, count, 0.0)
            made["replica"] = -1
            self.ring.add(made)
        request = self.issued
        row = self.engine.requests[request & self.ring.mask]
        row["arrival_s"] = self.env.now
        row["deadline_s"] = self.env.now + self.patience_s
        if self.patience_s < np.inf:
            self.awaited.add(request)
            self._at(self.env.now + self.patience_s, request).callbacks.append(self._hang_up)
        self.issued += 1
        self._send(request)

    def _hang_up(self, event: simpy.Event) -> None:
        """Let a client whose request has not ended go on to its next one."""
        if event.value in self.awaited:
            self.awaited.remove(event.value)
            self._send_next(self.env.now + self.scenario.workload.arrivals.think_time)

    def _notice_ends(self) -> int:
        """Start the pauses of clients whose requests have ended since the last look; count those.

        Who hangs up goes on by the clock: the engine may notice earlier or later.
        """
        engine, mask = self.engine, self.ring.mask
        think_s = self.scenario.workload.arrivals.think_time
        count = int(engine.ended[0])
        for request in engine.ended[1 : count + 1].tolist():
            row = engine.requests[request & mask]
            if row["status"] != ABORTED:
                self.awaited.discard(request)
                self._send_next(float(row["finish_s"]) + think_s)
        engine.ended[0] = 0
        engine.replicas["earliest_finish_s"] = np.inf
        self._report()
        return count
