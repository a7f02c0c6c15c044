"""The table that `vllm bench serve` and SGLang's bench_serving print at the end of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "Serving Benchmark Result"
_ROW = re.compile(r"^\s*([A-Za-z][^:]*?)\s*:\s*(-?[0-9.]+(?:[eE][-+]?[0-9]+)?|inf|nan|N/A)\s*$")


def tables(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line of each table's title and its rows, names in lower case without units."""
    rows: dict[str, str] = {}
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if TITLE in line:
            if start:
                yield start, rows
            start, rows = number, {}
        elif start and (found := _ROW.match(line)):
            rows.setdefault(re.sub(r"\s*\(.*\)", "", found[1]).lower(), found[2])
    if start:
        yield start, rows


def read(text: str, file: str) -> list[Evidence]:
    """Return the evidence of every table of the text."""
    found = [_table(file, line, rows) for line, rows in tables(text)]
    if not found:
        raise ScenarioError(Fault("no result table", TITLE, file))
    return found


def _table(file: str, line: int, rows: dict[str, str]) -> Evidence:
    def number(*names: str) -> float | None:
        for name in names:
            text = rows.get(name)
            if text is None:
                continue
            try:
                value = float(text)
            except ValueError:
                continue
            if isfinite(value) and abs(value) < 1e18:
                return value
        return None

    def seconds(name: str) -> float | None:
        value = number(name)
        if value is not None and value <= 0:
            raise ScenarioError(
                Fault(f"{name} is {value:g} ms", "above 0: the run failed", file, line)
            )
        return value * 1e-3 if value else None

    sglang = "accept length" in rows or "total generated tokens (retokenized)" in rows
    requests = number("successful requests")
    if not requests:
        wrong = "the table is cut short" if requests is None else "0 successful requests"
        raise ScenarioError(Fault(wrong, "a complete table of a run that worked", file, line))
    output, prompt = number("total generated tokens"), number("total input tokens")
    itl_s, tau = seconds("mean itl"), number("accept length", "acceptance length")
    base = Evidence(
        Source(
            file,
            "sglang-console" if sglang else "vllm-console",
            "result table",
            line,
            "SGLang" if sglang else "",
        ),
        latency=Latency(
            round_s=itl_s * (tau or 1) if itl_s and sglang else itl_s,
            token_s=seconds("mean tpot"),
            ttft_s=seconds("mean ttft"),
            e2e_s=seconds("mean e2e latency") or seconds("mean e2el"),
            concurrency=number(
                "concurrency", "max request concurrency", "maximum request concurrency"
            ),
            requests=requests,
            prompt_tokens=prompt / requests if prompt else None,
            output_tokens=output / requests if output else None,
            output_tokens_per_s=number("output token throughput"),
            duration_s=number("benchmark duration"),
        ),
    )
    if tau is None:
        return replace(base, warnings=("the table holds no acceptance",))
    return checked(_with_acceptance(base, rows, tau, number))


def _with_acceptance(
    base: Evidence,
    rows: dict[str, str],
    tau: float,
    number: Callable[..., float | None],
) -> Evidence:
    """Return vLLM's counts and rates, or SGLang's length with rounds made from the tokens."""
    rounds, accepted = number("drafts"), number("accepted tokens")
    positions = sorted(int(name[9:]) for name in rows if re.fullmatch(r"position \d{1,4}", name))
    rates = tuple((number(f"position {i}") or 0.0) / 100 for i in positions)
    if positions != list(range(len(positions))):
        raise base.source.fault("positions are missing", f"0 to {max(positions)}")
    if rounds and accepted is not None:
        tau_by_counts = 1 + accepted / rounds
        if abs(tau_by_counts - tau) > 0.006:
            raise base.source.fault(
                f"acceptance length {tau:g}, but 1 + accepted / drafts is {tau_by_counts:.4g}",
                "the two must agree",
            )
        return replace(
            base,
            gamma=len(rates) or None,
            drafting_rounds=rounds,
            drafted_tokens=number("draft tokens"),
            accepted_tokens=accepted,
            unconditional=rates,
            acceptance_length=tau_by_counts,
            rounding=0.0001,
        )
    output, requests = number("total generated tokens"), number("successful requests") or 0.0
    if output and output > requests and tau >= 1:
        rounds = (output - requests) / tau
    return replace(
        base,
        drafting_rounds=rounds or None,
        accepted_tokens=rounds * (tau - 1) if rounds else None,
        acceptance_length=tau,
        rounding=0.005,
        warnings=("the table does not print γ; rounds are (output − requests) / accept length",),
    )
