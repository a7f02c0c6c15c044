"""The rows of a trace file, CSV or JSON lines, chunk by chunk into columns."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import re
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.trace_kinds import KINDS, LENGTHS_ONLY, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CHUNK_ROWS = 200_000
MAX_TOKENS = 10_000_000
_MOMENT = re.compile(  # years that nanoseconds in 64 bits reach
    r"((?:19[7-9]|2[01]\d)\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_ANY_YEAR = re.compile(
    r"(?!19[7-9]|2[01]\d)\d{4}-(?:0[1-9]|1[0-2])-\d\d[ T]\d\d:\d\d:\d\d", re.ASCII
)


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in order of arrival, one entry each.

    - arrival_s (n,): seconds from the first arrival
    - prompt_tokens, output_tokens (n,): at least 1
    - hash_ids: prompt blocks of request i are `hash_ids[hash_starts[i]:hash_starts[i + 1]]`, of
      `hash_block_tokens` tokens each; None where the file has none
    """

    kind: str
    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    hash_ids: Ints | None = None
    hash_starts: Ints | None = None
    hash_block_tokens: int = 0


def open_text(path: str) -> TextIO:
    """Open a file as text, unzipped where it is zipped."""
    with Path(path).open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    opened: Any = gzip.open if zipped else open
    text: TextIO = opened(path, "rt", encoding="utf-8-sig", newline="")
    return text


