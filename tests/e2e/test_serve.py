"""The live page as a reader uses it, in Chromium."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from specplan.scenarios.load import bundled, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("browser")
HOSTILE = (
    """<script>document.title = "taken"</script><img src=x onerror="document.title='taken'">"""
)

CUT_OFF = """return Array.from(document.querySelectorAll('.scroll'))
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"""
HEIGHTS = """return Array.from(document.querySelectorAll('#closed .js-plotly-plot'))
  .map(e => e.offsetHeight)"""


@pytest.fixture
def ready(browser: Any) -> Callable[[str], None]:
    """Open a page of the server and wait for its figures."""

    def wait(url: str) -> None:
        browser.open(url)
        browser.until(browser.drawn, "figures")

    return wait


def test_the_page_shows_the_closed_form_and_asks_nobody_else(
    browser: Any, serving: Any, ready: Any, specplan_cli: Any
) -> None:
    """Speedups 1, 1.25, 1.25 for γ = 0, 1, 2: MODEL.md § 3's seed case, and γ = 1 costs as much."""
    with serving() as url:
        ready(url)
        figures = browser.figures()
        assert {title: len(traces) for title, traces in figures.items()} == {
            "Where a token's time goes": 4,
            "Which γ": 2,
            "How slow may the draft be": 3,
            "Acceptance by draft position": 2,
            "Tokens per round": 1,
            "Which input moves the answer most": 2,
        }
        curve = figures["Which γ"][0]
        assert curve["x"][:3] == [0, 1, 2]
        assert curve["y"][:3] == pytest.approx([1.0, 1.25, 1.25])
        four = specplan_cli("predict", "toy-20ms", "--set", "speculation.gamma=4", "--json").json
        assert curve["y"][4] == pytest.approx(four["speedup"])
        assert figures["Tokens per round"][0]["y"] == pytest.approx([0.5, 0.25, 0.25])
        assert sum(t["x"][0] for t in figures["Where a token's time goes"]) == pytest.approx(80.0)
        assert browser.text("#verdict").startswith("faster than plain decoding, 1.25x")
        assert browser.complaints() == []
        assert all(urlsplit(asked).hostname == "127.0.0.1" for asked in browser.requests()
                   if urlsplit(asked).scheme not in {"data", "blob"})  # fmt: skip


def test_moved_sliders_move_picture_url_command_and_file(
    browser: Any, serving: Any, ready: Any, specplan_cli: Any, tmp_path: Path
) -> None:
    """A draft step of 50 ms: 114.2857 ms per token, 0.875x (MODEL.md § 3)."""
    from selenium.webdriver.common.keys import Keys

    with serving() as url:
        ready(url)
        entries = browser.driver.execute_script("return history.length")
        slider = browser.find("""input[id='{"control":"draft.step"}']""")
        slider.send_keys(Keys.ARROW_RIGHT * 30)
        browser.until(lambda: "0.875x" in browser.text("#verdict"), "the verdict at 50 ms")
        query = parse_qs(urlsplit(browser.driver.current_url).query)
        assert query == {"scenario": ["toy-20ms"], "draft.step": ["50 ms"]}
        assert browser.driver.execute_script("return history.length") == entries
        browser.until(
            lambda: browser.figures()["Which γ"][0]["y"][2] == pytest.approx(0.875), "the curve"
        )

        command = browser.text("#command")
        assert command == "specplan predict toy-20ms --set 'draft.step=50 ms'"
        printed = specplan_cli(*shlex.split(command)[1:], "--json").json
        assert printed["tpot_s"] == pytest.approx(0.8 / 7)

        behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
        browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        browser.button("Download scenario").click()
        file = tmp_path / "toy-20ms.yaml"
        browser.until(file.is_file, "the file")
        assert load(file) == load("toy-20ms", ["draft.step=50 ms"])

        there = browser.driver.current_url
        ready(there)
        assert "0.875x" in browser.text("#verdict")
        assert browser.driver.current_url == there
        assert browser.complaints() == []


def test_what_was_measured_is_drawn(browser: Any, serving: Any, ready: Any) -> None:
    """7.52, 7.00 and 5.73 ms per token (Chen et al. 2023, Table 1); the speedups are fitted."""
    with serving("chinchilla") as url:
        ready(url)
        title = "Predicted against measured"
        browser.until(lambda: title in browser.drawn(), "the measurements")
        measured = browser.figures()[title][0]["x"]
        assert sorted(measured) == [5.73, 7.0, 7.52]
        assert browser.complaints() == []


def test_acceptance_per_position_and_open_load(browser: Any, serving: Any, ready: Any) -> None:
    with serving() as url:
        ready(url)
        browser.button("per position").click()
        browser.until(lambda: "conditional=" in browser.driver.current_url, "the URL")
        assert browser.find("""input[id='{"control":"speculation.acceptance.conditional.1"}']""")
        browser.button("open, arrivals a second").click()
        browser.until(lambda: "arrivals.rate=" in browser.text("#command"), "the command")
        browser.until(lambda: "Load of a replica" in browser.text("#facts"), "the load")
        assert browser.text("#alert") == ""
        assert browser.complaints() == []


