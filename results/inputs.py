"""Where the numbers that a prediction rests on are from, and what they say against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.models.diagnosis import SLACK, Warned
from specplan.scenarios.memory import sized_from

if TYPE_CHECKING:
    from specplan.models.speedup import Prediction
    from specplan.scenarios.schema import Scenario

KINDS = ("measured", "fitted", "datasheet", "assumed", "analytical")


def evidence(scenario: Scenario) -> dict[str, str]:
    """Say for each cost where its numbers are from: measured, fitted, datasheet or assumed.

    Durations that have no label of their own (an overhead, a call of the draft) are assumed where
    the record says nothing about them. A KV cache that is sized from GPU and model says so, too.

    >>> from specplan.scenarios.load import load
    >>> evidence(load("toy-20ms", ["speculation.overhead=1 ms"]))["speculation.overhead"]
    'assumed'
    """
    costs = {"target.round": scenario.target_round(), "target.step": scenario.target_step()}
    if scenario.gamma:
        costs["draft.step"] = scenario.draft_step()
    prefill = scenario.target_prefill()
    if prefill is not None and scenario.prompt_tokens.fixed != 0:
        costs["target.prefill"] = prefill
    said = {
        field: f"{cost.provenance} ({cost.source})" if cost.source else cost.provenance
        for field, cost in costs.items()
    }
    if scenario.gamma:
        said |= _bare(scenario)
    sized = scenario.kv_cache is not None and scenario.kv_cache.stated is None
    return said | {"kv_cache": sized_from(scenario)} if sized else said


def _bare(scenario: Scenario) -> dict[str, str]:
    """Label what a round costs beside its passes, by the record."""
    durations = {
        "speculation.overhead": scenario.speculation.overhead,
        "draft.per_round": scenario.draft.per_round,
        "draft.transfer": scenario.draft.transfer,
    }
    written = scenario.record.evidence
    labels = written if isinstance(written, dict) else {}
    said = {}
    for field, seconds in durations.items():
        if seconds:
            kind, colon, source = labels.get(field, "assumed").partition(":")
            says = kind.strip().lower()
            said[field] = f"{says} ({source.strip()})" if colon and says in KINDS else says
    return said


def doubts(prediction: Prediction) -> tuple[Warned, ...]:
    """Name what cannot be: a verify pass cheaper than a plain step, which reads the same weights.

    >>> from specplan.scenarios.closed_form import predict
    >>> from specplan.scenarios.load import load
    >>> [one.code for one in doubts(predict(load("toy-20ms", ["target.round=20 ms"])))]
    ['impossible_round']
    """
    p = prediction
    step_s, round_s = float(p.baseline_tpot_s), float(p.round_s)
    verify_s = float(p.verify_s_per_token) * float(p.tokens_per_round)
    if not int(p.gamma) or verify_s >= step_s * (1 - SLACK):
        return ()
    says = (
        f"the verify pass costs {1e3 * verify_s:.4g} ms and a plain step {1e3 * step_s:.4g} ms: it "
        "reads the same weights, so target.round and target.step are not of one system"
    )
    if round_s >= step_s * (1 - SLACK):
        return (Warned("impossible_verify", says),)
    says += f"; a round below one plain step ({1e3 * round_s:.4g} ms) makes the speedup meaningless"
    return (Warned("impossible_round", says),)
