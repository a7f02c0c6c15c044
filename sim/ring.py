"""Requests in flight, in a ring of rows; who has ended moves on to the columns of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from specplan.sim.records import REQUEST_COLUMNS
from specplan.sim.state import REQUEST, UNFINISHED, Engine, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.sim.interrupts import Shield


class Sink(Protocol):
    """Where requests go that have ended, in order of arrival."""

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        """Take in more of them, as columns of `sim.records.REQUEST_COLUMNS`."""


class Ring:
    """Rows of the requests from the oldest unended to the newest: row = request & mask."""

    def __init__(self, config_row: Any, engine: Engine, sink: Sink, shield: Shield) -> None:
        self.config_row, self.engine = config_row, engine
        self.sink, self.shield = sink, shield
        self.oldest = self.newest = 0
        self.first_arrival_s = self.last_arrival_s = self.last_finish_s = 0.0

    @property
    def mask(self) -> int:
        """Bits of a request's number that say in which row it is."""
        return len(self.engine.requests) - 1

    def add(self, made: Any) -> int:
        """Append rows of new requests, growing the ring if needed; returns the first's number."""
        self.flush()
        room = len(self.engine.requests)
        if self.newest + len(made) - self.oldest > room:
            self._grow(self.newest + len(made) - self.oldest)
        first = self.newest
        places = np.arange(first, first + len(made)) & self.mask
        self.engine.requests[places] = made
        self.newest += len(made)
        return first

    def _grow(self, needed: int) -> None:
        room = 1 << (needed - 1).bit_length()
        grown = rows(room, REQUEST)
        alive = np.arange(self.oldest, self.newest)
        grown[alive & (room - 1)] = self.engine.requests[alive & self.mask]
        self.config_row["mask"] = room - 1
        self.engine = self.engine._replace(requests=grown)

    def flush(self) -> None:
        """Move everybody up to the oldest who has not ended out of the ring."""
        places = np.arange(self.oldest, self.newest) & self.mask
        status = self.engine.requests["status"][places]
        alive = np.flatnonzero(status == UNFINISHED)
        self._move_out(places[: alive[0] if len(alive) else len(places)])

    def _move_out(self, places: NDArray[np.int64]) -> None:
        if len(places) == 0:
            return
        gone = self.engine.requests[places]
        columns = {name: gone[name].copy() for name in REQUEST_COLUMNS}
        columns["output_tokens"] = gone["output_tokens"] - gone["left"]
        with self.shield:
            self.sink.add(columns)
            if self.oldest == 0:
                self.first_arrival_s = float(columns["arrival_s"][0])
            self.last_arrival_s = float(columns["arrival_s"][-1])
            last_s = columns["finish_s"].max(initial=0.0, where=columns["status"] != UNFINISHED)
            self.last_finish_s = max(self.last_finish_s, float(last_s))
            self.oldest += len(places)

    def finish(self) -> None:
        """Move everybody who has arrived by the last step out of the ring, done or not."""
        places = np.arange(self.oldest, self.newest) & self.mask
        requests = self.engine.requests
        now_s = self.engine.lanes["clock_s"].max()
        arrived = (requests["replica"][places] >= 0) & (requests["arrival_s"][places] <= now_s)
        arrived |= requests["status"][places] != UNFINISHED
        self._move_out(places[arrived])


class Kept:
    """A sink that keeps the rows of all requests."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in REQUEST_COLUMNS}

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        """Keep more rows."""
        for name, parts in self._parts.items():
            parts.append(columns[name])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Hand over all rows in order of arrival, one array a column; nothing is kept twice."""
        made = {}
        for name in REQUEST_COLUMNS:
            parts = self._parts.pop(name)
            made[name] = np.concatenate(parts) if parts else np.zeros(0)
        return made
