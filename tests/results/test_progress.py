"""Which question is being answered: a line on stderr, terminal or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.results.progress import asking

if TYPE_CHECKING:
    import pytest


def test_a_line_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    asking("best γ")
    told = capsys.readouterr()
    assert told.err == "best γ …\n"
    assert told.out == ""
