"""vLLM server logs: the `SpecDecoding metrics` line of every window, and its older forms.

One line per window of about ten seconds, all engines pooled (vllm/v1/spec_decode/metrics.py).
Windows are weighted by their drafts, never averaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specplan.scenarios.importers.evidence import Evidence, Source, checked
from specplan.scenarios.importers.vllm_window import COUNTS, parse_window

if TYPE_CHECKING:
    from collections.abc import Iterable

KIND = "vllm-log"
MARKERS = (b"SpecDecoding metrics:", b"Speculative metrics:", b"speculative_config")

_NUMBER = rb"(?:nan|inf|[0-9]{1,15}(?:\.[0-9]{1,9})?)"
_V0 = re.compile(
    rb"Draft acceptance rate: *(" + _NUMBER + rb"), *System efficiency: *(" + _NUMBER + rb"), *"
    rb"Number of speculative tokens: *([0-9]{1,15}), *Number of accepted tokens: *([0-9]{1,15}), *"
    rb"Number of draft tokens(?: tokens)?: *([0-9]{1,15}), *"
    rb"Number of emitted tokens(?: tokens)?: *([0-9]{1,15})"
)
_CONFIGURED = re.compile(rb"num_spec(?:ulative)?_tokens['\"]?[=:] *([0-9]{1,15})")
_METHOD = re.compile(rb"\bmethod['\"]?[=:] *['\"]([A-Za-z0-9_]+)")
# Methods whose draft always proposes: their log misses no round.
_ALWAYS = re.compile(r"eagle|mtp|medusa|draft_model|dflash|dspark|mlp_speculator")
_UNSEEN = (
    "the log does not count rounds without a draft: fine for draft models and EAGLE, not for "
    "n-gram and suffix decoding (use /metrics there)",
)


@dataclass
class _Sum:
    """Windows of one draft length, added up."""

    first_line: int
    last_line: int = 0
    windows: int = 0
    drafts: float = 0.0
    drafted: int = 0
    accepted: int = 0
    by_position: list[float] = field(default_factory=list)


class LogReader:
    """Takes marked lines one by one, keeps sums only, and returns evidence at the end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._sums: dict[int, _Sum] = {}
        self._dropped: dict[str, list[int]] = {}
        self._rates_only: list[tuple[int, int, int]] = []
        self._v0: tuple[int, tuple[float, ...]] | None = None
        self._configured: int | None = None
        self._method = ""

    def take(self, line: int, marker: int, text: bytes) -> None:
        """Take one line that holds `MARKERS[marker]`.

        Raises ScenarioError: where the line contradicts itself.
        """
        if marker == 2:
            if found := _CONFIGURED.search(text):
                self._configured = int(found[1])
            if found := _METHOD.search(text):
                self._method = found[1].decode()
        elif marker == 1 and (old := _V0.search(text)):
            self._v0 = (line, tuple(float(part) for part in old.groups()))
        else:
            self._take_window(line, text)

    def _take_window(self, line: int, text: bytes) -> None:
        window = parse_window(text)
        if isinstance(window, str):
            counts = COUNTS.search(text)
            if window.startswith("no mean") and counts:
                self._rates_only.append((line, int(counts[1]), int(counts[2])))
            else:
                self._dropped.setdefault(window, []).append(line)
            return
        gamma, drafts = len(window.unconditional), window.drafts
        if not window.plain:
            checked(
                Evidence(
                    Source(self.file, KIND, line=line),
                    gamma=gamma,
                    drafting_rounds=drafts,
                    drafted_tokens=window.drafted_tokens,
                    accepted_tokens=window.accepted_tokens,
                    unconditional=window.unconditional,
                    acceptance_length=window.acceptance_length,
                    rounding=0.0005,
                )
            )
        total = self._sums.get(gamma)
        if total is None:
            total = self._sums[gamma] = _Sum(line, by_position=[0.0] * gamma)
        total.last_line = line
        total.windows += 1
        total.drafts += drafts
        total.drafted += window.drafted_tokens
        total.accepted += window.accepted_tokens
        for position, rate in enumerate(window.unconditional):
            total.by_position[position] += rate * drafts

    def evidence(self) -> list[Evidence]:
        """Return one piece of evidence for each draft length that was seen."""
        dropped = tuple(
            f"{len(lines)} line{'s' * (len(lines) > 1)} (first: {lines[0]}): {why}"
            for why, lines in self._dropped.items()
        )
        found = [self._pooled(gamma, total, dropped) for gamma, total in self._sums.items()]
        if not found and self._rates_only:
            found.append(self._first_v1(dropped))
        if not found and self._v0:
            found.append(_v0_evidence(self.file, *self._v0))
        if not found and self._dropped:
            why, lines = next(iter(self._dropped.items()))
            source = Source(self.file, KIND, line=lines[0])
            raise source.fault(
                f"no window with a draft: {why}", "at least one complete SpecDecoding metrics line"
            )
        return found

    def _pooled(self, gamma: int, total: _Sum, dropped: tuple[str, ...]) -> Evidence:
        rates = tuple(weight / total.drafts for weight in total.by_position)
        return Evidence(
            Source(
                self.file,
                KIND,
                where=f"{total.windows} window{'s' * (total.windows > 1)}, "
                f"lines {total.first_line}–{total.last_line}",
                line=total.first_line,
                engine="vLLM V1",
            ),
            method=self._method,
            gamma=gamma,
            drafting_rounds=total.drafts,
            drafted_tokens=total.drafted,
            accepted_tokens=total.accepted,
            unconditional=rates,
            acceptance_length=1 + total.accepted / total.drafts,
            rounding=0.0005,
            dropped=dropped,
            warnings=() if _ALWAYS.search(self._method) else _UNSEEN,
        )

    def _first_v1(self, dropped: tuple[str, ...]) -> Evidence:
        """Return what the form before April 2025 holds: accepted and drafted, no rounds."""
        line = self._rates_only[0][0]
        accepted = sum(row[1] for row in self._rates_only)
        drafted = sum(row[2] for row in self._rates_only)
        source = Source(
            self.file, KIND, f"{len(self._rates_only)} windows", line, "vLLM V1 before PR 16665"
        )
        gamma = self._configured
        if not gamma or drafted % gamma:
            raise source.fault(
                f"{accepted} of {drafted} tokens accepted, but the line of this vLLM does not "
                "say in how many rounds",
                "a log that also holds num_speculative_tokens, or a scrape of /metrics",
            )
        return checked(
            Evidence(
                source,
                gamma=gamma,
                drafting_rounds=drafted / gamma,
                drafted_tokens=drafted,
                accepted_tokens=accepted,
                acceptance_length=1 + accepted * gamma / drafted,
                dropped=dropped,
                warnings=("rounds = drafted / num_speculative_tokens",),
            )
        )


