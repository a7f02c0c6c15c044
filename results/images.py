"""Figures as PNG or SVG files, through Kaleido, which drives a browser that is installed."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from specplan.results import store
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from specplan.results.export import Section

WIDTH = 900  # pixels; a PNG has twice as many in each direction


def check_images(kinds: Sequence[str]) -> None:
    """Refuse images that cannot be made here, before any work is done for them.

    Raises ScenarioError without Kaleido, or without a browser that it finds.
    """
    if not kinds:
        return
    if find_spec("kaleido") is None:
        raise ScenarioError(
            Fault("images need Kaleido, which is not here", "`pip install 'specplan[images]'`")
        )
    from choreographer.browsers.chromium import Chromium

    if not os.environ.get("BROWSER_PATH") and Chromium.find_browser(skip_local=False) is None:
        raise ScenarioError(
            Fault(
                "images need Chrome or Chromium, and none is found",
                "install one, or name it: BROWSER_PATH=/path/to/chromium; the HTML page needs none",
            )
        )


def write_images(
    sections: Iterable[Section], folder: Path, kinds: Sequence[str], *, force: bool
) -> list[str]:
    """Write every figure as `NN-title.KIND`, numbered in the order of the page, into a new folder.

    Returns the names. Raises ScenarioError as `store.check_folder`.
    """
    import plotly.io as pio

    drawn = [(section.title, section.figure) for section in sections if section.figure is not None]
    made = [
        (figure, f"{number:02}-{_slug(title)}.{kind}")
        for number, (title, figure) in enumerate(drawn, start=1)
        for kind in kinds
    ]
    names = [name for _, name in made]
    with store.new_folder(folder, force=force) as temporary:
        pio.write_images(
            fig=[figure for figure, _ in made],
            file=[temporary / name for name in names],
            width=WIDTH,
            scale=2,
        )
        store.write_json(temporary / store.MARK, {"figures": names})
    return names


def _slug(title: str) -> str:
    """Make a file name of a title.

    >>> _slug("Where a token's time goes")
    'where-a-token-s-time-goes'
    """
    return (
        re.sub(r"[^a-z0-9]+", "-", title.lower().replace("γ", "gamma")).strip("-")[:60] or "figure"
    )
