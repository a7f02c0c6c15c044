"""The blocks about drafting: the draft's own costs and place, γ and who chooses it."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge
from pydantic import Field, field_validator, model_validator

from specplan.scenarios.fields import (
    Choice,
    Count,
    Duration,
    Fraction,
    Gamma,
    Number,
    Positive,
    Section,
    Whole,
    fault,
)
from specplan.scenarios.schema_acceptance import AcceptanceBlock
from specplan.scenarios.schema_costs import CostBlock
from specplan.scenarios.schema_tree import Tree

Weights = Annotated[tuple[Annotated[Number, Ge(0)], ...], Field(min_length=1, max_length=1000)]
Method = Literal["none", "draft_model", "one_pass", "ngram", "tree"]


class Draft(Section):
    """What proposes tokens: its costs and the GPU it runs on."""

    step: CostBlock = Field(
        default_factory=lambda: CostBlock.model_validate("0 ms"),
        description="One draft step: one token for draft_model, all γ for one_pass, one level for "
        "tree; 0 ms for ngram.",
    )
    per_round: Duration = Field(
        default=0.0,
        description="Fixed cost of drafting, once in every round that drafts, before its steps: a "
        "call to another device, a set-up.",
    )
    prefill: CostBlock = Field(
        default_factory=lambda: CostBlock.model_validate("0 ms"),
        description="What the draft spends on a prompt, priced on its prompt tokens.",
    )
    placement: Literal["colocated", "dedicated", "shared", "parallel"] = Field(
        default="colocated",
        description="colocated: on the target's GPU, one phase after the other; dedicated: a GPU "
        "of its own for each replica; shared: one pool for all replicas, which queue for it; "
        "parallel: drafting goes on while the target verifies.",
    )
    gpus: Count = Field(
        default=1,
        description="Draft GPUs of the shared pool; for dedicated, those of each replica, which "
        "cost and make one step together: `step` is its time on all of them.",
    )
    max_batch: Count | None = Field(
        default=None,
        description="Sequences one shared draft GPU serves in one step; absent: all. A larger "
        "running batch is drafted for in turns.",
    )
    transfer: Duration | None = Field(
        default=None,
        description="Delay a round pays to carry tokens between draft and target GPU; required for "
        "dedicated and shared.",
    )
    ping_pong: bool = Field(
        default=False,
        description="dedicated: two half batches take turns, so that neither GPU waits.",
    )
    operations_ratio: Annotated[Number, Ge(0)] | None = Field(
        default=None,
        description="ĉ: operations of one draft token over one target token (parameters, roughly); "
        "for the operations factor, not for time.",
    )


class ConfidenceStop(Section):
    """Drafting ends early when the draft is not sure of the token it has just proposed.

    The token that stops it is still verified. After the first token that will be rejected, every
    further one stops drafting with `if_rejected`.
    """

    if_rejected: Fraction = Field(
        description="Chance to stop after a token that the target is going to reject."
    )
    if_accepted: Fraction = Field(
        description="Chance to stop after a token that the target is going to keep."
    )


class HfPolicy(Section):
    """Schedules of Hugging Face transformers: γ + 2 after a fully kept round, else γ − 1."""

    increase: Gamma = Field(default=2, description="Added to γ when every drafted token was kept.")
    decrease: Gamma = Field(default=1, description="Taken from γ when one was not.")
    min: Gamma = Field(default=1, description="γ never falls below this.")
    max: Gamma = Field(default=20, description="γ never rises above this.")


class ConstantPolicy(Section):
    """Hugging Face's constant schedule: γ stays, `confidence_stop` may end a round early."""


class GoodputPolicy(Section):
    """γ that promises the most committed tokens per second for the batch of the moment."""

    min: Gamma = Field(default=0, description="Smallest γ considered; 0 lets it switch off.")
    max: Gamma | None = Field(default=None, description="Largest γ considered; absent: gamma.")
    hold_rounds: Count = Field(default=1, description="Engine steps for which a choice is kept.")


