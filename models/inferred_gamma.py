"""How γ was found when nobody stated it: from counters, or from a share and tokens per round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specplan.models.counts import Warned
    from specplan.models.readings import Reading
    from specplan.models.statements import Statement

SHARES_OF_GAMMA = ("acceptance_rate", "efficiency", "alpha")
"""Readings whose tokens per round depend on γ."""

GAMMAS_TRIED = range(1, 129)
"""Draft lengths searched when none is stated; vLLM's own maximum is 128."""


def how_inferred(reading: Reading) -> Warned | None:
    """Say from which figures the γ of a reading follows that states none; None without a γ.

    >>> from specplan.models.evidence import Evidence
    >>> from specplan.models.readings import interpret
    >>> from specplan.models.statements import Figure
    >>> figures = {"acceptance_length": Figure(3.49), "acceptance_rate": Figure(0.3116, 5e-5)}
    >>> how_inferred(interpret(Evidence(figures=figures))[0])[1]
    'gamma is not stated: acceptance_length 3.49 and acceptance_rate 0.3116 give 7.99, taken as 8'
    """
    if reading.gamma is None:
        return None
    counts = reading.counts
    if counts is not None and counts.drafted_per_round is not None:
        per_round = f"{counts.drafted_per_round:.0f} drafted in each round"
        return "gamma_inferred", f"gamma is not stated: {per_round} is taken as gamma"
    share = next(one for one in reading.statements if one.reading in SHARES_OF_GAMMA)
    length = next(one for one in reading.statements if one.tokens_per_round(None) is not None)
    exact = _gamma_between(share, length)
    found = (
        f"fit {reading.gamma} best"
        if exact is None
        else (f"give {exact:.3g}, taken as {reading.gamma}")
    )
    return "gamma_inferred", f"gamma is not stated: {length} and {share} {found}"


def _gamma_between(share: Statement, length: Statement) -> float | None:
    """Return the γ, no whole number, at which both mean the same; None where none is sharp."""
    value, tau = share.figures[0].value, length.tokens_per_round(None)
    if tau is None or not value:
        return None
    if share.reading == "acceptance_rate":
        return (tau - 1) / value
    return tau / value - 1 if share.reading == "efficiency" else None


def other_name(reading: Reading) -> str | None:
    """Say that figures which miss every whole γ fit one exactly as the older SGLang rate.

    SGLang builds of 2025 print τ/(γ + 1) as the accept rate (FORMATS.md A7).
    """
    if reading.disagreement <= 1e-9:
        return None
    shares = [one for one in reading.statements if one.name == one.reading == "acceptance_rate"]
    lengths = [one for one in reading.statements if one.tokens_per_round(None) is not None]
    if not shares or not lengths:
        return None
    older = replace(shares[0], reading="efficiency")
    fitting = [gamma for gamma in GAMMAS_TRIED if _meet(older, lengths[0], gamma)]
    if len(fitting) != 1:
        return None
    exact = _gamma_between(shares[0], lengths[0]) or 0.0
    return (
        f"{lengths[0]} and {shares[0]} fit no whole gamma (they give {exact:.3g}); as efficiency,"
        f" tokens per round/(gamma + 1), which SGLang builds of 2025 print as the accept rate, they"
        f" fit gamma {fitting[0]} exactly (name it efficiency, or state gamma)"
    )


def _meet(one: Statement, other: Statement, gamma: int) -> bool:
    """Whether two figures agree at γ within the digits that were printed."""
    low, high = (one.tokens_per_round(gamma, shift=shift) or 0.0 for shift in (-1, 1))
    least, most = (other.tokens_per_round(gamma, shift=shift) or 0.0 for shift in (-1, 1))
    return low <= most + 1e-9 and least <= high + 1e-9
