"""Which question is being answered: a line on stderr, terminal or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.results.progress import asking, reporting

if TYPE_CHECKING:
    import pytest


def test_a_line_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    asking("best γ")
    told = capsys.readouterr()
    assert told.err == "best γ …\n"
    assert told.out == ""


def test_lines_say_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed at 10 of 40: one point took 20 s, so the 29 that are missing take 580 s."""
    clock = iter([0.0, 20.0])
    monkeypatch.setattr("specplan.results.progress.time.perf_counter", lambda: next(clock))
    with reporting("sweeping") as report:
        report(11, 40)
    assert capsys.readouterr().err == "sweeping: 11 of 40, about 10 min left\n"
