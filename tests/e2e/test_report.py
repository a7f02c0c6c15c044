"""The report page in Chromium, opened from disk."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from specplan.scenarios.load import load, to_yaml

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("browser")
HOSTILE = (
    """<script>document.title = "taken"</script><img src=x onerror="document.title='taken'">"""
)


def test_a_report_shows_the_run_and_asks_nobody(
    browser: Any, specplan_cli: Any, violations: Any, tmp_path: Path
) -> None:
    run, page = tmp_path / "run", tmp_path / "report.html"
    sets = ["--set", "workload.requests=300"]
    assert specplan_cli("simulate", "llama31-8b-eagle3-h100", *sets, "-o", run).code == 0
    assert specplan_cli("report", run, "-o", page).code == 0
    figures = json.loads((run / "summary.json").read_text(encoding="utf-8"))

    browser.open(page.as_uri())
    browser.until(lambda: "Running requests" in browser.drawn(), "figures")
    shown = browser.figures()
    for title, metric in (
        ("Time to first token", "ttft"), ("Time per output token", "tpot"),
        ("Gap between chunks", "itl"), ("End-to-end latency", "e2el"),
    ):  # fmt: skip
        curve, marks = shown[title]
        assert marks["x"] == pytest.approx(
            [figures[f"{name}_{metric}_ms"] for name in ("median", "p90", "p99")], rel=1e-2
        )
        assert curve["y"][0] == 0
        assert curve["y"][-1] == 1
    phases = {trace["name"]: trace["x"] for trace in shown["GPU time by phase"]}
    assert phases["verify"] == pytest.approx(
        [shares["verify"] for shares in figures["utilisation"].values()]
    )
    predicted = specplan_cli("predict", "llama31-8b-eagle3-h100", *sets, "--json").json
    assert shown["Which γ"][0]["y"][3] == pytest.approx(predicted["speedup"])
    assert shown["Which γ"][0]["y"][0] == pytest.approx(1.0)

    assert browser.complaints() == []
    assert {urlsplit(asked).scheme for asked in browser.requests()} <= {"file", "data", "blob"}
    for width in (400, 1600):
        assert browser.at_width(width) == width
        browser.photograph("report", width)
    assert violations() == []
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_names_and_notes_with_markup_are_text(
    browser: Any, specplan_cli: Any, tmp_path: Path
) -> None:
    file, page = tmp_path / "hostile.yaml", tmp_path / "report.html"
    marked = json.dumps(HOSTILE)
    row = f"{{value: 80, name: {marked}}}"
    series = f"{{name: {marked}, quantity: tpot, unit: ms, tolerance: 0.1, rows: [{row}]}}"
    measured = f"measured={{source: {marked}, read: x, digitisation_error: 0, series: [{series}]}}"
    sets = [f"name={marked}", f"record.notes={marked}", "workload.requests=100", measured]
    file.write_text(to_yaml(load("toy-20ms", sets)), encoding="utf-8")
    assert specplan_cli("report", file, "-o", page).code == 0
    browser.open(page.as_uri())
    browser.until(lambda: "Predicted against measured" in browser.drawn(), "figures")
    assert browser.text("h1") == HOSTILE
    assert browser.driver.execute_script("return document.querySelector('main img')") is None
    assert browser.driver.title != "taken"
    assert browser.complaints() == []
