"""What the house asks of every module."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 400  # lines; we aim at 300


def test_no_module_is_longer_than_400_lines() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs the git checkout, which says what is ours")
    listed = [git, "ls-files", "-z", "--", "*.py"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in found.stdout.split("\0") if name]
    lengths = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in files
        if path.is_file() and not path.is_symlink()
    }
    assert len(lengths) > 100
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}
