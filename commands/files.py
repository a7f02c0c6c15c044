"""Commands about scenario files: init, list, schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, ForceFile, new_path, old_path, show

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
    engine_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            parser=old_path,
            help="Read answers from logs, metrics and benchmark results of an engine, or from a "
            "trace of requests. Repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    force: ForceFile = False,
) -> None:
    """Write a commented scenario that runs.

    Asks at a terminal what neither -a nor a file answers; elsewhere that has its default.

    Example: specplan init mine.yaml --from bench.json -a draft_step='1 ms'
    """

    def answer() -> Answer:
        from specplan.results.starting import ask, init_answer, read_answers
        from specplan.results.starting_files import answers_from

        told = answers_from(engine_files or ())
        given = told.answers | read_answers(answers or ())
        asked = (
            ask(given, typer.prompt)
            if sys.stdin is not None and sys.stdin.isatty() and not as_json
            else given
        )
        return init_answer(file, asked, told, force=force)

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
