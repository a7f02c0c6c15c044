"""The simulation of the live page: one at a time, in a thread, with progress and cancel."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from specplan.results.recorded import Recorded
    from specplan.scenarios.schema import Scenario

_numbers = count(1)


@dataclass(eq=False)
class Job:
    """One simulation: where it stands, and what came out.

    `state` is running, finished, cancelled or failed; `says` explains a failure.
    """

    scenario: Scenario
    sets: tuple[str, ...]
    number: int = field(default_factory=lambda: next(_numbers))
    done: int = 0
    total: int = 0
    state: str = "running"
    says: str = ""
    result: Recorded | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Run in a thread of its own, which ends with the program."""
        threading.Thread(target=self._run, name=f"simulation {self.number}", daemon=True).start()

    def cancel(self) -> None:
        """Ask the run to end; it does at its next report."""
        self._stop.set()

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if self._stop.is_set():
            raise KeyboardInterrupt  # `simulate` ends a run in good order on it

    def _run(self) -> None:
        from specplan.results import gap
        from specplan.results.recorded import record
        from specplan.sim.simulate import simulate

        try:
            run = simulate(self.scenario, self._progress)
            if run.interrupted or self._stop.is_set():
                self.state = "cancelled"
                return
            recorded = record(run)
            explained = gap.explain(run, recorded.figures).json
            self.result = replace(recorded, figures={**recorded.figures, "closed_form": explained})
            self.state = "finished"
        except KeyboardInterrupt:
            self.state = "cancelled"
        except ScenarioError as error:
            self.state, self.says = "failed", str(error)
        except Exception as error:  # the page has to say it: a thread has nobody else to tell
            self.state, self.says = "failed", f"{type(error).__name__}: {error}"


class Jobs:
    """The present simulation; a new one takes the place of the old."""

    def __init__(self) -> None:
        self._current: Job | None = None
        self._lock = threading.Lock()

    def start(self, scenario: Scenario, sets: tuple[str, ...]) -> Job:
        """Cancel what runs and start another."""
        job = Job(scenario, sets)
        with self._lock:
            if self._current is not None:
                self._current.cancel()
            self._current = job
        job.start()
        return job

    def find(self, number: int | None) -> Job | None:
        """Return the present job if it has this number; None where another took its place."""
        job = self._current
        return job if job is not None and job.number == number else None
