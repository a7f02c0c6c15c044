"""Measured pass times from CSV, JSON or Parquet to a table cost, every fault with its line."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import cost as costs
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from specplan.models.cost import Cost

_AXES = {
    "batch": ("batch", "batch_size", "sequences"),
    "width": ("width", "tokens_per_sequence", "query_len"),
    "context": ("context_tokens", "context", "kv_len"),
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0}
_PER_TOKEN = "_per_token"
RELATIVE = "relative"
_ONE_STEP = "`relative_to: 40 ms` beside `table`; for calibrate `--baseline '40 ms'`"
_TIME_WITHOUT_UNIT = ("time", "latency", "duration", "median", "mean", "cost")
_MOST_HOLES_NAMED = 5


@dataclass(frozen=True)
class Row:
    """One measured pass of a file: seconds over batch, width and context, and its place there."""

    batch: float
    width: float
    context: float
    seconds: float
    place: int  # line of a CSV file, number of the row elsewhere


def read_cost_table(
    path: Path,
    *,
    pads_batch: bool = False,
    outside: str = "refuse",
    provenance: str = "measured",
    source: str = "",
    step_s: float | None = None,
) -> Cost:
    """Read whole-pass times: columns `batch`, `width`, perhaps `context_tokens`, and a time.

    The time's column ends in its unit: `ms`, `verify_us`, `latency_s`; `ms_per_token` is the time
    of the pass over its positions, batch × width. A column `relative`, or `relative_per_token`,
    counts plain steps of `step_s`. JSON is a list of objects with these keys.
    `pads_batch` and `outside` are those of `models.cost.table`.

    Raises ScenarioError with all faults: missing columns and units, what is not a number, times
    that are not positive, duplicates, holes, and times that fall with width.
    """
    rows = read_rows(path, step_s, counted=step_s is not None)
    batches = sorted({row.batch for row in rows})
    widths = sorted({row.width for row in rows})
    contexts = sorted({row.context for row in rows})
    _check_complete(path, rows, [batches, widths, contexts])
    times = np.empty((len(batches), len(widths), len(contexts)))
    for row in rows:
        at = batches.index(row.batch), widths.index(row.width), contexts.index(row.context)
        times[at] = row.seconds
    try:
        return costs.table(
            batches,
            widths,
            times,
            contexts,
            pads_batch=pads_batch,
            outside=outside,
            provenance=provenance,
            source=source or str(path),
        )
    except ValueError as error:
        wrong, _, right = str(error).rstrip(")").partition(" (")
        raise ScenarioError(Fault(wrong, right, file=str(path))) from error


def counts_steps(names: Iterable[str]) -> bool:
    """Tell whether a table of these columns holds ratios to a plain step, not times.

    >>> counts_steps(["batch", "width", "relative_per_token"]), counts_steps(["batch", "ms"])
    (True, False)
    """
    units = {_unit(name) for name in names}
    return RELATIVE in units and not units & _SECONDS.keys()


def read_rows(path: Path, step_s: float | None = None, *, counted: bool = False) -> list[Row]:
    """Read the passes of a file as they stand: any points, also some of them several times.

    `step_s` is the plain step that a relative column counts; `counted`: there must be such a one.

    Raises ScenarioError as `read_cost_table`, but for duplicates, holes and falling times.
    """
    if path.suffix not in {".csv", ".json", ".parquet"}:
        right = "a table ending in .csv, .json or .parquet"
        raise ScenarioError(
            Fault(f"{path.suffix or 'no'} ending is not known", right, file=str(path))
        )
    try:
        records = _records(path)
    except OSError as error:
        right = "a table of pass times"
        raise ScenarioError(
            Fault(f"cannot be read: {error.strerror or error}", right, file=str(path))
        ) from error
    except ValueError as error:
        right = "a list of objects with batch, width and a time"
        raise ScenarioError(Fault(f"is not a table: {error}", right, file=str(path))) from error
    if counted and records and not counts_steps(name for name in records[0][1] if name):
        right = "a column `relative` or `relative_per_token`, or no relative_to"
        raise ScenarioError(Fault("relative_to, and no ratios to count", right, file=str(path)))
    return _parsed(path, records, step_s)


def _records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read rows with their place, whatever the format."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            return [(reader.line_num, row) for row in reader]
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    else:
        rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of objects")
    return list(enumerate(rows, start=1))


def _parsed(
    path: Path, records: list[tuple[int, dict[str, Any]]], step_s: float | None
) -> list[Row]:
    if not records:
        raise ScenarioError(Fault("has no rows", "one row per measured pass", file=str(path)))
    names = [name for name in records[0][1] if name]
    other = next((mark for mark in ";\t" if mark in names[0]), "") if len(names) == 1 else ""
    if other:
        wrong = f"columns are separated by {other!r}"
        raise ScenarioError(_fault(path, 1, "", wrong, "commas, and decimal points"))
    columns = _columns(path, names, step_s)
    faults: list[Fault] = []
    rows: list[Row] = []
    for place, record in records:
        numbers: dict[str, float] = {}
        for field, (column, factor) in columns.items():
            value = _number(record.get(column))
            least = 1.0 if field in {"batch", "width"} else 0.0
            if value is None or value < least or (field == "seconds" and value <= 0):
                right = "a time above 0" if field == "seconds" else f"a number, {least:g} or more"
                right += ", with a decimal point" if "," in str(record.get(column)) else ""
                faults.append(_fault(path, place, column, f"is {record.get(column)!r}", right))
            else:
                numbers[field] = value * factor
        if len(numbers) == len(columns):
            numbers.setdefault("context", 0.0)
            if columns["seconds"][0].strip().lower().endswith(_PER_TOKEN):
                numbers["seconds"] *= numbers["batch"] * numbers["width"]
            rows.append(Row(**numbers, place=place))
    if faults:
        raise ScenarioError(faults)
    return rows


def _columns(path: Path, names: list[str], step_s: float | None) -> dict[str, tuple[str, float]]:
    """Find the columns by name: for each field the column and the factor to seconds."""
    found: dict[str, tuple[str, float]] = {}
    faults: list[Fault] = []
    for axis, aliases in _AXES.items():
        column = next((name for name in names if name.strip().lower() in aliases), None)
        if column is not None:
            found[axis] = (column, 1.0)
        elif axis != "context":
            right = f"a column named {' or '.join(aliases)}"
            faults.append(_fault(path, 1, "", f"column {axis} is missing", right))
    units = {name: _unit(name) for name in names}
    to_seconds = _SECONDS if step_s is None else {**_SECONDS, RELATIVE: step_s}
    timed = [name for name, unit in units.items() if unit in to_seconds]
    if len(timed) == 1:
        found["seconds"] = (timed[0], to_seconds[units[timed[0]]])
    elif counts_steps(names):
        wrong = "the ratios are to a plain step, and none is stated"
        faults.append(_fault(path, 1, "", wrong, _ONE_STEP))
    elif timed:
        right = "one column of times"
        faults.append(_fault(path, 1, "", f"columns {', '.join(timed)} are all times", right))
    else:
        bare = next((n for n in names if n.strip().lower().startswith(_TIME_WITHOUT_UNIT)), None)
        wrong = f"column {bare} has no unit" if bare else "no column holds a time"
        right = f"a column named {bare or 'pass'}_ms, _us, _ns or _s"
        faults.append(_fault(path, 1, "", wrong, right))
    if faults:
        raise ScenarioError(faults)
    return found


def _unit(name: str) -> str:
    """Find the unit that a column's name ends in: `verify_ms` and `ms_per_token` are in ms."""
    return name.strip().lower().removesuffix(_PER_TOKEN).rpartition("_")[2]


