"""From the blocks of a scenario to the values that the models compute with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from specplan.models import cost as costs
from specplan.models.acceptance import Acceptance
from specplan.models.conversions import (
    alpha_from_tokens_per_round,
    conditional_from_pq,
    unconditional_from_alpha,
    unconditional_from_conditional,
    unconditional_from_histogram,
)
from specplan.models.extrapolation import extrapolate
from specplan.models.heterogeneity import mean_alpha
from specplan.models.recorded import rounds_of_tokens
from specplan.models.synthetic import minimum_variance
from specplan.models.trees import tree_unconditional
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from specplan.models.cost import Cost
    from specplan.models.extrapolation import Extrapolation
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_acceptance import AcceptanceBlock
    from specplan.scenarios.schema_costs import CostBlock, RooflineCost

    Floats = NDArray[np.float64]

End = Literal["low", "unconditional", "high"]
"""Which list of `models.extrapolation.Extrapolation` stands beyond the positions stated."""


def lower_cost(block: CostBlock, name: str = "") -> Cost:
    """Turn a cost block into `models.cost.Cost`, with its launch floor, overhead and evidence.

    `name` is the field that it stands in, as errors call it; a table is called by its file, too.

    Raises ScenarioError for a table or a model's config that cannot be read.

    >>> from specplan.scenarios.schema_costs import CostBlock
    >>> lower_cost(CostBlock.model_validate("20 ms")).kind
    'constant'
    """
    if block.constant is not None:
        priced = costs.constant(block.constant)
    elif block.linear is not None:
        terms = block.linear
        priced = costs.linear(
            terms.base, terms.per_sequence, terms.per_token, terms.per_context_token
        )
    elif block.table is not None:
        from specplan.scenarios.cost_tables import read_cost_table

        path = Path(block.table)
        priced = read_cost_table(
            path,
            pads_batch=block.pads_batch,
            outside=block.outside,
            step_s=block.relative_to,
        )
    else:
        assert block.roofline is not None  # one alternative is always written
        priced = _roofline(block.roofline)
    called = ": ".join(filter(None, (name, block.table)))
    priced = replace(priced.composed(block.launch_floor, block.overhead), name=called)
    stated = replace(priced, source=block.source) if block.source else priced
    return replace(stated, provenance=block.evidence) if block.evidence else stated


def _roofline(block: RooflineCost) -> Cost:
    from specplan.scenarios.rooflines import roofline_cost

    return roofline_cost(
        block.gpu,
        Path(block.model),
        mtp=block.mtp,
        dtype=block.dtype,
        kv_dtype=block.kv_dtype,
        tensor_parallel=block.tensor_parallel,
        compute_efficiency=block.compute_efficiency,
        memory_efficiency=block.memory_efficiency,
        slowdown=block.slowdown,
    )


def lower_acceptance(
    scenario: Scenario,
    positions: int,
    request_class: str | None = None,
    end: End = "unconditional",
) -> Acceptance:
    """Turn the acceptance of all requests, or of one class, into `models.acceptance.Acceptance`.

    `end`: an end of the band, where a rule goes on beyond the positions stated. Raises
    ScenarioError where fewer than `positions` draft positions are stated.
    """
    classes = scenario.workload.classes
    if request_class is None and scenario.workload.accepts_by_class:
        parts = [lower_acceptance(scenario, positions, kind.name, end) for kind in classes]
        return Acceptance.mixture(_shares([kind.weight for kind in classes]), parts)
    stated = next((kind for kind in classes if kind.name == request_class), None)
    block = (stated.acceptance if stated else None) or scenario.speculation.acceptance
    hit = stated.draft_probability if stated else None
    hit = scenario.speculation.draft_probability if hit is None else hit
    if block is None or positions == 0:
        return Acceptance.from_unconditional(np.zeros(0), hit)
    covered = block.covers(scenario.gamma)
    if covered < positions:
        wrong = f"states {covered:g} draft positions, and {positions} are asked for"
        right = "state more positions, or draft fewer"
        raise ScenarioError(Fault(wrong, right, field="speculation.acceptance"))
    try:
        law = _law(scenario, block, positions, hit, end)
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field="speculation.acceptance")) from None
    law = law.truncated(positions)
    _kept_within_proposed(law, scenario.speculation.proposing(positions))
    return law


def _kept_within_proposed(law: Acceptance, proposing: Sequence[float]) -> None:
    """Refuse more kept at a position than proposed there."""
    for position, share in enumerate(proposing):
        kept = float(law.unconditional[:, position].max())
        if kept > share + 1e-9:
            wrong = (
                f"keeps position {position + 1} in {kept:.4g} of the rounds that draft, and "
                f"{share:.4g} of them propose it"
            )
            right = "acceptance of all rounds that draft, as engines print it"
            raise ScenarioError(Fault(wrong, right, field="speculation.proposal_lengths"))


def _law(
    scenario: Scenario, block: AcceptanceBlock, positions: int, hit: float, end: End
) -> Acceptance:
    match block.kind:
        case "alpha":
            spread = block.concentration or np.inf
            return Acceptance.from_alpha(block.alpha or 0.0, positions, hit, spread)
        case "mixture":
            parts = block.mixture or ()
            laws = [_law(scenario, p, positions, hit, end).truncated(positions) for p in parts]
            return Acceptance.mixture(_shares([part.weight for part in parts]), laws)
        case "recorded" | "recorded_file":
            kept = block.recorded or _recorded(block.recorded_file or "")
            return Acceptance.from_recorded(kept, max(block.at_gamma or 0, *kept, positions))
        case "recorded_tokens":
            cut = rounds_of_tokens(block.recorded_tokens or (), scenario.gamma)
            return Acceptance.from_recorded(cut, max(scenario.gamma, positions))
        case "acceptance_length" if block.concentration and end == "unconditional":
            tau, measured = block.acceptance_length or 1.0, int(block.states(scenario.gamma))
            alpha = mean_alpha(tau, measured, block.concentration, hit)
            return Acceptance.from_alpha(alpha, positions, hit, block.concentration)
        case _:
            stated = stated_list(scenario, block)
            if len(stated) < positions:
                stated = getattr(going_on(block, stated, positions), end)
            return Acceptance.from_unconditional(stated, hit)


def going_on(block: AcceptanceBlock, stated: Floats, positions: int) -> Extrapolation:
    """Continue a block's list to `positions` by the block's rule; a τ says no single position."""
    assert block.extend != "refuse"  # fewer positions than asked for were refused before
    alone = block.kind == "acceptance_length"
    return extrapolate(stated, positions, block.extend, sum_only=alone)


def stated_list(scenario: Scenario, block: AcceptanceBlock) -> Floats:
    """List A_i (positions,) where a block states it."""
    match block.kind:
        case "unconditional":
            return np.array(block.unconditional)
        case "conditional":
            return unconditional_from_conditional(block.conditional or ())
        case "pq":
            pairs = [(pair.p, pair.q) for pair in block.pq or ()]
            return unconditional_from_conditional(conditional_from_pq(pairs))
        case "histogram":
            return unconditional_from_histogram(block.histogram or ())
        case "ranks":
            kept = tree_unconditional(block.ranks or (), scenario.speculation.tree_paths)
            return np.minimum(kept, 1.0)  # a sum over nodes that is 1 but for rounding
        case _:
            tau, measured = block.acceptance_length or 1.0, int(block.states(scenario.gamma))
            if block.shape == "minimum_variance":
                return minimum_variance(tau, measured)
            alpha = float(alpha_from_tokens_per_round(tau, measured))
            return unconditional_from_alpha(alpha, measured)


def _recorded(path: str) -> tuple[int, ...]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        wrong = f"cannot be read: {error.strerror or error}"
        raise ScenarioError(Fault(wrong, "one whole number a line", path)) from None
    except UnicodeDecodeError:
        raise ScenarioError(Fault("is not text", "one whole number a line", path)) from None
    kept = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.strip().isdecimal():
            wrong = f"`{line.strip()[:40]}` is not a number of tokens"
            raise ScenarioError(Fault(wrong, "one whole number a line", path, number))
        kept += [int(line)] if line.strip() else []
    if not kept:
        raise ScenarioError(Fault("is empty", "one whole number a line", path))
    return tuple(kept)


def _shares(weights: Sequence[float]) -> Floats:
    listed = np.asarray(weights, dtype=np.float64)
    shares: Floats = listed / listed.sum()
    return shares
