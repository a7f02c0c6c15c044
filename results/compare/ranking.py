"""Scenarios simulated on the same luck, put in order: who is faster, by how much, how surely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specplan.results.compare.differences import Difference

    Figures = dict[str, Any]

TPOT, OUTPUT = "mean_tpot_ms", "output_throughput"


@dataclass(frozen=True, eq=False)
class Compared:
    """Scenarios on the same luck; the first is the baseline of all differences.

    `between(a, b)` gives the differences B − A of two of them by place, paired on their luck;
    `seen` says what they were seen by: `20 replications`, `one run of 1,000 requests`.
    """

    names: tuple[str, ...]
    figures: tuple[Figures, ...]
    seeds: tuple[int, ...]
    seen: str
    between: Callable[[int, int], list[Difference]]

    @cached_property
    def against_baseline(self) -> tuple[list[Difference], ...]:
        """Differences of every scenario but the first from the first."""
        return tuple(self.between(0, place) for place in range(1, len(self.names)))

    def saturated(self, place: int) -> bool:
        """Tell whether a scenario has no steady state, and so no latency to compare."""
        return bool(self.figures[place]["saturated"])

    def verdict(self, place: int) -> str:
        """Say in one sentence how a scenario does against the baseline."""
        return verdict(
            self.against_baseline[place - 1],
            (self.names[0], self.names[place]),
            (self.saturated(0), self.saturated(place)),
            self.seen,
        )

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """All scenarios, the least mean time per token first; the saturated last, by throughput.

        Who cannot be told from the one before shares its rank.
        """
        order = sorted(range(len(self.names)), key=self._sort_key)
        ranks: list[Ranked] = []
        for position, place in enumerate(order, start=1):
            tied, ahead = False, ranks[-1] if ranks else None
            if ahead is not None:
                key = OUTPUT if self.saturated(ahead.place) else TPOT
                step = next(d for d in self.between(ahead.place, place) if d.key == key)
                both = self.saturated(ahead.place) == self.saturated(place)
                tied = both and step.verdict == "no difference"
            rank = ahead.rank if ahead is not None and tied else position
            ranks.append(Ranked(rank, place, self.names[place], tied))
        return tuple(ranks)

    def _sort_key(self, place: int) -> tuple[bool, float, float]:
        tpot = self.figures[place][TPOT]
        known = tpot is not None and isfinite(tpot)
        return not known, tpot if known else 0.0, -float(self.figures[place][OUTPUT])

    def summary(self) -> str:
        """Say who is fastest per token, and who cannot be told from it."""
        if len(self.names) == 2:
            return self.verdict(1)
        first = [one for one in self.ranking if one.rank == 1]
        names = " and ".join(one.name for one in first)
        if self.saturated(first[0].place):
            return f"all are saturated at this load; most output tokens/s: {names}"
        words = f"fastest per token: {names}"
        if len(first) > 1:
            words += f" (no difference that {self.seen} can see)"
        leader = first[0].place
        return f"{words}; {self.verdict(leader)}" if leader else words

    def json(self) -> Figures:
        """Return everything as one JSON object; differences are the scenario's − the baseline's."""
        named = dict(zip(self.names[1:], self.against_baseline, strict=True))
        value: Figures = {
            "verdict": self.summary(),
            "baseline": self.names[0],
            "replications": len(self.seeds),
            "seed": self.seeds[0],
            "seeds": list(self.seeds),
            "ranking": [
                {
                    "rank": one.rank,
                    "scenario": one.name,
                    "mean_tpot_ms": self.figures[one.place][TPOT],
                    "output_throughput": self.figures[one.place][OUTPUT],
                    "saturated": self.saturated(one.place),
                    "tied_with_the_one_before": one.tied,
                }
                for one in self.ranking
            ],
            "comparisons": {
                name: {
                    "verdict": self.verdict(place),
                    "differences": {d.key: _difference_json(d) for d in found},
                }
                for place, (name, found) in enumerate(named.items(), start=1)
            },
        }
        if len(self.names) == 2:
            value |= {"a": self.names[0], "b": self.names[1]}
            value["differences"] = value["comparisons"][self.names[1]]["differences"]
        return {**value, "runs": dict(zip(self.names, self.figures, strict=True))}


@dataclass(frozen=True)
class Ranked:
    """One scenario of a ranking; `tied` where nothing tells it from the one before."""

    rank: int
    place: int
    name: str
    tied: bool


def _difference_json(d: Difference) -> Figures:
    return {
        "a": d.a,
        "b": d.b,
        "difference": d.difference.mean,
        "difference_ci95": d.difference.ends(),
        "times_better": d.ratio,
        "verdict": d.verdict,
    }


def verdict(
    found: Sequence[Difference],
    names: Sequence[str],
    saturated: Sequence[bool],
    seen: str = "this run",
) -> str:
    """Say in one sentence which of two is faster per token, by how much and how surely."""
    tpot = next(d for d in found if d.key == TPOT)
    subject = f"{names[1]} against {names[0]}"
    for name, full in zip(names, saturated, strict=True):
        if full:
            other = names[1] if name == names[0] else names[0]
            if not all(saturated):
                return f"{name} is saturated at this load and {other} is not: no latency to compare"
            return (
                f"both are saturated at this load: compare throughput ({_throughput_words(found)})"
            )
    if tpot.verdict == "too few requests":
        return f"{subject}: too few requests for an interval (100 or more completed in both)"
    if tpot.verdict == "no difference":
        return f"{subject}: no difference in time per token that {seen} can see"
    word = "faster" if tpot.verdict == "better" else "slower"
    low, high = tpot.difference.low, tpot.difference.high
    return (
        f"{subject}: {word} per token, {tpot.ratio:.3g}x "
        f"({tpot.a:.4g} to {tpot.b:.4g} ms, difference {low:+.3g} to {high:+.3g} ms)"
    )


def _throughput_words(found: Sequence[Difference]) -> str:
    d = next(d for d in found if d.key == OUTPUT)
    return f"{d.a:,.0f} to {d.b:,.0f} tokens/s, {d.ratio:.3g}x"
