"""The release build: what the wheel and the sdist hold, and that it runs where it is installed.

Nothing is downloaded: the fresh environment sees the dependencies of this one by a `.pth` file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="needs hatchling, the build backend (`--group dev`)")

ROOT = Path(__file__).parents[2]
ROOMS = ("models", "scenarios", "sim", "results", "commands")


def build(source: Path, output: Path, kind: str) -> Path:
    """Build a wheel or an sdist of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(output)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    (made,) = output.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, sdist: Path) -> Path:
    """A wheel that was built from the sdist, as installers of an sdist do."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (tree,) = unpacked.iterdir()
    return build(tree, tmp_path_factory.mktemp("wheel"), "wheel")


def modules() -> set[str]:
    """Every source and data file of the rooms, as the package names it."""
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".yaml")
    }
    return {f"specplan/{name}" for name in found | {"cli.py", "__init__.py", "py.typed"}}


def test_the_wheel_holds_every_file_and_nothing_generic(wheel: Path, tmp_path: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    inside = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert modules() <= inside
    assert {name.split("/")[0] for name in inside} == {"specplan"}
    assert not [name for name in inside if "__pycache__" in name or "tests" in name]
    straight = build(ROOT, tmp_path / "straight", "wheel")
    from_tree = {name for name in zipfile.ZipFile(straight).namelist() if "__pycache__" not in name}
    assert from_tree == names


def test_the_sdist_holds_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {*ROOMS, "cli.py", "pyproject.toml", "README.md", "LICENSE"} <= {
        name.split("/")[0] for name in names
    }
    assert {"scenarios/gpus.yaml", "scenarios/library/toy-20ms.yaml", "commands/run.py"} <= names


def test_the_wheel_runs_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "fresh"
    venv.create(home)
    bin_folder = home / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", f"--python={bin_folder / 'python'}", "install", "-q"]
    pip += ["--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, timeout=120)
    (site,) = home.glob("lib/*/site-packages")
    added = {path.name for path in site.iterdir()}
    assert added == {"specplan", next(name for name in added if name.endswith(".dist-info"))}
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(here), encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for command in ("predict", "simulate"):
        words = [str(bin_folder / "specplan"), command, "toy-20ms", "--json"]
        words += ["--set", "workload.requests=20"]
        found = subprocess.run(
            words, cwd=elsewhere, check=True, capture_output=True, text=True, timeout=300,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        )  # fmt: skip
        value = json.loads(found.stdout)
        assert value.get("speedup", 1.25) == pytest.approx(1.25)
    where = [str(bin_folder / "python"), "-c", "import specplan; print(specplan.__file__)"]
    says = subprocess.run(where, cwd=elsewhere, check=True, capture_output=True, text=True)
    assert says.stdout.startswith(str(site))
