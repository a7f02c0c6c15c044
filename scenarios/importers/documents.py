"""JSON as tools write it: appended objects, JSON lines, bare NaN and Infinity, cut-off ends."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DECODER = json.JSONDecoder()
MOST_BROKEN = 100
_BLANK = " \t\r\n,\x1e\x00"


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value of a file and the line it starts on."""

    value: object
    line: int


def read_documents(text: str, file: str) -> tuple[list[Document], tuple[str, ...]]:
    r"""Return every JSON value of the text, and what was dropped.

    A value that does not parse is dropped with its line when others do, since appended files and
    JSON lines end in half a line whenever a run was stopped.

    Raises ScenarioError: nothing parses.

    >>> documents, dropped = read_documents('{"a": Infinity}\n{"a": 2}\n{"a"', "f.jsonl")
    >>> [document.value for document in documents], dropped
    ([{'a': inf}, {'a': 2}], ('line 3: cut-off or broken JSON',))
    """
    documents: list[Document] = []
    broken: list[int] = []
    first_fault: Fault | None = None
    at, line, counted = 0, 1, 0
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        line += text.count("\n", counted, at)
        counted = at
        if at >= len(text):
            break
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            broken.append(line)
            first_fault = first_fault or _fault(error, file, line)
            if len(broken) == MOST_BROKEN:
                raise ScenarioError(first_fault) from error
            following = text.find("\n{", at)
            if following < 0:
                break
            at = following
        else:
            documents.append(Document(value, line))
    if not documents:
        raise ScenarioError(first_fault or Fault("the file is empty", "JSON", file=file))
    if not broken:
        return documents, ()
    lines = ", ".join(str(one) for one in broken[:5]) + ", …" * (len(broken) > 5)
    return documents, (f"line {lines}: cut-off or broken JSON",)


def _fault(error: ValueError | RecursionError, file: str, line: int) -> Fault:
    if isinstance(error, json.JSONDecodeError):
        cut = error.pos >= len(error.doc.rstrip())
        wrong = "the JSON is cut off" if cut else f"not JSON: {error.msg.lower()}"
        return Fault(wrong, "a complete JSON value", file, error.lineno, error.colno)
    wrong = "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
    return Fault(f"not JSON: {wrong}", "a complete JSON value", file, line)


@dataclass(slots=True)
class Record:
    """A JSON object with the place it came from; every number is checked as it is taken.

    `missing` collects the fields that hold NaN or Infinity: not measured, never zero.
    """

    value: Mapping[str, object]
    file: str
    line: int
    path: str = ""
    missing: list[str] = field(default_factory=list)

    def fault(self, name: str, wrong: str, right: str) -> ScenarioError:
        """Return the error that names a field of this record."""
        return ScenarioError(
            Fault(wrong, right, file=self.file, line=self.line, field=self._field(name))
        )

    def _field(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def record(self, name: str) -> Record | None:
        """Return the object under this name, None where absent or null."""
        value = self.value.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fault(name, f"{_shown(value)} is not an object", "an object of fields")
        return Record(value, self.file, self.line, self._field(name), self.missing)

    def records(self, name: str) -> list[Record]:
        """Return the objects of a list, an empty list where absent or null."""
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(name, f"{_shown(value)} is not a list", "a list of objects")
        found = []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.fault(
                    f"{name}[{index}]", f"{_shown(item)} is not an object", "an object of fields"
                )
            path = f"{self._field(name)}[{index}]"
            found.append(Record(item, self.file, self.line, path, self.missing))
        return found

    def number(self, *names: str) -> float | None:
        """Return the first of these fields that holds a number; NaN and Infinity are missing."""
        for name in names:
            value = self.value.get(name)
            if value is None:
                continue
            return self._finite(name, value)
        return None

    def _finite(self, name: str, value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(name, f"{_shown(value)} is not a number", "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.missing.append(self._field(name))
            return None
        return number

    def count(self, *names: str) -> float | None:
        """Return a count, 0 or more."""
        value = self.number(*names)
        if value is not None and not 0 <= value < 1e18:
            raise self.fault(_present(self, names), f"{value:g}", "a count, 0 or more")
        return value

    def seconds(self, *names: str, unit_s: float = 1e-3) -> float | None:
        """Return a duration in seconds; zero and negative durations are refused."""
        value = self.number(*names)
        if value is None:
            return None
        if value <= 0:
            raise self.fault(
                _present(self, names),
                f"a duration of {value:g}",
                "above 0: a run that measured nothing writes 0",
            )
        return value * unit_s

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers, empty where absent; NaN inside a list is refused."""
        value = self.value.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.fault(name, f"{_shown(value)} is not a list", "a list of numbers")
        found = []
        for index, item in enumerate(value):
            number = self._finite(f"{name}[{index}]", item)
            if number is None:
                raise self.fault(f"{name}[{index}]", f"{item}", "a finite number")
            found.append(number)
        return tuple(found)

    def histogram(self, name: str) -> tuple[float, ...]:
        """Return rounds by accepted tokens, from a list or from {"0": n, "2": m} with gaps of 0."""
        value = self.value.get(name)
        if isinstance(value, dict):
            keys = [key for key in value if key.isascii() and key.isdecimal() and len(key) < 5]
            if len(keys) < len(value):
                raise self.fault(name, "keys that are no token counts", '{"0": rounds, …}')
            inner = Record(value, self.file, self.line, self._field(name), self.missing)
            size = max((int(key) for key in keys), default=-1) + 1
            counts = tuple(inner.count(str(j)) or 0.0 for j in range(size))
        else:
            counts = self.numbers(name)
        if any(count < 0 for count in counts):
            raise self.fault(name, f"{min(counts):g} rounds", "counts, 0 or more")
        return counts if sum(counts) else ()

    def text(self, *names: str) -> str:
        """Return the first of these fields that holds text, "" where none does."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, str):
                return value
        return ""


def _present(record: Record, names: Sequence[str]) -> str:
    return next(name for name in names if record.value.get(name) is not None)


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def missing_note(record: Record) -> tuple[str, ...]:
    """Return what to say about fields that held NaN or Infinity."""
    if not record.missing:
        return ()
    return ("not measured (NaN or Infinity in the file): " + ", ".join(record.missing),)
