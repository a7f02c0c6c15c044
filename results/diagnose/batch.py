"""What a growing batch changes: up to which batch speculation pays, and what points of noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from specplan.results.diagnose.places import Place, places_table
from specplan.results.tables import facts, heading, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from specplan.results.diagnose.answer import Finding

#: Smaller changes between two batches have no direction.
EVEN = 0.05


@dataclass(frozen=True)
class BatchSeries:
    """One system, context and γ over its batches, the smallest first."""

    title: str
    places: tuple[Place, ...]

    @property
    def speedups(self) -> list[tuple[float, float]]:
        """Batches with a known speedup."""
        return [(one.at, one.speedup) for one in self.places if one.speedup is not None]

    @property
    def turns(self) -> bool:
        """Whether the speedup falls and rises again, or the other way: no batch alone does that."""
        steps = [after / before - 1 for (_, before), (_, after) in pairwise(self.speedups)]
        clear = [step > 0 for step in steps if abs(step) > EVEN]
        return len(set(clear)) > 1

    @property
    def crossover(self) -> tuple[float, float] | None:
        """Batches between which it stops to pay; None where it never does, or more than once."""
        found = [(b0, b1) for (b0, s0), (b1, s1) in pairwise(self.speedups) if (s0 > 1) != (s1 > 1)]
        falls = bool(self.speedups) and self.speedups[0][1] > 1
        return found[0] if len(found) == 1 and falls else None

    def says(self) -> str:
        """Say what a larger batch does."""
        parts = [self._pays(), self._acceptance()]
        if self.turns:
            told = ", ".join(f"{times(s)} at {b:g}" for b, s in self.speedups)
            parts.append(
                f"the speedup falls and rises ({told}): noise from run to run, or an engine that "
                "changes at one of these batches (captured graphs, padding); repeat these runs "
                "before anything is read off between them"
            )
        return "; ".join(part for part in parts if part)

    def _pays(self) -> str:
        known = self.speedups
        if len(known) < 2:
            return ""
        first, last = known[0][0], known[-1][0]
        if self.crossover:
            low, high = self.crossover
            return f"it pays up to batch {low:g} and no longer at {high:g}"
        if all(speedup > 1 for _, speedup in known):
            return f"it pays at every batch measured, {first:g} to {last:g}: no crossover"
        if all(speedup <= 1 for _, speedup in known):
            return f"it pays at no batch measured, {first:g} to {last:g}"
        where = ", ".join(f"{batch:g}" for batch, speedup in known if speedup > 1)
        return f"of the batches measured it pays at {where} only"

    def _acceptance(self) -> str:
        known = [(one.at, one.tokens_per_round) for one in self.places if one.tokens_per_round]
        if len(known) < 2 or abs(known[-1][1] / known[0][1] - 1) <= EVEN:
            return ""
        (b0, t0), (b1, t1) = known[0], known[-1]
        return (
            f"τ goes from {t0:.4g} at {b0:g} to {t1:.4g} at {b1:g}: it should not depend on the "
            "batch (are sequences kept in step, so that the shortest decides?)"
        )

    def value(self) -> dict[str, Any]:
        """Give everything as plain JSON."""
        return {
            "title": self.title,
            "points": [place.value("batch") for place in self.places],
            "crossover_batch": list(self.crossover) if self.crossover else None,
            "turns": self.turns,
            "says": self.says(),
        }


def by_batch(findings: Sequence[Finding]) -> list[BatchSeries]:
    """Gather the points of one label, context and γ that were measured at several batches."""
    found: dict[str, dict[float, Place]] = {}
    for one in findings:
        context = "" if one.group.context is None else f"context {one.group.context:,.0f}"
        for row in one.rows:
            gamma = "" if row.point.gamma is None else f"γ = {row.point.gamma:.0f}"
            title = ", ".join(filter(None, (one.group.label, context, gamma)))
            place = Place.of(one.group.batch, row.value)
            found.setdefault(title, {}).setdefault(one.group.batch, place)
    series = [
        BatchSeries(title, tuple(places[batch] for batch in sorted(places)))
        for title, places in found.items()
    ]
    return [one for one in series if len(one.places) > 1 and one.says()]


def batch_text(series: Sequence[BatchSeries]) -> list[RenderableType]:
    """Lay out each series: a line a batch, and what follows."""
    parts: list[RenderableType] = []
    for one in series:
        title = ": ".join(filter(None, ("By batch", one.title)))
        parts += [
            heading(title),
            places_table("batch", "g", one.places),
            facts([("Batch", one.says())]),
        ]
    return parts
