"""What is bundled and what a scenario may contain: `list` and `schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from specplan.results.answer import Answer
from specplan.results.tables import columns
from specplan.scenarios.load import bundled, load, published, schema_json

if TYPE_CHECKING:
    from collections.abc import Mapping


def list_answer() -> Answer:
    """Every bundled name with its description; each name stands wherever a file does.

    Those of published measurements are what `validate` predicts.
    """
    scenarios = {name: load(name).description for name in bundled()}
    measured = {name: load(name).description for name in published()}
    text = Group(
        _described("name", scenarios),
        _described("\nwith published measurements, for `specplan validate`", measured),
    )
    return Answer({"scenarios": scenarios, "published": measured}, text)


def _described(title: str, descriptions: Mapping[str, str]) -> Group:
    table = columns(("", ""), descriptions.items())
    table.show_header = False
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    return Group(Text(title, style="bold"), table)


def schema_answer() -> Answer:
    """JSON Schema of the scenario file, as an editor's YAML plugin reads it."""
    return Answer(schema_json(), "")
