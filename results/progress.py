"""A progress bar for long work: on stderr, only at a terminal, only after a second."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_S = 1.0


@contextmanager
def reporting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback `(done, total)`, or None where nobody watches (stderr is not a terminal)."""
    if not sys.stderr.isatty():
        yield None
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
