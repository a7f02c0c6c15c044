"""The acceptance block: how many drafted tokens are kept, and what each number means."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, field_validator, model_validator

from specplan.scenarios.fields import (
    Choice,
    FilePath,
    Fraction,
    Gamma,
    Number,
    Positive,
    Section,
    Whole,
    fault,
)

Fractions = Annotated[tuple[Fraction, ...], Field(min_length=1, max_length=1000)]
Counts = Annotated[tuple[Annotated[Whole, Ge(0)], ...], Field(min_length=1, max_length=10_000_000)]
Flags = Annotated[
    tuple[Annotated[Whole, Ge(0), Le(1)], ...], Field(min_length=1, max_length=10_000_000)
]


class LawPair(Section):
    """Target law p and draft law q at one draft position, after temperature, top-p and so on."""

    p: Fractions = Field(description="Target probabilities, one a token, summing to one.")
    q: Fractions = Field(description="Draft probabilities of the same tokens, summing to one.")

    @model_validator(mode="after")
    def _laws(self) -> Self:
        if len(self.p) != len(self.q):
            raise fault(
                f"p has {len(self.p)} tokens and q has {len(self.q)}", "the same tokens in both"
            )
        for name, law in (("p", self.p), ("q", self.q)):
            if abs(math.fsum(law) - 1) > 1e-6:
                raise fault(f"{name} sums to {math.fsum(law):.6g}", "probabilities that sum to 1")
        return self


class AcceptanceBlock(Choice):
    """Exactly one statement about acceptance, named by what its numbers mean."""

    alternatives: ClassVar = (
        "alpha",
        "conditional",
        "unconditional",
        "acceptance_length",
        "pq",
        "histogram",
        "recorded",
        "recorded_file",
        "recorded_tokens",
        "ranks",
        "mixture",
    )
    belongs: ClassVar = {
        "at_gamma": ("acceptance_length", "recorded", "recorded_file"),
        "shape": ("acceptance_length",),
        "concentration": ("alpha", "acceptance_length"),
        "extend": ("conditional", "unconditional", "acceptance_length", "pq", "histogram"),
    }

    alpha: Fraction | None = Field(
        default=None,
        description="One acceptance probability for every position, α = E[β] (iid). The share "
        "accepted/drafted of an engine's log is not α.",
    )
    conditional: Fractions | None = Field(
        default=None,
        description="a_i: position i kept, given that all before it were. At least γ numbers.",
    )
    unconditional: Fractions | None = Field(
        default=None,
        description="A_i: rounds that kept position i over rounds that drafted, as vLLM and "
        "llama.cpp print it per position. Never rises. At least γ numbers.",
    )
    acceptance_length: Annotated[Number, Ge(1), Le(1001)] | None = Field(
        default=None,
        description="τ: tokens per round with the bonus token, between 1 and γ + 1. "
        "(TensorRT-LLM's figure has no bonus: add 1.)",
    )
    pq: Annotated[tuple[LawPair, ...], Field(min_length=1)] | None = Field(
        default=None, description="Target and draft law at each position; β = Σ min(p, q) is kept."
    )
    histogram: Counts | None = Field(
        default=None, description="Rounds that kept exactly 0, 1, … γ drafted tokens (no bonus)."
    )
    recorded: Counts | None = Field(
        default=None,
        description="Drafted tokens kept in each recorded round (no bonus), replayed in order.",
    )
    recorded_file: FilePath | None = Field(
        default=None, description="The same from a text file, one number a line."
    )
    recorded_tokens: Flags | None = Field(
        default=None,
        description="For each output token of a record, 1 where the draft had proposed it and 0 "
        "where not: rounds of γ are made from it and replayed in order. A sweep over γ cuts them "
        "anew at each; a best γ below the one that is set only shortens them.",
    )
    ranks: Fractions | None = Field(
        default=None,
        description="For trees: the chance that the draft's 1st, 2nd, … choice is the one kept, "
        "summing to at most 1.",
    )
    mixture: Annotated[tuple[MixturePart, ...], Field(min_length=1)] | None = Field(
        default=None, description="Kinds of request that differ: `[{weight: 3, alpha: .8}, …]`."
    )
    at_gamma: Gamma | None = Field(
        default=None,
        description="γ at which acceptance_length or the record was taken; absent: "
        "speculation.gamma.",
    )
    shape: Literal["iid", "minimum_variance"] = Field(
        default="iid",
        description="How acceptance_length is spread over positions: one α for all, or the "
        "least spread (vLLM's synthetic mode).",
    )
    extend: Literal["refuse", "iid", "last_ratio", "plateau", "zero"] = Field(
        default="refuse",
        description="Rule for positions beyond those stated: refuse them; iid: the one α that fits "
        "what is stated; last_ratio: the last conditional acceptance goes on; plateau: the "
        "geometric mean of the conditional ones after the first does; zero: nothing is kept there.",
    )
    concentration: Positive | None = Field(
        default=None,
        description="κ: requests differ, their α drawn from Beta(ακ, (1 − α)κ); absent: all alike.",
    )

    @field_validator("unconditional")
    @classmethod
    def _never_rises(cls, listed: tuple[float, ...] | None) -> tuple[float, ...] | None:
        for position, (before, after) in enumerate(itertools.pairwise(listed or ()), start=2):
            if after > before:
                raise fault(
                    f"rises from {before:g} to {after:g} at position {position}",
                    "an unconditional list never rises; numbers given that all before were kept "
                    "are `conditional`",
                )
        return listed

    @field_validator("ranks")
    @classmethod
    def _at_most_one(cls, ranks: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if ranks and math.fsum(ranks) > 1 + 1e-9:
            raise fault(
                f"the ranks sum to {math.fsum(ranks):.6g}", "at most 1: one choice is kept, or none"
            )
        return ranks

    @field_validator("histogram")
    @classmethod
    def _not_all_zero(cls, counts: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if counts and not any(counts):
            raise fault("every count is zero", "rounds that kept 0, 1, … drafted tokens")
        return counts

    @model_validator(mode="after")
    def _within_gamma(self) -> Self:
        kept = max(self.recorded or (0,))
        if self.at_gamma is not None and kept > self.at_gamma:
            raise fault(
                f"{kept} tokens recorded in one round, and at_gamma is {self.at_gamma}",
                "drafted tokens kept, without the bonus token",
            )
        return self

    def covers(self, gamma: int) -> float:
        """Draft positions known, where the scenario drafts γ; `inf` where there is no end.

        >>> AcceptanceBlock.model_validate({"conditional": [0.8, 0.7]}).covers(5)
        2
        """
        if self.mixture:
            return min(part.covers(gamma) for part in self.mixture)
        return math.inf if self.extend != "refuse" else self.states(gamma)

    def states(self, gamma: int) -> float:
        """Draft positions stated, those that a rule adds left out; `inf` for a law without an end.

        >>> block = AcceptanceBlock.model_validate({"conditional": [0.8, 0.7], "extend": "iid"})
        >>> block.covers(5), block.states(5)
        (inf, 2)
        """
        match self.kind:
            case "conditional" | "unconditional" | "pq":
                return len(getattr(self, self.kind))
            case "histogram":
                return len(self.histogram or ()) - 1
            case "acceptance_length" | "recorded" | "recorded_file":
                return gamma if self.at_gamma is None else self.at_gamma
            case "recorded_tokens":  # each γ cuts other rounds from it
                return gamma
            case "mixture":
                return min(part.states(gamma) for part in self.mixture or ())
            case _:
                return math.inf


class MixturePart(AcceptanceBlock):
    """The acceptance of one kind of request, and how many requests are of that kind."""

    weight: Positive = Field(description="Share of the requests, relative to the other weights.")


AcceptanceBlock.model_rebuild()
