"""The table that `vllm bench serve` and SGLang's bench_serving print at the end of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TITLE = "Serving Benchmark Result"
_ROW = re.compile(r"^\s*([A-Za-z][^:]*?)\s*:\s*(-?[0-9.]+(?:[eE][-+]?[0-9]+)?|inf|nan|N/A)\s*$")
_POSITION = re.compile(r"position (\d{1,4})")


@dataclass(frozen=True, slots=True)
class Table:
    """One printed table: its rows by name, in lower case and without the unit."""

    file: str
    line: int
    rows: Mapping[str, str]

    def number(self, *names: str) -> float | None:
        """Return the first of these rows that holds a finite number."""
        for name in names:
            try:
                value = float(self.rows.get(name, ""))
            except ValueError:
                continue
            if isfinite(value) and abs(value) < 1e18:
                return value
        return None

    def seconds(self, *names: str) -> float | None:
        """Return a time printed in ms; a failed run prints 0, which is refused."""
        value = self.number(*names)
        if value is not None and value <= 0:
            wrong = f"{names[0]} is {value:g} ms"
            raise ScenarioError(Fault(wrong, "above 0: the run failed", self.file, self.line))
        return None if value is None else value * 1e-3

    @property
    def of_sglang(self) -> bool:
        """Return whether SGLang printed it: its gaps are per token, not per round."""
        return bool({"accept length", "total generated tokens (retokenized)"} & self.rows.keys())


def tables(text: str, file: str) -> Iterator[Table]:
    """Yield every result table of the text."""
    rows: dict[str, str] = {}
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if TITLE in line:
            if start:
                yield Table(file, start, rows)
            start, rows = number, {}
        elif start and (found := _ROW.match(line)):
            name = found[1].lower()
            rows.setdefault(name if "retokenized" in name else _without_unit(name), found[2])
    if start:
        yield Table(file, start, rows)


def _without_unit(name: str) -> str:
    return re.sub(r"\s*\(.*\)", "", name)


def read(text: str, file: str) -> list[Evidence]:
    """Return the evidence of every table of the text."""
    return [_read_table(table) for table in tables(text, file)]


def _read_table(table: Table) -> Evidence:
    requests = table.number("successful requests")
    if not requests:
        wrong = "the table is cut short" if requests is None else "0 successful requests"
        right = "a complete table of a run that worked"
        raise ScenarioError(Fault(wrong, right, table.file, table.line))
    tau = table.number("accept length", "acceptance length")
    engine = "SGLang" if table.of_sglang else ""
    kind = "sglang-console" if table.of_sglang else "vllm-console"
    base = Evidence(
        Source(table.file, kind, "result table", table.line, engine),
        latency=_latency(table, requests, tau),
    )
    if tau is None:
        return replace(base, warnings=("the table holds no acceptance",))
    rounds, accepted = table.number("drafts"), table.number("accepted tokens")
    if rounds and accepted is not None:
        return checked(_of_counts(table, base, tau, rounds, accepted))
    return checked(_of_length(table, base, tau, requests))


def _latency(table: Table, requests: float, tau: float | None) -> Latency:
    output, prompt = table.number("total generated tokens"), table.number("total input tokens")
    gap_s = table.seconds("mean itl")
    return Latency(
        round_s=gap_s * (tau or 1.0) if gap_s and table.of_sglang else gap_s,
        token_s=table.seconds("mean tpot"),
        ttft_s=table.seconds("mean ttft"),
        e2e_s=table.seconds("mean e2e latency", "mean e2el"),
        concurrency=table.number(
            "concurrency", "max request concurrency", "maximum request concurrency"
        ),
        requests=requests,
        prompt_tokens=prompt / requests if prompt else None,
        output_tokens=output / requests if output else None,
        output_tokens_per_s=table.number("output token throughput"),
        duration_s=table.number("benchmark duration"),
    )


def _of_counts(
    table: Table, base: Evidence, tau: float, rounds: float, accepted: float
) -> Evidence:
    """Return vLLM's counts and its rates per position, which are printed in percent."""
    by_counts = 1 + accepted / rounds
    if abs(by_counts - tau) > 0.006:
        raise base.source.fault(
            f"acceptance length {tau:g}, but 1 + accepted / drafts is {by_counts:.4g}",
            "the two must agree",
        )
    positions = sorted(int(found[1]) for name in table.rows if (found := _POSITION.fullmatch(name)))
    if positions != list(range(len(positions))):
        raise base.source.fault("positions are missing", f"0 to {max(positions)}")
    percents = [table.number(f"position {i}") for i in positions]
    if None in percents:
        raise base.source.fault("a position without a number", "a percentage for each position")
    return replace(
        base,
        gamma=len(positions) or None,
        drafting_rounds=rounds,
        drafted_tokens=table.number("draft tokens"),
        accepted_tokens=accepted,
        unconditional=tuple((percent or 0.0) / 100 for percent in percents),
        acceptance_length=by_counts,
        rounding=0.0001,
    )


def _of_length(table: Table, base: Evidence, tau: float, requests: float) -> Evidence:
    """Return SGLang's length, with rounds made from the tokens."""
    output = table.number("total generated tokens")
    rounds = (output - requests) / tau if output and output > requests and tau >= 1 else None
    return replace(
        base,
        drafting_rounds=rounds,
        accepted_tokens=rounds * (tau - 1) if rounds else None,
        acceptance_length=tau,
        rounding=0.005,
        warnings=("the table does not print γ; rounds are (output − requests) / accept length",),
    )
