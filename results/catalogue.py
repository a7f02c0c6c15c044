"""What is bundled and what a scenario may contain: `list` and `schema`."""

from __future__ import annotations

from specplan.results.answer import Answer
from specplan.results.tables import columns
from specplan.scenarios.load import bundled, load, schema_json


def list_answer() -> Answer:
    """Every bundled scenario with its description; each name stands wherever a file does."""
    scenarios = {name: load(name) for name in bundled()}
    table = columns(
        ("name", "what it stands for"),
        [(name, scenario.description) for name, scenario in scenarios.items()],
    )
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    return Answer(
        {"scenarios": {name: scenario.description for name, scenario in scenarios.items()}}, table
    )


def schema_answer() -> Answer:
    """JSON Schema of the scenario file, as an editor's YAML plugin reads it."""
    return Answer(schema_json(), "")
