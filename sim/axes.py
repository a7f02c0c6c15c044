"""The axes of a sweep as people write them: `speculation.gamma=0..8`, `draft.step=5ms..50ms:10`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.units import (
    UnitError,
    format_duration,
    parse_bytes,
    parse_duration,
    parse_fraction,
    parse_rate,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMS = "a list `1,2,4`, whole numbers `0..8`, a range `5ms..50ms:10` or a log range `1ms..1s:log7`"
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)
_UNITS = (  # what a column is called for what its values are written in
    ("_s", parse_duration),
    ("_bytes", parse_bytes),
    ("_per_s", parse_rate),
    ("", parse_fraction),
)


@dataclass(frozen=True, eq=False)
class Axis:
    """One varied field: its path in the scenario, and its values as written in the file.

    `numbers (n,)` are the values in seconds, bytes, tokens …; None where they are names (`router`).
    `column` is the field's name in tables, with the unit its numbers have.
    """

    path: str
    values: tuple[str, ...]
    numbers: NDArray[np.float64] | None
    column: str

    def __len__(self) -> int:
        return len(self.values)

    @property
    def table_values(self) -> NDArray[np.float64] | NDArray[np.str_]:
        """Numbers where there are numbers, otherwise the values as text."""
        return np.array(self.values) if self.numbers is None else self.numbers

    def taken(self, where: NDArray[np.intp]) -> Axis:
        """Return the axis with only the values at `where`."""
        numbers = None if self.numbers is None else self.numbers[where]
        return Axis(self.path, tuple(self.values[i] for i in where), numbers, self.column)


def parse_axis(text: str, *, distinct: bool = True) -> Axis:
    """Read one `--vary PATH=VALUES`.

    VALUES is a list `1,2,4`; whole numbers `0..8`, both ends included; a range `5ms..50ms:10` of
    ten values, both ends included; or a log range `1ms..1s:log7`. Raises ScenarioError for
    anything else, and for a value named twice where they must be `distinct`.

    >>> parse_axis("speculation.gamma=0..3").values
    ('0', '1', '2', '3')
    >>> axis = parse_axis("draft.step=500us..1.5ms:3")
    >>> axis.values, axis.column, axis.numbers.tolist()
    (('500 us', '1 ms', '1.5 ms'), 'draft.step_s', [0.0005, 0.001, 0.0015])
    >>> parse_axis("workload.arrivals.rate=1/s..100/s:log3").numbers.tolist()
    [1.0, 10.0, 100.0]
    """
    path, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not path or not written:
        raise ScenarioError(Fault(f"`{text}` is not PATH=VALUES", FORMS, file="--vary"))
    if ".." in written:
        values = _range(path, written)
    else:
        values = tuple(value.strip() for value in _split_list(written))
    if "" in values:
        raise _fault(path, f"`{written}` has an empty value", FORMS)
    if distinct and len(set(values)) < len(values):
        raise _fault(path, f"`{written}` names a value twice", FORMS)
    return axis_of(path, values)


def _range(path: str, written: str) -> tuple[str, ...]:
    ends, colon, count_text = written.partition(":")
    low_text, _, high_text = ends.partition("..")
    logarithmic = count_text.strip().startswith("log")
    count_text = count_text.strip().removeprefix("log")
    low, low_unit = _number_and_unit(path, low_text)
    high, high_unit = _number_and_unit(path, high_text)
    if not colon:
        if low_unit or high_unit or low != int(low) or high != int(high):
            raise _fault(path, f"`{written}` does not say how many values", f"`{written}:10`")
        if high < low:
            raise _fault(path, f"`{written}` runs backwards", f"`{high_text}..{low_text}`")
        if high - low > 1e7:
            raise _fault(
                path,
                f"`{written}` has {high - low:.3g} values",
                "a range with a count: `0..1e9:100`",
            )
        return tuple(str(n) for n in range(int(low), int(high) + 1))
    count = int(count_text) if count_text.isdigit() else 0
    if not 2 <= count <= 10_000_000:
        raise _fault(
            path,
            f"`{colon}{count_text}` is not a number of values",
            "2 to 10,000,000: `:10`, `:log10`",
        )
    if low_unit != high_unit and not (low_unit and high_unit):
        if low == 0 or high == 0:  # `0..5ms`: zero needs no unit
            low_unit = high_unit = low_unit or high_unit
        else:
            raise _fault(
                path,
                f"`{ends}` has a unit on one end only",
                f"`{low_text}{high_unit or low_unit}..`",
            )
    if low_unit == high_unit:
        numbers = _spaced(path, written, low, high, count, logarithmic=logarithmic)
        if low_unit not in {"us", "ms", "s", "ns", "µs", "μs"}:
            return tuple(
                f"{number:.12g}{' ' * low_unit[:1].isalpha()}{low_unit}" for number in numbers
            )
    try:
        low, high = parse_duration(low_text.strip()), parse_duration(high_text.strip())
    except UnitError as error:
        raise _fault(
            path, f"`{ends}` has two units, and {error.wrong}", "the same unit on both ends"
        ) from error
    seconds = _spaced(path, written, low, high, count, logarithmic=logarithmic)
    return tuple(format_duration(float(f"{second:.12g}")) for second in seconds)


def _spaced(
    path: str, written: str, low: float, high: float, count: int, *, logarithmic: bool
) -> NDArray[np.float64]:
    if high <= low:
        raise _fault(path, f"`{written}` does not rise", "the smaller end first")
    if logarithmic and low <= 0:
        raise _fault(
            path, f"`{written}`: a log range cannot start at {low:g}", "a start above zero"
        )
    return np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)


def _number_and_unit(path: str, text: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise _fault(path, f"`{text}` is not a number with a unit", FORMS)
    return float(match[1]), match[2].strip()


def axis_of(path: str, values: tuple[str, ...]) -> Axis:
    """Make an axis of values as written: as numbers (in seconds, bytes, …) where all are numbers.

    Fields that move together may repeat a value. Whether a value suits its field
    is the scenario's business.

    >>> axis_of("draft.step", ("5 ms", "1 s")).numbers.tolist()
    [0.005, 1.0]
    """
    try:
        return Axis(path, values, np.array([float(value) for value in values]), path)
    except ValueError:
        pass
    for suffix, parse in _UNITS:
        try:
            return Axis(path, values, np.array([parse(value) for value in values]), path + suffix)
        except UnitError:
            continue
    return Axis(path, values, None, path)


def _split_list(written: str) -> list[str]:
    """Split at commas outside brackets: `{alpha: 0.5},{conditional: [.8, .6]}` is two values."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(written):
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append(written[start:position])
            start = position + 1
    return [*parts, written[start:]]


def _single(path: str, wrong: str, right: str) -> Fault:
    return Fault(wrong, right, file="--vary", field=path)


def _fault(path: str, wrong: str, right: str) -> ScenarioError:
    return ScenarioError(_single(path, wrong, right))
