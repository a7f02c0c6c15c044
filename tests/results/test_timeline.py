"""The timeline against what each placement must look like, and its Chrome trace."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.timeline import chrome_trace, gpu_names
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.sim.records import Run

# γ = 2 and nothing accepted: rounds of 2 · 20 ms of draft and 100 ms of verification, one token.
ONE_STREAM = ["speculation.acceptance.alpha=0", "workload.requests=1", "workload.output_tokens=4"]


def run(*sets: str, **more: Any) -> Run:
    return simulate(load("toy-20ms", [*ONE_STREAM, *sets]), **more)


def tracks(made: Run) -> dict[str, list[tuple[str, float, float]]]:
    """(phase, start ms, end ms) of each GPU, in order of time."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    names = {}
    for event in chrome_trace(made)["traceEvents"]:
        if event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        if event["ph"] == "X":
            start = event["ts"] / 1e3
            row = (event["name"], round(start, 6), round(start + event["dur"] / 1e3, 6))
            found.setdefault(names[event["tid"]], []).append(row)
    return {name: sorted(rows, key=lambda row: row[1]) for name, rows in found.items()}


def test_colocated_phases_follow_each_other_on_one_gpu() -> None:
    # Lengths left 4, 3, 2, 1: depths 2, 2, 1, 0.
    assert tracks(run()) == {
        "replica0": [
            ("draft", 0, 40),
            ("verify", 40, 140),
            ("draft", 140, 180),
            ("verify", 180, 280),
            ("draft", 280, 300),
            ("verify", 300, 400),
            ("verify", 400, 500),
        ]
    }


def test_dedicated_the_target_waits_for_draft_and_transfer() -> None:
    made = run("draft={step: 20 ms, placement: dedicated, transfer: 5 ms}")
    assert tracks(made) == {
        "replica0": [
            ("verify", 45, 145),
            ("verify", 190, 290),
            ("verify", 315, 415),
            ("verify", 415, 515),
        ],
        "draft0": [("draft", 0, 40), ("draft", 145, 185), ("draft", 290, 310)],
    }


def test_parallel_both_go_on_at_once() -> None:
    made = run("draft={step: 20 ms, placement: parallel}")
    found = tracks(made)
    assert found["draft0"][:2] == [("draft", 0, 40), ("draft", 100, 140)]
    assert found["replica0"][:2] == [("verify", 0, 100), ("verify", 100, 200)]


def test_shared_pool_serves_one_after_the_other_on_its_own_tracks() -> None:
    made = run(
        "draft={step: 20 ms, placement: shared, transfer: 0 ms, gpus: 1, max_batch: 1}",
        "workload.requests=2",
        "workload.arrivals={rate: inf}",
        "cluster={replicas: 2, router: round_robin}",
    )
    found = tracks(made)
    assert found["draft0"][:2] == [("draft", 0, 40), ("draft", 40, 80)]
    assert found["replica0"][0] == ("verify", 40, 140)
    assert found["replica1"][0] == ("verify", 80, 180)


def test_two_draft_gpus_have_two_tracks() -> None:
    made = run(
        "draft={step: 20 ms, placement: shared, transfer: 0 ms, gpus: 2, max_batch: 1}",
        "workload.requests=2",
        "workload.arrivals={rate: inf}",
        "cluster={replicas: 2, router: round_robin}",
    )
    found = tracks(made)
    assert found["draft0"][0] == found["draft1"][0] == ("draft", 0, 40)


def test_engines_that_share_a_gpu_take_turns_on_one_track() -> None:
    made = run(
        "workload.requests=2",
        "workload.arrivals={rate: inf}",
        "cluster={replicas: 2, router: round_robin, engines_per_gpu: 2}",
    )
    (name, rows), *others = tracks(made).items()
    assert (name, others) == ("gpu0", [])
    assert rows[:4] == [
        ("draft", 0, 40),
        ("verify", 40, 140),
        ("draft", 140, 180),
        ("verify", 180, 280),
    ]


@pytest.mark.parametrize(
    "draft",
    [
        "{step: 20 ms}",
        "{step: 20 ms, placement: dedicated, transfer: 1 ms}",
        "{step: 20 ms, placement: dedicated, transfer: 1 ms, ping_pong: true}",
        "{step: 20 ms, placement: parallel}",
        "{step: 20 ms, placement: shared, transfer: 1 ms, max_batch: 1}",
    ],
)
def test_no_gpu_does_two_things_at_once_and_the_spans_add_up_to_the_phases(draft: str) -> None:
    sets = [
        f"draft={draft}",
        "workload={arrivals: {rate: 2/s}, requests: 60, prompt_tokens: 30, output_tokens: 6}",
        "target.prefill={per_token: 1 ms}",
        "speculation.overhead=3 ms",
        "scheduler.max_num_seqs=4",
        "cluster.replicas=2",
    ]
    made = simulate(load("toy-20ms", sets))
    spans = made.spans
    names = np.array(gpu_names(made.scenario, spans))
    for gpu in np.unique(names):
        mine = names == gpu
        order = np.argsort(spans["start_s"][mine], kind="stable")
        start_s, end_s = spans["start_s"][mine][order], spans["end_s"][mine][order]
        assert (start_s[1:] >= end_s[:-1] - 1e-9).all()
        busy_s = sum(seconds for phase, seconds in made.phases[gpu].items() if phase != "idle")
        assert (end_s - start_s).sum() == pytest.approx(busy_s)


def test_the_window_begins_where_it_is_told() -> None:
    made = run("workload.requests=50", timeline_from_s=10.0)
    assert made.spans["end_s"].min() > 10.0
    whole = run("workload.requests=50")
    later = whole.spans["end_s"] > 10.0
    for column in ("start_s", "end_s", "phase"):
        np.testing.assert_array_equal(made.spans[column], whole.spans[column][later])


def test_the_file_is_a_chrome_trace(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    said = specplan_cli("simulate", "toy-20ms", "--timeline", path, "--timeline-from", "1 s")
    assert said.code == 0
    assert "perfetto" in said.err
    written = json.loads(path.read_text())
    events = [event for event in written["traceEvents"] if event["ph"] == "X"]
    assert len(events) > 100
    assert {"name", "ts", "dur", "pid", "tid"} <= events[0].keys()
    assert events[0]["args"]["batch"] == 1
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(events))
    again = specplan_cli("simulate", "toy-20ms", "--timeline", path)
    assert again.code == 2
    assert "exists" in again.err


def test_a_timeline_goes_into_a_folder_that_exists(
    specplan_cli: Callable[..., Any], tmp_path: Path
) -> None:
    said = specplan_cli("simulate", "toy-20ms", "--timeline", tmp_path / "no" / "x.json")
    assert said.code == 2
    assert f"there is no folder {tmp_path / 'no'}" in said.err
    assert not (tmp_path / "no").exists()
