"""Any text for any field, any bytes for any file: an answer, or a ScenarioError."""

import contextlib
import math
import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.traces import read_lengths, read_trace
from specplan.scenarios.load import load, override
from specplan.scenarios.overrides import block_at
from specplan.scenarios.schema import Scenario

INPUTS = int(os.environ.get("SPECPLAN_FUZZ", "2400"))  # over all entrances, as tests/robustness
often = settings(
    max_examples=INPUTS // 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
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


def test_the_paths_cover_the_schema() -> None:
    assert {"target.round.linear.base", "speculation.policy.goodput.min", "slo.ttft_p99"} <= set(
        PATHS
    )
    assert len(PATHS) > 200
