"""The main path: a scenario goes in, a run comes out."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.sim import setup
from specplan.sim.cluster import Cluster
from specplan.sim.compiled import announce
from specplan.sim.contention import contend
from specplan.sim.interrupts import shielding
from specplan.sim.kernel import advance
from specplan.sim.records import GapHistogram, Run, saturation
from specplan.sim.ring import Kept, Ring
from specplan.sim.state import PHASES, PLACEMENTS, SAMPLE, SPAN
from specplan.sim.tally import Cut, Tally, warmup_cut
from specplan.sim.workload import prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario

REQUEST_BYTES = 250  # of a kept request, with the copies that figures are computed from
SPANS = 4096


def simulate(
    scenario: Scenario,
    progress: Callable[[int, int], None] | None = None,
    *,
    keep_requests: bool = True,
    timeline_from_s: float = 0.0,
    check_blocks: bool = False,
) -> Run:
    """Simulate every request of a scenario, from its arrival until its client has all tokens.

    `progress(ended, requests)` is called now and then. On KeyboardInterrupt the run ends with what
    is complete and says so in `interrupted`. Equal scenarios and seeds give equal runs.
    Without `keep_requests` a run of any length takes the same memory: `Run.requests` is empty, the
    requests are added up in `Run.tally`, and their quantiles are those of a sketch.
    `Run.spans`, the timeline, begins at `timeline_from_s`. `check_blocks` verifies after every step
    that no KV block is lost.
    Raises ScenarioError for a trace that cannot be read or that has too few rows, for a pass that a
    cost table has no price for, and for `warmup: mser` without `keep_requests`.

    >>> from specplan.scenarios.load import load
    >>> run = simulate(load("toy-20ms", ["workload.requests=10"]))
    >>> len(run.requests["rounds"]), run.requests["output_tokens"].sum()
    (10, np.int64(1280))
    """
    gamma_max = int(setup.gamma_bounds(scenario)[1])
    laws = setup.laws(scenario, gamma_max)
    workload = prepare(scenario, laws)
    prefixes = workload.prefixes
    config_row = setup.config(scenario, prefixes)
    config_row["check_blocks"] = check_blocks
    tables = setup.tables(scenario, laws, gamma_max, prefixes)
    cut = warmup_cut(scenario, workload.requests)
    config_row["warmup_requests"], config_row["warmup_s"] = cut.requests, cut.time_s
    config_row["spans_from_s"] = timeline_from_s
    if keep_requests:
        _check_memory(workload.requests)
    sink = Kept() if keep_requests else _streamed(scenario, workload.requests, cut)
    engine = setup.engine(scenario, config_row, SPANS, prefixes)
    loop = contend if len(engine.gpus) else advance
    announce(loop)
    interrupted = False
    with shielding() as shield:
        ring = Ring(config_row, engine, sink, shield)
        cluster = Cluster(workload, config_row, tables, ring, loop, progress)
        begun = time.perf_counter()
        try:
            with np.errstate(over="ignore"):  # the luck's hash wraps around on purpose
                cluster.run()
        except KeyboardInterrupt:
            interrupted = True
        loop_s = time.perf_counter() - begun
        ring.finish()
    return _run(scenario, cluster, interrupted=interrupted, loop_s=loop_s)


def _check_memory(requests: int) -> None:
    """Refuse to keep more requests than the machine has memory for."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return
    if requests * REQUEST_BYTES > memory:
        needed, there = f"{requests * REQUEST_BYTES / 1e9:,.0f}", f"{memory / 1e9:,.0f}"
        wrong = f"{requests:,} requests would take {needed} GB and this machine has {there}"
        right = "fewer, or --no-requests, which keeps the figures and not the requests"
        raise ScenarioError(Fault(wrong, right, field="workload.requests"))


