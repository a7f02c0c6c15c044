"""What becomes of drafted tokens: the law of the closed form, and beside it a run's counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models.rounds import tokens_per_round_variance
from specplan.results.closed_curves import DEEPEST
from specplan.results.figures.layout import Figure, Trace, across, layout
from specplan.results.figures.palette import BREAK_EVEN, SCENARIOS, filled
from specplan.results.intervals import wilson

if TYPE_CHECKING:
    from specplan.results.closed_curves import Curves
    from specplan.results.recorded import Recorded


SIMULATED = {"color": BREAK_EVEN, "symbol": "diamond-open", "size": 10}


def acceptance_by_position(curves: Curves, run: Recorded | None = None) -> Figure:
    """Draw conditional and unconditional acceptance by draft position, pooled over requests.

    A border marks where a rule of the scenario continues what is stated. The shares that a run
    counted stand beside the unconditional ones.
    """
    lists = pooled(curves)[: max(curves.point.gamma, DEEPEST)]
    x = np.arange(1, len(lists) + 1)
    before = np.concatenate([[1.0], lists[:-1]])
    conditional = np.divide(lists, before, out=np.full(len(lists), np.nan), where=before > 0)
    look = layout(
        "draft position", "share accepted", 360,
        xaxis={"dtick": 1}, yaxis={"range": [0, 1.02]},
    )  # fmt: skip
    traces: list[Trace] = [
        {
            "type": "scatter", "x": x, "y": y, "mode": "lines+markers", "name": name,
            "line": {"color": SCENARIOS[0], "dash": dash},
            **_counted_error(curves, y, conditional=name.startswith("conditional")),
        }
        for name, y, dash in (
            ("unconditional, of all rounds that draft", lists, "solid"),
            ("conditional, of those that came so far", conditional, "dash"),
        )
    ]  # fmt: skip
    counted = _reached(run)
    if len(counted):
        traces.append(
            {
                "type": "scatter", "x": np.arange(1, len(counted) + 1), "y": counted,
                "mode": "markers", "name": "unconditional, simulated", "marker": SIMULATED,
                **_run_error(curves, run, counted),
            }
        )  # fmt: skip
    if curves.stated < len(lists):
        border = across(x=curves.stated + 0.5, colour=BREAK_EVEN, text="stated | extrapolated")
        look["shapes"].append(border)
        look["margin"]["t"] = 56
    return {"data": traces, "layout": look}


def _reached(run: Recorded | None) -> np.ndarray:
    """Shares of a run's drafting rounds that kept at least 1, 2, … tokens `(positions,)`."""
    rates = run.figures["spec_decode_per_position_acceptance_rates"] if run is not None else []
    return np.array(rates, dtype=np.float64)


def _run_error(curves: Curves, run: Recorded | None, shares: np.ndarray) -> dict[str, Any]:
    """Wilson's 95 % interval of what a run counted, where all its rounds follow one law.

    Rounds of one request are alike where requests differ, and then no such interval holds.
    """
    law = curves.priced.acceptance
    if run is None or len(law.weight) > 1 or np.isfinite(law.concentration).any() or (
        law.recorded is not None
    ):  # fmt: skip
        return {}
    rounds = np.full(len(shares), float(run.figures["spec_decode_num_drafts"]))
    low, high = wilson(shares, rounds)
    ends = {"array": high - shares, "arrayminus": shares - low}
    return {"error_y": {"type": "data", **ends, "thickness": 1.5}}


def _counted_error(curves: Curves, shares: np.ndarray, *, conditional: bool) -> dict[str, Any]:
    """Wilson's 95 % interval of each share, where the acceptance was stated as counted rounds."""
    reached = curves.counted
    if reached is None:
        return {}
    trials = reached[:-1] if conditional else np.full(len(reached) - 1, reached[0])
    here = min(len(trials), len(shares))
    low, high = wilson(shares[:here], trials[:here])
    ends = {"array": high - shares[:here], "arrayminus": shares[:here] - low}
    return {"error_y": {"type": "data", **ends, "thickness": 1.5}}


def tokens_per_round(curves: Curves, run: Recorded | None = None) -> Figure:
    """Draw the law of committed tokens of a round at the γ that is set, and what a run counted."""
    lists = pooled(curves)[: curves.point.gamma]
    share = _shares(lists)
    x = np.arange(1, len(share) + 1)
    mean, spread = float(x @ share), float(tokens_per_round_variance(lists)) ** 0.5
    line = across(x=mean, colour=BREAK_EVEN, text=f"mean {mean:.3g} ± {spread:.2g}")
    look = layout(
        "tokens of a round that drafts", "share of rounds", 340,
        xaxis={"dtick": 1}, shapes=[line],
    )  # fmt: skip
    look["margin"]["t"] = 56  # the line's text stands above the plot, below the buttons
    hatched = {**filled("#FFFFFF"), "pattern": {"shape": "/", "fgcolor": SCENARIOS[0]}}
    drawn = [("closed form", share, filled(SCENARIOS[0]))]
    if len(_reached(run)):
        drawn.append(("simulated", _shares(_reached(run)), hatched))
    traces = [
        {"type": "bar", "x": np.arange(1, len(y) + 1), "y": y, "name": name, "marker": marker}
        for name, y, marker in drawn
    ]
    return {"data": traces, "layout": look}


def _shares(at_least: np.ndarray) -> np.ndarray:
    """Shares of the rounds of 1, 2, … tokens, from those that keep at least 1, 2, … drafts."""
    ends = np.concatenate([[1.0], at_least, [0.0]])
    return np.asarray(ends[:-1] - ends[1:])


def pooled(curves: Curves) -> np.ndarray:
    """A_i of a round that drafts, `(positions,)`: laws weighted by their share of the rounds."""
    laws = curves.priced.acceptance.spread()
    rounds = laws.weight / (1 + laws.draft_probability * laws.unconditional.sum(axis=1))
    drafting = rounds * laws.draft_probability
    if drafting.sum() == 0:
        return np.zeros(laws.positions)
    return np.asarray(drafting @ laws.unconditional / drafting.sum())
