"""The worked additions of docs/architecture.md, applied to a copy of the sources and run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(
    r"^```(?:python|diff) (?:file=(?P<file>\S+)|run)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)

pytestmark = pytest.mark.skipif(
    not PAGE.is_file(), reason="docs/ is not in the source distribution"
)


def additions() -> dict[str, str]:
    if not PAGE.is_file():
        return {}
    heading, *sections = re.split(r"^## Add (?:a|an) (.*)$", PAGE.read_text("utf-8"), flags=re.M)
    assert heading.startswith("# Architecture")
    return dict(zip(sections[::2], sections[1::2], strict=True))


def patched(text: str, diff: str, file: str) -> str:
    """Apply hunks that name no lines: what each takes for old must be in the text once."""
    for hunk in diff.split("@@\n")[1:]:
        lines = hunk.splitlines()
        old, new = (
            "\n".join(line[1:] for line in lines if line[:1] != other) for other in ("+", "-")
        )
        assert text.count(old) == 1, f"docs/architecture.md no longer fits {file}:\n{old}"
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("addition", ["cost model", "policy for γ", "importer", "figure"])
def test_the_addition_works(addition: str, tmp_path: Path) -> None:
    for room in ("models", "scenarios", "sim", "results"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / "specplan" / room, ignore=leave)
    shutil.copy(ROOT / "src" / "specplan" / "__init__.py", tmp_path / "specplan")
    for block in BLOCK.finditer(additions()[addition]):
        body = block["body"]
        if block["file"] is None:
            (tmp_path / "example.py").write_text(body, encoding="utf-8")
            continue
        source = tmp_path / "specplan" / block["file"]
        if body.startswith("@@\n"):
            body = patched(source.read_text(encoding="utf-8"), body, block["file"])
        source.write_text(body, encoding="utf-8")
    # In plain Python: compiling a changed loop would take longer than running it.
    env = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_addition_is_tried() -> None:
    assert list(additions()) == ["cost model", "policy for γ", "importer", "figure"]
