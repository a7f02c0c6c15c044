"""Acceptance at another γ than measured: measured positions stay, a named rule goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from specplan.models.conversions import (
    ROUNDING,
    alpha_from_tokens_per_round,
    checked_unconditional,
    conditional_from_unconditional,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

Rule = Literal["last_ratio", "plateau", "iid", "zero"]
LEAST_SPAN = 1.15
"""Largest over smallest conditional acceptance that a band reckons with at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Unconditional acceptance behind tokens per round measured at several γ.

    - unconditional (positions,): never rising, in [0, 1]; what to compute with
    - increments (positions,): τ(i) − τ(i − 1) as measured; may rise or be negative (noise)
    - pooled (positions,): True where the two differ, so that the reader can be told
    """

    unconditional: Floats
    increments: Floats
    pooled: NDArray[np.bool_]

    @property
    def remark(self) -> str | None:
        """Say what was changed, and where tokens per round then differ most from those measured.

        >>> unconditional_from_curve([1, 2, 3], [1.5, 2.0, 1.75]).remark[-53:]
        '2 tokens per round at gamma 3 where 1.75 was measured'
        """
        if not self.pooled.any():
            return None
        listed = ", ".join(f"{gain:.3g}" for gain in self.increments)
        done = []
        if (np.diff(self.increments) > ROUNDING).any():
            done.append("they cannot rise, so neighbours are pooled (isotonic regression)")
        if ((self.unconditional == 0) & (self.increments < 0)).any():
            done.append("a draft cannot lose tokens (0 instead)")
        measured, used = 1 + np.cumsum(self.increments), 1 + np.cumsum(self.unconditional)
        at = int(np.argmax(np.abs(used - measured)))
        return (
            f"tokens per round gained by each further draft are {listed}: {'; '.join(done)}, which"
            f" gives {used[at]:.4g} tokens per round at gamma {at + 1} where {measured[at]:.4g} was"
            " measured"
        )


def unconditional_from_curve(gamma: ArrayLike, tokens_per_round: ArrayLike) -> Curve:
    """A_i = τ(i) − τ(i − 1), τ(0) = 1, made non-increasing by isotonic regression.

    Assumes that drafting more leaves earlier positions alone. Between γ that were not measured τ is
    interpolated linearly, a lower bound since A never rises. gamma (points,) rising whole numbers,
    tokens_per_round (points,). Raises ValueError on γ out of order or τ outside [1, γ + 1].

    >>> unconditional_from_curve([1, 2], [1.88, 2.6]).unconditional.round(6).tolist()
    [0.88, 0.72]
    """
    at, tau = np.asarray(gamma), np.asarray(tokens_per_round, dtype=np.float64)
    if at.ndim != 1 or at.shape != tau.shape or at.size == 0:
        raise ValueError(
            f"gamma has shape {at.shape} and tokens_per_round {tau.shape}; one of each"
        )
    starts = np.concatenate([[0], at[:-1]])
    if (at != np.floor(at)).any() or (at <= starts).any():
        raise ValueError(f"gamma is {at.tolist()}; measured γ are rising whole numbers from 1")
    alpha_from_tokens_per_round(tau, at)  # refuses τ outside [1, γ + 1]
    widths = (at - starts).astype(np.int64)
    increments = np.repeat(np.diff(tau, prepend=1.0) / widths, widths)
    unconditional = isotonic(increments)
    pooled = np.abs(unconditional - increments) > ROUNDING
    return Curve(unconditional, increments, pooled)


def isotonic(rates: ArrayLike, weight: ArrayLike | None = None) -> Floats:
    """Return the closest list (least squares) that never rises and stays in [0, 1].

    Pool adjacent violators (Ayer et al. 1955): neighbours that rise are replaced by their weighted
    mean; cutting the result to [0, 1] keeps it optimal. rates, weight (positions,) → (positions,).

    >>> isotonic([0.5, 0.2, 0.4, -0.1]).round(6).tolist()
    [0.5, 0.3, 0.3, 0.0]
    """
    values = np.asarray(rates, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"rates are {values.tolist()}; isotonic regression needs a finite list")
    shares = np.ones_like(values) if weight is None else np.asarray(weight, dtype=np.float64)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, positions
    for value, share in zip(values.tolist(), shares.tolist(), strict=True):
        mean, total, count = value, share, 1
        while blocks and blocks[-1][0] <= mean:
            before, own, earlier = blocks.pop()
            mean = (before * own + mean * total) / (own + total)
            total, count = own + total, count + earlier
        blocks.append((mean, total, count))
    means, _, counts = zip(*blocks, strict=True) if blocks else ((), (), ())
    return np.clip(np.repeat(np.array(means, dtype=np.float64), counts), 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Extrapolation:
    """A list longer than what was measured, with a band and the warnings that go with it.

    - unconditional, low, high (positions,): equal on the `measured` first positions, unless only
      their sum is known
    - ratio: the conditional acceptance that the rule applies to every further position
    """

    unconditional: Floats
    low: Floats
    high: Floats
    measured: int
    ratio: float
    warnings: tuple[str, ...]

    @property
    def tokens_per_round(self) -> tuple[float, float, float]:
        """τ by the low, the central and the high list."""
        low, middle, high = (float(1 + a.sum()) for a in (self.low, self.unconditional, self.high))
        return low, middle, high


def extrapolate(
    unconditional: ArrayLike, positions: int, rule: Rule, *, sum_only: bool = False
) -> Extrapolation:
    """Extend A (K,) to `positions` by A_i = A_K r^{i−K}; measured positions are kept.

    r by rule: `last_ratio` a_K; `plateau` the geometric mean of a_2..a_K; `iid` the α with the same
    τ at K; `zero` 0 (what some engines pad with). Band: the conditional acceptance may leave the
    range it was measured in by as large a factor as that range spans, 15 % at least; any r in
    [0, 1] after a single position. `sum_only`: a τ at K was measured and A is one way to spread it,
    so nothing but 0 ≤ A_i ≤ (τ − 1)/K is known further on; high is that flat list. Raises
    ValueError on a list that rises and on an unknown rule.

    Evidence: the 11 curves of InferenceX (golden_al, τ at γ 1..8), τ at γ 8 held out. From the
    first 2, 3, 4, 5 `plateau` is off by 8.6, 5.6, 5.2, 4.9 % (rms); the mean of the last two by
    12.9, 5.5, 5.7, 5.3 %, `last_ratio` by 8.6, 7.1, 10.1, 7.8 %, `iid` by 14.9, 8.5, 6.4, 5.0 %.
    (a_1 is left out because it is higher than all later ones.) The band holds 43 of the 44.

    >>> extrapolate([0.85, 0.255], 4, "last_ratio").unconditional.round(5).tolist()
    [0.85, 0.255, 0.0765, 0.02295]
    """
    lists = checked_unconditional(unconditional)
    measured = len(lists)
    seen = conditional_from_unconditional(lists)
    ratio = _ratio(lists, seen, rule)
    beyond = np.arange(1, max(positions - measured, 0) + 1)
    least, most = (0.0, 1.0) if sum_only or measured == 1 else _band(seen)

    def going_on(r: float) -> Floats:
        return np.append(lists, lists[-1] * r**beyond)[:positions]

    high = going_on(max(most, ratio))
    if sum_only and positions > measured:
        high = np.full(positions, lists.mean())
    told = _warnings(lists, seen, rule, ratio, sum_only=sum_only) if positions > measured else ()
    return Extrapolation(
        going_on(ratio),
        going_on(min(least, ratio)),
        high,
        min(measured, positions),
        ratio,
        tuple(told),
    )


def _band(seen: Floats) -> tuple[float, float]:
    """Return the range of further conditional acceptance: a span beyond what was seen, each way."""
    least, most = float(seen.min()), float(seen.max())
    if least == 0:
        return 0.0, 1.0
    span = max(most / least, LEAST_SPAN)
    return least / span, min(1.0, most * span)


def _ratio(lists: Floats, seen: Floats, rule: Rule) -> float:
    measured = len(lists)
    match rule:
        case "last_ratio":
            return float(seen[-1])
        case "plateau":
            if measured == 1 or not lists[0]:
                return float(seen[0])
            return float((lists[-1] / lists[0]) ** (1 / (measured - 1)))
        case "iid":
            return float(alpha_from_tokens_per_round(1 + lists.sum(), measured))
        case "zero":
            return 0.0
        case _:
            raise ValueError(f"rule is {rule!r}; it is one of last_ratio, plateau, iid, zero")


def _warnings(
    lists: Floats, seen: Floats, rule: Rule, ratio: float, *, sum_only: bool
) -> list[str]:
    found = []
    if rule != "zero" and len(lists) == 1:
        found.append(
            f"one measured position says nothing about the next: {ratio:g} everywhere (iid) "
            f"overestimated tokens per round at gamma 8 in all of InferenceX's recorded curves, "
            f"by 9 to 40 %"
        )
    elif rule != "zero" and sum_only:
        found.append(
            f"tokens per round at gamma {len(lists)} do not say how acceptance falls with depth: "
            f"{ratio:.3g} everywhere (iid) overestimated gamma 8 in all of InferenceX's recorded "
            f"curves, by 9 to 40 % from gamma 1, by 2 to 15 % from gamma 4"
        )
    elif rule == "iid" and seen[-1] < ratio - ROUNDING:
        found.append(
            f"acceptance falls with depth ({seen[0]:.3g} to {seen[-1]:.3g}) and iid goes on with "
            f"{ratio:.3g}: it overestimates further positions"
        )
    if ratio >= 1 - ROUNDING and 0 < lists[-1] < 1 - ROUNDING:
        found.append(
            "the last two positions are equal, so last_ratio never falls again; "
            "plateau uses all positions"
        )
    return found
