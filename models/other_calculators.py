"""Formulas of other public calculators, to explain why their answers differ from ours.

All take iid α, γ drafted tokens and the draft step c in plain steps, with a flat verify pass, as
those calculators do; ours in the same terms is Leviathan et al. 2023, Theorem 3.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.models.conversions import tokens_per_round_from_alpha

if TYPE_CHECKING:
    from collections.abc import Callable


def exact(alpha: float, gamma: int, draft_ratio: float) -> float:
    """Speedup (1 − α^(γ+1)) / ((1 − α)(γc + 1)) (Leviathan et al. 2023, Theorem 3.8).

    >>> round(exact(0.8, 4, 0.1), 3)
    2.401
    """
    return float(tokens_per_round_from_alpha(alpha, gamma)) / (gamma * draft_ratio + 1)


def without_bonus(alpha: float, gamma: int, draft_ratio: float) -> float:
    """Speedup that counts accepted drafts only: the token of the target itself is forgotten.

    >>> round(without_bonus(0.8, 4, 0.1), 3)
    1.687
    """
    accepted = float(tokens_per_round_from_alpha(alpha, gamma)) - 1
    return accepted / (gamma * draft_ratio + 1)


def linear_progress(alpha: float, gamma: int, draft_ratio: float) -> float:
    """Speedup with 1 + αγ tokens a round: as if a rejection stopped nothing.

    >>> round(linear_progress(0.8, 4, 0.1), 3)
    3.0
    """
    return (1 + alpha * gamma) / (gamma * draft_ratio + 1)


def capped_at_gamma(alpha: float, gamma: int, draft_ratio: float) -> float:
    """Speedup with (1 − α^γ)/(1 − α) tokens a round: at most γ, no bonus after a full acceptance.

    >>> round(capped_at_gamma(0.8, 4, 0.1), 3)
    2.109
    """
    tokens = float(tokens_per_round_from_alpha(alpha, gamma - 1)) if gamma else 1.0
    return tokens / (gamma * draft_ratio + 1)


def verify_as_requests(alpha: float, gamma: int, draft_ratio: float) -> float:
    """Speedup with a verify pass priced as γ + 1 plain requests one after the other.

    >>> round(verify_as_requests(0.8, 4, 0.1), 3)
    0.623
    """
    return float(tokens_per_round_from_alpha(alpha, gamma)) / (gamma * draft_ratio + gamma + 1)


#: Name, formula, and what it gets wrong.
CALCULATORS: tuple[tuple[str, Callable[[float, int, float], float], str], ...] = (
    ("ours", exact, "Leviathan et al. 2023, Theorem 3.8"),
    (
        "bonus token dropped",
        without_bonus,
        "E − 1 tokens a round: too low, most where little is accepted; never above 1 at α = 0.5",
    ),
    (
        "progress 1 + αγ",
        linear_progress,
        "drafts after a rejection are counted: right only where α means accepted/drafted",
    ),
    (
        "E capped at γ",
        capped_at_gamma,
        "a fully accepted round loses its last token: too low by α^γ, worst at high α",
    ),
    (
        "verify as γ + 1 requests",
        verify_as_requests,
        "positions of one pass are priced like passes of their own: right only where the GPU is "
        "compute-bound",
    ),
)
