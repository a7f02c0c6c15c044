"""A real Dask scheduler and two workers on loopback; one is killed and nothing is lost."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results import metrics
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load
from specplan.sim.design import parse_design
from specplan.sim.executors import cluster, local
from specplan.sim.sweep import simulate_grid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("distributed")
TOY = load("toy-20ms", ["workload.requests=50", "workload.output_tokens=16"])
DASK = (sys.executable, "-W", "ignore", "-m")


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler, and its two workers."""
    file = tmp_path / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [*DASK, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    worker = [*DASK, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny"]
    started = [
        subprocess.Popen(
            [*scheduler, "--no-dashboard", "--scheduler-file", str(file)], cwd=tmp_path, **quiet
        )
    ]
    workers = [
        subprocess.Popen(
            [*worker, "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"],
            cwd=tmp_path,
            **quiet,
        )
        for _ in range(2)
    ]
    try:
        yield _address(file), workers
    finally:
        for process in [*workers, *started]:
            process.kill()
            process.wait()


def _address(file: Path) -> str:
    import json

    from distributed import Client

    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    address = str(json.loads(file.read_text())["address"])
    with Client(address, timeout=60, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(2, timeout=60)
    return address


def test_a_killed_worker_loses_nothing(
    dask: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    address, workers = dask
    design = parse_design(["speculation.gamma=0..3", "seed=1..10"])

    def kill_one(done: int, _: int) -> None:
        if done == 10:
            workers[0].kill()

    with cluster(address) as executor:
        there = simulate_grid(TOY, design, metrics.summary, executor, progress=kill_one)
    assert workers[0].wait(10) != 0
    with local(1) as executor:
        here = simulate_grid(TOY, design, metrics.summary, executor)
    assert list(there.columns) == list(here.columns)
    for name in here.columns:
        np.testing.assert_array_equal(there.columns[name], here.columns[name])


def test_nobody_answers() -> None:
    begun = time.monotonic()
    with (
        pytest.raises(ScenarioError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        cluster("tcp://127.0.0.1:9", timeout_s=1),
    ):
        pass
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" + 64 * b"x"])
def test_a_stranger_is_no_scheduler(says: bytes) -> None:
    """What listens may say nothing, or what Dask would take for the size of a message."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(says)
                connection.recv(1 << 16)
                time.sleep(0.5)

        threading.Thread(target=greet, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with (
            pytest.raises(ScenarioError, match="no Dask scheduler answers"),
            cluster(address, timeout_s=1),
        ):
            pass


def test_no_address() -> None:
    with pytest.raises(ScenarioError, match="no Dask scheduler"), cluster("nonsense", timeout_s=1):
        pass


def test_local_processes_report_what_went_wrong_inside() -> None:
    with local(1) as executor, pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result()
