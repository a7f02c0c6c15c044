"""`specplan init` writes a file that runs, and never over another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_what_is_written_runs(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    answers = ["-a", "step=100 ms", "-a", "draft_step=20 ms", "-a", "gamma=2"]
    written = specplan_cli("init", str(file), *answers, "-a", "acceptance={alpha: 0.5}")
    assert written.code == 0
    assert "# A scenario of specplan" in file.read_text(encoding="utf-8")
    assert specplan_cli("predict", str(file), "--json").json["speedup"] == pytest.approx(1.25)


def test_existing_file_is_kept(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    found = specplan_cli("init", str(tmp_path / "mine.yaml"))
    assert found.code == 2
    assert "exists already" in found.err
    assert (tmp_path / "mine.yaml").read_text() == "precious"


@pytest.mark.parametrize(
    ("answer", "says"), [("gamma", "answers nothing"), ("gama=3", "did you mean `gamma`")]
)
def test_bad_answers(
    specplan_cli: Callable[..., Any], tmp_path: Path, answer: str, says: str
) -> None:
    found = specplan_cli("init", str(tmp_path / "mine.yaml"), "-a", answer)
    assert found.code == 2
    assert says in found.err
    assert list(tmp_path.iterdir()) == []
