"""One measured configuration, and what its numbers imply about each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specplan.models.diagnosis import Warned
from specplan.scenarios.errors import Fault, ScenarioError

#: Two statements of one quantity that are further apart than this contradict each other.
AGREE = 0.05
#: What the printed digits of a τ at its upper bound may be off.
PRINTED = 0.005


@dataclass(frozen=True, slots=True)
class Point:
    """One measured configuration; seconds and tokens, None where it is not stated.

    `gamma` 0 is the baseline. `context` counts the cached tokens of a sequence. `tokens_per_round`
    is τ over all rounds. `round_s` is R of one sequence, `token_s` its time per output token; two
    of the three give the third. `draft_s` is the drafting of a round, `draft_step_s` one draft
    step. `total_s` is the time of a whole job that all points of a comparison did.
    """

    source: str
    label: str = ""
    gamma: float | None = None
    batch: float = 1.0
    context: float | None = None
    tokens_per_round: float | None = None
    round_s: float | None = None
    token_s: float | None = None
    chunk_gap_s: float | None = None
    drafted_per_round: float | None = None
    draft_s: float | None = None
    draft_step_s: float | None = None
    verify_s: float | None = None
    ttft_s: float | None = None
    total_s: float | None = None
    offered_per_s: float | None = None
    served_per_s: float | None = None
    acceptance_rate: float | None = None
    stated_speedup: float | None = None
    unconditional: tuple[float, ...] = ()
    warnings: tuple[Warned, ...] = ()

    @property
    def is_baseline(self) -> bool:
        """Return whether it is plain decoding."""
        return self.gamma == 0

    @property
    def drafts_less(self) -> bool:
        """Return whether a mean round drafts fewer than γ tokens (it stops early)."""
        if not self.gamma or self.drafted_per_round is None:
            return False
        return self.drafted_per_round < self.gamma * (1 - AGREE)

    @property
    def draft_steps(self) -> float | None:
        """Return the draft steps of a mean round, where both times of drafting are known."""
        if not self.draft_s or not self.draft_step_s:
            return None
        return self.draft_s / self.draft_step_s

    @property
    def extra_draft_steps(self) -> float | None:
        """Return the extra draft steps per fully accepted round, from the counts of steps.

        (steps − γ)/A_γ; about 1 where the draft ingests its own last token then, else about 0.
        """
        if self.draft_steps is None or not self.gamma or len(self.unconditional) < self.gamma:
            return None
        full = self.unconditional[int(self.gamma) - 1]
        return (self.draft_steps - self.gamma) / full if full else None

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens per second over the whole batch."""
        return self.batch / self.token_s if self.token_s else None


def with_gap(point: Point, engine: str) -> Point:
    """Read the gap between chunks as what it is: the numbers decide, then the engine.

    vLLM and aiperf stream one chunk a round; SGLang's native client divides by the chunk's tokens
    (before its fix of issue 12064 it did not).
    """
    gap, token = point.chunk_gap_s, point.token_s
    if gap is None:
        return point
    if engine not in ("", "vllm", "aiperf", "sglang"):
        raise ScenarioError(
            Fault(f"engine={engine} is not known", "vllm, aiperf or sglang", field=point.source)
        )
    if token is not None and gap > token * (1 + 2 * AGREE):
        says = (
            f"the gap between chunks is {1e3 * gap:.4g} ms and a token takes {1e3 * token:.4g} ms: "
            f"chunks hold {gap / token:.3g} tokens, so the gap is the time of a round"
        )
        warned = (*point.warnings, Warned("gap_is_a_round", says))
        return replace(point, round_s=point.round_s or gap, warnings=warned)
    if token is not None or engine == "sglang":
        return replace(point, token_s=token or gap)
    if engine in ("vllm", "aiperf") or point.is_baseline:
        return replace(point, round_s=point.round_s or gap)
    wrong = "itl alone is a round in vLLM and a token in SGLang"
    raise ScenarioError(
        Fault(wrong, "round=…, tpot=…, or engine=vllm or sglang beside it", field=point.source)
    )


def completed(point: Point) -> Point:
    """Fill the third of τ, R and time per token from the other two; R = τ · TPOT.

    Three that disagree keep their R and τ, with a warning. Raises ScenarioError for a τ that no
    round of γ drafts can have.
    """
    tau, round_s, token_s = point.tokens_per_round, point.round_s, point.token_s
    if tau is not None and tau < 1:
        right = "1 or more: with the bonus token"
        raise ScenarioError(Fault(f"τ = {tau:.4g} is below 1", right, field=point.source))
    if tau and point.gamma and tau > (point.gamma + 1) * (1 + PRINTED):
        wrong = f"τ = {tau:.4g} is above γ + 1 = {point.gamma + 1:g}"
        right = "is the bonus token counted twice, or is γ another one?"
        raise ScenarioError(Fault(wrong, right, field=point.source))
    if tau and token_s and round_s is None:
        return replace(point, round_s=tau * token_s)
    if tau and round_s and token_s is None:
        return replace(point, token_s=round_s / tau)
    if round_s and token_s and tau is None:
        return replace(point, tokens_per_round=max(round_s / token_s, 1.0))
    if tau and round_s and token_s and abs(round_s / (tau * token_s) - 1) > AGREE:
        says = (
            f"a round of {1e3 * round_s:.4g} ms over τ = {tau:.4g} is {1e3 * round_s / tau:.4g} ms "
            f"a token, {1e3 * token_s:.4g} ms is stated"
        )
        return replace(point, warnings=(*point.warnings, Warned("tokens_disagree", says)))
    return point
