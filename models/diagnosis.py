"""Why speculation is slower or faster than plain decoding, from measurements of both.

Everything follows from three numbers: T, one plain step; R, one round; τ, the tokens of a round.
Speedup is τ·T/R (MODEL.md §3), so the implied round cost R/T is the τ at which it breaks even.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from specplan.models.acceptance import alpha_from_tokens_per_round

#: Clocks and printed digits differ by this much; more is a contradiction.
SLACK = 0.02
#: Speedups this close to 1 are neither faster nor slower.
SAME = 1e-3
#: Share of a round that measured phases may leave open before it is called unexplained.
PHASE_SLACK = 0.05


@dataclass(frozen=True)
class Warned:
    """Something that does not fit: a short name for programs, a sentence for people."""

    code: str
    says: str


@dataclass(frozen=True)
class Measured:
    """One measurement of speculation beside its baseline, times in seconds.

    `step_s` is T, `round_s` R, `tokens_per_round` τ. `drafted` is γ, or the mean drafted tokens of
    a round; `draft_s` and `verify_s` are what a round spends there, as far as known. Raises
    ValueError for times that are not positive and for τ below 1.
    """

    step_s: float
    round_s: float
    tokens_per_round: float
    drafted: float | None = None
    draft_s: float | None = None
    verify_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("a plain step", self.step_s), ("a round", self.round_s)):
            if not (isfinite(value) and value > 0):
                raise ValueError(f"{name} takes {value} s (a duration above 0)")
        if not self.tokens_per_round >= 1:
            raise ValueError(
                f"τ is {self.tokens_per_round} (1 or more: it includes the bonus token)"
            )

    @property
    def pays(self) -> bool:
        """Return whether a round yields what it costs, to the digits of a measurement."""
        return self.tokens_per_round * self.step_s >= self.round_s * (1 - SAME)

    @property
    def overhead_s(self) -> float | None:
        """What a round takes beyond drafting and verifying, where both are known."""
        if self.draft_s is None or self.verify_s is None:
            return None
        return self.round_s - self.draft_s - self.verify_s


@dataclass(frozen=True)
class Diagnosis:
    """What T, R and τ say; None where an input for it is missing.

    `break_even_tokens` is R/T. `break_even_rate` is accepted/drafted at break-even,
    `break_even_alpha` the iid α; both None where not even accepting everything pays. `cause` is one
    of draft, verify, overhead, acceptance, none, unknown.
    """

    measured: Measured
    speedup: float
    break_even_tokens: float
    ceiling_speedup: float | None
    break_even_alpha: float | None
    break_even_rate: float | None
    never_pays: bool
    cause: str
    warnings: tuple[Warned, ...]
    changes: tuple[str, ...]

    @property
    def impossible(self) -> tuple[Warned, ...]:
        """The warnings after which the speedup means nothing: R < T, τ > γ + 1."""
        return tuple(
            one for one in self.warnings if one.code in {"impossible_round", "impossible_tokens"}
        )


def diagnose(measured: Measured) -> Diagnosis:
    """Diagnose one measurement: what decides, what is impossible, what would have to change.

    >>> found = diagnose(Measured(17.54e-3, 46.1e-3, 1.87, drafted=1))  # report C06
    >>> round(found.break_even_tokens, 2), found.never_pays
    (2.63, True)
    """
    ratio = measured.round_s / measured.step_s
    drafted = measured.drafted
    most = None if drafted is None else 1 + drafted
    alpha = rate = None
    if drafted and most and 1 <= ratio <= most:
        rate = (ratio - 1) / drafted
        alpha = float(alpha_from_tokens_per_round(ratio, round(drafted))) if drafted >= 1 else None
    return Diagnosis(
        measured,
        speedup=measured.tokens_per_round / ratio,
        break_even_tokens=ratio,
        ceiling_speedup=None if most is None else most / ratio,
        break_even_alpha=alpha,
        break_even_rate=rate,
        never_pays=most is not None and ratio > most,
        cause=_cause(measured),
        warnings=_contradictions(measured, most),
        changes=_changes(measured),
    )


def _cause(m: Measured) -> str:
    """Name the part of R − T that is largest; `acceptance` where the round hardly costs more."""
    if m.pays:
        return "none"
    if m.round_s <= 1.25 * m.step_s:
        return "acceptance"
    parts = {
        "draft": m.draft_s,
        "verify": None if m.verify_s is None else m.verify_s - m.step_s,
        "overhead": m.overhead_s,
    }
    known = {name: value for name, value in parts.items() if value is not None}
    open_s = m.round_s - m.step_s - sum(known.values())
    if not known or (len(known) < len(parts) and max(known.values()) < open_s):
        return "unknown"
    return max(known, key=lambda name: known[name])


def _contradictions(m: Measured, most: float | None) -> tuple[Warned, ...]:
    found = []
    if m.round_s < m.step_s * (1 - SLACK):
        speedup = m.tokens_per_round * m.step_s / m.round_s
        says = (
            f"a round of {_ms(m.round_s)} would be shorter than one plain step of "
            f"{_ms(m.step_s)}, and the speedup {speedup:.3g} larger than τ = "
            f"{m.tokens_per_round:.4g}: a round contains a pass of the target, so the baseline was "
            "measured under other conditions (eager, another load, prefill included), or τ is of "
            "another run"
        )
        found.append(Warned("impossible_round", says))
    if most is not None and m.tokens_per_round > most * (1 + SLACK / 4):
        says = (
            f"τ = {m.tokens_per_round:.4g} is above γ + 1 = {most:.4g}: is the bonus token counted "
            "twice, or is γ another one?"
        )
        found.append(Warned("impossible_tokens", says))
    if m.verify_s is not None and m.verify_s < m.step_s * (1 - SLACK):
        says = (
            f"a verify pass of {_ms(m.verify_s)} would be cheaper than a plain step of "
            f"{_ms(m.step_s)}: it reads the same weights, so one of the two was measured "
            "otherwise"
        )
        found.append(Warned("impossible_verify", says))
    spent = (m.draft_s or 0.0) + (m.verify_s or 0.0)
    left = m.round_s - spent
    if left < -PHASE_SLACK * m.round_s:
        says = "more than a whole round: do they overlap, or are they of another run?"
        found.append(_phases(m, spent, says))
    elif m.overhead_s is not None and left > PHASE_SLACK * m.round_s:
        share = f"{_ms(left)} ({100 * left / m.round_s:.0f} %)"
        says = f"{share} unexplained: overhead, or time charged to no phase"
        found.append(_phases(m, spent, says))
    return tuple(found)


def _phases(m: Measured, spent_s: float, says: str) -> Warned:
    sums = f"draft and verify sum to {_ms(spent_s)}, a round takes {_ms(m.round_s)}: {says}"
    return Warned("phase_sum_mismatch", sums)


def _changes(m: Measured) -> tuple[str, ...]:
    """Say what would have to change, one thing at a time; nothing where speculation pays."""
    if m.pays:
        return ()
    room_s = m.tokens_per_round * m.step_s - m.round_s
    ratio = m.round_s / m.step_s
    if m.drafted is not None and ratio > 1 + m.drafted:
        first = (
            f"acceptance: none suffices, τ would have to be {ratio:.4g} and at most "
            f"{1 + m.drafted:.4g} is possible"
        )
    else:
        rate = f" (accepted/drafted {(ratio - 1) / m.drafted:.3f})" if m.drafted else ""
        first = f"acceptance: τ from {m.tokens_per_round:.4g} to {ratio:.4g}{rate}"
    changes = [first, f"round: from {_ms(m.round_s)} to {_ms(m.round_s + room_s)}"]
    if m.draft_s:
        left, steps = m.draft_s + room_s, m.drafted or 1.0
        changes.append(
            f"draft: {_ms(m.draft_s / steps)} a token to {_ms(left / steps)}"
            if left >= 0
            else f"draft: even a free one leaves rounds of {_ms(m.round_s - m.draft_s)}"
        )
    if m.verify_s:
        left = m.verify_s + room_s
        changes.append(
            f"verify: from {_ms(m.verify_s)} to {_ms(left)}"
            if left >= m.step_s
            else f"verify: not even a pass as cheap as a plain step, {_ms(m.step_s)}, suffices"
        )
    return tuple(changes)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"
