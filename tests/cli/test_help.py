"""`--help` of every command: within 80 columns, with an example that can be copied and parses."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from typer.testing import CliRunner

from specplan.cli import app
from specplan.scenarios.load import bundled

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Name the program, its groups and its commands."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ROOT = typer.main.get_command(app)


@pytest.mark.parametrize("path", list(commands(ROOT)), ids=" ".join)
def test_help_fits_the_screen_and_has_an_example(path: tuple[str, ...]) -> None:
    runner = CliRunner()
    said = runner.invoke(app, [*path, "--help"])
    assert said.exit_code == 0
    lines = said.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    (line,) = [line for line in lines if "Example: " in line]
    assert len(line) <= 78  # a terminal of 80 columns folds there, the runner two later
    example = line.partition("Example: ")[2]
    program, *words = shlex.split(example.partition(" > ")[0])  # whole, or a quote stays open
    assert program == "specplan"
    assert tuple(words[: len(path)]) == path
    command: Any = ROOT
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    with command.make_context("specplan", words) as context:
        given = context.params.get("scenarios") or (context.params.get("scenario"),)
    assert {name for name in given if name} <= set(bundled())


@pytest.mark.parametrize(
    ("words", "offered"),
    [("pre", {"predict"}), ("predict toy", {"toy-20ms", "toy-50ms"}),
     ("simulate --no-r", {"--no-requests"}), ("acceptance ex", {"export"})],
)  # fmt: skip
def test_the_shell_completes_commands_options_and_bundled_names(
    words: str, offered: set[str]
) -> None:
    env = {
        "_SPECPLAN_COMPLETE": "complete_bash",
        "COMP_WORDS": f"specplan {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    said = CliRunner().invoke(app, [], env=env, prog_name="specplan")
    assert offered == set(said.stdout.split())
