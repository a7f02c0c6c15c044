"""Plan against the queue whose capacity is known: one sequence at a time is M/G/1."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.models.queueing import pollaczek_khinchine_wait_s
from specplan.models.rounds import generation_s_moments
from specplan.results.planning.loads import Planner
from specplan.results.planning.objectives import parse_objective
from specplan.scenarios.load import load
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from pathlib import Path

SETS = (
    "scheduler.max_num_seqs=1",
    "workload.output_tokens=8",
    "workload.arrivals={rate: 1/s}",
)
LIMIT_S = 0.5
TOLERANCE = 0.1


def known_capacity(sets: tuple[str, ...]) -> float:
    """λ at which W = λ E[S²]/(2(1 − λE[S])) reaches the limit: 2w/(E[S²] + 2w E[S])."""
    scenario = load("toy-20ms", sets)
    at = Priced(scenario, 0.0)
    mean, second = generation_s_moments(
        at.acceptance, scenario.gamma, 8, at.costs(1.0, scenario.gamma)
    )
    rate = 2 * LIMIT_S / (float(second) + 2 * LIMIT_S * float(mean))
    assert pollaczek_khinchine_wait_s(rate, mean, second) == pytest.approx(LIMIT_S)
    return rate


def test_the_largest_rate_is_that_of_pollaczek_and_khinchine() -> None:
    """Within the plan's own tolerance in every one of 20 seeds."""
    true = known_capacity(SETS)
    objective = parse_objective(f"queue mean < {LIMIT_S} s")
    wrong_by = []
    with ThreadPoolExecutor(1) as executor:
        for seed in range(20):
            planner = Planner.on(executor, [objective], requests=2000, tolerance=TOLERANCE)
            found = planner.capacity(load("toy-20ms", (*SETS, f"seed={1 + 1000 * seed}")))
            assert found.resolved
            wrong_by.append(found.estimate / true - 1)
    assert np.abs(wrong_by).max() <= TOLERANCE


def test_a_trace_has_a_capacity_like_any_load(tmp_path: Path) -> None:
    """One request of 100 ms every second, for one server: all wait less than 0.5 s until 10/s.

    γ = 0 and equal steps: no replication differs from another but in rounding.
    """
    path = tmp_path / "even.csv"
    rows = "".join(f"2024-01-01 00:{s // 60:02}:{s % 60:02}.0,1,2\n" for s in range(300))
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}")
    sets = (
        *SETS[:1],
        f"workload.arrivals={{trace: {path}}}",
        "workload.prompt_tokens=trace",
        "workload.output_tokens=trace",
        "speculation.method=none",
    )
    with ThreadPoolExecutor(1) as executor:
        planner = Planner.on(executor, [parse_objective("queue mean < 0.5 s")], requests=300)
        found = planner.capacity(load("toy-20ms", sets))
    low, high = found.interval
    assert 9 < low <= high < 12  # above 10/s the queue grows by 1 − 10/rate of each gap
    assert all((look.means >= 0).all() for look in found.looks)
