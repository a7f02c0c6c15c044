"""How deep the best γ was looked for, and what looks deeper."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from specplan.scenarios.batch import SAME_AT_EVERY_GAMMA, same_at_every_gamma

if TYPE_CHECKING:
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_acceptance import AcceptanceBlock

DEEPEST_SETTING = 1000  # the largest γ that a scenario may state


def search_note(scenario: Scenario, best: int, searched_to: int) -> str | None:
    """Say that the best γ is only the end of the search, and how to go on; None where it is inside.

    >>> from specplan.scenarios.load import load
    >>> search_note(load("toy-20ms"), 1, 32)
    >>> search_note(load("toy-20ms", ["speculation.acceptance.alpha=1"]), 32, 32)
    'best as far as it was looked for, γ = 32; to look further: --set speculation.gamma=64'
    """
    if not scenario.gamma:
        return "not looked for: speculation is off"
    if same_at_every_gamma(scenario) and best > 1:
        return f"best only because {SAME_AT_EVERY_GAMMA}"
    if best < searched_to:
        return None
    if scenario.speculation.method == "tree":
        return "best of the depths of this tree; another tree is another scenario"
    stated, widest = scenario.stated_positions, _widest(scenario)
    if searched_to >= min(stated, widest - 1):
        if stated <= widest - 1:
            return f"best within the {searched_to} positions that are known; {_further(scenario)}"
        return (
            f"best within the cost table, which ends at width {widest:g}; "
            "to look further: costs of wider passes"
        )
    if searched_to >= DEEPEST_SETTING:
        return f"best as far as γ goes, {DEEPEST_SETTING:,}"
    gamma = min(2 * searched_to, DEEPEST_SETTING)
    return (
        f"best as far as it was looked for, γ = {searched_to}; "
        f"to look further: --set speculation.gamma={gamma}"
    )


def _widest(scenario: Scenario) -> float:
    """Positions of the widest pass with a cost; `inf` where the cost is a formula."""
    axis = scenario.target_round().width_axis
    return float(axis[-1]) if len(axis) else inf


def _further(scenario: Scenario) -> str:
    """Tell how to look beyond the positions that an acceptance states."""
    common = scenario.speculation.acceptance
    own = [kind.acceptance for kind in scenario.workload.classes if kind.acceptance]
    if common is not None and not own and common.kind in common.belongs["extend"]:
        return "to look further: --set speculation.acceptance.extend=last_ratio"
    blocks = [*own, *([common] if common else [])]
    if any(block.kind == "recorded_tokens" for block in blocks):
        return "to look further: `sweep --vary speculation.gamma=1..16`, each γ cuts its own rounds"
    if all(_extends(block) for block in blocks):
        return "to look further: `extend: last_ratio` in each acceptance"
    return "to look further: rounds recorded at a larger γ"


def _extends(block: AcceptanceBlock) -> bool:
    """Tell whether a rule can extend every list of a block."""
    if block.mixture:
        return all(_extends(part) for part in block.mixture)
    return block.kind in block.belongs["extend"] or block.covers(0) == inf
