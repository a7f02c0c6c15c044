"""What a notebook shows: every object that a study returns is short as text and rich as HTML."""

from __future__ import annotations

import numpy as np

import specplan

TOY = specplan.load("toy-20ms", ["workload.requests=200"])


def test_a_run_shows_its_requests() -> None:
    run = TOY.simulate()
    assert repr(run).startswith("Run(toy-20ms, seed 1: ")
    assert "saturated" not in repr(run)
    assert len(run.to_pandas()) == 200
    assert "<th>first_token_s</th>" in run._repr_html_()


def test_a_prediction_shows_its_figures() -> None:
    """The seed case: γ 2, α .5, T 100 ms, d 20 ms give 1.25x (MODEL.md § 3)."""
    one = TOY.predict()
    np.testing.assert_allclose(one.to_pandas()["speedup"], [1.25])
    assert "<td>1.25" in one._repr_html_()


def test_a_grid_and_an_answer_are_short_as_text() -> None:
    grid = TOY.sweep({"speculation.gamma": range(3)})
    assert repr(grid) == "Grid(toy-20ms: 3 points, closed-form)"
    assert "3 points" in grid._repr_html_()
    answer = TOY.compare()
    assert str(answer).startswith("speculative against plain: faster per token")
    assert answer._repr_html_().startswith("<pre>")
