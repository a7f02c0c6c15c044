"""Whether a batch can grow here, and whether its size, or γ, changes what a round costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_costs import CostBlock

FIELDS = ("workload.arrivals", "scheduler.max_num_seqs")  # what sets the batch of one engine
HINT = "`workload.arrivals.streams` offers a batch, `scheduler.max_num_seqs` bounds it"
_SEVERAL = 2
SAME_AT_EVERY_GAMMA = (
    "every γ costs the same here (constant target.round, free draft.step); a round that was "
    "measured with its drafting holds at its own γ"
)


def batch_notes(scenario: Scenario, varied: Sequence[str] = ()) -> list[str]:
    """Say what keeps the load from mattering, where there is load or the load is `varied`.

    >>> from specplan.scenarios.load import load
    >>> toy = load("toy-20ms", ["workload.arrivals.streams=8"])
    >>> batch_notes(toy)[0]
    'scheduler.max_num_seqs 1: the batch stays 1'
    """
    loads = any(path.startswith(FIELDS) for path in varied)
    arrivals = scenario.workload.arrivals
    offered = arrivals.open or (arrivals.streams or 0) >= _SEVERAL * scenario.cluster.replicas
    if not loads and not offered:
        return []
    notes = []
    if scenario.scheduler.max_num_seqs == 1 and FIELDS[1] not in varied:
        notes.append("scheduler.max_num_seqs 1: the batch stays 1")
    priced = any(path.startswith("target.round") for path in varied)
    if _is_constant(scenario.target.round) and not priced:
        notes.append(
            "the verify cost is constant: it knows no load "
            "(target.round: {base: 6 ms, per_token: 21 us} grows with it)"
        )
    return notes


def gamma_notes(scenario: Scenario, varied: Sequence[str]) -> list[str]:
    """Say that a sweep over γ says nothing, where no cost depends on it and none is `varied`."""
    priced = any(path.startswith(("target.round", "draft.step")) for path in varied)
    asked = "speculation.gamma" in varied and not priced
    return [SAME_AT_EVERY_GAMMA] if asked and same_at_every_gamma(scenario) else []


def same_at_every_gamma(scenario: Scenario) -> bool:
    """Tell whether drafting more costs nothing, so that the most is always best.

    >>> from specplan.scenarios.load import load
    >>> [same_at_every_gamma(load("toy-20ms", [f"draft.step={d}"])) for d in ("20 ms", "0 ms")]
    [False, True]
    """
    step = scenario.draft.step
    free = step.constant == 0 or scenario.speculation.method == "one_pass"
    return free and _is_constant(step) and _is_constant(scenario.target.round)


def _is_constant(cost: CostBlock | None) -> bool:
    if cost is None:
        return False
    sum_ = cost.linear
    grows = sum_ is not None and (sum_.per_sequence or sum_.per_token or sum_.per_context_token)
    return cost.constant is not None or (sum_ is not None and not grows)
