"""What was found at one batch or one context of a series of measured points."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from specplan.results.tables import columns, milliseconds, number, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

HEADER = ("τ", "round", "R/T", "speedup")


@dataclass(frozen=True)
class Place:
    """What was found at one value of what a series goes along.

    `at` is in sequences of a batch, or in cached tokens of a sequence.
    """

    at: float
    tokens_per_round: float | None
    round_s: float | None
    round_cost_ratio: float | None
    speedup: float | None

    @classmethod
    def of(cls, at: float, value: Mapping[str, Any]) -> Place:
        """Take the findings of a diagnosed point, as its JSON has them."""
        names = ("tokens_per_round", "round_s", "round_cost_ratio", "speedup")
        return cls(at, *(value[name] for name in names))

    def value(self, name: str) -> dict[str, Any]:
        """Give everything as plain JSON; `name` is what the series goes along."""
        found = asdict(self)
        return {name: found.pop("at"), **found}


def places_table(name: str, digits: str, places: Sequence[Place]) -> RenderableType:
    """Lay places out, a line each; `name` is what the series goes along, `digits` its format."""
    rows = [
        (
            format(one.at, digits),
            number(one.tokens_per_round),
            milliseconds(one.round_s),
            number(one.round_cost_ratio),
            times(one.speedup),
        )
        for one in places
    ]
    return columns((name, *HEADER), rows)
