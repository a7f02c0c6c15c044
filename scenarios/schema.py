"""The scenario: one validated, frozen value that everything else starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from annotated_types import Ge, Le
from pydantic import Field, model_validator

from specplan.scenarios.checks import contradictions
from specplan.scenarios.fields import Name, Section, Whole
from specplan.scenarios.lower import lower_acceptance, lower_cost
from specplan.scenarios.memory import pool_of
from specplan.scenarios.schema_costs import CostBlock
from specplan.scenarios.schema_measured import Measured
from specplan.scenarios.schema_memory import KvCache
from specplan.scenarios.schema_serving import Cluster, Record, Scheduler, Slo
from specplan.scenarios.schema_speculation import Draft, Speculation
from specplan.scenarios.schema_workload import Lengths, Workload

if TYPE_CHECKING:
    from specplan.models.acceptance import Acceptance
    from specplan.models.cost import Cost


class Target(Section):
    """What the target model's passes cost."""

    round: CostBlock = Field(
        description="One pass of the target: the verify pass of a round, width γ + 1."
    )
    step: CostBlock | None = Field(
        default=None, description="One plain decode step, width 1; absent: `round` at width 1."
    )
    prefill: CostBlock | None = Field(
        default=None,
        description="What prompt positions add to a pass; absent: `round` prices them as "
        "positions of the pass.",
    )
    gpu: str | None = Field(
        default=None, description="GPU it runs on, by its name in the bundled table: `h100-sxm`."
    )


class Scenario(Section):
    """A target, a draft, a workload and the machines between them."""

    name: Name = Field(description="Short name, shown in every result.")
    description: str = Field(default="", description="What it stands for, in a sentence or two.")
    seed: Annotated[Whole, Ge(0), Le(2**63 - 1)] = Field(
        default=1, description="Start of all luck; equal seeds compare scenarios on equal luck."
    )
    target: Target = Field(description="The model that decides.")
    draft: Draft = Field(default_factory=Draft, description="What proposes.")
    speculation: Speculation = Field(
        default_factory=Speculation, description="How it is proposed, and how much is kept."
    )
    workload: Workload = Field(description="The requests.")
    scheduler: Scheduler = Field(default_factory=Scheduler, description="The batch of one engine.")
    kv_cache: KvCache | None = Field(default=None, description="Memory; absent: no limit.")
    cluster: Cluster = Field(default_factory=Cluster, description="Engines and their router.")
    slo: Slo = Field(default_factory=Slo, description="Objectives.")
    record: Record = Field(default_factory=Record, description="What a handoff states.")
    measured: Measured | None = Field(
        default=None, description="Measured values, which `specplan validate` compares with."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = contradictions(self)
        if found:
            raise ContradictionError(found)
        return self

    @property
    def gamma(self) -> int:
        """γ: tokens proposed in a round; 0 without speculation, the depth of a tree."""
        if self.speculation.method == "none":
            return 0
        if self.speculation.gamma is not None:
            return self.speculation.gamma
        return self.speculation.tree_levels

    @property
    def deepest_gamma(self) -> int:
        """Largest γ that the policy may choose."""
        policy = self.speculation.policy
        if self.gamma == 0:
            return 0
        if policy.by_batch:
            return max(row[2] for row in policy.by_batch)
        if policy.goodput:
            return policy.goodput.max or self.gamma
        schedule = policy.hf_heuristic or policy.hf_transient
        return max(schedule.max, self.gamma) if schedule else self.gamma

    @property
    def stated_positions(self) -> float:
        """Draft positions that every class's acceptance covers; `inf` where a law has no end."""
        own = [kind.acceptance for kind in self.workload.classes] or [None]
        blocks = [block or self.speculation.acceptance for block in own]
        return min(block.covers(self.gamma) if block else 0 for block in blocks)

    @property
    def kv_blocks(self) -> int | None:
        """Blocks of the KV cache that are left for requests; None: no limit."""
        pool = pool_of(self, with_draft=self.drafts_on_target)
        return pool.blocks if pool else None

    @property
    def drafts_on_target(self) -> bool:
        """Whether a draft takes memory from the GPUs of the target."""
        return self.gamma > 0 and self.draft.placement == "colocated"

    @property
    def verify_width(self) -> int:
        """Positions a full round scores: γ + 1, or the nodes of a tree + 1."""
        if self.speculation.method == "tree" and self.gamma:
            return len(self.speculation.tree_paths) + 1
        return self.gamma + 1

    @property
    def prompt_tokens(self) -> Lengths:
        """Prompt lengths of requests whose class states none."""
        if self.workload.prompt_tokens is not None:
            return self.workload.prompt_tokens
        from_file = self.workload.arrivals.trace or self.workload.lengths
        return Lengths(trace=True) if from_file else Lengths(fixed=0)

    @property
    def output_tokens(self) -> Lengths:
        """Output lengths of requests whose class states none."""
        return self.workload.output_tokens or Lengths(trace=True)

    def target_round(self) -> Cost:
        """Price of a verify pass, as `models.cost.Cost`: every pass wider than one position."""
        return lower_cost(self.target.round, "target.round")

    def target_step(self) -> Cost:
        """Price of a plain decode pass: width 1, the baseline."""
        if self.target.step is None:
            return self.target_round()
        return lower_cost(self.target.step, "target.step")

    def target_prefill(self) -> Cost | None:
        """Price of prompt positions; None where the round's own price covers them."""
        prefill = self.target.prefill
        return lower_cost(prefill, "target.prefill") if prefill else None

    def draft_step(self) -> Cost:
        """Price of one draft step."""
        return lower_cost(self.draft.step, "draft.step")

    def draft_prefill(self) -> Cost:
        """Price of a prompt in the draft, on its prompt tokens."""
        return lower_cost(self.draft.prefill, "draft.prefill")

    def acceptance(self, positions: int, request_class: str | None = None) -> Acceptance:
        """Give the acceptance of the first `positions` positions, for all requests or one class.

        Raises ScenarioError where the scenario states fewer positions.
        """
        return lower_acceptance(self, positions, request_class)

    def resolved(self) -> dict[str, Any]:
        """Return everything that is set, defaults too, in the form of a scenario file."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        classes = data["workload"].pop("classes")
        if classes:
            data["workload"]["classes"] = {item.pop("name"): item for item in classes}
        return {key: value for key, value in data.items() if value != {}}


class ContradictionError(ValueError):
    """Fields that are right alone and wrong together: (path, wrong, right) of each."""

    def __init__(self, found: list[tuple[tuple[str, ...], str, str]]) -> None:
        self.found = found
        super().__init__("; ".join(f"{'.'.join(path)}: {wrong}" for path, wrong, _ in found))
