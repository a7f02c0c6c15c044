"""One acceptance figure under one reading, and the tokens per round that it then means.

Every reading is an increasing map from the printed number to tokens per round τ (MODEL.md §2), so
a number printed to a few digits becomes an interval of τ, and two figures agree when theirs meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import (
    checked_unconditional,
    probabilities,
    tokens_per_round_from_alpha,
    unconditional_from_conditional,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LENGTHS: Mapping[str, str] = {
    "acceptance_length": "tokens per round with the bonus token (vLLM, SGLang, papers)",
    "accepted_per_round": "accepted drafts per round without the bonus (TensorRT-LLM)",
}
SHARES: Mapping[str, str] = {
    "acceptance_rate": "accepted/drafted (vLLM, llama.cpp, newer SGLang)",
    "alpha": "iid acceptance of one position (papers)",
    "efficiency": "tokens per round/(gamma + 1) (vLLM V0 efficiency, older SGLang accept rate)",
    "share_of_output": "share of the output tokens that were accepted drafts",
}
LISTS: Mapping[str, str] = {
    "unconditional": "accepted at position i/rounds (vLLM, llama.cpp)",
    "conditional": "accepted at position i given that all before it were (simulators)",
}
READINGS: Mapping[str, tuple[str, ...]] = {
    "length": tuple(LENGTHS),
    "rate": tuple(SHARES),
    "positions": tuple(LISTS),
    "scenario": ("unconditional",),
    "accepted_per_position": ("unconditional",),
    "lengths_by_gamma": ("unconditional",),
    "rates_by_gamma": ("unconditional",),
    "itl/tpot": ("acceptance_length",),
    "speedup*round_cost": ("acceptance_length",),
}
"""What figures may be whose name is not itself a reading; the usual one first."""

ENGINES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {
        "length": ("acceptance_length",),
        "rate": ("acceptance_rate",),
        "positions": ("unconditional",),
    },
    "sglang": {"length": ("acceptance_length",), "rate": ("acceptance_rate", "efficiency")},
    "tensorrt-llm": {"rate": ("acceptance_rate",)},
    "llama.cpp": {
        "length": ("acceptance_length",),
        "rate": ("acceptance_rate",),
        "positions": ("unconditional",),
    },
}
"""What an engine's own figures are (FORMATS.md A1–A9); a figure not listed stays open."""


@dataclass(frozen=True)
class Figure:
    """A number as printed: its value and half a unit of its last digit (0 when exact)."""

    value: float
    rounding: float = 0.0


@dataclass(frozen=True)
class Statement:
    """A figure (or a list of them) under one reading."""

    name: str
    reading: str
    figures: tuple[Figure, ...]

    @property
    def is_list(self) -> bool:
        """Whether the figures are per position."""
        return self.reading in LISTS

    def __str__(self) -> str:
        shown = ", ".join(f"{figure.value:.6g}" for figure in self.figures)
        as_read = "" if self.name == self.reading else f" read as {self.reading}"
        return f"{self.name} {shown}{as_read}"

    def check(self) -> None:
        """Raise ValueError when a value cannot be what its name says, whatever gamma is."""
        for figure in self.figures:
            if not np.isfinite(figure.value):
                raise ValueError(f"{self.name} is {figure.value} (a finite number)")
        least = np.array([figure.value for figure in self.figures])
        if self.reading == "acceptance_length" and least[0] < 1:
            raise ValueError(
                f"{self.name} is {least[0]:g}; with the bonus token it is at least 1 (a number"
                " below 1 can only be accepted_per_round)"
            )
        if self.reading == "accepted_per_round" and least[0] < 0:
            raise ValueError(f"{self.name} is {least[0]:g}; it is 0 or more")
        if self.reading in SHARES or self.is_list:
            probabilities(least, self.name)
        if self.reading == "share_of_output" and least[0] == 1:
            raise ValueError(
                f"{self.name} is 1; every round commits one token of the target, so the share of"
                " accepted drafts stays below 1"
            )
        if self.reading == "unconditional":
            self._check_never_rises()

    def _check_never_rises(self) -> None:
        """Refuse a rise, unless it is within the rounding of both printed numbers."""
        values = np.array([figure.value for figure in self.figures])
        slack = np.array([figure.rounding for figure in self.figures])
        rises = np.diff(values) > slack[1:] + slack[:-1] + 1e-9
        if rises.any():
            checked_unconditional(values)

    def lists(self, gamma: int, shift: int = 0) -> Floats:
        """Unconditional list (γ,), each figure moved by `shift` half-units of its rounding."""
        moved = np.array([f.value + shift * f.rounding for f in self.figures[:gamma]])
        moved = np.clip(moved, 0.0, 1.0)
        if self.reading == "conditional":
            return unconditional_from_conditional(moved)
        lowered: Floats = np.minimum.accumulate(moved)
        return lowered

    def tokens_per_round(
        self, gamma: int | None, drafted_per_round: float | None = None, shift: int = 0
    ) -> float | None:
        """τ (bonus included) that this figure means at γ, or None when it needs γ and has none.

        `drafted_per_round` replaces γ where rounds draft fewer than γ tokens.

        >>> Statement("rate", "acceptance_rate", (Figure(0.575),)).tokens_per_round(4)
        3.3
        """
        value = self.figures[0].value + shift * self.figures[0].rounding
        drafted = gamma if drafted_per_round is None else drafted_per_round
        if self.reading == "acceptance_length":
            return value
        if self.reading == "accepted_per_round":
            return 1 + value
        if self.reading == "share_of_output":
            return 1 / (1 - value) if value < 1 else float("inf")
        if gamma is None or drafted is None:
            return None
        if self.reading == "acceptance_rate":
            return 1 + drafted * value
        if self.reading == "efficiency":
            return value * (gamma + 1)
        if self.reading == "alpha":
            return float(tokens_per_round_from_alpha(min(max(value, 0.0), 1.0), gamma))
        return 1 + float(self.lists(gamma, shift).sum())
