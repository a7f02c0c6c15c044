"""What a workload offers one replica: mean lengths, and arrivals or streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specplan.scenarios.importers.traces import Trace
    from specplan.scenarios.schema import Scenario


@dataclass(frozen=True)
class Offered:
    """Means over requests, and the load of one replica.

    - prompt_tokens, output_tokens: mean lengths
    - rate: arrivals per second at one replica; NaN for a closed loop, inf for all at once
    - streams: clients of one replica in a closed loop (a mean, so not always whole); else NaN
    - notes: what was averaged
    """

    prompt_tokens: float
    output_tokens: float
    rate: float
    streams: float
    notes: tuple[str, ...]


def offered(scenario: Scenario) -> Offered:
    """Average a workload over its requests and spread it over the replicas.

    Raises ScenarioError where a file it names cannot be read.

    >>> from specplan.scenarios.load import load
    >>> offered(load("toy-20ms", ["workload.arrivals.streams=4", "cluster.replicas=2"])).streams
    2.0
    """
    arrivals, replicas = scenario.workload.arrivals, scenario.cluster.replicas
    trace, lengths = files(scenario)
    source = lengths or trace
    notes = []
    rate = math.nan
    match arrivals.kind:
        case "rate":
            rate = arrivals.rate or math.inf
            if arrivals.burstiness != 1:
                notes.append("bursts of arrivals are averaged out")
        case "interval":
            rate = 1 / (arrivals.interval or math.inf)
        case "on_off" if arrivals.on_off is not None:
            cycle = arrivals.on_off
            rate = cycle.rate * cycle.on / (cycle.on + cycle.off)
            notes.append("on and off periods are averaged to one rate")
        case "trace" if trace is not None:
            lasts_s = float(trace.arrival_s[-1]) * arrivals.time_scale
            rate = (len(trace.arrival_s) - 1) / lasts_s if lasts_s else math.inf
            notes.append("the trace is averaged to one rate and its mean lengths")
            if scenario.prompt_tokens.kind != "trace" and scenario.output_tokens.kind != "trace":
                notes.append("lengths are stated: those of the trace are not used")
    streams = arrivals.streams / replicas if arrivals.streams is not None else math.nan
    prompt = _mean(scenario, "prompt_tokens", source)
    output = _mean(scenario, "output_tokens", source)
    return Offered(prompt, output, rate / replicas, streams, tuple(notes))


def files(scenario: Scenario) -> tuple[Trace | None, Trace | None]:
    """Read the trace and the file of lengths that a workload names."""
    from specplan.scenarios.importers.traces import read_lengths, read_trace

    workload = scenario.workload
    trace = read_trace(workload.arrivals.trace) if workload.arrivals.trace else None
    return trace, read_lengths(workload.lengths) if workload.lengths else None


def _mean(scenario: Scenario, field: str, source: Trace | None) -> float:
    common = getattr(scenario, field)
    classes = scenario.workload.classes
    stated = [(kind.weight, getattr(kind, field) or common) for kind in classes] or [(1.0, common)]
    total = 0.0
    for weight, lengths in stated:
        mean = getattr(source, field).mean() if lengths.kind == "trace" else lengths.mean()
        total += weight * float(mean)
    return total / sum(weight for weight, _ in stated)
