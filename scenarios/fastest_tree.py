"""The tree that commits tokens fastest for a scenario's own costs, whatever tree it states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models.trees import TreeChoice, fastest_tree
from specplan.scenarios.priced import Priced
from specplan.scenarios.schema_tree import DEEPEST, LARGEST_BUDGET

if TYPE_CHECKING:
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.schema import Scenario


def fastest_for(scenario: Scenario, point: OperatingPoint) -> TreeChoice | None:
    """Search trees of up to `LARGEST_BUDGET` nodes, or as wide as passes are priced.

    A draft level costs what it does in the scenario's tree on average. None where rank acceptances
    do not describe every round: no tree, another statement, classes of their own, rounds without
    a draft, or drafting that the verify pass hides. Raises ScenarioError.

    >>> from specplan.scenarios.closed_form import operating_point
    >>> from specplan.scenarios.load import load
    >>> sets = ["speculation={method: tree, acceptance: {ranks: [.6, .2]}, tree: {budget: 8}}"]
    >>> toy = load("toy-20ms", sets)  # a pass costs 100 ms at any width, a level 20 ms
    >>> best = fastest_for(toy, operating_point(toy))
    >>> best.depth, best.width > 8
    (4, True)
    """
    speculation = scenario.speculation
    block = speculation.acceptance
    if speculation.method != "tree" or not scenario.gamma or block is None or not block.ranks:
        return None
    if (
        scenario.workload.accepts_by_class
        or speculation.draft_probability < 1
        or scenario.draft.placement == "parallel"
    ):
        return None
    at = Priced(scenario, point.context_tokens)
    costs = at.costs(point.batch, scenario.gamma)
    widest = min([LARGEST_BUDGET, *at.wide.width_axis[-1:]])
    widths = np.arange(2, int(widest) + 1)
    pass_s = at.wide.seconds(point.batch, widths, at.context)
    # The round's own price of its pass may hold more than the pass, and so every width does.
    here = at.wide.seconds(point.batch, scenario.verify_width, at.context)
    verify_s = pass_s * (float(np.ravel(costs.verify_s)[-1]) / here)
    tree = speculation.tree
    return fastest_tree(
        block.ranks,
        np.concatenate([[float(costs.step_s)], np.broadcast_to(verify_s, widths.shape)]),
        float(costs.draft_step_s),
        max_depth=(tree.depth if tree and tree.budget else None) or DEEPEST,
        overhead_s=float(costs.overhead_s) + float(costs.draft_call_s),
    )
