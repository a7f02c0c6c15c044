"""What the answer of a plan depends on, in the terminal: a row an input, noise named as such."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from rich.text import Text

from specplan.results.planning.sensitivity import UNCERTAINTY
from specplan.results.tables import columns, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from specplan.results.planning.sensitivity import Swing


def swings_text(swings: Sequence[Swing]) -> Iterator[RenderableType]:
    """Lay out the swings: what to measure first, then each input."""
    most = max(swings, key=lambda s: s.rank)
    usual = ", ".join(f"{word} ±{100 * share:g} %" for word, share in UNCERTAINTY.items())
    yield Text(
        "These runs cannot tell what any input does from noise; more --requests may."
        if most.within_noise
        else f"To measure first: {most.field} ({most.evidence}); it may put the rate off by "
        f"{_at_stake(most)} (assuming {usual})."
    )
    yield columns(
        ("input", "at −10 %", "at +10 %", "± 95 %", "known by", "at stake"),
        [
            (
                s.field,
                _end(s.lower),
                _end(s.higher),
                percent(s.noise) if s.steady and isfinite(s.noise) else "unknown",
                s.evidence,
                _at_stake(s),
            )
            for s in swings
        ],
    )
    yield Text("± 95 %: of the distance between the two ends, paired by seed")
    if any(swing.within_noise for swing in swings):
        yield Text("noise: these runs cannot tell the two ends apart")
    if not all(swing.steady for swing in swings):
        yield Text("unsteady: no steady state at this load; the rate is then lost, not only less")


def _end(moved: float | None) -> str:
    if moved is None:
        return "unsteady"
    return f"{100 * moved:+z.1f} %" if isfinite(moved) else "no limit"


def _at_stake(swing: Swing) -> str:
    """Say what an input puts at stake, as a lower bound where one end has no steady state.

    >>> from specplan.results.planning.sensitivity import Swing
    >>> _at_stake(Swing("draft.step", 0.05, -0.05, "assumed"))
    '15.0 %'
    >>> _at_stake(Swing("draft.step", 0.05, None, "assumed"))
    'more than 15.0 %'
    >>> _at_stake(Swing("draft.step", None, None, "assumed"))
    'all of it'
    >>> _at_stake(Swing("draft.step", 0.002, 0.003, "assumed", noise=0.004))
    'noise'
    """
    if swing.within_noise:
        return "noise"
    if swing.steady:
        return percent(swing.at_stake) if swing.at_stake < 1 else "all of it"
    return f"more than {percent(swing.at_stake)}" if 0 < swing.at_stake < 1 else "all of it"
