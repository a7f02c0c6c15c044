"""The main path: a scenario goes in, a run comes out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.sim import setup
from specplan.sim.cluster import Cluster
from specplan.sim.contention import ContendedCluster
from specplan.sim.records import GapHistogram, Run, saturation
from specplan.sim.state import PHASES, PLACEMENTS, SAMPLE, SPAN
from specplan.sim.workload import prepare

if TYPE_CHECKING:
    from specplan.scenarios.schema import Scenario

SPANS = 4096


def simulate(
    scenario: Scenario,
    progress: Callable[[int, int], None] | None = None,
    *,
    check_blocks: bool = False,
) -> Run:
    """Simulate every request of a scenario, from its arrival until its client has all tokens.

    `progress(ended, requests)` is called now and then. On KeyboardInterrupt the run ends with what
    is complete and says so in `interrupted`. Equal scenarios and seeds give equal runs.
    `check_blocks` verifies after every step that no KV block is lost.
    Raises ScenarioError for a trace that cannot be read or that has too few rows, and for a pass
    that a cost table has no price for.

    >>> from specplan.scenarios import load
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
    contended = scenario.cluster.engines_per_gpu > 1 or (
        gamma_max > 0 and scenario.draft.placement == "shared"
    )
    cluster = (ContendedCluster if contended else Cluster)(
        workload, config_row, tables, setup.engine(scenario, config_row, SPANS, prefixes), progress
    )
    interrupted = False
    begun = time.perf_counter()
    try:
        with np.errstate(over="ignore"):  # the luck's hash wraps around on purpose
            cluster.run()
    except KeyboardInterrupt:
        interrupted = True
    return _run(scenario, cluster, interrupted=interrupted, loop_s=time.perf_counter() - begun)


def _run(scenario: Scenario, cluster: Cluster, *, interrupted: bool, loop_s: float) -> Run:
    engine, replicas = cluster.engine, cluster.engine.replicas
    requests = cluster.ring.columns()
    ended = requests["finish_s"][np.isfinite(requests["finish_s"])]
    begin_s = float(requests["arrival_s"][0]) if len(requests["arrival_s"]) else 0.0
    duration_s = float(ended.max()) - begin_s if len(ended) else 0.0
    total = {name: replicas[name].sum() for name in replicas.dtype.names}
    slots = scenario.scheduler.max_num_seqs * scenario.cluster.replicas
    return Run(
        scenario=scenario,
        requests=requests,
        phases=_phases(scenario, cluster, duration_s),
        itl=GapHistogram(
            engine.gaps[0].astype(np.int64),
            engine.gaps[1],
            float(total["gaps_squared"]),
            float(replicas["gap_min_s"].min()),
            float(replicas["gap_max_s"].max()),
        ),
        samples=_columns(engine.samples, replicas["samples"], SAMPLE.names),
        spans=_columns(engine.spans, replicas["spans"], SPAN.names),
        batch_time_s=engine.batch_time_s,
        duration_s=duration_s,
        engine_steps=int(total["engine_steps"]),
        rounds=int(total["rounds"]),
        drafting_rounds=int(total["drafting_rounds"]),
        drafted_tokens=int(total["drafted_tokens"]),
        accepted_tokens=int(total["accepted_tokens"]),
        wasted_draft_tokens=int(
            total["drafted_tokens"] - total["accepted_tokens"] + total["discarded_tokens"]
        ),
        wasted_draft_s=float(total["wasted_draft_s"]),
        committed_tokens=int(total["committed_tokens"]),
        preemptions=int(total["preemptions"]),
        saturated=not cluster.closed and saturation(requests, slots),
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
    if isinstance(cluster, ContendedCluster) and cluster.pool is not None:
        each_s = cluster.pool.busy_s / scenario.draft.gpus
        for number in range(scenario.draft.gpus):
            gpus[f"draft{number}"] = dict.fromkeys(PHASES, 0.0) | {"draft": each_s}
    for phases in gpus.values():
        phases["idle"] = max(0.0, duration_s - sum(phases.values()))
    return gpus


def _columns(rows: Any, counts: Any, names: tuple[str, ...] | None) -> dict[str, Any]:
    """The used part of every replica's rows, one array a column."""
    return {
        name: np.concatenate([rows[name][i, :count] for i, count in enumerate(counts)])
        for name in names or ()
    }
