"""Who held which GPU when: the phases of a run as a Chrome trace (chrome://tracing, Perfetto)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.sim.state import PHASES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.results.recorded import Recorded
    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run


def gpu_names(scenario: Scenario, spans: dict[str, NDArray[Any]]) -> list[str]:
    """Name the GPU of every span as `Run.phases` does: `replica0`, `draft0`, or `gpu0` if shared.

    A draft GPU is its replica's own, or one of the pool where the placement is shared.
    """
    per_gpu, pool = scenario.cluster.engines_per_gpu, scenario.draft.placement == "shared"
    names = []
    for replica, gpu in zip(spans["replica"].tolist(), spans["gpu"].tolist(), strict=True):
        if gpu > 0:
            names.append(f"draft{gpu - 1 if pool else replica}")
        else:
            names.append(f"replica{replica}" if per_gpu == 1 else f"gpu{replica // per_gpu}")
    return names


def chrome_trace(run: Run | Recorded) -> dict[str, Any]:
    """Lay the spans of a run out as trace events: one track a GPU, microseconds.

    Complete events (`ph` X, `ts`, `dur`) named by their phase, with the replica and its running
    sequences as arguments; metadata events name the tracks (Trace Event Format, Google 2016).
    """
    spans = run.spans
    names = gpu_names(run.scenario, spans)
    tracks = {name: place for place, name in enumerate(sorted(set(names), key=_natural))}
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": run.scenario.name}}
    ]
    events += [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}
        for name, tid in tracks.items()
    ]
    rows = zip(names, *(spans[column].tolist() for column in COLUMNS), strict=True)
    events += [
        {
            "name": PHASES[phase],
            "cat": PHASES[phase],
            "ph": "X",
            "ts": 1e6 * start_s,
            "dur": 1e6 * (end_s - start_s),
            "pid": 0,
            "tid": tracks[name],
            "args": {"replica": replica, "batch": sequences},
        }
        for name, start_s, end_s, phase, replica, sequences in rows
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


COLUMNS = ("start_s", "end_s", "phase", "replica", "sequences")


def _natural(name: str) -> tuple[int, int, str]:
    """Sort targets before drafts and 2 before 10."""
    word = name.rstrip("0123456789")
    return word == "draft", int(name[len(word) :]), word
