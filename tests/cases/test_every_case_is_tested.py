"""Every public report and every published row of ../shared/cases is named by a test."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = TESTS.parents[1] / "shared" / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is absent")
@pytest.mark.parametrize(("name", "at_least"), [("reports.json", 102), ("published.json", 68)])
def test_every_case_is_named_in_a_test(name: str, at_least: int) -> None:
    """An id counts where it stands for itself: in a test's name, its ids, or beside its numbers."""
    here = Path(__file__)
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py") if path != here
    )
    ids = [one["id"] for one in json.loads((CASES / name).read_text(encoding="utf-8"))]
    assert len(ids) >= at_least

    def named(case: str) -> bool:
        pattern = re.escape(case).replace("\\-", "[-_]").replace("\\.", "[._]")
        return (
            re.search(rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None
        )

    assert [case for case in ids if not named(case)] == []