def _v0_evidence(file: str, line: int, values: tuple[float, ...]) -> Evidence:
    """Return τ of a vLLM V0 line: system efficiency · (K + 1) = emitted / rounds.

    V0 counters are cumulative, so the last line is the one to read; `accepted` is not a prefix
    count there (vllm #2658, #10604), `emitted` is.
    """
    _rate, efficiency, gamma_value, accepted, drafted, emitted = values
    gamma = int(gamma_value)
    source = Source(file, KIND, f"line {line} (cumulative)", line, "vLLM V0")
    if not gamma or not drafted:
        raise source.fault("nothing was drafted", "a run with speculation")
    rounds = drafted / gamma
    tau = emitted / rounds
    if abs(efficiency - tau / (gamma + 1)) > 0.002:
        raise source.fault(
            f"system efficiency {efficiency:g} but emitted / (rounds · (K + 1)) is "
            f"{tau / (gamma + 1):.3f}",
            "the two must agree",
        )
    warnings = []
    by_accepted = 1 + accepted / rounds
    if abs(by_accepted - tau) > 0.02:
        warnings.append(
            f"inconsistent_counters: 1 + accepted/round is {by_accepted:.2f} but emitted/round is "
            f"{tau:.2f}: V0 counts accepted tokens after the first rejection; emitted is used"
        )
    return checked(
        Evidence(
            source,
            gamma=gamma,
            drafting_rounds=rounds,
            drafted_tokens=drafted,
            accepted_tokens=emitted - rounds,
            acceptance_length=tau,
            warnings=tuple(warnings),
        )
    )


def read(file: str, marked: Iterable[tuple[int, int, bytes]]) -> list[Evidence]:
    """Return the evidence of the marked lines of a vLLM log."""
    reader = LogReader(file)
    for line, marker, text in marked:
        reader.take(line, marker, text)
    return reader.evidence()
