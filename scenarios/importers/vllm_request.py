"""Acceptance of single requests: vLLM's `--per-request-spec-decode-metrics`, aiperf's records.

`acceptance_histogram[j]` counts the rounds that accepted exactly j; `per_step_accepted` lists
them round by round. Requests are added up by counts; their own τ is kept as `request_lengths`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specplan.scenarios.importers.evidence import Evidence, Source, checked, tail_rates

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "vllm-request"
COPIES = 4
"""Requests with one and the same τ from which on that is no chance."""


@dataclass
class _Sum:
    """Requests of one draft length, added up."""

    first: Record
    histogram: list[float]
    drafted: float = 0.0
    lengths: list[float] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def block_of(record: Record) -> Record | None:
    """Return the object that holds a request's acceptance, wherever the tool puts it."""
    if "acceptance_histogram" in record.value:
        return record
    for outer, inner in (("metrics", "speculative_decoding"), ("", "speculative_decoding")):
        holder = record.value.get(outer) if outer else record.value
        if isinstance(holder, dict) and isinstance(holder.get(inner), dict):
            owner = record.record(outer) if outer else record
            return owner.record(inner) if owner else None
    if isinstance(record.value.get("spec_decode_acceptance"), dict):
        return record.record("spec_decode_acceptance")
    return None


def matches(record: Record) -> bool:
    """Return whether the object is one request with its acceptance."""
    return block_of(record) is not None


def read(records: list[Record], kind: str = KIND) -> list[Evidence]:
    """Return the requests added up, one piece of evidence for each draft length."""
    sums: dict[int, _Sum] = {}
    for record in records:
        block = block_of(record)
        if block is not None:
            _add(block, sums)
    return [_evidence(gamma, total, kind) for gamma, total in sums.items()]


def _add(block: Record, sums: dict[int, _Sum]) -> None:
    histogram = block.histogram("acceptance_histogram")
    gamma = int(block.count("num_spec_tokens") or len(histogram) - 1)
    steps, accepted = block.count("num_spec_steps"), block.count("num_accepted_draft_tokens")
    if not histogram:
        return  # a request that ended before its first round, its steps are 0
    if not 1 <= gamma < 4096 or len(histogram) > gamma + 1:
        raise block.fault(
            "acceptance_histogram", f"{len(histogram)} counts for γ = {gamma}", "γ + 1 counts"
        )
    rounds = sum(histogram)
    total = sum(j * count for j, count in enumerate(histogram))
    for name, told, counted in (
        ("num_spec_steps", steps, rounds),
        ("num_accepted_draft_tokens", accepted, total),
    ):
        if told is not None and told != counted:
            raise block.fault(
                name, f"{told:g}, but the histogram holds {counted:g}", "the two must agree"
            )
    entry = sums.setdefault(gamma, _Sum(block, [0.0] * (gamma + 1), missing=block.missing))
    for j, count in enumerate(histogram):
        entry.histogram[j] += count
    drafted = block.count("num_draft_tokens")
    entry.drafted += gamma * rounds if drafted is None else drafted
    entry.lengths.append(1 + total / rounds)
    steps_accepted = block.numbers("per_step_accepted")
    if any(not 0 <= step <= gamma or step != int(step) for step in steps_accepted):
        raise block.fault("per_step_accepted", "a round outside 0 to γ", f"0 to {gamma}")
    entry.recorded.extend(int(step) for step in steps_accepted)


def _evidence(gamma: int, total: _Sum, kind: str) -> Evidence:
    histogram = tuple(total.histogram)
    rounds = sum(histogram)
    accepted = sum(j * count for j, count in enumerate(histogram))
    many = len(total.lengths)
    return checked(
        Evidence(
            Source(
                total.first.file,
                kind,
                where=f"{many} request{'s' * (many > 1)}",
                line=total.first.line,
                engine=total.first.text("engine"),
            ),
            gamma=gamma,
            drafting_rounds=rounds,
            drafted_tokens=total.drafted,
            accepted_tokens=accepted,
            unconditional=tail_rates(histogram),
            histogram=histogram,
            acceptance_length=1 + accepted / rounds,
            request_lengths=tuple(total.lengths),
            recorded=tuple(total.recorded),
            warnings=_copies(total.lengths),
        )
    )


def _copies(lengths: list[float]) -> tuple[str, ...]:
    """Warn of requests that all accept alike, as copies of one prompt do."""
    if len(lengths) < COPIES or len(set(lengths)) > 1:
        return ()
    return (
        f"τ is {lengths[0]:.4g} for every one of {len(lengths)} requests: copies of one prompt are "
        "no load that speculation will meet",
    )
