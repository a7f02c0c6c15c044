"""Counters of an engine, checked against each other: rounds, tokens per round, what was wasted.

With `emitted` output tokens, of which every request's first comes from its prefill, the rounds
are emitted − requests − accepted: each commits one token beyond its accepted drafts (MODEL.md §1).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

Warned = tuple[str, str]
"""A code that scripts can match, and the sentence for people."""

REQUEST_SLACK = 1.0
"""Rounds by which two ways of counting may differ: the first or last token of a run."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counters as an engine reports them; None where it does not.

    accepted, drafted: draft tokens (bonus excluded); drafts: rounds that drafted (SGLang's
    spec_verify_ct); emitted: output tokens; requests: how many requests they belong to, where the
    first token of each came from its prefill. Raises ValueError for what cannot be counts.
    """

    accepted: float | None = None
    drafted: float | None = None
    drafts: float | None = None
    emitted: float | None = None
    requests: float | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{item.name} is {value:g} (a count of 0 or more)")
        if self.accepted is not None and self.drafted is not None and self.accepted > self.drafted:
            raise ValueError(
                f"accepted {self.accepted:g} exceeds drafted {self.drafted:g} (only drafted tokens"
                " can be accepted: are the two swapped?)"
            )

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) is not None for item in fields(self))


@dataclass(frozen=True)
class CountReading:
    """What the counters say together; None where they do not reach or cannot be trusted.

    rounds: all of them; drafts: those that drafted; acceptance_length: tokens per round that
    drafted, bonus included; warnings: what had to be decided.
    """

    accepted: float | None
    drafted: float | None
    rounds: float | None
    drafts: float | None
    acceptance_length: float | None
    warnings: tuple[Warned, ...] = ()

    @property
    def tokens_per_round(self) -> float | None:
        """Tokens per round over all rounds, those that drafted nothing included."""
        if self.acceptance_length is None or not self.rounds or self.drafts is None:
            return self.acceptance_length
        return 1 + (self.acceptance_length - 1) * self.drafts / self.rounds

    @property
    def accepted_per_draft(self) -> float | None:
        """S = Σ A_i: accepted tokens per round that drafted."""
        if self.accepted is not None and self.drafts:
            return self.accepted / self.drafts
        return None if self.acceptance_length is None else self.acceptance_length - 1

    @property
    def drafted_per_round(self) -> float | None:
        """Effective γ: drafted tokens per round that drafted."""
        return None if self.drafted is None or not self.drafts else self.drafted / self.drafts

    @property
    def draft_probability(self) -> float | None:
        """Share of rounds that drafted anything."""
        return None if self.drafts is None or not self.rounds else self.drafts / self.rounds


def read_counts(counts: Counts, gamma: int | None) -> CountReading:
    """Combine counters; γ is the configured draft length, used only where rounds are not counted.

    Raises ValueError where nothing was drafted, or where counters leave no consistent account.

    >>> round(read_counts(Counts(accepted=526, drafted=730), 5).acceptance_length, 4)
    4.6027
    """
    if counts.drafted == 0 or counts.drafts == 0:
        raise ValueError("nothing was drafted (0 drafts): acceptance is undefined, not 0")
    accepted, drafts = counts.accepted, counts.drafts
    produced = None if counts.emitted is None else counts.emitted - (counts.requests or 0)
    if accepted is None and produced is not None and drafts is not None:
        # SGLang reports output tokens and verifications only.
        accepted = produced - drafts
        warning = None if counts.requests is not None else _FIRST_TOKENS
        return _reading(counts, accepted, drafts, drafts, warning)
    if drafts is None and gamma and counts.drafted is not None:
        drafts = counts.drafted / gamma
    if produced is None or accepted is None:
        return _reading(counts, accepted, drafts, drafts)
    rounds = produced - accepted
    if rounds <= 0:
        raise ValueError(
            f"accepted {accepted:g} leaves {rounds:g} of {produced:g} output tokens for the rounds"
            " themselves (each round commits one token beyond its accepted drafts)"
        )
    if drafts is None:
        return _reading(counts, accepted, rounds, rounds)
    if abs(drafts - rounds) <= max(REQUEST_SLACK, counts.requests or 0, 1e-3 * produced):
        return _reading(counts, accepted, drafts, drafts)
    if rounds < drafts:
        return _too_few_output_tokens(counts, gamma, rounds, drafts)
    if counts.drafts is not None:
        return _reading(counts, accepted, rounds, drafts, _idle(accepted, rounds, drafts))
    return _reading(counts, accepted, rounds, rounds, _short(counts, gamma, rounds))


_FIRST_TOKENS: Warned = (
    "first_tokens",
    "requests is not stated: the first token of each request comes from its prefill and biases"
    " tokens per round upwards by requests/rounds",
)


def _reading(
    counts: Counts,
    accepted: float | None,
    rounds: float | None,
    drafts: float | None,
    warning: Warned | None = None,
) -> CountReading:
    tau = None if not drafts or accepted is None else 1 + accepted / drafts
    warnings = () if warning is None else (warning,)
    return CountReading(accepted, counts.drafted, rounds, drafts, tau, warnings)


def _too_few_output_tokens(
    counts: Counts, gamma: int | None, bonuses: float, drafts: float
) -> CountReading:
    """Fewer tokens beyond the accepted ones than rounds.

    Either the engine commits none after a full acceptance (vLLM V0 without bonus), or `accepted`
    also counts tokens after the first rejection. In both cases the output tokens are what counts.
    """
    accepted = counts.accepted or 0.0
    produced, full = bonuses + accepted, drafts - bonuses
    if gamma and full * gamma <= accepted <= full * gamma + bonuses * (gamma - 1):
        warning = (
            "no_bonus",
            f"{produced:g} output tokens are fewer than {drafts:g} rounds + {accepted:g} accepted:"
            f" the engine commits no bonus token after a full acceptance ({full:g} rounds)",
        )
    else:
        warning = (
            "inconsistent_counters",
            f"accepted {accepted:g} and {produced:g} output tokens in {drafts:g} rounds contradict"
            " each other: accepted is not a count of accepted prefixes; the output tokens are"
            " trusted",
        )
    trusted = accepted if warning[0] == "no_bonus" else None
    tau = produced / drafts
    return CountReading(trusted, counts.drafted, drafts, drafts, tau, (warning,))


def _idle(accepted: float, rounds: float, drafts: float) -> Warned:
    return (
        "rounds_without_draft",
        f"{rounds - drafts:g} of {rounds:g} rounds drafted nothing: tokens per round is"
        f" {1 + accepted / rounds:.4g} over all rounds, {1 + accepted / drafts:.4g} over those"
        " that drafted",
    )


def _short(counts: Counts, gamma: int | None, rounds: float) -> Warned:
    drafted = counts.drafted or 0.0
    return (
        "effective_gamma",
        f"{drafted:g} drafted tokens in {rounds:g} rounds are {drafted / rounds:.3g} a round, not"
        f" {gamma}: drafting stops early or rounds draft nothing (the number of rounds that drafted"
        " would tell which), so nothing may be converted with the configured gamma",
    )
