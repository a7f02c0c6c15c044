"""The busiest second of a run, and the most requests in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from specplan.sim.records import Run


def peaks(run: Run) -> dict[str, float | int | None]:
    """Most output tokens in a second of simulated time, and most requests in flight at once.

    As vLLM's keys, with two differences: seconds begin with the run, and all tokens of a chunk are
    counted, where vLLM counts a chunk as one. Requests that failed are not in flight. None where
    the run did not keep what it takes.
    """
    figures: dict[str, float | int | None] = {
        "max_output_tokens_per_s": None,
        "max_concurrent_requests": None,
    }
    if run.duration_s < len(run.second_tokens):
        figures["max_output_tokens_per_s"] = float(run.second_tokens.max(initial=0))
    if run.requests:
        done = run.requests["status"] == 0
        begun, over = (np.sort(run.requests[key][done]) for key in ("arrival_s", "finish_s"))
        # Who leaves at the moment of an arrival has left: intervals [arrival, finish).
        in_flight = np.arange(1, len(begun) + 1) - np.searchsorted(over, begun, side="right")
        figures["max_concurrent_requests"] = int(in_flight.max(initial=0))
    return figures
