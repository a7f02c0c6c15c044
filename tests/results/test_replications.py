"""Replications: intervals that cover, results that do not depend on the workers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results import metrics
from specplan.results.replications import (
    Replicated,
    Replications,
    aggregated,
    difference,
    replicated,
)
from specplan.scenarios.load import load
from specplan.sim.replications import replicate, seeds_from
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.scenarios.schema import Scenario

QUEUE = ["workload={arrivals: {rate: 0.05/s}, requests: 400, output_tokens: 128}"]


def in_this_process(scenarios: list[Scenario], count: int) -> Replicated:
    """The same as `replicated`, on a thread: no second interpreter to start."""
    seeds = seeds_from(scenarios[0].seed, count)
    with ThreadPoolExecutor(1) as executor:
        done = {(w, s): f for w, s, f in replicate(scenarios, seeds, metrics.summary, executor)}
    places = range(len(scenarios))
    return Replicated(tuple(seeds), tuple(tuple(done[w, s] for s in seeds) for w in places), False)


def test_each_replication_is_the_run_of_its_seed_for_any_workers() -> None:
    scenario = load("toy-20ms", [*QUEUE, "seed=3"])
    two = replicated([scenario], Replications(3, 2))
    assert two.seeds == (3, 4, 5)
    alone = [
        metrics.summary(simulate(scenario.model_copy(update={"seed": seed}))) for seed in (3, 4, 5)
    ]
    assert [dict(row) for row in two.rows[0]] == alone
    assert aggregated(two) == aggregated(in_this_process([scenario], 3))


def test_means_and_students_t_by_hand() -> None:
    rows = tuple(
        {
            "mean_ttft_ms": value, "completed": 10, "saturated": False, "saturated_reason": None,
            "mean_ttft_ms_ci95": [0.0, 1.0], "utilisation": {"gpu": {"idle": value}}, "seed": 1,
        }
        for value in (1.0, 2.0, 3.0)
    )  # fmt: skip
    figures = aggregated(Replicated((1, 2, 3), (rows,), False))
    assert figures["mean_ttft_ms"] == 2.0
    # t(2, .975) = 4.302653, s = 1, n = 3
    assert figures["mean_ttft_ms_ci95"] == pytest.approx([2 - 2.484138, 2 + 2.484138], abs=1e-5)
    assert figures["completed"] == 10
    assert figures["utilisation"]["gpu"]["idle"] == 2.0
    assert figures["replications"]["figures"]["mean_ttft_ms"] == [1.0, 2.0, 3.0]


def test_the_interval_covers_pollaczek_khinchine() -> None:
    # M/D/1 at ρ = 0.5: 100 ms a request, no speculation; mean wait ρ S / (2 (1 − ρ)) = 50 ms.
    sets = [
        "speculation.method=none",
        "workload={arrivals: {rate: 5/s}, requests: 4000, output_tokens: 1}",
        "workload.warmup={requests: 400}",
    ]
    found = in_this_process([load("toy-20ms", sets)], 12)
    low, high = aggregated(found)["mean_ttft_ms_ci95"]
    assert low < 150 < high
    assert high - low < 10


def test_common_luck_makes_the_difference_sharper_than_either() -> None:
    plain = load("toy-20ms", [*QUEUE, "speculation.method=none"])
    fast = load("toy-20ms", QUEUE)
    both = in_this_process([plain, fast], 6)
    paired = difference(both, "mean_e2el_ms")
    wide = [np.std(both.values(which, "mean_e2el_ms"), ddof=1) for which in (0, 1)]
    assert paired.mean < 0
    assert paired.high < 0
    each = np.array(both.values(1, "mean_e2el_ms")) - np.array(both.values(0, "mean_e2el_ms"))
    assert paired.mean == pytest.approx(each.mean())
    assert np.std(each, ddof=1) < np.hypot(float(wide[0]), float(wide[1]))


def test_on_the_command_line(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    sets = ("--set", "workload.requests=30")
    said = specplan_cli(
        "simulate", "toy-20ms", *sets, "--replications", "2", "--json", "-o", tmp_path / "runs"
    )
    assert said.code == 0
    assert said.json["replications"]["count"] == 2
    written = json.loads((tmp_path / "runs" / "summary.json").read_text())
    assert written["mean_tpot_ms"] == said.json["mean_tpot_ms"]
    assert (tmp_path / "runs" / "replications.parquet").is_file()
    refused = specplan_cli("simulate", "toy-20ms", "--replications", "2", "--no-requests")
    assert refused.code == 2
    assert "about one run" in refused.err


def test_comparison_on_several_seeds(specplan_cli: Callable[..., Any]) -> None:
    sets = ("--set", "workload.requests=30")
    said = specplan_cli(
        "compare", "toy-20ms", "--without-speculation", "--replications", "3", "--json", *sets
    )
    tpot = said.json["differences"]["mean_tpot_ms"]
    assert said.json["seeds"] == [1, 2, 3]
    assert tpot["a"] == pytest.approx(100)
    assert tpot["difference_ci95"][1] < 0
    assert tpot["verdict"] == "better"
