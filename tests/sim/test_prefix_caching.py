"""Prefix caching by the hash ids of a trace: hits, eviction and sharing counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from specplan.sim.records import Run

# 1 ms for each prompt position that is computed, one output token: TTFT is what was computed.
PRICES = [
    "speculation.method=none",
    "target.prefill={per_token: 1 ms}",
    "target.round=1 s",
    "target.step=1 s",
    "scheduler.max_num_batched_tokens=8192",
    "kv_cache.prefix_caching=true",
]


def trace(folder: Path, rows: list[tuple[float, int, list[int]]]) -> Path:
    """A Mooncake trace (ms; 512-token blocks) of one-token answers."""
    path = folder / "trace.jsonl"
    lines = [
        json.dumps({"timestamp": at_ms, "input_length": n, "output_length": 1, "hash_ids": ids})
        for at_ms, n, ids in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(path: Path, *sets: str, **more: Any) -> Run:
    workload = f"workload={{arrivals: {{trace: {path}}}}}"
    return simulate(load("toy-20ms", [workload, *PRICES, *sets]), check_blocks=True, **more)


def test_hits_evictions_and_the_last_position_by_hand(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        [
            (0, 1100, [0, 1, 2]),  # all computed; blocks 0 and 1 are full, 2 is not
            (10_000, 1200, [0, 1, 3]),  # finds 0 and 1: 1200 − 1024 are left
            (20_000, 1024, [0, 1]),  # finds 0; of block 1 one position would be left to compute
            (30_000, 600, [7, 8]),  # finds nothing; 38 blocks of 16, 36 are free: block 1 goes
            (40_000, 1200, [0, 1, 3]),  # finds 0 only
        ],
    )
    made = run(path, "kv_cache.blocks=100", "scheduler.max_num_seqs=1")
    assert made.requests["cached_tokens"].tolist() == [0, 1024, 512, 0, 512]
    ttft = made.requests["first_token_s"] - made.requests["arrival_s"]
    np.testing.assert_allclose(ttft, [1.1, 0.176, 0.512, 0.6, 0.688], rtol=1e-12)


def test_requests_that_run_together_share_their_blocks(tmp_path: Path) -> None:
    # Eight prompts of 1024 + 16 positions share 1024; one alone holds 66 blocks of 16 (with its
    # output), so 64 + 8·2 = 80 blocks hold all eight at once, and without sharing only one.
    rows = [(0.0, 1040, [0, 1, 2])] + [(5000.0, 1040, [0, 1, 10 + i]) for i in range(8)]
    path = trace(tmp_path, rows)
    sets = ("kv_cache.blocks=80", "kv_cache.watermark=0", "scheduler.max_num_seqs=8")
    longer = path.read_text().replace('"output_length": 1', '"output_length": 3')
    path.write_text(longer)
    shared = run(path, *sets)
    assert np.ptp(shared.requests["admitted_s"][1:]) == 0
    assert shared.requests["cached_tokens"].tolist() == [0] + 8 * [1024]
    alone = run(path, *sets, "kv_cache.prefix_caching=false")
    assert len(np.unique(alone.requests["admitted_s"][1:])) == 8


def test_twins_that_arrive_together_are_merged_after_their_prefill(tmp_path: Path) -> None:
    path = trace(tmp_path, [(0, 513, [0, 1]), (0, 513, [0, 2]), (9000, 513, [0, 3])])
    made = run(path, "kv_cache.blocks=200", "scheduler.max_num_seqs=4")
    assert made.requests["cached_tokens"].tolist() == [0, 0, 512]


def test_a_preempted_request_finds_its_own_blocks_again(tmp_path: Path) -> None:
    rows = [(0.0, 1030, [0, 1, 2]), (0.0, 1030, [3, 4, 5])]
    path = trace(tmp_path, rows)
    path.write_text(path.read_text().replace('"output_length": 1', '"output_length": 200'))
    made = run(path, "kv_cache.blocks=150", "scheduler.max_num_seqs=2")
    assert made.preemptions > 0
    assert (made.requests["status"] == 0).all()
    assert made.requests["cached_tokens"].tolist() == [0, 0]  # what others had computed: nothing


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("kv_cache={blocks: 100, block_tokens: 24, prefix_caching: true}",), "do not divide"),
        (("kv_cache.blocks=100", "workload.prompt_tokens=600"), "prefix_caching"),
    ],
)
def test_what_cannot_be_cached_is_refused(tmp_path: Path, sets: tuple[str, ...], says: str) -> None:
    path = trace(tmp_path, [(0, 600, [0, 1])])
    with pytest.raises(ScenarioError, match=says):
        run(path, *sets)


def test_a_trace_without_hash_ids_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens\n0,600,1\n")
    with pytest.raises(ScenarioError, match="no hash ids"):
        run(path, "kv_cache.blocks=100")


def test_mooncake_conversations_hit_what_their_prefixes_allow() -> None:
    path = (
        Path(__file__).parents[3] / "shared/data/traces/mooncake_conversation_trace.head5000.jsonl"
    )
    if not path.is_file():
        pytest.skip("needs the folder shared beside the repository")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    seen: set[int] = set()
    hits = 0
    for row in rows:  # a cache without limit, every prompt computed before the next arrives
        usable = row["hash_ids"][: (row["input_length"] - 1) // 512]
        for name in usable:
            if name not in seen:
                break
            hits += 512
        seen.update(row["hash_ids"][: row["input_length"] // 512])
    made = run(
        path,
        "kv_cache={blocks: 120000, block_tokens: 512, prefix_caching: true}",
        "target.prefill={per_token: 1 ns}",
        "target.step=1 us",
        "target.round=1 us",
        "workload.arrivals.time_scale=1000000",
        "scheduler.max_num_batched_tokens=200000",
        "scheduler.max_num_seqs=1",
    )
    assert made.requests["cached_tokens"].sum() == hits
