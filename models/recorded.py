"""Rounds out of a record of single tokens: what any γ would have kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def rounds_of_tokens(proposed: Sequence[int], gamma: int) -> list[int]:
    """Return the accepted length of each round that γ makes of a record, in order.

    proposed (tokens,): 1 where the draft's token at that output position was the target's. A round
    keeps the ones from where it starts, γ at most, and the next token is the target's own
    (MODEL.md §1), whatever its flag. A last round that the record cuts short is left out. Raises
    ValueError where the record holds no whole round.

    >>> rounds_of_tokens([1, 1, 0, 1, 1, 1, 0], 2)
    [2, 2, 0]
    """
    rounds, at = [], 0
    while True:
        kept = 0
        while kept < gamma and at + kept < len(proposed) and proposed[at + kept]:
            kept += 1
        at += kept + 1
        if at > len(proposed):
            break
        rounds.append(kept)
    if not rounds:
        raise ValueError(
            f"a record of {len(proposed)} tokens holds no whole round at gamma {gamma}; it needs "
            f"more tokens than were kept"
        )
    return rounds
