"""What one file says about speculation: named quantities, where they stand, what was dropped."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 1001  # tokens of a round: the longest draft a scenario can hold, and the bonus


@dataclass(frozen=True, slots=True)
class Source:
    """Where evidence stands: the file, the kind of file, the lines or fields, the engine."""

    file: str
    kind: str
    where: str = ""
    line: int | None = None
    engine: str = ""

    def fault(self, wrong: str, right: str = "", field: str = "") -> ScenarioError:
        """Return the error that names this place."""
        return ScenarioError(Fault(wrong, right, file=self.file, line=self.line, field=field))


@dataclass(frozen=True, slots=True)
class Latency:
    """Times that came with the evidence, in seconds; None where the file does not say.

    `round_s` is the gap between two rounds of one sequence (vLLM's ITL), `token_s` the time per
    output token after the first (TPOT): they differ by the tokens of a round, and tools mix them
    up. `draft_round_s` is drafting per round, `verify_round_s` the verify pass.
    """

    statistic: str = "mean"
    round_s: float | None = None
    token_s: float | None = None
    ttft_s: float | None = None
    e2e_s: float | None = None
    draft_round_s: float | None = None
    draft_step_s: float | None = None
    verify_round_s: float | None = None
    concurrency: float | None = None
    requests: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    output_tokens_per_s: float | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measurement of acceptance, every quantity under the name MODEL.md §2 gives it.

    `drafting_rounds` are rounds that proposed something, `draftless_rounds` those that did not
    (n-gram without a match): the tokens per round of a drafting round never hide them.
    `unconditional[i]` is accepted at position i+1 / drafting rounds, `histogram[j]` the rounds
    that accepted exactly j, `acceptance_length` τ = 1 + accepted / drafting rounds (with bonus).
    `gamma` is the configured draft length, 0 for a run without speculation, None if not stated.
    `tree_nodes` are the proposals of a round of a tree, where γ is its depth.
    `request_lengths` are τ of single requests, `recorded` accepted tokens round by round.
    `rounding` is half of the last printed digit of the rates (0 where they are counts).
    Two pieces of evidence belong to one block when `group` is equal.
    """

    source: Source
    model: str = ""
    method: str = ""
    label: str = ""
    gamma: int | None = None
    drafting_rounds: float | None = None
    draftless_rounds: float | None = None
    drafted_tokens: float | None = None
    accepted_tokens: float | None = None
    unconditional: tuple[float, ...] = ()
    histogram: tuple[float, ...] = ()
    acceptance_length: float | None = None
    request_lengths: tuple[float, ...] = ()
    recorded: tuple[int, ...] = ()
    rounding: float = 0.0
    tree: bool = False
    tree_nodes: int | None = None
    latency: Latency = field(default_factory=Latency)
    dropped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def group(self) -> tuple[object, ...]:
        """Return what must be equal to pool: model, label, γ, method, kind of file, tree.

        A log and a scrape of one server are two views of the same rounds, not more rounds.
        """
        source, drafts = self.source.kind, (self.gamma, self.method, self.tree_nodes)
        return (self.model, self.label, source, *drafts)

    @property
    def says_acceptance(self) -> bool:
        """Return whether there is anything about acceptance, not latencies only."""
        return self.gamma != 0 and (
            self.acceptance_length is not None
            or bool(self.unconditional)
            or self.draftless_rounds is not None
        )

    @property
    def says_anything(self) -> bool:
        """Return whether there is acceptance or at least one time."""
        times = (
            self.latency.round_s,
            self.latency.token_s,
            self.latency.ttft_s,
            self.latency.e2e_s,
        )
        return self.says_acceptance or any(time_s is not None for time_s in times)

    @property
    def draft_probability(self) -> float | None:
        """Return drafting / all rounds, None where rounds without a draft were not counted.

        >>> Evidence(Source("f", "k"), drafting_rounds=3, draftless_rounds=1).draft_probability
        0.75
        """
        if self.drafting_rounds is None or self.draftless_rounds is None:
            return None
        rounds = self.drafting_rounds + self.draftless_rounds
        return self.drafting_rounds / rounds if rounds else None

    @property
    def tokens_per_round(self) -> float | None:
        """Return tokens per round over *all* rounds: 1 + accepted / (drafting + draftless).

        >>> found = Evidence(Source("f", "k"), drafting_rounds=3, draftless_rounds=1135,
        ...                  accepted_tokens=12, acceptance_length=5.0)
        >>> round(found.tokens_per_round, 4)
        1.0105
        """
        share = self.draft_probability
        if share is None:
            return self.acceptance_length
        if self.acceptance_length is None:
            return 1.0 if share == 0 else None
        return 1 + share * (self.acceptance_length - 1)

    @property
    def acceptance_rate(self) -> float | None:
        """Return accepted / drafted tokens, None when nothing was drafted."""
        if not self.drafted_tokens or self.accepted_tokens is None:
            return None
        return self.accepted_tokens / self.drafted_tokens


def checked(evidence: Evidence) -> Evidence:
    """Return the evidence if it can be true, refuse it with both numbers where it cannot.

    Bounds of MODEL.md §2: 1 ≤ τ ≤ γ + 1, A in [0, 1] and non-increasing, accepted ≤ drafted ≤
    γ · rounds, τ = 1 + Σ A within the printed digits.

    Raises ScenarioError: with file and line, one fault for each bound that is broken.

    >>> checked(Evidence(Source("a.log", "k", line=7), gamma=2, acceptance_length=3.5))
    Traceback (most recent call last):
    specplan.scenarios.errors.ScenarioError: a.log:7: acceptance length 3.5 is above γ + 1 = 3 \
(1 to γ + 1 with the bonus token)
    """
    source = evidence.source
    faults = [
        Fault(wrong, right, file=source.file, line=source.line)
        for wrong, right in [
            *_count_faults(evidence),
            *_rate_faults(evidence),
            *_latency_faults(evidence.latency),
        ]
    ]
    if faults:
        raise ScenarioError(faults)
    return evidence


def _count_faults(evidence: Evidence) -> list[tuple[str, str]]:
    faults = []
    rounds, gamma = evidence.drafting_rounds, evidence.gamma
    drafted, accepted = evidence.drafted_tokens, evidence.accepted_tokens
    named = {
        "rounds with a draft": rounds,
        "rounds without a draft": evidence.draftless_rounds,
        "drafted tokens": drafted,
        "accepted tokens": accepted,
    }
    for name, count in named.items():
        if count is not None and not (isfinite(count) and 0 <= count < 1e18):
            faults.append((f"{name} is {_number(count)}", "a count, 0 or more"))
    if faults:
        return faults
    if accepted is not None and drafted is not None and accepted > drafted:
        faults.append(
            (
                f"{_number(accepted)} tokens accepted but only {_number(drafted)} drafted",
                "accepted, without the bonus token, is at most drafted",
            )
        )
    room = 1 + 0.005 + (4 * evidence.rounding if evidence.rounding else 0)
    if gamma and rounds is not None and drafted is not None and drafted > gamma * rounds * room + 1:
        if evidence.tree:
            return faults
        faults.append(
            (
                f"{_number(drafted)} tokens drafted in {_number(rounds)} rounds of γ = {gamma}",
                f"at most {_number(gamma * rounds)}",
            )
        )
    return faults


def _rate_faults(evidence: Evidence) -> list[tuple[str, str]]:
    faults = []
    rates, tau, gamma = evidence.unconditional, evidence.acceptance_length, evidence.gamma
    slack = evidence.rounding + 1e-9
    if tau is not None and not (isfinite(tau) and 1 - slack <= tau <= LONGEST):
        side = "above any draft" if tau > LONGEST else "below 1"
        right = f"1 to {LONGEST}: it includes the bonus"
        faults.append((f"acceptance length {_number(tau)} is {side}", right))
    elif tau is not None and gamma and tau > gamma + 1 + slack:
        faults.append(
            (
                f"acceptance length {_number(tau)} is above γ + 1 = {gamma + 1}",
                "1 to γ + 1 with the bonus token",
            )
        )
    for position, rate in enumerate(rates, start=1):
        if not (isfinite(rate) and 0 <= rate <= 1 + slack):
            right = "a fraction from 0 to 1"
            if 1 < rate <= 100:
                right = f"a fraction from 0 to 1; is it {_number(rate)} percent?"
            faults.append((f"acceptance at position {position} is {_number(rate)}", right))
            return faults
    for position, (before, after) in enumerate(pairwise(rates), start=2):
        if after > before + 2 * slack:
            faults.append(
                (
                    f"acceptance rises at position {position} "
                    f"from {_number(before)} to {_number(after)}",
                    "unconditional rates never rise; rising ones are conditional: "
                    "`specplan acceptance convert` takes them",
                )
            )
            return faults
    if rates and tau is not None:
        total = 1 + sum(rates)
        if abs(total - tau) > (len(rates) + 10) * max(evidence.rounding, PRINTED) + 1e-6 * tau:
            faults.append(
                (
                    f"acceptance length {_number(tau)} but 1 + the rates per position is "
                    f"{_number(total)}",
                    "the two must agree",
                )
            )
    return faults


def _latency_faults(latency: Latency) -> list[tuple[str, str]]:
    faults = []
    for part in fields(latency):
        value = getattr(latency, part.name)
        if not isinstance(value, int | float):
            continue
        timed = part.name.endswith("_s") and not part.name.endswith("_per_s")
        if not isfinite(value) or value < 0 or (timed and value == 0):
            name = part.name.removesuffix("_s").replace("_", " ")
            faults.append((f"{name} is {value:g}", "a measured value, above 0"))
    return faults


PRINTED = 5e-4  # people keep three digits of what a file had in full


def _number(value: float) -> str:
    """Return the number as people write it: 12,345 for counts, five digits otherwise."""
    if isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.5g}"


def tail_rates(histogram: Sequence[float]) -> tuple[float, ...]:
    """Return A_i = rounds that accepted i or more / rounds, from rounds that accepted exactly j.

    >>> tail_rates((70, 41, 33, 26))  # the 170 rounds of the SGLang sample response
    (0.5882352941176471, 0.34705882352941175, 0.15294117647058825)
    """
    rounds = sum(histogram)
    return tuple(sum(histogram[i:]) / rounds for i in range(1, len(histogram)))
