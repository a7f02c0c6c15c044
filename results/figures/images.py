"""Figures as PNG or SVG files, through Kaleido, which drives a browser that is installed."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.results import store
from specplan.results.figures.layout import packed
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specplan.results.export import Section

WIDTH = 900  # pixels; a PNG has twice as many in each direction


def check_images(kinds: Sequence[str]) -> None:
    """Refuse images that cannot be made here, before any work is done for them.

    Raises ScenarioError without Kaleido, or without a browser that it finds.
    """
    if not kinds:
        return
    named = os.environ.get("BROWSER_PATH")
    if named and not (Path(named).is_file() and os.access(named, os.X_OK)):
        wrong = f"BROWSER_PATH={named} is no program that can be run"
        raise ScenarioError(Fault(wrong, "the path of Chrome or Chromium, or unset it"))
    try:
        if find_spec("kaleido") is None:
            raise ModuleNotFoundError("No module named 'kaleido'", name="kaleido")
        from choreographer.browsers.chromium import Chromium
    except ImportError as error:
        missing = "which is not here" if isinstance(error, ModuleNotFoundError) else "and it fails"
        raise ScenarioError(
            Fault(f"images need Kaleido, {missing}", "`pip install 'specplan[images]'`")
        ) from error

    if not named and Chromium.find_browser(skip_local=False) is None:
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

    Returns the names. Raises ScenarioError as `store.check_folder`, and where the browser fails.
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
        try:
            pio.write_images(
                fig=[packed(figure) for figure, _ in made],
                validate=False,
                file=[temporary / name for name in names],
                width=WIDTH,
                scale=2,
            )
        except (RuntimeError, ValueError, ImportError) as error:
            # Plotly and Kaleido raise these for a browser that does not start or stops.
            right = "a browser that starts, in BROWSER_PATH; the HTML page needs none"
            wrong = f"the images cannot be made: {_reason(error)}"
            raise ScenarioError(Fault(wrong, right)) from error
        store.write_json(temporary / store.MARK, {"figures": names})
    return names


def _reason(error: Exception) -> str:
    """Take the first sentence of an error whose message may be a tuple of them.

    >>> _reason(RuntimeError(("The browser closed.", "More advice.")))
    'The browser closed'
    """
    says = error.args[0] if error.args else type(error).__name__
    first = says[0] if isinstance(says, tuple) and says else says
    return f"{first}".strip().splitlines()[0].rstrip(".") if f"{first}".strip() else "no reason"


def _slug(title: str) -> str:
    """Make a file name of a title.

    >>> _slug("Where a token's time goes")
    'where-a-token-s-time-goes'
    """
    return (
        re.sub(r"[^a-z0-9]+", "-", title.lower().replace("γ", "gamma")).strip("-")[:60] or "figure"
    )
