"""The public names, pinned: removing or renaming one is a decision, not an accident."""

from __future__ import annotations

import subprocess
import sys

import pytest

import specplan

PUBLIC = [
    "Axis",
    "Design",
    "Fault",
    "Grid",
    "Prediction",
    "Run",
    "Scenario",
    "ScenarioError",
    "Study",
    "bundled",
    "load",
    "override",
    "parse_axis",
    "parse_design",
    "predict",
    "predict_grid",
    "simulate",
    "simulate_grid",
    "summary",
    "to_yaml",
]


def test_public_names() -> None:
    assert specplan.__all__ == PUBLIC
    assert dir(specplan) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(specplan, name).__doc__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        specplan.simulat  # noqa: B018


HEAVY = {"numpy", "pandas", "scipy", "numba", "plotly", "simpy", "pyarrow", "pydantic"}


def _imported(code: str) -> set[str]:
    shown = f"{code}\nimport sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_is_light() -> None:
    assert not HEAVY & _imported("import specplan")


def test_help_is_light() -> None:
    code = (
        "import sys; sys.argv = ['specplan', '--help']\n"
        "from specplan.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert not (HEAVY | {"rich"}) & _imported(code)


def test_predict_needs_no_heavy_library() -> None:
    code = (
        "import sys; sys.argv = ['specplan', 'predict', 'toy-20ms']\n"
        "from specplan.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert not {"pandas", "scipy", "numba", "plotly", "simpy", "pyarrow"} & _imported(code)
