"""`vllm bench latency` and `vllm bench throughput`: totals, and what the user states beside them.

A latency result is the time of one whole batch; a throughput result the time of all requests. The
batch and the lengths are in neither file, so they are stated: `batch=8 input=1024 output=128`.
What else a measured line may state (gamma, tau, draft, label) may stand beside them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specplan.models.diagnosis import Warned
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_lines import parse_point
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.costs_points import Point
    from specplan.scenarios.importers.documents import Record

LATENCY, THROUGHPUT = "vllm-bench-latency", "vllm-bench-throughput"
STATED = ("batch", "input", "output")
TOKENS_AGREE = 0.05
"""Tokens of a throughput result and of the stated lengths further apart contradict each other."""


@dataclass(frozen=True)
class Total:
    """One result: seconds in which each of `batch` sequences was prefilled and made its output.

    `rest` is what the user stated beside the lengths, as words of a measured line.
    """

    source: str
    kind: str
    seconds: float
    batch: float
    input_tokens: float
    output_tokens: float
    rest: str


def kind_of(record: Record) -> str:
    """Return which of the two results the object is, "" for any other."""
    keys = record.value.keys()
    if {"avg_latency", "latencies"} <= keys:
        return LATENCY
    return THROUGHPUT if {"elapsed_time", "total_num_tokens"} <= keys else ""


def read_total(record: Record, stated: str) -> Total:
    """Put a result and what is stated about its run together.

    Raises ScenarioError: naming exactly what is not stated, lengths that the file's token count
    contradicts, or a run that measured nothing.
    """
    kind = kind_of(record)
    numbers, rest = _stated(stated, record)
    batch, given, made = (numbers[name] for name in STATED)
    if kind == LATENCY:
        seconds = record.seconds("avg_latency", unit_s=1.0)
    else:
        seconds = record.seconds("elapsed_time", unit_s=1.0)
        requests, tokens = record.count("num_requests"), record.number("total_num_tokens")
        if not requests or not tokens:
            raise _refusal(record, "num_requests or total_num_tokens is missing", "both")
        if abs(requests * (given + made) / tokens - 1) > TOKENS_AGREE:
            wrong = (
                f"{requests:g} requests of {given:g} + {made:g} tokens are "
                f"{requests * (given + made):g}, the file counts {tokens:g}"
            )
            raise _refusal(record, wrong, "the lengths of this run")
        seconds = seconds and seconds * batch / requests  # waves of `batch` requests
    if not seconds:
        raise _refusal(record, "no time in it", "a result of a finished run")
    return Total(record.file, kind, seconds, batch, given, made, rest)


def points(totals: Sequence[Total]) -> list[Point]:
    """Return one measured point for each batch, input length and configuration.

    Two output lengths give the time per token exactly, Δ seconds / Δ output, without the prefill;
    one gives seconds / output with the prefill in it, which is said.
    """
    return [_point(group) for group in _groups(totals)]


def passes(totals: Sequence[Total]) -> list[PassTimes]:
    """Return plain decode steps by batch and context, where there are two or more of them."""
    found = []
    for point, group in ((_point(group), group) for group in _groups(totals)):
        if point.is_baseline and point.token_s:
            made = max(one.output_tokens for one in group)
            context = group[0].input_tokens + made / 2
            found.append(Pass(point.batch, 1.0, context, point.token_s))
    if len(found) < 2:
        return []
    file = totals[0].source
    note = "steps are times per output token of whole runs, at the mean context"
    return [checked(PassTimes(file, totals[0].kind, tuple(found), (note,)), file)]


def _groups(totals: Sequence[Total]) -> list[list[Total]]:
    runs: dict[tuple[float, float, str], list[Total]] = {}
    for one in totals:
        runs.setdefault((one.batch, one.input_tokens, one.rest), []).append(one)
    return list(runs.values())


def _point(group: Sequence[Total]) -> Point:
    by_output = sorted(group, key=lambda one: one.output_tokens)
    short, long = by_output[0], by_output[-1]
    warnings: tuple[Warned, ...] = ()
    if long.output_tokens > short.output_tokens:
        token_s = (long.seconds - short.seconds) / (long.output_tokens - short.output_tokens)
        if token_s <= 0:
            wrong = (
                f"{long.output_tokens:g} output tokens take {long.seconds:.4g} s and "
                f"{short.output_tokens:g} take {short.seconds:.4g} s"
            )
            raise ScenarioError(Fault(wrong, "a longer output takes longer", long.source))
    else:
        token_s = long.seconds / long.output_tokens
        says = (
            f"one output length: the prefill of {long.input_tokens:g} tokens is in the time per "
            "token; a run with another output length takes it out"
        )
        warnings = (Warned("prefill_inside", says),)
    rest = long.rest
    if not re.search(r"(?:^|\s)(?:gamma|k|γ)\s*=", rest):
        rest = f"{rest} gamma=0"
        warnings += (Warned("gamma_assumed", "no gamma is stated: taken as plain decoding"),)
    point = parse_point(f"batch={long.batch:g} tpot={1e3 * token_s:.9g} ms {rest}".strip())
    sources = ", ".join(dict.fromkeys(one.source for one in by_output))
    return replace(point, source=sources, warnings=(*point.warnings, *warnings))


def _stated(text: str, record: Record) -> tuple[dict[str, float], str]:
    """Split `batch=8,input=1024,output=128,gamma=3` into the three numbers and the rest."""
    words = [word for word in re.split(r"[,\s]+(?=\w+\s*=)", text.strip()) if word]
    pairs = dict(word.partition("=")[::2] for word in words)
    missing = [name for name in STATED if name not in pairs]
    if missing:
        example = " ".join(
            f"{name}={value}" for name, value in zip(STATED, (8, 1024, 128), strict=True)
        )
        wrong = f"{kind_of(record)} does not hold {', '.join(missing)}"
        raise _refusal(record, wrong, f'state what the run had: --with "{example}"')
    numbers = {}
    for name in STATED:
        raw = pairs.pop(name)
        if not re.fullmatch(r"\s*[1-9][0-9]*\s*", raw):
            raise _refusal(record, f"{name}={raw}", "a whole number, 1 or more")
        numbers[name] = float(raw)
    return numbers, " ".join(f"{name}={value}" for name, value in pairs.items())


def _refusal(record: Record, wrong: str, right: str) -> ScenarioError:
    return ScenarioError(Fault(wrong, right, record.file, record.line))
