"""The compiled loop and the same functions as plain Python: the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest

from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

PROMPTS = ("workload.prompt_tokens={uniform: [1, 60]}", "target.prefill={per_token: 0.5 ms}")
SMALL = ("workload.requests=40", "workload.output_tokens={uniform: [1, 20]}")
CASES = {
    "closed": (*SMALL, "workload.arrivals={streams: 5}", "scheduler.max_num_seqs=4"),
    "linear": (*SMALL, *PROMPTS, "workload.arrivals={rate: 2/s}", "scheduler.max_num_seqs=6",
               "target.round={linear: {base: 60 ms, per_token: 3 ms, per_context_token: 10 us}}",
               "draft.step={linear: {base: 5 ms, per_sequence: 0.1 ms}}"),
    "tight": (*SMALL, *PROMPTS, "workload.arrivals={rate: inf}", "scheduler.max_num_seqs=6",
              "kv_cache={blocks: 12, block_tokens: 8, watermark: 0.1}", "workload.timeout=9 s"),
    "pair": (*SMALL, "draft.placement=dedicated", "draft.transfer=1 ms", "draft.ping_pong=true",
             "workload.arrivals={streams: 6}", "scheduler.max_num_seqs=5"),
    "pool": (*SMALL, *PROMPTS, "draft.placement=shared", "draft.transfer=1 ms",
             "cluster.replicas=2", "workload.arrivals={rate: 3/s}", "scheduler.max_num_seqs=3"),
    "policies": (*SMALL, "speculation.policy={hf_heuristic: {max: 6}}",
                 "speculation.confidence_stop={if_accepted: 0.1, if_rejected: 0.5}",
                 "speculation.acceptance={alpha: 0.6, concentration: 3}",
                 "speculation.extra_draft_step=true"),
    "goodput": (*SMALL, "speculation.policy=goodput", "speculation.gamma=5",
                "cluster.replicas=2", "workload.arrivals={streams: 9}", "scheduler.max_num_seqs=4"),
    "tree": (*SMALL, "speculation.method=tree", "speculation.gamma=null",
             "speculation.tree={width: 2, depth: 3}", "speculation.acceptance={ranks: [.6, .2]}"),
}  # fmt: skip


def digest(sets: tuple[str, ...]) -> str:
    """Hash of everything that a run leaves behind, to the last bit."""
    run = simulate(load("toy-20ms", sets), check_blocks=True)
    parts = [run.requests, run.samples, run.spans]
    totals = json.dumps([run.phases, run.engine_steps, run.wasted_draft_s])
    hashed = hashlib.sha256(totals.encode())
    for columns in parts:
        for name in sorted(columns):
            hashed.update(columns[name].tobytes())
    for array in (run.batch_time_s, run.itl.counts, run.itl.sums_s):
        hashed.update(array.tobytes())
    return hashed.hexdigest()


def digests() -> dict[str, str]:
    """Hash of every case, in this process."""
    return {name: digest(sets) for name, sets in CASES.items()}


@pytest.fixture(scope="module")
def interpreted() -> dict[str, str]:
    """The same in a process where numba compiles nothing."""
    script = (
        "import importlib.util as u, json; s = u.spec_from_file_location('twin', "
        f"{__file__!r}); m = u.module_from_spec(s); s.loader.exec_module(m); "
        "print(json.dumps(m.digests()))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, str] = json.loads(printed.stdout)
    return found


@pytest.mark.parametrize("case", CASES)
def test_plain_python_leaves_the_same_bytes(case: str, interpreted: dict[str, str]) -> None:
    assert digest(CASES[case]) == interpreted[case]
