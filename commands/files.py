"""Commands about scenario files: init, list, schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, new_path, show

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", parser=new_path)] = Path(
        "scenario.yaml"
    ),
    answers: Annotated[
        list[str] | None,
        typer.Option("--answer", "-a", metavar="NAME=VALUE", help="Answer a question beforehand."),
    ] = None,
    as_json: AsJson = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a commented scenario that runs.

    Asks a few questions at a terminal; elsewhere what is not answered with -a has its default.

    Example: specplan init mine.yaml -a step='12 ms' -a draft_step='1 ms' -a gamma=4
    """

    def answer() -> Answer:
        from specplan.results.starting import ask, init_answer, read_answers

        given = read_answers(answers or ())
        asked = (
            ask(given, typer.prompt)
            if sys.stdin is not None and sys.stdin.isatty() and not as_json
            else given
        )
        return init_answer(file, asked, force=force)

    show(answer, as_json)


def list_scenarios(as_json: AsJson = False) -> None:
    """Show the bundled scenarios.

    Their names stand wherever a file does.

    Example: specplan list
    """

    def answer() -> Answer:
        from specplan.results.catalogue import list_answer

        return list_answer()

    show(answer, as_json)


def schema() -> None:
    """Print the JSON Schema of the scenario file, for editors.

    Example: specplan schema > scenario.schema.json
    """

    def answer() -> Answer:
        from specplan.results.catalogue import schema_answer

        return schema_answer()

    show(answer, as_json=True)
