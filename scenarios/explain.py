"""What the validator found, as faults: in one sentence each, at its line or its --set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from specplan.models.statements import LENGTHS, READINGS, SHARES
from specplan.scenarios.batch import HINT
from specplan.scenarios.errors import Fault, nearest, shortened
from specplan.scenarios.overrides import block_at
from specplan.scenarios.schema import ContradictionError, Scenario

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from specplan.scenarios.source import Source

Path_ = tuple[str, ...]
MOST_FAULTS = 100  # more are no list that anybody reads

_LIMITS = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "above {}"),
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "below {}"),
}
_KINDS = {
    "string_type": "a text (in quotes if it looks like a number)",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list: `[…, …]`",
    "dict_type": "a block of `key: value`",
    "model_type": "a block of `key: value`",
    "model_attributes_type": "a block of `key: value`",
}


def contradictions_of(data: Any, folder: Path) -> set[tuple[Path_, str]]:
    """Find what contradicts itself in a file alone: (path, what is wrong)."""
    try:
        Scenario.model_validate(data, context={"folder": folder})
    except ValidationError as error:
        causes = [d.get("ctx", {}).get("error") for d in error.errors(include_url=False)]
        found = [c.found for c in causes if isinstance(c, ContradictionError)]
        return {(path, wrong) for one in found for path, wrong, _ in one}
    return set()


def explain(
    error: ValidationError,
    source: Source,
    touched: Mapping[Path_, str],
    alone: Container[tuple[Path_, str]] = (),
) -> list[Fault]:
    """Turn every error of a validation into a fault, in the order of the file.

    `touched` are the settings by path. A contradiction that is not in the file `alone` comes from
    them: its place is the setting nearest to it, also where that is of another field.
    """
    found: list[tuple[Path_, str, str]] = []
    by_settings: set[Path_] = set()
    details = error.errors(include_url=False)
    for detail in details[:MOST_FAULTS]:
        if detail["type"] in ("too_short", "too_long") and _within(detail, details):
            continue  # items that failed are not counted
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, ContradictionError):
            found += cause.found
            new = [path for path, wrong, _ in cause.found if (path, wrong) not in alone]
            by_settings.update(new if touched else ())
        else:
            path = _written_path(detail["loc"], source.data)
            found.append((path, *_sentence(detail, path)))
    faults = [
        _placed(path, wrong, right, source, _settings_of(path, wrong, touched, by_settings))
        for path, wrong, right in found
    ]
    faults = sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.column or 0))
    if len(details) > MOST_FAULTS:
        more = f"{len(details) - MOST_FAULTS:,} more things are wrong"
        faults.append(Fault(more, f"these {MOST_FAULTS} first", source.name))
    return faults


def _within(outer: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """Whether something inside this location is wrong, too."""
    depth = len(outer["loc"])
    return any(d["loc"][:depth] == outer["loc"] and len(d["loc"]) > depth for d in details)


def _written_path(loc: tuple[int | str, ...], data: Any) -> Path_:
    """Follow a validator's location through what was written.

    Steps the file leaves out (`20 ms` for `{constant: 20 ms}`) are dropped; the last is kept.
    """
    path: Path_ = ()
    here = data
    for number, stated in enumerate(loc):
        step = stated
        if isinstance(here, dict) and isinstance(step, int):
            step = list(here)[step] if step < len(here) else str(step)
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step in range(len(here)):
            here = here[int(step)]
        elif number < len(loc) - 1 or not isinstance(here, dict):
            continue
        path = (*path, str(step))
    return path


def _sentence(detail: ErrorDetails, path: Path_) -> tuple[str, str]:
    given = detail.get("input")
    kind, context, value = detail["type"], detail.get("ctx", {}), shortened(given)
    if kind == "specplan":
        return context["wrong"].replace(f"`{given}`", f"`{value}`"), context["right"]
    if kind == "missing":
        block = block_at(path[:-1])
        described = block.model_fields[path[-1]].description if block else None
        return "is missing", (described or "").rstrip(".")
    if kind == "extra_forbidden":
        return "unknown key", _known_keys(detail["loc"], path)
    if kind in _LIMITS:
        name, form = _LIMITS[kind]
        return f"is {value}", form.format(context[name])
    if kind == "literal_error":
        valid = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        close = nearest(str(detail["input"]), valid)
        listed = ", ".join(valid)
        return f"`{value}` is unknown", f"did you mean `{close}`? {listed}" if close else listed
    if kind in _KINDS:
        empty = detail.get("input") is None
        return "is empty" if empty else f"`{value}` is of the wrong kind", _KINDS[kind]
    if kind in ("too_short", "too_long"):
        bound = context.get("min_length") or context.get("max_length")
        return (
            f"has {context['actual_length']} items",
            f"{'at least' if kind == 'too_short' else 'at most'} {bound}",
        )
    return f"`{value}`: {detail['msg']}", ""


def _known_keys(loc: tuple[int | str, ...], path: Path_) -> str:
    block = block_at(tuple(str(step) for step in loc[:-1])) or block_at(path[:-1])
    valid = list(block.model_fields) if block else []
    if path[-2:-1] == ("acceptance",) and path[-1] in {*LENGTHS, *SHARES, *READINGS}:
        return f"`specplan acceptance convert gamma=4 {path[-1]}=…` says what it is here"
    close = nearest(path[-1], valid)
    if "batch" in path[-1] and close is None:
        return HINT
    return f"did you mean `{close}`?" if close else f"one of {', '.join(valid)}"


def _settings_of(
    path: Path_, wrong: str, touched: Mapping[Path_, str], by_settings: Container[Path_]
) -> Mapping[Path_, str]:
    """Give all settings; of a contradiction that they made, the one that shares most of its path.

    That one is given as if it were of this path; of several the last that its sentence names.
    """
    if path not in by_settings:
        return touched

    def nearness(setting: Path_) -> tuple[int, bool]:
        pairs = enumerate(zip(path, setting, strict=False))
        same = next((i for i, (a, b) in pairs if a != b), min(len(path), len(setting)))
        return same, setting[-1] in wrong

    return {path: touched[max(reversed(list(touched)), key=nearness)]}


def _placed(
    path: Path_, wrong: str, right: str, source: Source, touched: Mapping[Path_, str]
) -> Fault:
    for set_path, shown in reversed(list(touched.items())):
        if path[: len(set_path)] == set_path or set_path[: len(path)] == path:
            return Fault(wrong, right, shown, field=".".join(path))
    place = source.keys.get(path) if wrong == "unknown key" else source.places.get(path)
    above = path
    while place is None and above:
        above = above[:-1]
        place = source.keys.get(above)
    line, column = place or (None, None)
    return Fault(wrong, right, source.name, line, column, ".".join(path))
