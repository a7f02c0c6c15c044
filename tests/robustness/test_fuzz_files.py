"""Scenario files and traces that are broken, or made to hurt. Importers have their own test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.traces import read_lengths, read_trace
from specplan.scenarios.load import bundled, validated
from specplan.scenarios.source import parse_source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.robustness.conftest import Fuzz


def test_spoiled_scenario_files(fuzz: Fuzz) -> None:
    luck = fuzz.luck("spoiled")
    texts = [path.read_text(encoding="utf-8") for path in bundled().values()]
    for _ in range(fuzz.inputs // 8):
        text = fuzz.spoiled(luck.choice(texts), luck)
        with fuzz.bounded(text):
            scenario = validated(parse_source(text, "fuzz"))
            found = predict_at(scenario, operating_point(scenario))
            assert 1 - 1e-9 <= float(found.tokens_per_round) <= int(found.gamma) + 1 + 1e-9


TRACES = [
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n",
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n',
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n4.314579,396,109\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
    "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1.5,11,21\n",
]  # fmt: skip


def test_spoiled_traces(fuzz: Fuzz, tmp_path: Path) -> None:
    luck = fuzz.luck("traces")
    path = tmp_path / "trace"
    for number in range(fuzz.inputs // 8):
        text = fuzz.spoiled(luck.choice(TRACES), luck)
        path.write_text(text, encoding="utf-8", newline="")
        with fuzz.bounded(text):
            trace = (read_lengths if number % 4 == 0 else read_trace)(path)
            assert len(trace.arrival_s) == len(trace.prompt_tokens) == len(trace.output_tokens) > 0
            assert (trace.prompt_tokens >= 1).all()
            assert (trace.output_tokens >= 1).all()
            if number % 4:
                assert np.isfinite(trace.arrival_s).all()
                assert (np.diff(trace.arrival_s) >= 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n" + "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]\n"
                                for p, c in zip("abcdefghijkl", "bcdefghijklm", strict=True)),
        "a: &a {b: *a}", "{" * 1000, "[" * 1000, "- " * 1000, "a: " + "9" * 500_000,
        "a: 0x" + "f" * 400_000, "? " * 1000, "{a: " * 2000, "x" * 900_000, "%YAML 9.9\n--- a",
        "a: !!python/object:os.system x",
        "\n".join(f"k{i}: {i}" for i in range(8_000)),
    ],
)  # fmt: skip
def test_documents_that_unfold_without_end(fuzz: Fuzz, text: str) -> None:
    with fuzz.bounded(text[:200]), pytest.raises(ScenarioError):
        validated(parse_source(text, "bomb.yaml"))
    toy = parse_source(fuzz.plain("toy-20ms"), "toy")
    with fuzz.bounded(text[:200]), pytest.raises(ScenarioError):
        validated(toy, [f"speculation={text}"])


@pytest.mark.parametrize(
    "setting",
    ["speculation.gamma=1000000", "draft.step=1e-300 s", "target.round=1e-300 s",
     "target.round=1e300 s", "workload.output_tokens=1000000000", "workload.requests=1e30",
     "scheduler.max_num_seqs=1e18", "cluster.replicas=1e12", "seed=1e40",
     "workload.arrivals.streams=1e12", "workload.arrivals.rate=1e300/s",
     "scheduler.max_num_batched_tokens=1e300"],
)  # fmt: skip
def test_sizes_out_of_reach_are_refused(fuzz: Fuzz, setting: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(setting.partition("=")[0])):
        validated(parse_source(fuzz.plain("toy-20ms"), "toy"), [setting])
