"""Requests in flight, in a ring of rows; who has ended moves on to the columns of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.sim.records import REQUEST_COLUMNS
from specplan.sim.state import REQUEST, UNFINISHED, Engine, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Ring:
    """Rows of the requests from the oldest unended to the newest: row = request & mask."""

    def __init__(self, config_row: Any, engine: Engine) -> None:
        self.config_row, self.engine = config_row, engine
        self.oldest = self.newest = 0
        self._ended: list[dict[str, NDArray[Any]]] = []

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
        self._ended.append(columns)
        self.oldest += len(places)

    def columns(self) -> dict[str, NDArray[Any]]:
        """All requests that have arrived, in order of arrival, one array a column."""
        places = np.arange(self.oldest, self.newest) & self.mask
        arrived = self.engine.requests["replica"][places] >= 0
        self._move_out(places[arrived])
        if not self._ended:
            return {name: np.zeros(0) for name in REQUEST_COLUMNS}
        return {
            name: np.concatenate([part[name] for part in self._ended]) for name in REQUEST_COLUMNS
        }
