"""Laws p and q as people bring them to `specplan law`: typed inline, or in a YAML or JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specplan.scenarios.errors import Fault, ScenarioError

_SHAPE = (
    "a list of {p: [..], q: [..]}, one a draft position (a last one with p alone is the bonus"
    " token's law), or {p: [[..], ..], q: [[..], ..]}, or a scenario with"
    " `speculation.acceptance.pq`"
)


@dataclass(frozen=True)
class Pairs:
    """Target and draft laws by draft position, and the law after the last draft where given."""

    p: list[list[float]]
    q: list[list[float]]
    bonus: list[float] | None = None


def inline_law(text: str, field: str) -> list[float]:
    """Read `0.6,0.3,0.1` or `[0.6, 0.3, 0.1]`; raises ScenarioError naming `field`.

    >>> inline_law("[0.6, 0.3, 0.1]", "--p")
    [0.6, 0.3, 0.1]
    """
    parts = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    try:
        return [float(part) for part in parts]
    except ValueError:
        wrong = f"`{text}` is not a list of numbers"
        raise ScenarioError(Fault(wrong, "write it as 0.6,0.3,0.1", field=field)) from None


def read_pairs(path: str | Path) -> Pairs:
    """Read the laws in a file; raises ScenarioError with the file when it holds none."""
    try:
        content = _parsed(Path(path))
        return _pairs(content)
    except OSError as error:
        raise ScenarioError(
            Fault(error.strerror or "cannot be read", "a readable file", file=str(path))
        ) from error
    except (TypeError, ValueError, KeyError) as error:
        wrong = str(error) or "holds no laws"
        raise ScenarioError(Fault(wrong, _SHAPE, file=str(path))) from error


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    if path.suffix == ".json":
        return json.loads(text)
    from ruamel.yaml import YAML  # 30 ms at import, needed only here
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error


def _pairs(content: Any) -> Pairs:
    for section in ("speculation", "acceptance", "pq"):
        if isinstance(content, dict) and section in content:
            content = content[section]
    if isinstance(content, dict):
        p, q = _rows(content.get("p"), "p"), _rows(content.get("q"), "q")
        bonus = content.get("bonus")
        if len(p) == len(q) + 1 and bonus is None:
            p, bonus = p[:-1], p[-1]
        return Pairs(p, q, None if bonus is None else _law(bonus, "bonus"))
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ValueError("holds no p and q")
    last = content[-1] if content else {}
    bonus = last.get("p") if "q" not in last else None
    drafts = content[:-1] if bonus is not None else content
    missing = [i for i, row in enumerate(drafts, start=1) if not {"p", "q"} <= row.keys()]
    if missing or not drafts:
        raise ValueError(f"position {missing[0] if missing else 1} lacks p or q")
    return Pairs(
        [_law(row["p"], f"p at position {i}") for i, row in enumerate(drafts, start=1)],
        [_law(row["q"], f"q at position {i}") for i, row in enumerate(drafts, start=1)],
        None if bonus is None else _law(bonus, "bonus"),
    )


def _rows(value: Any, name: str) -> list[list[float]]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name} is missing")
    rows = value if isinstance(value[0], list) else [value]
    return [_law(row, f"{name} at position {i}") for i, row in enumerate(rows, start=1)]


def _law(value: Any, name: str) -> list[float]:
    numbers = isinstance(value, list) and all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in value
    )
    if not numbers:
        raise ValueError(f"{name} is not a list of numbers")
    return [float(x) for x in value]
