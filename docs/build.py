"""Bring the pages of this folder up to date: `python docs/build.py [PAGE …]`.

A page is Markdown that shows what programs print. In the order of the page, in one empty folder:

- a block opened with ```LANG file=NAME is written to NAME,
- a block opened with ```console runs each `$ specplan …` in it and shows what it prints;
  `| head -N`, `| tail -N` and `| grep TEXT` may follow.

`docs/cli.md` is written from the commands themselves. `tests/docs` fails when a page is stale.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer.testing import CliRunner

from specplan.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parent
# Pages that other programs write: the schema, the validation, this one.
GENERATED = {"scenario.md", "accuracy.md", "cli.md"}
WIDTH = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
CLI_HEAD = """\
# The commands

Written from the commands (`make docs`); `specplan COMMAND --help` prints the same. Every command
takes `--json` (one object on stdout; notes and progress on stderr). Exit codes: 0 fine, 1 the
answer to the command's question is "no", 2 bad input, 130 interrupted. Errors name file, line,
field, what is wrong and what would be right.
"""


def pages() -> list[Path]:
    """List the pages whose blocks are run, in order of name."""
    return sorted(page for page in DOCS.rglob("*.md") if page.name not in GENERATED)


def printed(command: str) -> str:
    """Run `specplan …` in this process and return what a terminal of 80 columns shows."""
    run, *filters = command.replace("\\\n", " ").split(" | ")
    words = shlex.split(run)
    if words[:1] != ["specplan"]:
        raise ValueError(f"`$ {command}` is not run (only `$ specplan …` is)")
    shown = CliRunner().invoke(app, words[1:], env=WIDTH)
    # Progress and notes go to stderr and hold clock times; errors are shown.
    lines = (shown.stdout + (shown.stderr if shown.exit_code else "")).splitlines()
    for one in filters:
        lines = filtered(lines, *shlex.split(one))
    return "".join(line.rstrip() + "\n" for line in lines)


def filtered(lines: list[str], name: str, what: str) -> list[str]:
    """Apply `head -N`, `tail -N` or `grep TEXT`."""
    if name == "head":
        return lines[: -int(what)]
    if name == "tail":
        return lines[int(what) :]
    if name == "grep":
        return [line for line in lines if what in line]
    raise ValueError(f"`| {name}` is not known (head -N, tail -N or grep TEXT)")


def refreshed(text: str) -> str:
    """Return the page with the output of each command as it is now."""

    def block(found: re.Match[str]) -> str:
        language, file, body = found.groups()
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(body, encoding="utf-8")
        if language != "console":
            return found[0]
        commands = COMMAND.findall(body)
        parts = [f"$ {command}\n{printed(command)}" for command in commands]
        return f"```console\n{''.join(parts)}```"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(block, text)


def commands() -> Iterator[str]:
    """Name every command of the command line, groups before what is in them."""

    def below(group: typer.Typer, path: str) -> Iterator[str]:
        for command in group.registered_commands:
            function = command.callback
            yield f"{path} {command.name or getattr(function, '__name__', '')}".strip()
        for inner in group.registered_groups:
            name = f"{path} {inner.name}".strip()
            yield name
            yield from below(inner.typer_instance or typer.Typer(), name)

    yield from below(app, "")


def cli_reference() -> str:
    """Write the reference of the commands: the help of each, as it is printed."""
    parts = [CLI_HEAD, f"```text\n{printed('specplan --help')}```\n"]
    parts += [
        f"## {name}\n\n```text\n{printed(f'specplan {name} --help')}```\n" for name in commands()
    ]
    return "\n".join(parts)


def main(names: list[str]) -> None:
    """Rewrite the pages named, or all of them and the reference of the commands."""
    chosen = [Path(name).resolve() for name in names] or pages()
    for page in chosen:
        page.write_text(refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")
    if not names:
        (DOCS / "cli.md").write_text(cli_reference(), encoding="utf-8")


if __name__ == "__main__":
    os.environ.update(WIDTH)
    main(sys.argv[1:])
