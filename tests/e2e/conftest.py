"""A headless Chromium, what it complains of and asks for, and axe-core."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1600,1000",
)  # fmt: skip
PATIENCE_S = 60.0
HEADINGS = """
const drawn = s => s.offsetParent !== null && s.querySelector('.js-plotly-plot .main-svg');
return Array.from(document.querySelectorAll('section')).filter(drawn).map(
  s => s.querySelector('h2, h3').textContent)"""
TRACES = """
const drawn = s => s.offsetParent !== null && s.querySelector('.js-plotly-plot');
return Array.from(document.querySelectorAll('section')).filter(drawn).map(s => ({
  title: s.querySelector('h2, h3').textContent,
  traces: s.querySelector('.js-plotly-plot')._fullData.map(t => ({
    name: t.name, type: t.type,
    x: t.x === undefined ? null : Array.from(t.x), y: t.y === undefined ? null : Array.from(t.y)})),
}))"""


class Browser:
    """Chromium with a fresh profile."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load a page and forget what pages before it said and asked for."""
        self.driver.get("about:blank")
        self.complaints()
        self.requests()
        self.driver.get(url)

    def find(self, selector: str) -> Any:
        """Wait for an element that is shown."""
        from selenium.webdriver.common.by import By

        def shown() -> Any:
            found = self.driver.find_elements(By.CSS_SELECTOR, selector)
            return found[0] if found else None

        return self.until(shown, selector)

    def button(self, words: str) -> Any:
        """Find a button by what stands on it."""
        from selenium.webdriver.common.by import By

        return self.driver.find_element(By.XPATH, f"//button[normalize-space()={words!r}]")

    def text(self, selector: str) -> str:
        """Read the text of an element."""
        return str(self.find(selector).text)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds and return it."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            time.sleep(0.05)
        pytest.fail(f"waited {PATIENCE_S:g} s in vain for {what}")

    def figures(self) -> dict[str, list[dict[str, Any]]]:
        """Read the traces of every figure that is shown, by the heading above it."""
        listed = self.driver.execute_script(TRACES)
        return {figure["title"]: figure["traces"] for figure in listed}

    def drawn(self) -> list[str]:
        """List the headings of the figures that are shown."""
        return list(self.driver.execute_script(HEADINGS))

    def complaints(self) -> list[str]:
        """Return what the console got since the last look."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses asked for since the last look."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def at_width(self, width: int) -> int:
        """Lay the page out at a width, below 600 on a phone, and return how wide it really is."""
        phone = width < 600
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        time.sleep(0.5)  # plotly draws again a moment after the window has changed
        return int(self.driver.execute_script("return document.documentElement.scrollWidth"))

    def photograph(self, name: str, width: int) -> None:
        """Keep a picture of the page for a reader: `.ci/run` puts them into artifacts/."""
        folder = os.environ.get("SPECPLAN_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            height = self.driver.execute_script("return document.documentElement.scrollHeight")
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            options = {"captureBeyondViewport": True, "clip": clip}
            taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)
            Path(folder, f"{name}-{width}.png").write_bytes(base64.b64decode(taken["data"]))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver_path = shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    pytest.importorskip("selenium", reason="needs selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    profile = tempfile.mkdtemp(prefix="specplan-chromium-")
    options = Options()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture
def serving() -> Callable[..., Any]:
    """Serve a scenario on a free port inside a `with`; gives the address."""
    pytest.importorskip("dash", reason="needs the extra `serve`")
    from specplan.results.live.app import make_server

    @contextmanager
    def serve(target: str | None = None, sets: tuple[str, ...] = ()) -> Iterator[str]:
        server = make_server(target, sets)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.port}/"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    return serve


@pytest.fixture(scope="session")
def axe_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    try:
        subprocess.run(
            [npm, "pack", "axe-core"], cwd=folder, check=True, capture_output=True, timeout=60
        )
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm gave no axe-core: {error}")
    packed = next(folder.glob("axe-core-*.tgz"))
    shutil.unpack_archive(packed, folder, filter="data")
    return (folder / "package" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def violations(browser: Browser, axe_source: str) -> Callable[[], list[str]]:
    """Ask axe-core what is wrong with the page that is open: labels, contrast, roles."""

    def ask() -> list[str]:
        browser.driver.execute_script(axe_source)
        found = browser.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run({resultTypes: ['violations']}).then(r => done(r.violations.map("
            "v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 200)).join(' '))))"
        )
        return [str(line) for line in found]

    return ask
