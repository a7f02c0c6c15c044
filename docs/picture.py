"""Draw the picture of the README, docs/best-gamma.svg: `python docs/picture.py`.

It needs what `specplan report --svg` needs, the extra `images` and a browser.
"""

from __future__ import annotations

from pathlib import Path

import plotly.io as pio

import specplan
from specplan.results.closed_curves import curves
from specplan.results.figures.closed import speedup_by_batch
from specplan.results.figures.images import check_images

PICTURE = Path(__file__).with_name("best-gamma.svg")
SCENARIO = "llama31-8b-eagle3-h100"
SETS = ("speculation.acceptance.extend=plateau", "scheduler.max_num_seqs=512")


def draw() -> None:
    """Write the map of batch × γ; raises ScenarioError where no browser is found."""
    check_images(["svg"])
    figure = speedup_by_batch(curves(specplan.load(SCENARIO, SETS)))
    pio.write_image(figure, PICTURE, width=860, height=400)


if __name__ == "__main__":
    draw()
