"""A sweep in 80 columns: no name and no number is cut, and trouble is shown where it occurs."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from specplan.results.sweep.answer import Means, compute
from specplan.results.sweep.text import grid_text
from specplan.results.tables import fitted
from specplan.scenarios.load import load
from specplan.sim.design import parse_design


def shown(*vary: str, by: str = "closed-form", sets: tuple[str, ...] = ()) -> str:
    grid = compute(load("toy-20ms", sets), parse_design(vary), Means(by), None)
    return printed(grid_text(grid))


def printed(what: object) -> str:
    written = io.StringIO()
    Console(file=written, width=80).print(what)
    return written.getvalue()


@pytest.mark.parametrize(
    "vary",
    [
        ["speculation.acceptance.alpha=0..1:3"],
        ["speculation.acceptance.alpha=10%..90%:3"],
        ["speculation.acceptance.alpha=0..1:3; speculation.overhead=1ms..46.67ms:3"],
        ["speculation.acceptance.alpha=.1,.2; speculation.overhead=1ms,2ms; "
         "scheduler.max_num_batched_tokens=2048,4096; workload.output_tokens=100,200"],
        ["speculation.acceptance={conditional: [0.81, 0.72, 0.63, 0.54]},"
         "{conditional: [0.81, 0.72, 0.63, 0.55]}"],
        ["speculation.acceptance.alpha=0..1:12", "speculation.overhead=1ms..123.456ms:12"],
        ["speculation.acceptance.alpha=0..1:3", "speculation.overhead=1ms,2ms",
         "scheduler.max_num_batched_tokens=2048,4096"],
    ],
)  # fmt: skip
def test_nothing_is_cut(vary: list[str]) -> None:
    out = shown(*vary)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_values_keep_their_units() -> None:
    """α 1, γ 2: 140 ms for 3 tokens is 46.67 ms (MODEL.md §3)."""
    assert "46.67 ms" in shown("speculation.acceptance.alpha=0..1:3")


def test_columns_that_do_not_fit_are_named() -> None:
    header = [f"some_long_figure_{i}" for i in range(12)]
    out = printed(fitted(header, [["1,234.5 ms"] * 12], keep=1))
    left_out = out.partition("not shown:")[2]
    assert left_out
    assert all(name in "".join(out.split()) for name in header[-2:])
    assert out.count("1,234.5 ms") == 12 - left_out.count("some_long_figure")


def test_saturation_and_preemptions_are_shown_where_they_occur() -> None:
    few = ("workload.requests=200", "workload.output_tokens=32")
    calm = shown("workload.arrivals.rate=0.01/s,0.02/s", by="simulate", sets=few)
    assert "saturated" not in calm
    assert "preemptions" not in calm
    busy = shown("workload.arrivals.rate=0.01/s,9/s", by="simulate", sets=few)
    rows = [line.split() for line in busy.splitlines() if "/s " in line]
    assert "saturated" in busy
    assert [("yes" in row, "no" in row) for row in rows[-2:]] == [(False, True), (True, False)]
    tight = ("scheduler.max_num_seqs=8", "kv_cache={tokens: 160, block_tokens: 16}", *few)
    assert "preemptions" in shown("workload.arrivals.streams=1,8", by="simulate", sets=tight)