def _streamed(scenario: Scenario, requests: int, cut: Cut) -> Tally:
    """Give a sink that adds requests up and forgets them."""
    if scenario.workload.warmup is not None and scenario.workload.warmup.mser:
        raise ScenarioError(
            Fault(
                "is `mser`, which looks at all requests, and they are not kept",
                "`{requests: 10000}`, `{time: 60 s}`, `{fraction: 0.1}`, or keep the requests",
                field="workload.warmup",
            )
        )
    return Tally(scenario, requests, cut)


def _run(scenario: Scenario, cluster: Cluster, *, interrupted: bool, loop_s: float) -> Run:
    engine, replicas = cluster.engine, cluster.engine.replicas
    ring, sink = cluster.ring, cluster.ring.sink
    duration_s = max(0.0, ring.last_finish_s - ring.first_arrival_s) if ring.oldest else 0.0
    samples = _columns(engine.samples, replicas["samples"], SAMPLE.names)
    grew = saturation(samples, ring.first_arrival_s, ring.last_arrival_s, ring.oldest)
    total = {name: replicas[name].sum() for name in replicas.dtype.names}
    return Run(
        scenario=scenario,
        requests=sink.columns() if isinstance(sink, Kept) else {},
        tally=sink if isinstance(sink, Tally) else None,
        phases=_phases(scenario, cluster, duration_s),
        itl=GapHistogram(
            engine.gaps[0].astype(np.int64),
            engine.gaps[1],
            float(total["gaps_squared"]),
            float(replicas["gap_min_s"].min()),
            float(replicas["gap_max_s"].max()),
        ),
        samples=samples,
        spans=_columns(engine.spans, replicas["spans"], SPAN.names),
        batch_time_s=engine.batch_time_s,
        duration_s=duration_s,
        engine_steps=int(total["engine_steps"]),
        rounds=int(total["rounds"]),
        kept_rounds=engine.kept_rounds,
        second_tokens=engine.second_tokens,
        drafted_tokens=int(total["drafted_tokens"]),
        accepted_tokens=int(total["accepted_tokens"]),
        wasted_draft_tokens=int(
            total["drafted_tokens"] - total["accepted_tokens"] + total["discarded_tokens"]
        ),
        wasted_draft_s=float(total["wasted_draft_s"]),
        preemptions=int(total["preemptions"]),
        saturated=not cluster.closed and grew,
        interrupted=interrupted,
        loop_s=loop_s,
    )


def _phases(scenario: Scenario, cluster: Cluster, duration_s: float) -> dict[str, dict[str, float]]:
    """Seconds of each GPU in each phase; what is left of the run is idle."""
    gpus: dict[str, dict[str, float]] = {}
    placement = PLACEMENTS[int(cluster.config_row["placement"][0])]
    per_gpu = scenario.cluster.engines_per_gpu
    for number, rep in enumerate(cluster.engine.replicas):
        name = f"replica{number}" if per_gpu == 1 else f"gpu{number // per_gpu}"
        target = gpus.setdefault(name, dict.fromkeys(PHASES, 0.0))
        drafting = target
        if placement in ("dedicated", "parallel"):
            drafting = gpus.setdefault(f"draft{number}", dict.fromkeys(PHASES, 0.0))
        for phase in PHASES:
            target[phase] += 0.0 if phase == "draft" else float(rep[f"{phase}_s"])
        if placement != "shared":
            drafting["prefill"] += float(rep["draft_prefill_s"])
            drafting["draft"] += float(rep["draft_s"])
    pool = cluster.engine.gpus[: int(cluster.config_row["pool_gpus"][0])]
    for number, gpu in enumerate(pool):
        gpus[f"draft{number}"] = dict.fromkeys(PHASES, 0.0) | {"draft": float(gpu["busy_s"])}
    for phases in gpus.values():
        phases["idle"] = max(0.0, duration_s - sum(phases.values()))
    return gpus


def _columns(rows: Any, counts: Any, names: tuple[str, ...] | None) -> dict[str, Any]:
    """Cut the used part of every replica's rows into one array a column."""
    return {
        name: np.concatenate([rows[name][i, :count] for i, count in enumerate(counts)])
        for name in names or ()
    }
