"""Whatever is thrown at the loader and the closed form: an answer, or a ScenarioError."""

import contextlib
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.traces import read_lengths, read_trace
from specplan.scenarios.load import bundled, load, override, validated
from specplan.scenarios.overrides import block_at
from specplan.scenarios.schema import Scenario
from specplan.scenarios.source import parse_source

LONG = int(os.environ.get("SPECPLAN_FUZZ", "1"))  # a factor on the number of inputs
often = settings(
    max_examples=300 * LONG,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in bundled().items()}
ODD = ["", "~", "nan", ".inf", "-1", "0", "1e-300 s", "1e300 s", "1e309", "true", "[]", "{}", "'"]
ODD += ["80", "80 %", "0.8 %", "20", "20 ms", "-3 us", "4/s", "1e9/s", "4 GiB", "trace", "a: b"]
ODD += [
    "[1, 2]",
    "[[1, 8, 5]]",
    "{alpha: 0.5}",
    "999999999999999999999",
    "\u0661",
    "&a [*a]",
    "!!x y",
]


def leaves(path: tuple[str, ...] = ()) -> list[str]:
    """Every path of the schema, lists by their first item, classes by a name."""
    block = block_at(path)
    if block is None:
        return []
    found = []
    for name in block.model_fields:
        inner = (*path, name)
        found.append(".".join(inner))
        item = "0" if name in ("pq", "mixture") else "chat" if name == "classes" else None
        below = (*inner, item) if item else inner
        if len(path) < 5 and path.count("mixture") < 1:
            found += leaves(below)
    return found


PATHS = leaves()


def answered(scenario: Scenario) -> None:
    """Hold what every accepted scenario must keep."""
    assert override(scenario, []) == scenario
    try:
        point = operating_point(scenario)
        found = predict_at(scenario, point)
    except ScenarioError:
        return
    gamma, tokens = int(found.gamma), float(found.tokens_per_round)
    assert 1 <= point.batch <= scenario.scheduler.max_num_seqs or point.batch < 1
    assert 1 - 1e-9 <= tokens <= gamma + 1 + 1e-9
    assert float(found.speedup) <= float(found.speedup_perfect_draft) * (1 + 1e-9)
    assert math.isclose(
        float(found.speedup), tokens / float(found.round_cost_ratio), rel_tol=1e-9
    ) or math.isinf(float(found.round_cost_ratio))


@often
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_mutated_files(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        new = data.draw(
            st.one_of(st.text(max_size=4), st.sampled_from([*ODD, ":", "\n", "  ", "- "]))
        )
        text = text[:at] + new + text[at + cut :]
    with contextlib.suppress(ScenarioError):
        answered(validated(parse_source(text, name)))


@often
@given(
    st.sampled_from(["toy-20ms", "llama31-8b-eagle3-h100", "shared-draft-pool-70b"]),
    st.lists(
        st.tuples(
            st.sampled_from(PATHS),
            st.one_of(
                st.sampled_from(ODD),
                st.integers(-3, 3000).map(str),
                st.floats(0, 1).map(str),
                st.floats(1e-9, 1e4).map(lambda number: f"{number} ms"),
                st.text(max_size=8),
            ),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_every_leaf_set_to_anything(name: str, pairs: list[tuple[str, str]]) -> None:
    with contextlib.suppress(ScenarioError):
        answered(load(name, [f"{path}={value}" for path, value in pairs]))


@often
@given(st.binary(max_size=200))
def test_any_bytes_as_a_scenario_or_a_trace(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    for read in (load, read_trace, read_lengths):
        with contextlib.suppress(ScenarioError):
            read(path)


@often
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_set_and_any_name(name: str, text: str) -> None:
    with contextlib.suppress(ScenarioError):
        load("toy-20ms", [text])
    with contextlib.suppress(ScenarioError):
        load(name)


TRACES: list[Any] = [
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n",
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n',
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n4.314579,396,109\n",
]


@often
@given(st.sampled_from(TRACES), st.data())
def test_mutated_traces(tmp_path: Path, text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 4))
        text = (
            text[:at]
            + data.draw(st.one_of(st.text(max_size=3), st.sampled_from(ODD)))
            + text[at + cut :]
        )
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    for read in (read_trace, read_lengths):
        try:
            trace = read(path)
        except ScenarioError:
            continue
        assert (trace.prompt_tokens >= 1).all()
        assert (trace.output_tokens >= 1).all()
        assert len(trace.arrival_s) == len(trace.prompt_tokens) == len(trace.output_tokens) > 0
        if read is read_trace:
            assert (trace.arrival_s[1:] >= trace.arrival_s[:-1]).all()


def test_the_paths_cover_the_schema() -> None:
    assert {"target.round.linear.base", "speculation.policy.goodput.min", "slo.ttft_p99"} <= set(
        PATHS
    )
    assert len(PATHS) > 200


@pytest.mark.parametrize("text", ["[" * 2000, "{a: " * 2000, "- " * 2000, "? " * 2000])
def test_deep_nesting_ends(text: str) -> None:
    with pytest.raises(ScenarioError):
        parse_source(text, "deep.yaml")