class Reader:
    """Reads one file chunk by chunk; only the columns that count are kept."""

    def __init__(self, path: str, arrivals: bool) -> None:
        self.path, self.arrivals = path, arrivals
        self.rows = 0
        self.keys: dict[str, Any] = {}
        self.zones: set[str | None] = set()

    def trace(self, file: TextIO) -> Trace:
        """Read a whole file; raises ScenarioError."""
        first = next((line for line in file if line.strip()), "")
        if not first:
            raise self.refusal("is empty", "a trace with a request a line")
        if first.lstrip().startswith("["):
            wrong = "is one JSON document (ShareGPT holds texts, not token counts)"
            raise self.refusal(wrong, "one request a line, with token counts and arrivals")
        as_json = first.lstrip().startswith("{")
        names = self.object_of(first) if as_json else next(csv.reader([first]), [])
        header = [name.strip() for name in names]
        kind = self.kind_of(header)
        keys = (kind.time, kind.prompt, kind.output)
        self.keys = {name: name if as_json else header.index(name) for name in keys if name}
        lines = chain([first], file) if as_json else file
        found: list[tuple[Any, ...]] = []
        for rows in self.chunks(lines, 0 if as_json else len(header)):
            found.append(self.columns(kind, rows))
            self.rows += len(rows)
        if not found:
            raise self.refusal("has no requests", "a request on each line below the first")
        return self.assembled(kind, found)

    def kind_of(self, names: Sequence[str]) -> Kind:
        """Tell the kind of a file from its field names."""
        kinds = KINDS if self.arrivals else (*KINDS, *LENGTHS_ONLY)
        for kind in kinds:
            if kind.fields <= set(names):
                return kind
        if any(kind.fields <= set(names) for kind in LENGTHS_ONLY):
            if "delay" in names:
                wrong = "has delays after a former turn, not arrivals"
                raise self.refusal(wrong, "a `timestamp` in each row", 1)
            right = "name it as `workload.lengths`, with arrivals such as `{rate: 4/s}`"
            raise self.refusal("has lengths but no arrivals", right, 1)
        shown = ", ".join(names)[:120]
        right = "Azure, BurstGPT, Mooncake, Bailian, vidur, splitwise-sim, LLMServingSim, dsdSim, "
        right += "aiperf, or `arrival_s,prompt_tokens,output_tokens`"
        raise self.refusal(f"no known trace has the fields {shown}", right, 1)

    def chunks(self, lines: Any, width: int) -> Iterator[list[Any]]:
        """Yield rows: objects of JSON lines (width 0), or lists of so many fields of a CSV."""
        source = csv.reader(lines) if width else (line for line in lines if line.strip())
        while True:
            taken = list(islice(source, CHUNK_ROWS))
            if not taken:
                return
            if width:
                rows = [row for row in taken if row]
                self.check_width(rows, width)
                yield rows
            else:
                yield [self.object_of(line, row) for row, line in enumerate(taken, self.rows)]

    def check_width(self, rows: list[list[str]], width: int) -> None:
        """Refuse rows of a CSV that are shorter or longer than its header."""
        for number, row in enumerate(rows):
            if len(row) != width:
                wrong = f"{len(row)} fields, and the header names {width}"
                raise self.refusal(wrong, "as many in each row", self.line(self.rows + number))

    def object_of(self, line: str, row: int = 0) -> dict[str, Any]:
        """Read one line of JSON lines."""
        try:
            read = json.loads(line)
        except (ValueError, RecursionError) as error:
            wrong = f"is not JSON: {error}"
            raise self.refusal(wrong, "one JSON object a line", self.line(row)) from None
        if not isinstance(read, dict):
            raise self.refusal("is no JSON object", "one object a line", self.line(row))
        return read

    def columns(self, kind: Kind, rows: list[Any]) -> tuple[Any, ...]:
        """Turn a chunk of rows into times, prompt and output lengths, and hash ids."""
        time: NDArray[Any]
        if kind.ticks is None or not self.arrivals:
            time = np.full(len(rows), np.nan)
        else:
            read: Callable[[Any], Any] = decimal
            if kind.ticks in (0, 10**9):  # times of day, whole nanoseconds
                read = whole if kind.ticks else str
            values = self.column(rows, kind.time, read)
            time = self.moments(values) if kind.ticks == 0 else np.array(values)
        lengths = [self.column(rows, name, whole) for name in (kind.prompt, kind.output)]
        prompt, output = (np.array(column, dtype=np.int64) for column in lengths)
        hashed = kind.hash_block_tokens and isinstance(rows[0] if rows else None, dict)
        ids = [row.get("hash_ids") for row in rows] if hashed else [None]
        return time, prompt, output, ids

    def column(self, rows: list[Any], name: str, read: Callable[[Any], Any]) -> list[Any]:
        """Read one field of every row; the row at fault is looked for only when one is."""
        key = self.keys[name]
        try:
            return [read(row[key]) for row in rows]
        except (ValueError, TypeError, KeyError, OverflowError):
            for number, row in enumerate(rows):
                try:
                    read(row[key])
                except (ValueError, TypeError, OverflowError):
                    wrong, right = f"`{row[key]}` is no {name}", "a number"
                except KeyError:
                    wrong, right = f"{name} is missing", f"{name} in each row"
                else:
                    continue
                raise self.refusal(wrong, right, self.line(self.rows + number), name) from None
            raise

    def moments(self, stamps: list[str]) -> Ints:
        """Turn times of day into nanoseconds; seven digits of fraction and one zone are fine."""
        found = [_MOMENT.fullmatch(stamp.strip()) for stamp in stamps]
        self.zones |= {match[2] for match in found if match}
        if len(self.zones) > 1:
            raise self.refusal("the times are in several zones", "one zone for all")
        plain = [match[1] if match else "" for match in found]
        with contextlib.suppress(ValueError):
            moments = np.array(plain, dtype="datetime64[ns]")
            if all(found):
                return moments.astype(np.int64)
        number = next(i for i, stamp in enumerate(plain) if not _is_moment(stamp))
        right = "a time such as `2023-11-16 18:17:03.9799600`"
        line = self.line(self.rows + number)
        wrong = f"`{stamps[number]}` is no time"
        if _ANY_YEAR.match(stamps[number].strip()):
            wrong, right = f"`{stamps[number]}` is out of reach", "a year from 1970 to 2199"
        raise self.refusal(wrong, right, line)

    def assembled(self, kind: Kind, found: list[tuple[Any, ...]]) -> Trace:
        """Join the chunks and check what only the whole shows."""
        time, prompt, output = (np.concatenate([part[i] for part in found]) for i in range(3))
        self.check_tokens(kind.prompt, prompt)
        self.check_tokens(kind.output, output)
        if self.arrivals:
            self.check_order(kind.time, time)
        arrival_s = (time - time[0]) / float(kind.ticks or 10**9)
        every = [ids for part in found for ids in part[3]]
        if not kind.hash_block_tokens or not all(isinstance(ids, list) for ids in every):
            return Trace(kind.name, arrival_s, prompt, output)
        starts = np.cumsum([0, *(len(ids) for ids in every)], dtype=np.int64)
        try:
            flat = np.fromiter(chain.from_iterable(every), dtype=np.int64, count=int(starts[-1]))
        except (ValueError, TypeError, OverflowError):
            raise self.refusal("hash_ids are not whole numbers", "lists of numbers") from None
        return Trace(kind.name, arrival_s, prompt, output, flat, starts, kind.hash_block_tokens)

    def check_tokens(self, name: str, tokens: Ints) -> None:
        """Refuse requests without tokens, and with more than any model holds."""
        bad = np.flatnonzero(tokens < 1)
        if len(bad):
            line = self.line(int(bad[0]))
            wrong = f"{tokens[bad[0]]} tokens, as in {len(bad)} of {len(tokens)} requests"
            right = "at least 1; leave out requests that failed"
            raise self.refusal(wrong, right, line, name)
        if tokens.max() > MAX_TOKENS:
            line = self.line(int(np.argmax(tokens)))
            raise self.refusal(f"{tokens.max()} tokens", f"at most {MAX_TOKENS}", line, name)

    def check_order(self, name: str, time: NDArray[Any]) -> None:
        """Refuse arrivals that are no times or go back in time."""
        bad = np.flatnonzero(~np.isfinite(time))
        if len(bad):
            raise self.refusal("is not a time", "a number", self.line(int(bad[0])), name)
        back = np.flatnonzero(np.diff(time) < 0)
        if len(back):
            line = self.line(int(back[0]) + 1)
            wrong = f"goes back in time, as {len(back)} of {len(time)} rows do"
            raise self.refusal(wrong, "rows sorted by arrival", line, name)

    def line(self, row: int) -> int:
        """Count the line of a request (from 1): blank lines count, header lines too."""
        with open_text(self.path) as file:
            begins_json = next((line for line in file if line.strip()), "").lstrip()[:1] == "{"
            file.seek(0)
            reader = csv.reader(file) if not begins_json else None
            rows = reader if reader is not None else (line.strip() for line in file)
            filled = -1 if reader is not None else 0  # the header is no request
            for number, content in enumerate(rows, start=1):
                if content and filled == row:
                    return reader.line_num if reader is not None else number
                filled += bool(content)
        return row + 1

    def refusal(
        self, wrong: str, right: str, line: int | None = None, field: str = ""
    ) -> ScenarioError:
        """Make the error of this file."""
        return ScenarioError(Fault(wrong, right, self.path, line, None, field))


def whole(value: Any) -> int:
    """Read a whole number of up to 62 bits; raises ValueError or OverflowError."""
    number = int(value)
    if isinstance(value, bool) or (isinstance(value, float) and number != value):
        raise ValueError
    if not -(2**62) < number < 2**62:
        raise OverflowError
    return number


def decimal(value: Any) -> float:
    """Read a number that is no boolean."""
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _is_moment(stamp: str) -> bool:
    try:
        np.datetime64(stamp, "ns")
    except ValueError:
        return False
    return bool(stamp)
