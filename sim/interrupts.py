"""Ctrl-C during a run: at once, except while rows move, which must not be left half moved."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shield:
    """A context in which Ctrl-C waits for the end of the block."""

    def __init__(self) -> None:
        self._inside = self._asked = False

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(self, *_: object) -> None:
        self._inside = False
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt

    def interrupt(self, *_: object) -> None:
        """Handle SIGINT: raise KeyboardInterrupt, now or when the block ends."""
        if not self._inside:
            raise KeyboardInterrupt
        self._asked = True


@contextmanager
def shielding() -> Iterator[Shield]:
    """Give a shield that works where Ctrl-C would raise KeyboardInterrupt.

    Elsewhere (another thread, a worker that ignores Ctrl-C) it changes nothing.
    """
    shield = Shield()
    ordinary = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ordinary or threading.current_thread() is not threading.main_thread():
        yield shield
        return
    signal.signal(signal.SIGINT, shield.interrupt)
    try:
        yield shield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
