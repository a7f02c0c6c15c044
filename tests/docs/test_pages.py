"""The pages of docs/ show what programs print now; `make docs` brings them up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from specplan.cli import app

DOCS = Path(__file__).resolve().parents[2] / "docs"
WRITTEN = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))] if DOCS.is_dir() else []
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


def _anchors(page: Path) -> set[str]:
    """Name the headings of a page as GitHub links them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_links_into_a_page_find_their_heading(page: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text("utf-8")):
        assert anchor in _anchors(page.parent / name if name else page), f"{page}: {name}#{anchor}"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_commands_that_are_named_exist_with_their_options(page: Path) -> None:
    root: Any = get_command(app)
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = "\n".join(re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
    found = re.findall(r"^ *(?:\$ )?specplan ([a-z][^|\n]*)", fenced, re.MULTILINE)
    for words in found + re.findall(r"(?<!`)`specplan ([a-z][^`|]*)", text):
        command: Any = root
        for word in words.split():
            if word not in getattr(command, "commands", {}):
                break
            command = command.commands[word]
        assert command is not root, f"specplan {words}"
        known = {name for one in command.params for name in one.opts} | {"--help", "-h"}
        for option in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", words):
            assert option in known, f"specplan {words}: {option}"


def test_the_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(DOCS)})" in index, page.name
