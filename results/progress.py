"""Progress of long work on stderr: a bar at a terminal after a second, else a line at times.

Work that answers several questions writes one line for each, in both.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
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
    last = time.perf_counter()

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= LINE_EVERY_S and done < total:
            last = now
            sys.stderr.write(f"{what}: {done:,} of {total:,}\n")

    return report
