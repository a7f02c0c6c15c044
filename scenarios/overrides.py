"""`--set a.b.c=VALUE`: one leaf of a scenario replaced, whatever form the file gave it."""

from __future__ import annotations

import typing
from types import NoneType, UnionType
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from specplan.scenarios.errors import Fault, ScenarioError, shortened
from specplan.scenarios.fields import Choice, Typed
from specplan.scenarios.schema import Scenario
from specplan.scenarios.schema_costs import CostBlock, LinearCost
from specplan.scenarios.source import parse_value

Path_ = tuple[str, ...]
_MEASURED_AT_GAMMA = {"acceptance_length", "recorded", "recorded_file"}


def apply_sets(data: dict[str, Any], sets: typing.Iterable[str]) -> dict[Path_, str]:
    """Write every `PATH=VALUE` into `data`, in order; return the paths with their own text.

    VALUE is YAML. Blocks on the way are made; choosing one alternative of a block drops the
    others; an acceptance_length keeps the γ at which the file states it.
    Raises ScenarioError that names the --set.

    >>> data = {"target": {"round": "100 ms"}}
    >>> _ = apply_sets(data, ["target.round.linear.base=6 ms"])
    >>> data
    {'target': {'round': {'linear': {'base': '6 ms'}}}}
    """
    touched: dict[Path_, str] = {}
    sets = list(sets)
    names = [text.partition("=")[0] for text in sets]
    if "speculation.gamma" in names and not any(_states_acceptance(name) for name in names):
        _pin_measured_gamma(data)
    faults = []
    for text in sets:
        shown = f"--set {shortened(text, 200)}"
        try:
            path = _apply(data, text)
            touched[path] = shown
        except ScenarioError as error:
            faults += [Fault(fault.wrong, fault.right, shown) for fault in error.faults]
    if faults:
        raise ScenarioError(faults)
    return touched


def block_at(path: Path_) -> type[BaseModel] | None:
    """Return the schema of the block at a path; None where a leaf or nothing is.

    >>> block_at(("target", "round", "linear")).__name__
    'LinearCost'
    """
    block: type[BaseModel] | None = Scenario
    within: Any = None
    for key in path:
        if within is not None:
            block, within = within, None
            continue
        if block is None or key not in block.model_fields:
            return None
        block, within = inside(block.model_fields[key].annotation)
    return block if within is None else None


def inside(annotation: Any) -> tuple[type[BaseModel] | None, type[BaseModel] | None]:
    """Find the block an annotation stands for, or the block of the items it lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, None
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return inside(arguments[0])
    if origin is tuple and arguments:
        return None, inside(arguments[0])[0]
    if origin in (UnionType, typing.Union):
        inner = [inside(argument) for argument in arguments if argument is not NoneType]
        return next((found for found in inner if any(found)), (None, None))
    return None, None


def _apply(data: dict[str, Any], text: str) -> Path_:
    name, equals, value_text = text.partition("=")
    keys = [key.strip() for key in name.split(".")]
    if not equals or not all(keys):
        raise ScenarioError(
            Fault(f"`{shortened(text)}` sets nothing", "`--set speculation.gamma=3`")
        )
    value = _typed(parse_value(value_text))
    holder: Any = data
    path: Path_ = ()
    while True:
        block = block_at(path)
        if block is CostBlock and keys[0] in LinearCost.model_fields:
            keys.insert(0, "linear")
            if isinstance(holder, dict) and "constant" in holder:  # a constant is a base alone
                holder["linear"] = {"base": holder.pop("constant")}
        key = keys.pop(0)
        if isinstance(holder, list):
            key = _index(holder, key, path)
        elif block is not None and issubclass(block, Choice):
            _choose(holder, block, key)
        if not keys:
            _store(holder, key, value)
            return (*path, key)
        path = (*path, key)
        holder = _descend(holder, key, block_at(path))


def _descend(holder: Any, key: str, block: type[BaseModel] | None) -> Any:
    """Step into `holder[key]`, which becomes a block if it is none."""
    inner = holder[int(key)] if isinstance(holder, list) else holder.get(key)
    if block is not None and issubclass(block, Choice) and inner is not None:
        try:
            inner = block.spell_out(inner)
        except PydanticCustomError:
            inner = None
    if not isinstance(inner, dict | list):
        inner = {}
    _store(holder, key, inner)
    return inner


def _store(holder: Any, key: str, value: Any) -> None:
    holder[int(key) if isinstance(holder, list) else key] = value


def _index(holder: list[Any], key: str, path: Path_) -> str:
    if not key.isdigit() or int(key) >= len(holder):
        listed = ".".join(path)
        raise ScenarioError(
            Fault(f"{listed} is a list of {len(holder)}", f"`{listed}.0` … `.{len(holder) - 1}`")
        )
    return key


def _choose(holder: dict[str, Any], block: type[Choice], key: str) -> None:
    """Drop what `key` excludes: the other alternatives, and the keys that belong to them only."""
    if key in block.alternatives:
        for other in block.alternatives:
            if other != key:
                holder.pop(other, None)
        for name, owners in block.belongs.items():
            if key not in owners:
                holder.pop(name, None)


def _states_acceptance(name: str) -> bool:
    """Tell whether a setting brings what was measured, and not only a rule beside it."""
    before, _, last = name.rpartition(".")
    return last == "acceptance" or (
        ".acceptance" in before and last in {*_MEASURED_AT_GAMMA, "at_gamma", "mixture"}
    )


def _pin_measured_gamma(data: dict[str, Any]) -> None:
    """State the γ of an acceptance_length before γ changes: τ at 3 is not τ at 5."""
    speculation = data.get("speculation")
    if not isinstance(speculation, dict) or not isinstance(speculation.get("gamma"), int):
        return
    classes = (
        data.get("workload", {}).get("classes") if isinstance(data.get("workload"), dict) else {}
    )
    owners = [speculation, *(classes.values() if isinstance(classes, dict) else [])]
    for owner in owners:
        block = owner.get("acceptance") if isinstance(owner, dict) else None
        parts = block.get("mixture", [block]) if isinstance(block, dict) else []
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict) and part.keys() & _MEASURED_AT_GAMMA:
                part.setdefault("at_gamma", speculation["gamma"])


def _typed(value: Any) -> Any:
    if isinstance(value, str):
        return Typed(value)
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return value
