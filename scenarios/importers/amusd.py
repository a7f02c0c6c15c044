"""AMUSD's step traces: every draft time, every verify time, every round's tokens (with bonus).

The traces start an extra draft step after a fully accepted round. Only the serial strategy `sd`
is a trace of MODEL.md §1; `amusd` drafts on while the target verifies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked, tail_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.documents import Record

KIND = "amusd"


def matches(record: Record) -> bool:
    """Return whether the object is one sample of an AMUSD result."""
    return isinstance(record.value.get("metrics"), dict) and "strategy" in record.value


def read(records: Sequence[Record]) -> list[Evidence]:
    """Return one piece of evidence for each strategy of the file."""
    by_strategy: dict[str, list[Record]] = {}
    for record in records:
        by_strategy.setdefault(record.text("strategy"), []).append(record)
    return [_strategy(name, samples) for name, samples in by_strategy.items()]


def _strategy(name: str, samples: list[Record]) -> Evidence:
    metrics = [found for one in samples if (found := one.record("metrics"))]
    first = samples[0]
    many = len(samples)
    source = Source(
        first.file, KIND, f"strategy {name}, {many} sample{'s' * (many > 1)}", first.line
    )
    rounds = [value for one in metrics for value in one.numbers("accepted_tokens")]
    tokens = sum(one.count("tokens_generated") or 0 for one in metrics)
    seconds = sum(one.seconds("total_time", unit_s=1.0) or 0 for one in metrics)
    if not tokens or not seconds:
        raise first.fault("metrics.tokens_generated", "0 tokens or no time", "a sample that ran")
    if not rounds:
        times = [value for one in metrics for value in one.numbers("token_times")]
        step_s = sum(times) / len(times) if times else None
        return Evidence(
            source,
            label=name,
            gamma=0,
            latency=Latency(
                round_s=step_s, token_s=step_s, concurrency=1, output_tokens=tokens / many
            ),
        )
    if any(not 1 <= kept < 4096 or kept != int(kept) for kept in rounds):
        raise first.fault("metrics.accepted_tokens", "a round outside 1 to γ + 1", "with the bonus")
    recorded = tuple(int(kept) - 1 for kept in rounds)
    drafts = [value for one in metrics for value in one.numbers("draft_times")]
    verifies = [value for one in metrics for value in one.numbers("verify_times")]
    gamma = max(recorded)
    histogram = tuple(float(recorded.count(j)) for j in range(gamma + 1))
    return checked(
        Evidence(
            source,
            method="draft_model",
            label=name,
            gamma=gamma or None,
            drafting_rounds=len(recorded),
            accepted_tokens=sum(recorded),
            unconditional=tail_rates(histogram),
            histogram=histogram,
            recorded=recorded,
            acceptance_length=1 + sum(recorded) / len(recorded),
            latency=Latency(
                round_s=seconds / len(recorded),
                token_s=seconds / tokens,
                draft_round_s=sum(drafts) / len(recorded) or None,
                draft_step_s=sum(drafts) / len(drafts) if drafts and sum(drafts) else None,
                verify_round_s=sum(verifies) / len(verifies) if verifies else None,
                concurrency=1,
                output_tokens=tokens / many,
            ),
            warnings=("γ is the longest round seen", *_WARNINGS.get(name, ())),
        )
    )


_WARNINGS = {
    "sd": (
        "the trace takes one extra draft step after a fully accepted round: set "
        "speculation.extra_draft_step",
    ),
    "amusd": (
        "drafting goes on during verification: placement parallel; its round time is not "
        "draft + verify",
    ),
}
