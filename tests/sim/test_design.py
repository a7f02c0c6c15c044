"""Designs of sweeps: crossed, together, from a file, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.sim.design import design_of, parse_design

if TYPE_CHECKING:
    from pathlib import Path


def test_groups_are_crossed_and_the_last_is_fastest() -> None:
    design = parse_design(["speculation.gamma=1,2; draft.step=5ms,6ms", "seed=1..2"])
    assert len(design) == 4
    assert list(design.points()) == [
        ("speculation.gamma=1", "draft.step=5ms", "seed=1"),
        ("speculation.gamma=1", "draft.step=5ms", "seed=2"),
        ("speculation.gamma=2", "draft.step=6ms", "seed=1"),
        ("speculation.gamma=2", "draft.step=6ms", "seed=2"),
    ]
    columns = {name: values.tolist() for name, values in design.coordinates().items()}
    assert columns == {
        "speculation.gamma": [1, 1, 2, 2],
        "draft.step_s": [0.005, 0.005, 0.006, 0.006],
        "seed": [1, 2, 1, 2],
    }


def test_points_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(
        "speculation.gamma, draft.step\r\n2, 20 ms\r\n3, 5 ms\r\n", encoding="utf-8-sig"
    )
    assert list(parse_design([f"@{file}"]).points()) == [
        ("speculation.gamma=2", "draft.step=20 ms"),
        ("speculation.gamma=3", "draft.step=5 ms"),
    ]


def test_together_a_value_may_repeat_alone_it_may_not() -> None:
    assert parse_design(["a=1,1; b=1,2"]).shape == (2,)
    with pytest.raises(ScenarioError, match="names a value twice"):
        parse_design(["a=1,1"])


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (["a=1,2; b=1,2,3"], "a has 2, b has 3"),
        (["a=1", "a=2"], "varied twice"),
        (["a=1,2; a=3,4"], "varied twice"),
        ([], "nothing is varied"),
        (["@missing.csv"], "missing.csv: cannot be read"),
    ],
)
def test_refused(texts: list[str], wrong: str) -> None:
    with pytest.raises(ScenarioError, match=wrong):
        parse_design(texts)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("", "holds no points"), ("a,b\n", "holds no points"), ("a,b\n1\n", "1 values .2, as in the")],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=wrong):
        parse_design([f"@{file}"])


def test_python_forms_say_the_same_as_the_command_line() -> None:
    written = parse_design(["speculation.gamma=0..2", "draft.step=5ms..6ms:3"])
    made = design_of({"speculation.gamma": range(3), "draft.step": "5ms..6ms:3"})
    assert list(made.points()) == list(written.points())


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"speculation.gamma": 3}, r"speculation\.gamma: 3 is one value"),
        ({("a", "b"): [(1, "5 ms"), (2,)]}, r"a, b: \(2,\) is no row of 2 values"),
        ({("a", "b"): [1, 2]}, r"a, b: 1 is no row of 2 values"),
        ({("a", "b"): ["xy"]}, r"a, b: xy is no row of 2 values"),
    ],
)
def test_python_values_that_are_no_design(values: dict[Any, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        design_of(values)
