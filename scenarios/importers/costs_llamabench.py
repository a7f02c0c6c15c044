"""llama-bench results (csv, json, jsonl): plain steps by depth, and passes of a few prompt tokens.

`avg_ns` is for the whole test: n_gen steps of width 1, or one pass of n_prompt positions while
that fits n_ubatch. `-p 1,2,3,4,5,8,9` therefore measures the verify pass at those widths.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIND = "llama-bench"


def is_row(row: Mapping[str, Any]) -> bool:
    """Return whether the row is one test of llama-bench."""
    return {"n_prompt", "n_gen"} <= row.keys() and bool({"avg_ns", "avg_ts"} & row.keys())


def read_rows(rows: Sequence[Mapping[str, Any]], file: str) -> list[PassTimes]:
    """Return the passes of each model and backend in the file.

    Raises ScenarioError: a row whose numbers are not numbers, or no usable test.
    """
    by_system: dict[str, list[Pass]] = {}
    skipped: dict[str, None] = {}
    for place, row in enumerate(rows, start=1):
        name = " ".join(
            str(row[key]) for key in ("model_type", "backends", "gpu_info") if row.get(key)
        )
        one, why = _pass(row, file, place)
        if one is None:
            skipped[why] = None
        else:
            by_system.setdefault(name, []).append(one)
    if not by_system:
        wrong = "; ".join(skipped) or "no test"
        raise ScenarioError(Fault(wrong, "tests with -n alone or -p alone", file))
    notes = ("steps and passes of one sequence; no sampling in the times", *skipped)
    return [
        checked(PassTimes(file, KIND, tuple(passes), notes, label=name), file)
        for name, passes in by_system.items()
    ]


def _pass(row: Mapping[str, Any], file: str, place: int) -> tuple[Pass | None, str]:
    prompt, generated = _number(row, "n_prompt", file, place), _number(row, "n_gen", file, place)
    depth = _number(row, "n_depth", file, place) if row.get("n_depth") else 0.0
    if prompt and generated:
        return None, "tests of prompt and generation together (-pg) left out"
    if row.get("avg_ns"):
        seconds = _number(row, "avg_ns", file, place) * 1e-9
    else:
        seconds = (prompt + generated) / _number(row, "avg_ts", file, place)
    if generated:
        return Pass(1.0, 1.0, depth + (generated - 1) / 2, seconds / generated), ""
    limit = _number(row, "n_ubatch", file, place) if row.get("n_ubatch") else 512.0
    if not prompt or prompt > limit:
        return None, f"prompts longer than n_ubatch = {limit:g} left out: several passes"
    return Pass(1.0, prompt, depth, seconds), ""


def _number(row: Mapping[str, Any], name: str, file: str, place: int) -> float:
    try:
        value = float(row[name])
    except (KeyError, TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf or (value == 0 and name.startswith("avg_")):
        wrong = f"{row.get(name)!r} is no measurement"
        raise ScenarioError(Fault(wrong, "a number", file, field=f"test {place} {name}"))
    return value
