"""All quantities of MODEL.md §2 for one reading of the evidence; None for what does not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models.conversions import (
    accepted_law,
    alpha_from_tokens_per_round,
    conditional_from_unconditional,
)
from specplan.models.rounds import tokens_per_round_variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.models.readings import Reading

    Floats = NDArray[np.float64]


def quantities(reading: Reading, draft_probability: float = 1.0) -> dict[str, Any]:
    """Return name → value for every quantity that the reading settles.

    acceptance_length (τ) is over rounds that draft, tokens_per_round over all rounds; the two
    differ where the counters, or else `draft_probability`, tell of rounds without a draft. Lists
    hold positions 1..γ; a conditional rate of a position that is never reached is None (0/0).

    >>> from specplan.models.evidence import Evidence
    >>> from specplan.models.readings import interpret
    >>> from specplan.models.statements import Figure
    >>> [one] = interpret(Evidence(gamma=2, figures={"alpha": Figure(0.5)}))
    >>> quantities(one)["acceptance_length"], quantities(one)["acceptance_rate"]
    (1.75, 0.375)
    """
    gamma, tau, counts = reading.gamma, reading.acceptance_length, reading.counts
    accepted = _accepted_per_draft(reading)
    drafted = (None if counts is None else counts.drafted_per_round) or gamma
    rate = _stated(reading, "acceptance_rate")
    if accepted is not None and drafted:
        rate = accepted / drafted
    overall, chance = tau, None if tau is None else draft_probability
    if tau is not None and draft_probability < 1:
        overall = 1 + draft_probability * (tau - 1)
    if counts is not None:
        overall, chance = counts.tokens_per_round, counts.draft_probability
    return {
        "gamma": gamma,
        "acceptance_length": tau,
        "tokens_per_round": overall if overall is not None else tau,
        "accepted_per_round": accepted,
        "tensorrt_llm_acceptance_length": accepted,
        "acceptance_rate": rate,
        "drafted_per_round": drafted,
        "draft_probability": chance,
        "alpha": _alpha(reading, accepted),
        "conditional": _conditional(reading.unconditional),
        "unconditional": _listed(reading.unconditional),
        "positions_from": reading.positions_from,
        "tokens_per_round_variance": _variance(reading.unconditional, chance),
        "accepted_length_law": _law(reading.unconditional),
        "efficiency": None if tau is None or gamma is None else tau / (gamma + 1),
        "sglang_old_accept_rate": None if tau is None or gamma is None else tau / (gamma + 1),
        "share_of_output": _share_of_output(accepted, chance, overall),
        "by_gamma": _by_gamma(reading.unconditional),
        "counts": None if counts is None else _count_figures(reading),
    }


def _accepted_per_draft(reading: Reading) -> float | None:
    if reading.counts is not None:
        return reading.counts.accepted_per_draft
    return None if reading.acceptance_length is None else reading.acceptance_length - 1


def _share_of_output(
    accepted: float | None, chance: float | None, overall: float | None
) -> float | None:
    if accepted is None or chance is None or not overall:
        return None
    return accepted * chance / overall


def _stated(reading: Reading, wanted: str) -> float | None:
    """Return a share that stands without γ, as stated."""
    stated = (s.figures[0].value for s in reading.statements if s.reading == wanted)
    return next(stated, None)


def _alpha(reading: Reading, accepted: float | None) -> float | None:
    """Iid α with the same τ: as stated, or solved where every drafting round drafts γ tokens."""
    if reading.statements[0].reading == "alpha":
        return reading.statements[0].figures[0].value
    if reading.unconditional is None or accepted is None or not reading.gamma:
        return None
    tau = min(max(1 + accepted, 1.0), reading.gamma + 1.0)
    return float(alpha_from_tokens_per_round(tau, reading.gamma))


def _listed(lists: Floats | None) -> list[float] | None:
    return None if lists is None else [float(value) for value in lists]


def _conditional(unconditional: Floats | None) -> list[float | None] | None:
    if unconditional is None:
        return None
    if not unconditional.size:
        return []
    conditional = conditional_from_unconditional(unconditional)
    reached = np.concatenate([[1.0], unconditional[:-1]]) > 0
    return [float(rate) if seen else None for rate, seen in zip(conditional, reached, strict=True)]


def _variance(unconditional: Floats | None, chance: float | None) -> float | None:
    if unconditional is None or chance is None:
        return None
    if not unconditional.size:
        return 0.0
    return float(tokens_per_round_variance(unconditional, draft_probability=chance))


def _law(unconditional: Floats | None) -> list[float] | None:
    return None if unconditional is None else [float(p) for p in accepted_law(unconditional)]


def _by_gamma(unconditional: Floats | None) -> list[dict[str, float]] | None:
    """τ and accepted/drafted of the same draft cut to fewer tokens: what a smaller budget shows."""
    if unconditional is None:
        return None
    accepted = np.cumsum(unconditional)
    return [
        {
            "gamma": gamma,
            "acceptance_length": 1 + float(total),
            "acceptance_rate": float(total) / gamma,
        }
        for gamma, total in enumerate(accepted, start=1)
    ]


def _count_figures(reading: Reading) -> dict[str, float | None]:
    counts = reading.counts
    if counts is None:
        return {}
    wasted = None
    if counts.drafted is not None and counts.accepted is not None:
        wasted = counts.drafted - counts.accepted
    return {
        "accepted": counts.accepted,
        "drafted": counts.drafted,
        "wasted": wasted,
        "rounds": counts.rounds,
        "drafts": counts.drafts,
    }
