"""Which points a sweep visits: fields that move alone or together, crossed, or listed in a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.sim.axes import axis_of, parse_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from specplan.sim.axes import Axis

    Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Design:
    """Groups of fields: those of one group move together, the groups are crossed, last fastest."""

    groups: tuple[tuple[Axis, ...], ...]

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each group."""
        return tuple(len(group[0]) for group in self.groups)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Take the first field of each group: what tables and figures are laid out by."""
        return tuple(group[0] for group in self.groups)

    @property
    def fields(self) -> tuple[Axis, ...]:
        """Every varied field."""
        return tuple(axis for group in self.groups for axis in group)

    def settings(self, place: Sequence[int]) -> tuple[str, ...]:
        """Return the `PATH=VALUE` settings of one point, given its index in each group.

        >>> parse_design(["a=1,2; b=x,y", "c=5"]).settings((1, 0))
        ('a=2', 'b=y', 'c=5')
        """
        return tuple(
            f"{axis.path}={axis.values[i]}"
            for group, i in zip(self.groups, place, strict=True)
            for axis in group
        )

    def points(self) -> Iterator[tuple[str, ...]]:
        """Every point as settings, the last group fastest.

        >>> list(parse_design(["a=1,2", "b=x"]).points())
        [('a=1', 'b=x'), ('a=2', 'b=x')]
        """
        return (self.settings(place) for place in product(*map(range, self.shape)))

    def coordinates(self) -> Columns:
        """One column `(points,)` a field, in the order of `points`."""
        found: Columns = {}
        indices = np.indices(self.shape).reshape(len(self.groups), -1)
        for group, at in zip(self.groups, indices, strict=True):
            for axis in group:
                found[axis.column] = axis.table_values[at]
        return found


def parse_design(texts: Sequence[str]) -> Design:
    """Read several `--vary`: each is one field, fields that move together, or a file of points.

    `A=1,2,3` varies one field (forms: `parse_axis`); `A=1,2,3; B=4,5,6` moves both together;
    `@points.csv` takes the points of a CSV file whose header names the fields. Several are
    crossed in the order given. Raises ScenarioError; a field twice is refused.

    >>> parse_design(["a=1,2; b=3,4", "c=0..9"]).shape
    (2, 10)
    """
    groups = tuple(_group(text) for text in texts)
    return _checked(groups)


def design_of(values: Mapping[str, Any]) -> Design:
    """Make a design from Python: fields to lists of values or to a text as `--vary` has it.

    A tuple of names is a group whose rows are tuples. Raises ScenarioError.

    >>> design_of({"speculation.gamma": range(3), "draft.step": "5ms..50ms:10"}).shape
    (3, 10)
    >>> design_of({("a", "b"): [(1, "5 ms"), (2, "6 ms")]}).settings((1,))
    ('a=2', 'b=6 ms')
    """
    groups = []
    for name, given in values.items():
        if not isinstance(given, Iterable):
            right = f"a list, [{given}], a range or a text such as '1,2,4'"
            raise ScenarioError(Fault(f"{given} is one value, no values", right, field=str(name)))
        if isinstance(name, tuple):
            columns = zip(*_rows(name, given), strict=True)
            groups.append(
                tuple(axis_of(path, column) for path, column in zip(name, columns, strict=True))
            )
        elif isinstance(given, str):
            groups.append((parse_axis(f"{name}={given}"),))
        else:
            groups.append((axis_of(name, tuple(map(str, given))),))
    return _checked(tuple(groups))


def _rows(names: tuple[str, ...], given: Iterable[Any]) -> list[tuple[str, ...]]:
    """Return the rows of fields that move together. Raises ScenarioError for another length."""
    rows = []
    for row in given:
        values = (row,) if isinstance(row, str) or not isinstance(row, Iterable) else tuple(row)
        if len(values) != len(names):
            wrong = f"{row} is no row of {len(names)} values"
            right = "one value for each field: (1, '5 ms')"
            raise ScenarioError(Fault(wrong, right, field=", ".join(names)))
        rows.append(tuple(map(str, values)))
    return rows


def _group(text: str) -> tuple[Axis, ...]:
    if text.startswith("@"):
        return _from_file(Path(text[1:]))
    parts = text.split(";")
    axes = tuple(parse_axis(part, distinct=len(parts) == 1) for part in parts)
    lengths = {axis.path: len(axis) for axis in axes}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{path} has {count}" for path, count in lengths.items())
        wrong = f"fields that move together need equally many values: {told}"
        raise ScenarioError(
            Fault(wrong, "equally many, or a --vary of its own for each to cross them", "--vary")
        )
    return axes


def _from_file(path: Path) -> tuple[Axis, ...]:
    """Read a CSV of points: one column a field, one row a point, values as in a scenario file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except OSError as error:
        wrong = f"cannot be read: {error.strerror or error}"
        raise ScenarioError(Fault(wrong, "a CSV file", str(path))) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(Fault("is not UTF-8 text", "a CSV file", str(path))) from error
    except ValueError:
        header, rows = [], []
    if not rows:
        right = "a header of fields (`speculation.gamma,draft.step`), then one point a line"
        raise ScenarioError(Fault("holds no points", right, str(path)))
    faults = [
        Fault(f"{len(row)} values", f"{len(header)}, as in the header", str(path), line)
        for line, row in enumerate(rows, start=2)
        if len(row) != len(header) or "" in row
    ]
    if faults:
        raise ScenarioError(faults)
    columns = zip(*rows, strict=True)
    return tuple(axis_of(name, column) for name, column in zip(header, columns, strict=True))


def _checked(groups: tuple[tuple[Axis, ...], ...]) -> Design:
    paths = [axis.path for group in groups for axis in group]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice or not paths:
        faults = [Fault("is varied twice", "one --vary a field", "--vary", field=p) for p in twice]
        raise ScenarioError(faults or Fault("nothing is varied", "`--vary PATH=VALUES`"))
    return Design(groups)
