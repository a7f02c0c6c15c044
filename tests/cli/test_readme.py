"""README shows what commands print; `python tests/cli/test_readme.py` brings it up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from specplan.cli import app

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"```console\n\$ specplan (.*?)\n(.*?)```", re.DOTALL)


def printed(command: str) -> str:
    result = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " ")))
    lines = (result.stdout + (result.stderr if result.exit_code else "")).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def refreshed(text: str) -> str:
    return BLOCK.sub(lambda m: f"```console\n$ specplan {m[1]}\n{printed(m[1])}```", text)


def test_readme_shows_what_is_printed() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 4
    assert refreshed(text) == text


def test_bundled_names_and_commands_exist() -> None:
    text = README.read_text(encoding="utf-8")
    for command in re.findall(r"specplan (\w+)", text):
        if command not in {"is", "and"}:
            assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
