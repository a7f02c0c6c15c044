"""Progress of long work on stderr: a bar at a terminal after a second, else a line at times.

Work that answers several questions writes one line for each, in both.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_S = 1.0
LINE_EVERY_S = 10.0  # between two lines where stderr is no terminal


@contextmanager
def reporting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a callback `(done, total)` that shows how far the work is."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _lines(what)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=None)
    begun = time.perf_counter()
    shown = False

    def report(done: int, total: int) -> None:
        nonlocal shown
        if not shown and time.perf_counter() - begun > QUIET_S:
            bar.start()
            shown = True
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if shown:
            bar.stop()


def asking(what: str) -> None:
    """Write one line on stderr: the question whose turn it is."""
    if sys.stderr is not None:
        sys.stderr.write(f"{what} …\n")
        sys.stderr.flush()


def _lines(what: str) -> Callable[[int, int], None]:
    """Write one line every `LINE_EVERY_S`, none for work that is shorter than that."""
    begun = last = time.perf_counter()
    first: int | None = None  # what was there at the first call is not this work's pace

    def report(done: int, total: int) -> None:
        nonlocal last, first
        now = time.perf_counter()
        first = done - 1 if first is None else first
        if now - last >= LINE_EVERY_S and done < total:
            last = now
            left_s = (now - begun) * (total - done) / max(done - first, 1)
            sys.stderr.write(f"{what}: {done:,} of {total:,}, about {_span(left_s)} left\n")

    return report


def _span(seconds: float) -> str:
    """Write a rough time.

    >>> _span(4.2), _span(250.0), _span(7000.0)
    ('5 s', '5 min', '2 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds > size * 1.5:
            return f"{ceil(seconds / size)} {unit}"
    return f"{ceil(seconds)} s"