def test_a_simulation_starts_is_cancelled_and_finishes(
    browser: Any, serving: Any, ready: Any, specplan_cli: Any
) -> None:
    with serving() as url:
        ready(f"{url}?scenario=toy-20ms&workload.requests=1000000")
        browser.button("Simulate").click()
        browser.until(lambda: "Simulating" in browser.text("#status"), "progress")
        browser.button("Cancel").click()
        browser.until(lambda: browser.text("#status") == "Cancelled.", "the end")
        assert browser.button("Simulate").is_enabled()

        ready(f"{url}?scenario=toy-20ms&workload.requests=400&speculation.gamma=3")
        browser.button("Simulate").click()
        browser.until(lambda: "Finished" in browser.text("#status"), "the end")
        browser.until(lambda: "Time to first token" in browser.drawn(), "the run's figures")
        command = shlex.split(browser.text("#command"))
        printed = specplan_cli("simulate", *command[2:], "--json").json
        marks = browser.figures()["Time per output token"][1]
        assert marks["x"] == pytest.approx(
            [printed["median_tpot_ms"], printed["p90_tpot_ms"], printed["p99_tpot_ms"]], rel=1e-3
        )
        assert f"{printed['mean_tpot_ms']:.4g}" in browser.text("#simulated table")
        assert browser.complaints() == []


def test_by_keyboard_alone(browser: Any, serving: Any, ready: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def focused() -> dict[str, str]:
        found = browser.driver.execute_script(
            "const e = document.activeElement; return {id: e.id, text: e.textContent}"
        )
        return dict(found)

    def press(keys: str) -> None:
        browser.driver.switch_to.active_element.send_keys(keys)

    def reach(wanted: str) -> None:
        for _ in range(60):
            press(Keys.TAB)
            if wanted in (focused()["id"], focused()["text"]):
                return
        pytest.fail(f"Tab never came to {wanted}")

    with serving() as url:
        ready(f"{url}?scenario=toy-20ms&workload.requests=100")
        reach('{"control":"speculation.gamma"}')
        press(Keys.ARROW_RIGHT)
        browser.until(lambda: "speculation.gamma=3" in browser.text("#command"), "γ = 3")
        reach("per position")
        press(Keys.ENTER)
        browser.until(lambda: "conditional" in browser.text("#command"), "per position")
        reach("Simulate")
        press(Keys.ENTER)
        browser.until(lambda: "Finished" in browser.text("#status"), "the end")


def test_labels_contrast_and_widths(
    browser: Any, serving: Any, ready: Any, violations: Any
) -> None:
    target = "llama31-8b-eagle3-h100"
    with serving(target) as url:
        ready(f"{url}?scenario={target}&workload.requests=200")
        browser.button("Simulate").click()
        browser.until(lambda: "Finished" in browser.text("#status"), "the end")
        browser.until(lambda: "Running requests" in browser.drawn(), "the run's figures")
        for width in (400, 1600):
            assert browser.at_width(width) == width
            browser.photograph("serve", width)
            assert browser.driver.execute_script(CUT_OFF) == [], width
            assert browser.driver.execute_script(HEIGHTS)[0] == 320  # as the figure asks
        assert violations() == []


def test_names_with_markup_are_text(browser: Any, serving: Any, ready: Any, tmp_path: Path) -> None:
    sets = [f"name={json.dumps(HOSTILE)}", f"description={json.dumps(HOSTILE)}"]
    file = tmp_path / "hostile.yaml"
    from specplan.scenarios.load import to_yaml

    file.write_text(to_yaml(load("toy-20ms", [*sets, "workload.requests=100"])), encoding="utf-8")
    with serving(str(file)) as url:
        ready(url)
        browser.button("Simulate").click()
        browser.until(lambda: "Finished" in browser.text("#status"), "the end")
        browser.until(lambda: "Running requests" in browser.drawn(), "the run's figures")
        assert browser.text("h1") == HOSTILE
        assert browser.driver.title.startswith("specplan: <script>")
        assert browser.driver.execute_script("return document.querySelector('main img')") is None
        assert browser.complaints() == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?scenario=../../etc/passwd", "`../../etc/passwd` is no scenario of this page."),
        ("?draft.step=NaN&target.round.table=/etc/passwd", "target.round.table` has no slider"),
        ("?%ff%00%&&==&speculation.gamma=9999999999999999", "Left out of the URL"),
    ],
)
def test_urls_out_of_order(browser: Any, serving: Any, query: str, says: str) -> None:
    with serving() as url:
        browser.open(url + query)
        browser.until(lambda: says in browser.text(".alert"), says)
        assert browser.complaints() == []


def test_settings_that_contradict_are_said(browser: Any, serving: Any, ready: Any) -> None:
    """γ = 9 with 8 positions stated."""
    positions = ",".join(["0.5"] * 8)
    with serving() as url:
        ready(url)
        browser.open(f"{url}?speculation.gamma=9&speculation.acceptance.conditional={positions}")
        browser.until(lambda: "8 " in browser.text("#alert"), "the fault")
        assert "no answer to these settings" in browser.text("#verdict")


def test_every_bundled_scenario_opens_on_a_phone(browser: Any, serving: Any) -> None:
    """A trace is brought by the user: its page says so, and is no wider than any other."""
    with serving() as url:
        for name in bundled():
            browser.open(f"{url}?scenario={name}")
            brought = load(name).workload.arrivals.trace is not None
            browser.until(browser.drawn if not brought else lambda: browser.text("#alert"), name)
            assert browser.at_width(400) == 400, name
            assert browser.complaints() == []
