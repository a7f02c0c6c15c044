"""The reference of the scenario file, written from the schema: `docs/scenario.md`."""

from __future__ import annotations

import sys
import typing
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from specplan.scenarios import fields
from specplan.scenarios.fields import Choice
from specplan.scenarios.overrides import inside
from specplan.scenarios.schema import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

_QUANTITIES = {
    "Duration": "duration, such as `20 ms`",
    "Rate": "rate, such as `8/s`",
    "Bytes": "size, such as `40 GiB`",
    "Fraction": "fraction, `0.8` or `80 %`",
    "FilePath": "path",
}
_PLURALS = {
    _QUANTITIES["Fraction"]: "fractions",
    "whole number": "whole numbers",
    "list of whole numbers": "lists of whole numbers",
}
_HEAD = """\
# The scenario file

Generated from the schema (`specplan schema` prints it as JSON Schema for editors). One YAML file
says what a target pass and a draft step cost, what is kept of the draft, what requests come, and
which engines serve them. Unknown keys are refused. Durations, rates and sizes carry their unit:
`ns us ms s min h`, `/s /min /h`, `B`, `KiB … TiB` (1024), `KB … TB` (1000). Fractions are `0.8` or
`80 %`; a bare `80` is refused. Paths start at the file's folder.

Every leaf can be set on the command line: `--set speculation.gamma=3`, `--set draft.step="5 ms"`,
`--set speculation.acceptance.conditional.0=0.8`, `--set workload.classes.chat.weight=2`. Blocks on
the way are made; choosing one alternative of a block drops the others.
"""


def scenario_reference() -> str:
    """Write the reference: a section a block, a row a field with kind, default and meaning."""
    homes: dict[type[BaseModel], str] = {Scenario: ""}  # each block at its shortest path
    level: list[type[BaseModel]] = [Scenario]
    while level:
        found = [pair for block in level for pair in _below(block, homes[block])]
        level = [block for block, _ in found if block not in homes]
        for block, path in found:
            homes.setdefault(block, path)
    parts = [_HEAD]
    queue: list[tuple[type[BaseModel], str]] = [(Scenario, "")]
    while queue:
        block, path = queue.pop(0)
        if homes[block] == path:
            parts.append(_section(block, path, homes))
            queue = [*_below(block, path), *queue]
    return "\n".join(parts)


def _below(block: type[BaseModel], path: str) -> list[tuple[type[BaseModel], str]]:
    inner = [(name, inside(field.annotation)) for name, field in block.model_fields.items()]
    return [
        (found, f"{path}.{name}".lstrip("."))
        for name, (alone, listed) in inner
        if (found := alone or listed) is not None
    ]


def _section(block: type[BaseModel], path: str, homes: Mapping[type[BaseModel], str]) -> str:
    lines = [f"## {f'`{path}`' if path else 'Top level'}", "", *_introduction(block, homes), ""]
    rows = {n: f for n, f in block.model_fields.items() if n not in _inherited(block, homes)}
    if rows:
        lines += ["| field | kind | default | meaning |", "|---|---|---|---|"]
    for name, field in rows.items():
        said = (field.description or "").replace("|", "\\|")
        lines.append(f"| `{name}` | {_kind(field)} | {_default(field)} | {said} |")
    return "\n".join(lines) + "\n"


def _inherited(block: type[BaseModel], homes: Mapping[type[BaseModel], str]) -> set[str]:
    return {name for base in _bases(block, homes) for name in base.model_fields}


def _bases(block: type[BaseModel], homes: Mapping[type[BaseModel], str]) -> list[type[BaseModel]]:
    return [base for base in homes if base is not block and issubclass(block, base)]


def _introduction(block: type[BaseModel], homes: Mapping[type[BaseModel], str]) -> list[str]:
    lines = [" ".join((block.__doc__ or "").split())]
    bases = _bases(block, homes)
    if bases:
        lines += ["", f"The fields of `{homes[bases[0]]}`, and:"]
    elif issubclass(block, Choice):
        lines += ["", f"Exactly one of {', '.join(f'`{name}`' for name in block.alternatives)}."]
        if block.bare:
            lines.append(f"A value that is no block stands for `{block.bare}`.")
        if block.words:
            lines.append(f"As one word: {', '.join(f'`{name}`' for name in block.words)}.")
    return lines


def _kind(field: FieldInfo) -> str:
    annotation = field.annotation
    block, item = inside(annotation)
    if block is not None or item is not None:
        return "block" if item is None else "blocks"
    return _named(annotation, field.metadata)


def _named(annotation: Any, metadata: typing.Sequence[Any] = ()) -> str:
    """Name the kind of a leaf, in the words of a reader of YAML."""
    for name, words in _QUANTITIES.items():
        marks = typing.get_args(getattr(fields, name))[1:]
        if any(mark is found for mark in marks[:1] for found in metadata):
            return words
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _named(arguments[0], annotation.__metadata__)
    if origin is typing.Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin in (UnionType, typing.Union):
        kinds = [_named(one, metadata) for one in arguments if one is not NoneType]
        return " or ".join(dict.fromkeys(kinds))
    if origin is tuple:
        return f"list of {_PLURALS.get(_named(arguments[0]), _named(arguments[0]))}"
    if origin is dict:
        return "texts by name"
    return {int: "whole number", float: "number", bool: "true or false", str: "text"}[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Choice):
        shown = value.model_dump(mode="json")
        return f"`{shown}`"
    if value in (None, "", ()) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    unit = {"durat": " ms", "size,": " B"}.get(_kind(field)[:5], "") if value == 0 else ""
    return f"`{value:g}{unit}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(scenario_reference(), encoding="utf-8")