class Policy(Choice):
    """Who chooses γ, for each request or each engine step."""

    alternatives: ClassVar = (
        "fixed",
        "hf_heuristic",
        "hf_transient",
        "hf_constant",
        "off_above",
        "by_batch",
        "goodput",
    )
    words: ClassVar = ("fixed", "hf_heuristic", "hf_transient", "hf_constant", "goodput")
    belongs: ClassVar = {
        "hysteresis": ("by_batch", "off_above"),
        "patience": ("by_batch", "off_above"),
    }

    fixed: bool | None = Field(default=None, description="γ is `gamma` in every round.")
    hf_heuristic: HfPolicy | None = Field(
        default=None, description="γ moves by request, and the next request starts where it ended."
    )
    hf_transient: HfPolicy | None = Field(
        default=None, description="γ moves, and every request starts again from `gamma`."
    )
    hf_constant: ConstantPolicy | None = Field(
        default=None, description="γ is `gamma`; only `confidence_stop` ends a round early."
    )
    by_batch: (
        Annotated[
            tuple[tuple[Annotated[Whole, Ge(1)], Annotated[Whole, Ge(1)], Gamma], ...],
            Field(min_length=1),
        ]
        | None
    ) = Field(
        default=None,
        description="γ by the running batch: `[[1, 8, 5], [9, 32, 3], [33, 512, 0]]`, inclusive, "
        "from 1 and without holes (vLLM's num_speculative_tokens_per_batch_size).",
    )
    off_above: Count | None = Field(
        default=None,
        description="γ is `gamma` up to so many running sequences and 0 above them (TensorRT-LLM's "
        "max_concurrency; one less than vLLM 0's disable_by_batch_size).",
    )
    goodput: GoodputPolicy | None = Field(
        default=None, description="γ of most committed tokens per second, from the cost model."
    )
    hysteresis: Annotated[Whole, Ge(0)] = Field(
        default=0,
        description="by_batch, off_above: running sequences by which the batch must fall below a "
        "limit before γ changes back; `off_above: 32` with 8 is off from 33 and on again at 24.",
    )
    patience: Count = Field(
        default=1,
        description="by_batch, off_above: engine steps in a row that must ask for another γ before "
        "it changes.",
    )

    def rows(self, gamma: int) -> tuple[tuple[int, int, int], ...]:
        """Give γ by running batch as (from, to, γ), the last row for all larger ones; else empty.

        >>> Policy(off_above=32).rows(4)
        ((1, 32, 4), (33, 33, 0))
        """
        if self.off_above is not None:
            return (1, self.off_above, gamma), (self.off_above + 1, self.off_above + 1, 0)
        return self.by_batch or ()

    @field_validator("by_batch")
    @classmethod
    def _no_holes(
        cls, rows: tuple[tuple[int, int, int], ...] | None
    ) -> tuple[tuple[int, int, int], ...] | None:
        expected = 1
        for low, high, _ in rows or ():
            if low != expected or high < low:
                raise fault(
                    f"the row [{low}, {high}] does not follow on",
                    f"rows in order and without holes: the next one starts at {expected}",
                )
            expected = high + 1
        return rows

    @model_validator(mode="after")
    def _can_change_back(self) -> Self:
        first = next((high for _, high, _ in self.rows(0)), 1)  # the default is below 1
        if self.hysteresis >= first:
            raise fault(
                f"hysteresis of {self.hysteresis} below a limit of {first} is never reached",
                f"at most {first - 1}",
            )
        return self


class Speculation(Section):
    """How tokens are proposed and how many of them are kept."""

    method: Method = Field(
        default="none",
        description="none: plain decoding; draft_model: γ steps of a small model, one after the "
        "other; one_pass: one step for all γ (parallel heads); ngram: lookup, no draft cost; "
        "tree: several choices at a position.",
    )
    gamma: Gamma | None = Field(
        default=None,
        description="γ: tokens proposed in a round (num_speculative_tokens); a tree's depth.",
    )
    overhead: Duration = Field(
        default=0.0, description="Scheduling, sampling and launches of a round, whatever its width."
    )
    extra_draft_step: bool = Field(
        default=False,
        description="One more draft step after a fully kept round, in which the draft ingests its "
        "own last token.",
    )
    acceptance: AcceptanceBlock | None = Field(
        default=None, description="How many drafted tokens are kept."
    )
    draft_probability: Fraction = Field(
        default=1.0,
        description="Chance that a round proposes anything (an n-gram match); acceptance holds for "
        "the rounds that do.",
    )
    proposal_lengths: Weights | None = Field(
        default=None,
        description="ngram: rounds that proposed exactly 1, 2, … tokens, as counts or shares; "
        "absent: every match gives γ. Acceptance stays what engines print, of all rounds that "
        "draft: position i is not kept in a round that proposed fewer.",
    )
    enabled_factor: Positive = Field(
        default=1.0,
        description="Factor on every decode pass of the target while speculation is configured, "
        "also where the policy drafts nothing: what it costs to have it on, such as 1.066 "
        "(vllm-project/vllm#49548). `gamma: 0` and `method: none` are without it.",
    )
    tree: Tree | None = Field(default=None, description="The tree of `method: tree`.")
    confidence_stop: ConfidenceStop | None = Field(
        default=None, description="Drafting may end before γ; absent: it never does."
    )
    policy: Policy = Field(
        default_factory=lambda: Policy.model_validate("fixed"),
        description="Who chooses γ round by round.",
    )

    @field_validator("proposal_lengths")
    @classmethod
    def _some_rounds(cls, lengths: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if lengths is not None and not any(lengths):
            raise fault("every share is zero", "rounds that proposed 1, 2, … tokens")
        return lengths

    @property
    def tree_paths(self) -> tuple[tuple[int, ...], ...]:
        """Every node of the tree as the ranks on its path, parents before children.

        Empty without a tree, and where `tree.budget` has no rank acceptances to be spent by.
        """
        ranks = self.acceptance.ranks if self.acceptance else None
        return self.tree.paths(ranks or ()) if self.tree else ()

    @property
    def tree_levels(self) -> int:
        """Depth: draft steps of a round, and the most tokens it can keep before the bonus."""
        return max(map(len, self.tree_paths), default=0)

    def proposing(self, positions: int) -> tuple[float, ...]:
        """S_i, i = 1..positions: share of the rounds that draft which propose i tokens or more.

        Empty where all of them propose γ.

        >>> Speculation(method="ngram", gamma=3, proposal_lengths=(1, 1, 2)).proposing(4)
        (1.0, 0.75, 0.5, 0.0)
        """
        if self.proposal_lengths is None:
            return ()
        listed, total = self.proposal_lengths, math.fsum(self.proposal_lengths)
        return tuple(math.fsum(listed[i:]) / total for i in range(positions))
