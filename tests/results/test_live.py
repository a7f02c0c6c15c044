"""The server of the live page without a browser: who it answers, how it ends, how it fails."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

pytest.importorskip("dash", reason="needs the extra `serve`")

from specplan.results.live import app as live
from specplan.results.live.callbacks import Latest
from specplan.results.live.jobs import Job, Jobs
from specplan.scenarios.load import load


@pytest.fixture(scope="module")
def client() -> Any:
    return live.make_app("toy-20ms").server.test_client()


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:8050", "localhost", "LocalHost:1"])
def test_this_machine_is_answered(client: Any, host: str) -> None:
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8050", "", "[::1]:8050", "169.254.169.254"]
)
def test_other_names_are_refused(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"output": "x"}', b"\xff", b""])
def test_a_request_that_the_page_would_not_make_is_refused(client: Any, body: bytes) -> None:
    headers = {"Host": "127.0.0.1:8050", "Content-Type": "application/json"}
    answer = client.post("/_dash-update-component", headers=headers, data=body)
    assert answer.status_code == 400


def test_pages_of_other_sites_are_refused(client: Any) -> None:
    headers = {"Host": "127.0.0.1:8050", "Origin": "http://evil.example"}
    assert client.post("/_dash-update-component", headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/?speculation.gamma=3", 200),
        ("/foo", 404),
        ("/../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/%00%ff", 404),
        ("/assets/../live.py", 404),
        ("/assets/live.py", 404),
        ("/_dash-component-suites/dash/../../../etc/passwd", 404),
        ("/_dash-component-suites/nothing/here.js", 404),
    ],
)
def test_no_path_leads_to_a_file(client: Any, path: str, status: int) -> None:
    answer = client.get(path, headers={"Host": "localhost"})
    assert answer.status_code == status
    assert b"root:" not in answer.data
    assert b"from __future__" not in answer.data


def test_without_dash_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, specplan_cli: Any
) -> None:
    monkeypatch.setattr(live, "find_spec", lambda _: None)
    printed = specplan_cli("serve", "toy-20ms")
    assert printed.code == 2
    assert printed.err == (
        "the live page needs Dash, which is not here (`pip install 'specplan[serve]'`)\n"
    )


def test_a_port_that_is_taken_is_said(specplan_cli: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        printed = specplan_cli("serve", "--port", str(port))
    assert printed.code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in printed.err


def test_a_scenario_that_is_not_there_is_said(specplan_cli: Any) -> None:
    printed = specplan_cli("serve", "toy-2ms")
    assert printed.code == 2
    assert "did you mean `toy-20ms`" in printed.err


def ended(job: Job) -> str:
    end = time.monotonic() + 120
    while job.state == "running" and time.monotonic() < end:
        time.sleep(0.01)
    return job.state


def test_jobs_finish_are_cancelled_and_replace_each_other() -> None:
    jobs = Jobs()
    short = jobs.start(load("toy-20ms", ["workload.requests=20"]), ())
    assert ended(short) == "finished"
    assert short.result is not None
    assert short.result.figures["completed"] == 20
    long = jobs.start(load("toy-20ms", ["workload.requests=1000000"]), ())
    assert jobs.find(short.number) is None
    assert jobs.find(long.number) is long
    long.cancel()
    assert ended(long) == "cancelled"
    assert long.result is None


def test_a_job_that_fails_says_why() -> None:
    scenario = load("toy-20ms", ["workload.arrivals.trace=/nowhere.csv", "workload.requests=5"])
    job = Jobs().start(scenario, ())
    assert ended(job) == "failed"
    assert "/nowhere.csv" in job.says


def test_only_the_newest_request_of_a_page_is_computed() -> None:
    latest = Latest()
    first, second = latest.ticket("page"), latest.ticket("page")
    other = latest.ticket("another page")
    assert latest.overtaken("page", first)
    assert not latest.overtaken("page", second)
    assert not latest.overtaken("another page", other)
