"""Where speculation starts to pay: by draft length, output length, and position.

Times are in any one unit; T is a plain step, R a round, τ its tokens, d one drafted token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def pays_from_gamma(step_s: float, fixed_s: float, per_draft_s: float) -> int | None:
    """Find the smallest γ at which a perfect draft (τ = γ + 1) pays, None where no γ does.

    (γ + 1)·T > fixed + γ·d; report C12: 1037.7 ms fixed and d = 33.03 ms > T never pay.

    >>> pays_from_gamma(0.03074, 0.03074 + 1.0377, 0.03303) is None
    True
    >>> pays_from_gamma(30.0, 45.0, 20.0)
    2
    """
    if step_s > fixed_s - 1e-12 * step_s:
        return 1 if 2 * step_s > fixed_s + per_draft_s else None
    if per_draft_s >= step_s:
        return None
    return int((fixed_s - step_s) / (step_s - per_draft_s)) + 1


def inferred_gamma(tokens_per_round: float, acceptance_rate: float) -> int:
    """Infer the whole draft length that τ and accepted/drafted imply: γ = (τ − 1)/rate.

    >>> inferred_gamma(4.03, 0.644)  # report C63
    5
    """
    if not 0 < acceptance_rate <= 1 or tokens_per_round <= 1:
        raise ValueError(
            f"τ = {tokens_per_round} and accepted/drafted = {acceptance_rate} imply no γ (τ above "
            "1, a rate above 0 and at most 1)"
        )
    return max(1, round((tokens_per_round - 1) / acceptance_rate))


def break_even_output_tokens(
    ttft_s: float, ttft_spec_s: float, token_s: float, token_spec_s: float
) -> float | None:
    """Find the output length from which speculation pays in spite of a later first token.

    n = 1 + ΔTTFT/(TPOT − TPOT'), 1 where the first token is not later, None where no length pays.

    >>> round(break_even_output_tokens(25.59, 49.89, 16.45, 7.75), 1)  # report C63
    3.8
    """
    if token_spec_s >= token_s:
        return None
    return 1 + max(0.0, ttft_spec_s - ttft_s) / (token_s - token_spec_s)


def needed_acceptance(
    tokens_per_round: float, round_s: float, longer_round_s: float, more: float = 1.0
) -> float:
    """Compute the unconditional acceptance that `more` positions need: τ·ΔR/(R·more).

    One more position pays while A_i > τ·ΔR/R.

    >>> round(needed_acceptance(1.89, 10.77, 12.56, more=2), 3)  # report C05
    0.157
    """
    return tokens_per_round * (longer_round_s - round_s) / (round_s * more)


def plateau(speed: Sequence[float], within: float = 0.05) -> list[int]:
    """List the indices of all that are within `within` of the fastest: single runs tie there.

    >>> plateau([24.6, 28.2, 30.9, 29.9, 31.2, 27.5, 26.8])  # report C09
    [2, 3, 4]
    """
    best = max(speed)
    return [i for i, value in enumerate(speed) if value >= best * (1 - within)]
