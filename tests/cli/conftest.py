"""Run commands in this process: what they print, and their exit code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from specplan.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Printed:
    """What a command left: stdout, stderr, exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


@pytest.fixture
def specplan_cli() -> Callable[..., Printed]:
    """Call `specplan ARGUMENTS...`."""

    def call(*arguments: str) -> Printed:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return Printed(result.stdout, result.stderr, result.exit_code)

    return call
