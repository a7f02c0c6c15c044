"""Sweeps: one call equals many, order and executor do not matter, common luck, ledgers."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.scenarios import closed_form
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, override
from specplan.sim.design import parse_design
from specplan.sim.ledger import Ledger, numbers_of
from specplan.sim.sweep import FIGURES, predict_grid, simulate_grid

if TYPE_CHECKING:
    from pathlib import Path

    from specplan.sim.records import Run

TOY = load("toy-20ms", ["workload.requests=20", "workload.output_tokens=16"])


def rounds(run: Run) -> dict[str, Any]:
    return {"rounds": run.rounds, "text": "left out", "nothing": None}


class Backwards(Executor):
    """Runs what it is given only when a result is asked for, last come first served."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count += 1
        done: Future[Any] = Future()
        done.set_result(function(*args, **kwargs))
        return done


@pytest.mark.parametrize(
    "vary",
    [
        ["draft.step=5ms..50ms:4", "speculation.acceptance.alpha=0.1..0.9:3"],
        ["draft.step=5ms,50ms,20ms; target.round=120ms,100ms,110ms", "speculation.gamma=0..3"],
        ["scheduler.max_num_seqs=1,2", "speculation.overhead=0ms,1ms"],
        ["workload.arrivals={streams: 1},{rate: 0.01/s}", "draft.step=5ms,6ms"],
    ],
)
def test_the_grid_is_what_every_point_predicts(vary: list[str]) -> None:
    design = parse_design(vary)
    grid = predict_grid(TOY, design)
    for row, settings in enumerate(design.points()):
        one = closed_form.predict(override(TOY, settings))
        for name in FIGURES:
            expected = float(getattr(one, name))
            assert grid.columns[name][row] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_neither_executor_nor_order_matters() -> None:
    design = parse_design(["speculation.gamma=0..2", "seed=1..3"])
    with ThreadPoolExecutor(2) as threads:
        one = simulate_grid(TOY, design, rounds, threads)
    other = simulate_grid(TOY, design, rounds, Backwards())
    assert list(one.columns) == ["speculation.gamma", "seed", "rounds", "nothing"]
    for name in one.columns:
        np.testing.assert_array_equal(one.columns[name], other.columns[name])


def test_more_acceptance_never_needs_more_rounds() -> None:
    """All points share their luck (docs/design.md, Luck)."""
    design = parse_design(["speculation.acceptance.alpha=0..1:11"])
    grid = simulate_grid(TOY, design, rounds, Backwards())
    assert np.all(np.diff(grid.figure("rounds")) <= 0)


def test_a_ledger_saves_the_work(tmp_path: Path) -> None:
    small, large = parse_design(["seed=1..3"]), parse_design(["seed=1..5"])
    executor = Backwards()
    with Ledger(tmp_path / "ledger", TOY) as ledger:
        simulate_grid(TOY, small, rounds, executor, ledger)
    assert executor.count == 3
    with Ledger(tmp_path / "ledger", TOY) as ledger:
        again = simulate_grid(TOY, large, rounds, executor, ledger)
    assert executor.count == 5
    fresh = simulate_grid(TOY, large, rounds, executor)
    np.testing.assert_array_equal(again.figure("rounds"), fresh.figure("rounds"))


def test_a_ledger_of_another_scenario_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", TOY).close()
    with pytest.raises(ScenarioError, match=r"holds results of toy-20ms \(hash"):
        Ledger(tmp_path / "ledger", override(TOY, ["draft.step=21 ms"]))


def test_a_ledger_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger(tmp_path / "ledger", TOY).close()
    monkeypatch.setattr("specplan.sim.ledger.version", lambda _: "99.0")
    with pytest.raises(ScenarioError, match=r"specplan 99\.0"):
        Ledger(tmp_path / "ledger", TOY)


def test_a_file_that_is_no_ledger_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    file.write_text("a shopping list, long enough to be no empty database" * 20)
    with pytest.raises(ScenarioError, match="is no ledger"):
        Ledger(file, TOY)
    assert file.read_text().startswith("a shopping list")


def test_a_bad_point_is_found_before_the_first_run() -> None:
    executor = Backwards()
    with pytest.raises(ScenarioError, match=r"--vary speculation\.gamma=-1"):
        simulate_grid(TOY, parse_design(["speculation.gamma=1,-1"]), rounds, executor)
    assert executor.count == 0


@pytest.mark.parametrize("gammas", ["0..1000000", "0..5000", "5000,1,2"])
def test_the_ends_of_a_field_are_tried_before_any_work(gammas: str) -> None:
    looked: list[int] = []
    design = parse_design([f"speculation.gamma={gammas}", "draft.step=1ms..2ms:10"])
    with pytest.raises(ScenarioError, match=r"gamma: is (1000000|5000) \(1000 or less\)"):
        predict_grid(TOY, design, lambda done, _: looked.append(done))
    assert not looked


def test_a_sweep_over_deep_drafts_is_the_asymptote() -> None:
    """One stream, α .5, T = V = 100 ms, d = 20 ms: τ·T/R = (2 − .5^γ)/(1 + .2 γ) (MODEL.md §3)."""
    grid = predict_grid(TOY, parse_design(["speculation.gamma=0,1,2,64,200"]))
    gamma = np.array([0, 1, 2, 64, 200])
    expected = (2 - 0.5**gamma) / (1 + 0.2 * gamma)
    assert grid.columns["speedup"] == pytest.approx(expected, rel=1e-12)


def test_what_is_no_number_is_left_out() -> None:
    assert list(numbers_of({"a": 2, "b": "text", "c": None, "d": {}})) == ["a", "c"]
