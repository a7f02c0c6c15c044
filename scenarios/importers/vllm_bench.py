"""`vllm bench serve` results: JSON of one run or many, and the older variant in seconds.

The rate is a percentage, the rates per position are fractions (vllm/benchmarks/serve.py).
ITL is the gap between streamed chunks, so the time of a round; TPOT the time per token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "vllm-bench"


def is_run(record: Record) -> bool:
    """Return whether the object is a result of `vllm bench serve` or of a close relative."""
    keys = record.value.keys()
    timed = any(key.endswith(("_tpot_ms", "_tpot", "_ttft_ms", "_ttft")) for key in keys)
    return (
        "server_info" not in keys
        and "accept_length" not in keys
        and (timed or any(key.startswith("spec_decode_") for key in keys))
    )


def read_run(record: Record) -> Evidence:
    """Return the evidence of one result object.

    Raises ScenarioError: a failed run, or figures that contradict each other.
    """
    completed = record.count("completed")
    if completed == 0:
        raise record.fault(
            "completed",
            f"0 requests completed ({_shown(record.count('failed'))} failed): the zeros of this "
            "file are not measurements",
            "a run with completed requests",
        )
    source = Source(
        record.file, KIND, where=_where(record), line=record.line, engine=record.text("backend")
    )
    base = Evidence(
        source,
        model=record.text("model_id", "model"),
        latency=_latency(record, completed),
    )
    if not any(key.startswith("spec_decode_") for key in record.value):
        return replace(
            base,
            warnings=(
                *missing_note(record),
                "no spec_decode_* fields: a run without speculation, or of a server whose "
                "/metrics the client could not read",
            ),
        )
    return checked(_with_acceptance(record, base))


def _with_acceptance(record: Record, base: Evidence) -> Evidence:
    rounds = record.count("spec_decode_num_drafts")
    drafted = record.count("spec_decode_draft_tokens", "spec_decode_num_draft_tokens")
    accepted = record.count("spec_decode_accepted_tokens", "spec_decode_num_accepted_tokens")
    rates = record.numbers("spec_decode_per_position_acceptance_rates")
    length = record.number("spec_decode_acceptance_length")
    percent = record.number("spec_decode_acceptance_rate")
    if rounds == 0:
        raise record.fault(
            "spec_decode_num_drafts", "0 rounds drafted during the run", "a run that speculated"
        )
    if rates and max(rates) > 1:
        raise record.fault(
            "spec_decode_per_position_acceptance_rates",
            f"{max(rates):g} is a percentage",
            "fractions, as vllm bench serve writes them; only spec_decode_acceptance_rate is in "
            "percent",
        )
    if drafted and accepted is not None and percent is not None:
        _check_percent(record, percent, 100 * accepted / drafted)
    warnings = [*missing_note(record)]
    if rounds and accepted is not None:
        by_counts = 1 + accepted / rounds
        if length is not None and abs(length - by_counts) > 0.006:
            raise record.fault(
                "spec_decode_acceptance_length",
                f"{length:g}, but 1 + accepted / drafts is {by_counts:.4g}",
                "the two must agree: is the bonus token left out or counted twice?",
            )
        length = by_counts
    if rates and not any(rates):
        warnings.append("0 accepted at every position: the draft does not fit the target")
    return replace(
        base,
        gamma=len(rates) or _whole(drafted, rounds),
        drafting_rounds=rounds,
        drafted_tokens=drafted,
        accepted_tokens=accepted,
        unconditional=rates,
        acceptance_length=length,
        rounding=0.0 if rounds else 0.005,
        warnings=tuple(warnings),
    )


def _whole(drafted: float | None, rounds: float | None) -> int | None:
    """Return γ where every round drafted as many tokens; None where they differ, or unknown."""
    if not drafted or not rounds or drafted % rounds:
        return None
    return round(drafted / rounds)


def _check_percent(record: Record, percent: float, by_counts: float) -> None:
    if abs(percent - by_counts) <= 0.06:
        return
    if abs(100 * percent - by_counts) <= 0.06:
        raise record.fault(
            "spec_decode_acceptance_rate",
            f"{percent:g} is a fraction",
            f"a percentage, as vllm bench serve writes it: {by_counts:.4g}",
        )
    raise record.fault(
        "spec_decode_acceptance_rate",
        f"{percent:g} %, but accepted / drafted is {by_counts:.4g} %",
        "the two must agree",
    )


def _latency(record: Record, completed: float | None) -> Latency:
    """Return the times: means in ms, or the medians in seconds of the older variant."""
    prompt, output = record.count("total_input_tokens"), record.count("total_output_tokens")
    found = Latency(
        requests=completed,
        concurrency=record.count("max_concurrency"),
        prompt_tokens=prompt / completed if prompt and completed else None,
        output_tokens=output / completed if output and completed else None,
        output_tokens_per_s=record.seconds("output_throughput", unit_s=1.0),
        duration_s=record.seconds("duration", unit_s=1.0),
    )
    for statistic in ("mean", "median"):
        for suffix, unit_s in (("_ms", 1e-3), ("", 1.0)):
            ttft, tpot, itl, e2el = (
                f"{statistic}_{name}{suffix}" for name in ("ttft", "tpot", "itl", "e2el")
            )
            if all(record.value.get(name) is None for name in (ttft, tpot, itl, e2el)):
                continue
            # One output token each: nothing after the first, so 0 is what it has to be.
            single = completed is not None and output == completed
            return replace(
                found,
                statistic=statistic,
                ttft_s=record.seconds(ttft, unit_s=unit_s),
                token_s=None if single else record.seconds(tpot, unit_s=unit_s),
                round_s=None if single else record.seconds(itl, unit_s=unit_s),
                e2e_s=record.seconds(e2el, unit_s=unit_s),
            )
    return found


def _where(record: Record) -> str:
    rate = record.value.get("request_rate")
    shown = [f"request_rate {rate}"] if rate is not None else []
    limit = record.value.get("max_concurrency")
    if isinstance(limit, int):
        shown.append(f"max_concurrency {limit}")
    return ", ".join(shown)


def _shown(count: float | None) -> str:
    return "unknown number" if count is None else f"{count:.0f}"
