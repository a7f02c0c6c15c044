"""A tree of proposals in words, and the tree that would be fastest beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.results.tables import times
from specplan.scenarios.schema_tree import DEEPEST

if TYPE_CHECKING:
    from specplan.models.speedup import Prediction
    from specplan.models.trees import TreeChoice
    from specplan.scenarios.schema import Scenario

AS_FAST = 1.005  # a tree that gains less is not worth a change


def nodes(scenario: Scenario) -> list[list[int]] | None:
    """List the nodes that a round drafts, each by the ranks on its path; None for a chain."""
    if scenario.speculation.method != "tree" or not scenario.gamma:
        return None
    return [list(path) for path in scenario.speculation.tree_paths]


def fastest_json(choice: TreeChoice | None, prediction: Prediction) -> dict[str, Any] | None:
    """Give the fastest tree as plain JSON; its nodes are empty where plain decoding is fastest."""
    if choice is None:
        return None
    return {
        "nodes": [list(node) for node in choice.nodes],
        "verify_width": choice.width,
        "depth": choice.depth,
        "tokens_per_round": choice.tokens_per_round,
        "tpot_s": choice.tpot_s,
        "speedup": float(prediction.baseline_tpot_s) / choice.tpot_s,
    }


def tree_rows(
    scenario: Scenario, prediction: Prediction, choice: TreeChoice | None
) -> list[tuple[str, str]]:
    """Describe the tree of a round, root included, nodes by level; then the fastest one."""
    listed, tree = nodes(scenario), scenario.speculation.tree
    if listed is None or tree is None:
        return []
    depth, depths = scenario.speculation.tree_levels, [len(node) for node in listed]
    by_level = ", ".join(str(depths.count(level)) for level in range(1, depth + 1))
    chosen = "; no tree of this size keeps more (Sequoia)" if tree.budget else ""
    if tree.budget and (tree.depth or DEEPEST) == depth:
        chosen = f"; no tree of this size and depth up to {depth} keeps more (Sequoia)"
    if tree.budget and any(kind.acceptance for kind in scenario.workload.classes):
        chosen = "; chosen for speculation.acceptance, not for the classes' own"
    says = f"{len(listed) + 1} nodes with the root, depth {depth}: {by_level} by level{chosen}"
    return [("Tree", says), *_fastest(scenario, prediction, choice)]


def _fastest(
    scenario: Scenario, prediction: Prediction, choice: TreeChoice | None
) -> list[tuple[str, str]]:
    if choice is None:
        return []
    gain = float(prediction.baseline_tpot_s) / choice.tpot_s
    if choice.depth == 0:
        return [("Fastest tree", "none for these costs: plain decoding is faster than any")]
    if float(prediction.tpot_s) <= choice.tpot_s * AS_FAST:
        return [("Fastest tree", f"as set, as far as it can matter ({times(gain)} at best)")]
    setting = f"--set 'speculation.tree={{budget: {choice.width}, depth: {choice.depth}}}'"
    says = f"{choice.width} nodes with the root, depth {choice.depth}: {times(gain)}"
    if scenario.speculation.gamma is not None:  # the depth of the tree as it is
        setting += "\n--set speculation.gamma=null"
    return [("Fastest tree", f"{says}:\n{setting}")]  # in one piece, to be copied
