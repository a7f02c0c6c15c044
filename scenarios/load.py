"""Scenario files and bundled names to validated scenarios, with every fault at its place."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.explain import contradictions_of, explain
from specplan.scenarios.overrides import apply_sets
from specplan.scenarios.provenance import relabel
from specplan.scenarios.schema import Scenario
from specplan.scenarios.source import Source, read_source

if TYPE_CHECKING:
    from collections.abc import Iterable

LIBRARY = Path(__file__).resolve().parent / "library"
PUBLISHED = LIBRARY.with_name("published")


def load(name_or_path: str | Path, sets: Iterable[str] = ()) -> Scenario:
    """Load a bundled scenario by name or a file by path, with `PATH=VALUE` settings applied.

    Relative paths in a file start at its folder, those in `sets` at the current one.
    Raises ScenarioError with everything that is wrong.

    >>> load("toy-20ms", ["speculation.gamma=3"]).gamma
    3
    """
    path = find(name_or_path)
    return validated(read_source(path), sets, path.parent)


def override(scenario: Scenario, sets: Iterable[str]) -> Scenario:
    """Apply `PATH=VALUE` settings to a loaded scenario, as `load` does.

    >>> override(load("toy-20ms"), ["draft.step=50 ms"]).draft.step.constant
    0.05
    """
    return validated(Source("", scenario.resolved()), sets, Path())


def validated(source: Source, sets: Iterable[str] = (), folder: Path | None = None) -> Scenario:
    """Validate the values of a source; raises ScenarioError with every fault at its place."""
    sets = list(sets)
    unset = deepcopy(source.data) if sets else None
    touched = apply_sets(source.data, sets)
    relabel(source.data, touched)
    faults = list(source.faults)
    try:
        scenario = Scenario.model_validate(source.data, context={"folder": folder or Path()})
    except ValidationError as error:
        told = set() if unset is None else contradictions_of(unset, folder or Path())
        faults += explain(error, source, touched, told)
        raise ScenarioError(faults) from None
    if faults:
        raise ScenarioError(faults)
    return scenario


def bundled() -> dict[str, Path]:
    """Return the bundled scenarios: path by name."""
    return {path.stem: path for path in sorted(LIBRARY.glob("*.yaml"))}


def published() -> dict[str, Path]:
    """Return the bundled scenarios of published measurements: path by name."""
    return {path.stem: path for path in sorted(PUBLISHED.glob("*.yaml"))}


def find(name_or_path: str | Path) -> Path:
    """Find the file of a name or path: a file that exists, or else a bundled or published name.

    Raises ScenarioError that lists the bundled names.
    """
    text = str(name_or_path)
    if not text:
        raise ScenarioError(Fault("the name of the scenario is empty", "a file or a bundled name"))
    names = {**published(), **bundled()}
    if text in names and not Path(text).is_file():
        return names[text]
    path = Path(text)
    try:
        if path.is_dir() and (path / "scenario.yaml").is_file():
            raise ScenarioError(Fault("is a folder", f"`{path / 'scenario.yaml'}`", text))
        if path.exists() or path.is_symlink():  # a broken link says itself what is wrong with it
            return path
    except (OSError, ValueError):
        pass  # a name too long or with a NUL byte is no file
    close = nearest(text, names)
    right = f"did you mean `{close}`? " if close else "a file, or "
    listed = f"bundled: {', '.join(bundled())}"
    raise ScenarioError(Fault("no such file and no bundled scenario", right + listed, text))


def schema_json() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a scenario file, for editors."""
    schema: dict[str, Any] = Scenario.model_json_schema(mode="validation")
    classes = schema["$defs"]["Workload"]["properties"]["classes"]
    item = classes.pop("items")
    schema["$defs"]["RequestClass"]["properties"].pop("name")
    schema["$defs"]["RequestClass"].pop("required", None)
    classes.update(type="object", additionalProperties=item, default={})
    _name_bounds(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# pydantic leaves its own names of bounds on fields that a validator of ours reads first.
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def _name_bounds(schema: Any) -> None:
    """Give bounds the names of JSON Schema, which editors know."""
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            _name_bounds(part)
    if isinstance(schema, dict):
        for own, standard in _BOUNDS.items():
            if isinstance(schema.get(own), int | float):
                schema[standard] = schema.pop(own)


def to_yaml(scenario: Scenario) -> str:
    """Write a scenario with everything that is set, as a file that loads to the same scenario."""
    return _yaml(scenario.resolved())


def _yaml(value: Any, indent: int = 0) -> str:
    lines = []
    for key, item in value.items():
        if isinstance(item, dict) and item:
            lines.append(f"{' ' * indent}{key}:\n{_yaml(item, indent + 2)}")
        else:
            lines.append(f"{' ' * indent}{key}: {json.dumps(item, ensure_ascii=False)}\n")
    return "".join(lines)
