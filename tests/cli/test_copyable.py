"""What people copy out of the terminal (scenarios, flags) stays as it is at any width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Callable

    Cli = Callable[..., Any]

ROUND = ("--baseline", "5.264 ms", "--point", "gamma=3 404.25 tok/s tau=2.8981")


@pytest.mark.parametrize("columns", ["40", "80"])
@pytest.mark.parametrize("label", ["", f" label={'long-' * 30}"])
def test_the_scenario_of_calibrate(
    specplan_cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str, label: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    words = (*ROUND[:3], ROUND[3] + label)
    block = specplan_cli("calibrate", *words).out.partition("Scenario\n")[2]
    assert (
        block.rstrip() == specplan_cli("calibrate", *words, "--json").json["scenarios"][0].rstrip()
    )
    assert YAML(typ="safe", pure=True).load(block)["speculation"]["gamma"] == 3
    if not label:
        assert max(map(len, block.splitlines())) < 80


def test_the_flags_of_export(specplan_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = specplan_cli("acceptance", "export", "toy-20ms").out.splitlines()
    for made in specplan_cli("acceptance", "export", "toy-20ms", "--json").json["exports"]:
        for wanted in filter(None, (*made["arguments"][-1:], made["config"])):
            assert any(str(wanted) in line for line in lines)
