"""Where the points of a sweep are computed: processes here, or the workers of a Dask cluster.

Both are a `concurrent.futures.Executor`; nothing else in specplan knows which one it is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from multiprocessing import active_children, get_context, parent_process
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

ANSWER_S = 10.0  # a scheduler that is there answers within milliseconds


@contextmanager
def local(workers: int) -> Iterator[Executor]:
    """Give processes on this machine; they end with the process that started them."""
    # Not fork: numba's threads and the terminal's state do not survive one.
    executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_obey)
    try:
        with _told_to_end():
            yield executor
    except KeyboardInterrupt:
        for worker in active_children():  # they ignore Ctrl-C, and nobody waits for their results
            worker.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, so that workers and semaphores go, too."""
    ordinary = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ordinary or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def cluster(address: str, timeout_s: float = ANSWER_S) -> Iterator[Executor]:
    """Give the workers of a running Dask scheduler, `tcp://host:8786`.

    Raises ScenarioError when nobody answers there, when it has no workers, when a worker has
    another version of specplan (workers keep old code until they are restarted), or when the
    extra `cluster` is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        right = "pip install 'specplan[cluster]'"
        raise ScenarioError(Fault("--cluster needs the package distributed", right)) from None
    if _who_is_there(address, timeout_s) != "Scheduler":
        wrong = f"no Dask scheduler answers at {address} within {timeout_s:g} s"
        reason = "`dask scheduler` prints its address, tcp://host:8786"
        raise ScenarioError(Fault(wrong, reason, file="--cluster"))
    client = Client(address, timeout=timeout_s, set_as_default=False)  # type: ignore[no-untyped-call]
    with client:
        installed = client.run(_installed)
        if not installed:
            wrong, right = f"the scheduler at {address} has no workers", f"`dask worker {address}`"
            raise ScenarioError(Fault(wrong, right, file="--cluster"))
        others = sorted({found for found in installed.values() if found != _installed()})
        if others:
            wrong = (
                f"workers at {address} have specplan {', '.join(others)}; here is {_installed()}"
            )
            right = "install the same version there and restart the workers"
            raise ScenarioError(Fault(wrong, right, file="--cluster"))
        yield client.get_executor(pure=False)  # type: ignore[no-untyped-call]


def _who_is_there(address: str, timeout_s: float) -> str | None:
    """Ask what listens at an address; None for no answer in time, or one that is not Dask's.

    A `Client` that finds nobody takes three times its timeout to close, and one that finds a
    stranger, such as a proxy, takes its first bytes for the size of a message.
    """
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> str:
        args = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
        async with rpc(address, timeout=timeout_s, connection_args=args) as there:  # type: ignore[no-untyped-call]
            found = await there.identity()
            return str(found["type"])

    answers: list[str] = []

    def listen() -> None:
        with suppress(Exception):  # a stranger's bytes may raise anything
            answers.append(asyncio.run(asyncio.wait_for(ask(), timeout_s)))

    # A notebook has a running loop in this thread; a loop of its own needs one of its own.
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return answers[0] if answers else None


def _installed() -> str:
    """Return the version of specplan in the process that runs this."""
    return version("specplan")


def _obey() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it (kill −9 tells nobody)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: object) -> None:
    parent.join()  # type: ignore[attr-defined]  # the class is private
    os._exit(1)
