"""What tests of several rooms need: runs made by hand, the command line in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from typer.testing import CliRunner

from specplan.cli import app
from specplan.scenarios.load import load
from specplan.sim.records import GapHistogram, Run
from specplan.sim.step import GAP_BINS

if TYPE_CHECKING:
    from collections.abc import Callable

# How long an example takes says what else the machine does, and is not asserted.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """Make a run of n requests, one after the other: 4 tokens in rounds of 2, 2, 0.1 s a round.

    Arrival i at 0.2 i, first chunk after 0.1 s, finish after 0.2 s: TTFT 100 ms, E2EL 200 ms,
    TPOT 100/3 ms, ITL 100 ms; 20 tokens/s, always one running.
    """

    def make(n: int = 200, sets: tuple[str, ...] = (), **changes: Any) -> Run:
        arrival = 0.2 * np.arange(n)
        requests = {
            "request": np.arange(n),
            "cls": np.zeros(n, np.int64),
            "replica": np.zeros(n, np.int64),
            "status": np.zeros(n, np.int64),
            "arrival_s": arrival,
            "admitted_s": arrival,
            "first_token_s": arrival + 0.1,
            "finish_s": arrival + 0.2,
            "prompt_tokens": np.zeros(n, np.int64),
            "cached_tokens": np.zeros(n, np.int64),
            "output_tokens": np.full(n, 4),
            "rounds": np.full(n, 2),
            "drafted_tokens": np.full(n, 3),
            "accepted_tokens": np.full(n, 2),
            "preemptions": np.zeros(n, np.int64),
        }
        counts = np.zeros(GAP_BINS, np.int64)
        sums = np.zeros(GAP_BINS)
        counts[500], sums[500] = n, 0.1 * n
        duration = 0.2 * n
        run = Run(
            scenario=load("toy-20ms", sets),
            requests=requests,
            phases={"replica0": {"prefill": 0.0, "draft": duration / 4, "verify": duration / 2,
                                 "overhead": 0.0, "idle": duration / 4}},
            itl=GapHistogram(counts, sums, 0.01 * n, 0.1, 0.1),
            samples={"replica": np.zeros(1, np.int64), "time_s": np.zeros(1),
                     "running": np.ones(1, np.int64), "waiting": np.zeros(1, np.int64),
                     "kv_blocks": np.zeros(1, np.int64)},
            spans={"start_s": np.array([0.0, 0.04]), "end_s": np.array([0.04, 0.1]),
                   "replica": np.zeros(2, np.int64), "gpu": np.zeros(2, np.int64),
                   "phase": np.array([1, 2]), "sequences": np.ones(2, np.int64)},
            batch_time_s=np.array([0.0, duration]),
            duration_s=duration,
            engine_steps=2 * n,
            rounds=2 * n,
            kept_rounds=np.array([n // 2, n, n // 2]),  # 2 of 3 drafted tokens, two rounds each
            second_tokens=np.full(int(np.ceil(duration)), 20),
            drafted_tokens=3 * n,
            accepted_tokens=2 * n,
            wasted_draft_tokens=n,
            wasted_draft_s=0.02 * n,
            preemptions=0,
            saturated=False,
            interrupted=False,
            loop_s=0.0,
        )  # fmt: skip
        requests.update(changes.pop("requests", {}))
        return replace(run, **changes)

    return make


@dataclass(frozen=True)
class Printed:
    """What a command left: stdout, stderr, exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


@pytest.fixture
def specplan_cli() -> Callable[..., Printed]:
    """Call `specplan ARGUMENTS...`."""

    def call(*arguments: str) -> Printed:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return Printed(result.stdout, result.stderr, result.exit_code)

    return call
