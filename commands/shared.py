"""What all commands share: the options they have in common, and how an answer is printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.results.answer import Answer

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader (`| head`) went away, which is no error of ours
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
ALL_CORES = "as many as cores"  # in --help, which is the same on every machine

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or a name from `specplan list`.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Set a field: --set speculation.gamma=3. Repeatable."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="Write the results into this new folder."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FOLDER if specplan wrote it before.")]


def show(make: Callable[[], Answer], as_json: bool) -> None:
    """Print the answer of one command and leave with its exit code."""
    try:
        answer = make()
        print_answer(answer, as_json)
    except KeyboardInterrupt:
        leave("interrupted; nothing was written", INTERRUPTED)
    except BrokenPipeError:
        # Python would complain again when it flushes stdout on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None
    except Exception as error:
        from specplan.scenarios.errors import ScenarioError

        if isinstance(error, ScenarioError):
            leave(str(error), 2)
        if os.environ.get("SPECPLAN_TRACEBACK"):
            raise
        says = f"{type(error).__name__}: {error} (SPECPLAN_TRACEBACK=1 shows where)"
        leave(f"internal error, please report it: {says}", INTERNAL)
    raise typer.Exit(answer.exit_code)


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer to stdout, its notes to stderr."""
    if as_json:
        from specplan.results.store import dumps

        print(dumps(answer.json), flush=True)  # noqa: T201
    else:
        from rich.console import Console

        # `highlight` would colour every number.
        Console(highlight=False, emoji=False).print(answer.text)
        sys.stdout.flush()
    for note in answer.notes:
        typer.echo(note, err=True)


def leave(message: str, code: int) -> None:
    """Say one thing on stderr and leave with this exit code."""
    typer.echo(message, err=True)
    raise typer.Exit(code)
