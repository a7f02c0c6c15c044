"""What a longer context changes: tokens of a round, what a round costs, and whether it pays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

from specplan.results.diagnose.places import Place, places_table
from specplan.results.tables import facts, heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from specplan.results.diagnose.answer import Finding

#: A change whose part in the whole is below this does not decide.
MINOR = 0.1


@dataclass(frozen=True)
class Series:
    """One system, batch and γ over its contexts, the shortest first."""

    title: str
    places: tuple[Place, ...]

    @property
    def off_at(self) -> float | None:
        """The context from which speculation no longer pays, interpolated; None where it pays."""
        known = [(one.at, one.speedup) for one in self.places if one.speedup is not None]
        for (c0, s0), (c1, s1) in pairwise(known):
            if s0 > 1 >= s1:
                return c0 + (c1 - c0) * (s0 - 1) / (s0 - s1)
        return None

    @property
    def decides(self) -> str | None:
        """Name what changes speed from the first to the last context: round, acceptance or both.

        Time per token is R/τ, so the changes of ln R and of ln τ add up.
        """
        first, last = self.places[0], self.places[-1]
        taus = first.tokens_per_round, last.tokens_per_round
        rounds = first.round_cost_ratio, last.round_cost_ratio
        if None in rounds:
            rounds = first.round_s, last.round_s
        if len(self.places) < 2 or None in (*taus, *rounds):
            return None
        fewer = abs(log((taus[1] or 1.0) / (taus[0] or 1.0)))
        longer = abs(log((rounds[1] or 1.0) / (rounds[0] or 1.0)))
        if fewer <= MINOR * (fewer + longer):
            return "round"
        return "acceptance" if longer <= MINOR * (fewer + longer) else "both"

    def says(self) -> str:
        """Say in one sentence what a longer context does."""
        first, last = self.places[0], self.places[-1]
        if len(self.places) == 1:
            return "one context is no curve: measure a longer one, too"
        parts = [f"from {first.at:,.0f} to {last.at:,.0f} tokens"]
        if first.tokens_per_round and last.tokens_per_round:
            parts.append(_change("τ", first.tokens_per_round, last.tokens_per_round))
        if first.round_cost_ratio and last.round_cost_ratio:
            parts.append(_change("a round of plain steps", first.round_cost_ratio,
                                 last.round_cost_ratio))  # fmt: skip
        elif first.round_s and last.round_s:
            parts.append(_change("a round in ms", 1e3 * first.round_s, 1e3 * last.round_s))
        decided = {"round": "; the round decides, not acceptance",
                   "acceptance": "; acceptance decides, not the round",
                   "both": "; both decide"}.get(self.decides or "", "")  # fmt: skip
        if first.speedup and last.speedup:
            parts.append(_change("speedup", first.speedup, last.speedup))
            if last.speedup > first.speedup:
                decided += "; a cost over batch alone does not show that, per_context_token does"
        if self.off_at is not None:
            decided += f"; it stops paying near {self.off_at:,.0f} tokens"
        return ", ".join(parts) + decided

    def value(self) -> dict[str, Any]:
        """Give everything as plain JSON."""
        return {
            "title": self.title,
            "points": [place.value("context") for place in self.places],
            "decides": self.decides,
            "off_at_context": self.off_at,
            "says": self.says(),
        }


def _change(name: str, before: float, after: float) -> str:
    return f"{name} {before:.4g} → {after:.4g} ({100 * (after / before - 1):+.0f} %)"


def by_context(findings: Sequence[Finding]) -> list[Series]:
    """Gather the points that state a context into series of one label, batch and γ."""
    found: dict[str, list[Place]] = {}
    for one in findings:
        if one.group.context is None:
            continue
        for row in one.rows:
            gamma = "" if row.point.gamma is None else f"γ = {row.point.gamma:.0f}"
            title = ", ".join(filter(None, (one.group.label, f"batch {one.group.batch:g}", gamma)))
            place = Place.of(one.group.context, row.value)
            found.setdefault(title, []).append(place)
    return [
        Series(title, tuple(sorted(places, key=lambda place: place.at)))
        for title, places in found.items()
    ]


def context_text(series: Sequence[Series]) -> list[RenderableType]:
    """Lay out each series: a line a context, and what follows."""
    parts: list[RenderableType] = []
    for one in series:
        parts += [heading(f"By context: {one.title}"), places_table("context", ",.0f", one.places)]
        parts.append(facts([("Context", one.says())]))
    return parts
