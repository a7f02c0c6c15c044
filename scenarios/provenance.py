"""Where an input is from once a setting replaced it: the old label is no longer true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.scenarios.overrides import block_at
from specplan.scenarios.schema_costs import CostBlock

if TYPE_CHECKING:
    from collections.abc import Mapping

Path_ = tuple[str, ...]
OTHERS = "all other inputs"
# What numbers stand under; γ, the scheduler and the cluster are choices, which nobody measures.
_MEASURABLE = ("target", "draft", "workload", "kv_cache")
_ACCEPTANCE = ("speculation", "acceptance")
_OWN = frozenset({"evidence", "source"})  # of a cost: the setting says itself where it is from
_READING = frozenset({"outside", "pads_batch"})  # how a table is read changes no number in it
_CHOICES = frozenset({"gpu", "placement"})


def relabel(data: dict[str, Any], touched: Mapping[Path_, str]) -> None:
    """Label every input that a setting replaced `assumed`, with the setting as its source.

    A setting that brings `evidence` or `source` of its own keeps them; a table or a roofline set
    whole keeps the kind that such a cost has.

    >>> data = {"draft": {"step": {"constant": "1 ms", "evidence": "fitted", "source": "a run"}}}
    >>> relabel(data, {("draft", "step", "constant"): "--set draft.step.constant=1 ms"})
    >>> data["draft"]["step"]["evidence"], data["draft"]["step"]["source"]
    ('assumed', '--set draft.step.constant=1 ms')
    """
    for path, shown in touched.items():
        block = _cost(path)
        if block is None:
            _state(data, path, shown)
        elif not (set(path[len(block) :]) & (_OWN | _READING)):
            _state(data, block, shown, drop=_relabel_cost(data, block, path, shown, touched))


def _cost(path: Path_) -> Path_ | None:
    """Find the cost block that a path lies in."""
    whole = (path[:end] for end in range(1, len(path) + 1))
    return next((part for part in whole if block_at(part) is CostBlock), None)


def _relabel_cost(
    data: dict[str, Any], block: Path_, path: Path_, shown: str, touched: Mapping[Path_, str]
) -> bool:
    """Write the label into a cost; return whether it says all, so that the record need not."""
    cost = _at(data, block)
    if not isinstance(cost, dict):
        return False  # a bare duration: assumed, by what a constant is
    if path == block and cost.keys() & _OWN:
        return True
    if path in (block, (*block, "table"), (*block, "roofline")) and cost.keys() & {
        "table",
        "roofline",
    }:
        if (*block, "evidence") not in touched:
            cost.pop("evidence", None)
    else:
        _unless_set(cost, block, "evidence", "assumed", touched)
    _unless_set(cost, block, "source", shown, touched)
    return True


def _unless_set(
    cost: dict[str, Any], block: Path_, key: str, says: str, touched: Mapping[Path_, str]
) -> None:
    if (*block, key) not in touched:
        cost[key] = says


def _state(data: dict[str, Any], path: Path_, shown: str, *, drop: bool = False) -> None:
    """Replace what the record says of a path, or drop it where the block says it itself."""
    if path[-1] in _CHOICES or (path[0] not in _MEASURABLE and path[:2] != _ACCEPTANCE):
        return
    record = data.setdefault("record", {})
    if not isinstance(record, dict):
        return  # a fault that validation names
    written = record.get("evidence")
    labels: dict[str, Any] = dict(written) if isinstance(written, dict) else {}
    if isinstance(written, str) and written:
        labels[OTHERS] = written
    kept = {key: says for key, says in labels.items() if not _replaced(key, path)}
    if not drop:
        kept[_name(labels, path)] = f"assumed: {shown}"
    if kept:
        record["evidence"] = kept


def _replaced(key: str, path: Path_) -> bool:
    """Tell whether a label is about the path or a part of it; one for a whole section stays."""
    about = tuple(key.split("."))
    deep = min(len(about), len(path))
    return about[:deep] == path[:deep] and len(about) > 1


def _name(labels: Mapping[str, Any], path: Path_) -> str:
    """Keep the name of the label that is replaced; else the block, two levels deep."""
    return next((key for key in labels if _replaced(key, path)), ".".join(path[:2]))


def _at(data: Any, path: Path_) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data
