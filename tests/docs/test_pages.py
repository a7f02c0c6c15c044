"""The pages of docs/ show what programs print now; `make docs` brings them up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
STALE = "stale: make docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ is not in the source distribution")


def _builder() -> Any:
    """Load docs/build.py, which belongs to no package."""
    if not DOCS.is_dir():
        return None
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = _builder()
PAGES = [str(page.relative_to(DOCS)) for page in BUILD.pages()] if BUILD else []
SHOWING = [page for page in PAGES if "```console" in (DOCS / page).read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", SHOWING)
def test_the_page_is_current(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert BUILD.refreshed(text) == text, STALE
    assert "internal error" not in text


def test_the_reference_of_commands_is_current() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == BUILD.cli_reference(), STALE


def test_links_lead_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(DOCS)})" in index, page.name
