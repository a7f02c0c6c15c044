"""From the blocks of a scenario to the values that the models compute with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models import cost as costs
from specplan.models.acceptance import Acceptance
from specplan.models.cost import Cost
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_acceptance import AcceptanceBlock
    from specplan.scenarios.schema_costs import CostBlock


def lower_cost(block: CostBlock) -> Cost:
    """Turn a cost block into `models.cost.Cost`, with its launch floor, overhead and evidence."""
    if block.constant is not None:
        priced = costs.constant(block.constant, block.evidence, block.source)
    elif block.linear is not None:
        terms = block.linear
        priced = costs.linear(
            terms.base,
            terms.per_sequence,
            terms.per_token,
            terms.per_context_token,
            block.evidence,
            block.source,
        )
    else:
        raise ScenarioError(Fault(f"cost model {block.kind} is not available", "linear, constant"))
    return priced.composed(block.launch_floor, block.overhead)


def lower_acceptance(
    scenario: Scenario, positions: int, request_class: str | None = None
) -> Acceptance:
    """Turn the acceptance of all requests, or of one class, into `models.acceptance.Acceptance`.

    Raises ScenarioError where fewer than `positions` draft positions are stated.
    """
    classes = scenario.workload.classes
    if request_class is None and any(c.acceptance or c.draft_probability for c in classes):
        parts = [lower_acceptance(scenario, positions, kind.name) for kind in classes]
        return Acceptance.mixture(_shares([kind.weight for kind in classes]), parts)
    stated = next((kind for kind in classes if kind.name == request_class), None)
    block = (stated.acceptance if stated else None) or scenario.speculation.acceptance
    hit = stated.draft_probability if stated else None
    hit = scenario.speculation.draft_probability if hit is None else hit
    if block is None or positions == 0:
        return Acceptance.from_unconditional(np.zeros((0,)), hit)
    if block.positions < positions:
        raise ScenarioError(
            Fault(
                f"acceptance is stated for {block.positions} draft positions, {positions} are asked for",
                "state more positions, or draft fewer",
                field="speculation.acceptance",
            )
        )
    return _lower(block, positions, block.at_gamma or scenario.gamma, hit)


def _lower(block: AcceptanceBlock, positions: int, gamma: int, hit: float) -> Acceptance:
    match block.kind:
        case "alpha":
            spread = block.concentration or np.inf
            return Acceptance.from_alpha(block.alpha or 0.0, positions, hit, spread)
        case "conditional":
            law = Acceptance.from_conditional(block.conditional or (), hit)
        case "unconditional":
            law = Acceptance.from_unconditional(block.unconditional or (), hit)
        case _:
            raise ScenarioError(Fault(f"acceptance {block.kind} is not available"))
    return law.truncated(positions)


def _shares(weights: list[float]) -> np.ndarray:
    listed = np.asarray(weights, dtype=np.float64)
    return listed / listed.sum()