def _check_complete(path: Path, rows: list[Row], axes: list[list[float]]) -> None:
    """Refuse points measured twice and points of the grid that were not measured."""
    faults: list[Fault] = []
    seen: dict[tuple[float, ...], int] = {}
    for row in rows:
        point = (row.batch, row.width, row.context)
        if point in seen:
            at = "line" if path.suffix == ".csv" else "row"
            wrong = f"{_named(point)} is there already, on {at} {seen[point]}"
            faults.append(_fault(path, row.place, "", wrong, "each point once: take the median"))
        seen.setdefault(point, row.place)
    holes = [point for point in product(*axes) if point not in seen]
    faults += [
        Fault(f"{_named(point)} is not measured", "every batch with every width", file=str(path))
        for point in holes[:_MOST_HOLES_NAMED]
    ]
    if len(holes) > _MOST_HOLES_NAMED:
        more = f"{len(holes) - _MOST_HOLES_NAMED} more points are not measured"
        faults.append(Fault(more, "every batch with every width", file=str(path)))
    if faults:
        raise ScenarioError(faults)


def _named(point: tuple[float, ...]) -> str:
    return f"batch {point[0]:g}, width {point[1]:g}, context {point[2]:g}"


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _fault(path: Path, place: int, column: str, wrong: str, right: str) -> Fault:
    """Say where a fault is: by line in a CSV file, by row number elsewhere."""
    if path.suffix == ".csv":
        return Fault(wrong, right, file=str(path), line=place, field=column)
    return Fault(wrong, right, file=str(path), field=f"row {place} {column}".strip())
