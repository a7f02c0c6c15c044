"""vLLM server logs: the `SpecDecoding metrics` line of every window, and its older forms.

One line per window of about ten seconds, all engines pooled (vllm/v1/spec_decode/metrics.py).
Windows are weighted by their drafts, never averaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specplan.scenarios.errors import Fault
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked
from specplan.scenarios.importers.lines import line_span
from specplan.scenarios.importers.vllm_window import (
    COUNTS,
    NUMBER,
    Row,
    Windows,
    parse_row,
    windows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KIND = "vllm-log"
MARKERS = (b"SpecDecoding metrics:", b"Speculative metrics:", b"speculative_config")

_ROWS_AT_ONCE = 8192

_V0 = re.compile(
    rb"Draft acceptance rate: *(" + NUMBER + rb"), *System efficiency: *(" + NUMBER + rb"), *"
    rb"Number of speculative tokens: *([0-9]{1,15}), *Number of accepted tokens: *([0-9]{1,15}), *"
    rb"Number of draft tokens(?: tokens)?: *([0-9]{1,15}), *"
    rb"Number of emitted tokens(?: tokens)?: *([0-9]{1,15})"
)
_FIRST_V1 = re.compile(
    rb"Number of accepted tokens: *([0-9]{1,15}), *Number of draft tokens: *([0-9]{1,15})"
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
    drafted: float = 0.0
    accepted: float = 0.0
    duration_s: float = 0.0
    by_position: Floats = field(default_factory=lambda: np.zeros(0))


class LogReader:
    """Takes marked lines one by one, keeps sums only, and returns evidence at the end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._sums: dict[int, _Sum] = {}
        self._rows: list[tuple[int, Row]] = []
        self._dropped: dict[str, tuple[int, int]] = {}
        self._without_rounds: tuple[int, int, int, int] | None = None
        self._v0: tuple[int, tuple[float, ...]] | None = None
        self._configured: int | None = None
        self._method = ""

    def take(self, line: int, marker: int, text: bytes) -> None:
        """Take one line that holds `MARKERS[marker]`.

        Raises ScenarioError: where a line contradicts itself.
        """
        if marker == 0:
            row = parse_row(text)
            if isinstance(row, str):
                self._drop(line, row, text)
                return
            self._rows.append((line, row))
            if len(self._rows) == _ROWS_AT_ONCE:
                self._add_rows()
        elif marker == 2:
            if found := _CONFIGURED.search(text):
                self._configured = int(found[1])
            if found := _METHOD.search(text):
                self._method = found[1].decode()
        elif old := _V0.search(text):
            self._v0 = (line, tuple(float(part) for part in old.groups()))
        elif old := _FIRST_V1.search(text):
            self._count_without_rounds(line, int(old[1]), int(old[2]))
        else:
            self._drop(line, "the line is cut short", text)

    def _drop(self, line: int, why: str, text: bytes) -> None:
        counts = COUNTS.search(text)
        if why.startswith("no mean") and counts:
            self._count_without_rounds(line, int(counts[1]), int(counts[2]))
        else:
            many, first = self._dropped.get(why, (0, line))
            self._dropped[why] = (many + 1, first)

    def _count_without_rounds(self, line: int, accepted: int, drafted: int) -> None:
        first, many, all_accepted, all_drafted = self._without_rounds or (line, 0, 0, 0)
        self._without_rounds = (first, many + 1, all_accepted + accepted, all_drafted + drafted)

    def _add_rows(self) -> None:
        """Add the rows taken so far to the sums."""
        for gamma, rows in windows(self._rows).items():
            drafts = rows.drafts
            for index in np.flatnonzero(~rows.plain):
                self._check(rows, int(index), float(drafts[index]))
            total = self._sums.setdefault(
                gamma, _Sum(int(rows.line[0]), by_position=np.zeros(gamma))
            )
            total.last_line = int(rows.line[-1])
            total.windows += len(drafts)
            total.drafts += float(drafts.sum())
            total.drafted += float(rows.drafted_tokens.sum())
            total.accepted += float(rows.accepted_tokens.sum())
            total.duration_s += float(rows.interval_s.sum())
            total.by_position += drafts @ rows.unconditional
        self._rows.clear()

    def _check(self, rows: Windows, index: int, drafts: float) -> None:
        checked(
            Evidence(
                Source(self.file, KIND, line=int(rows.line[index])),
                gamma=rows.unconditional.shape[-1],
                drafting_rounds=drafts,
                drafted_tokens=float(rows.drafted_tokens[index]),
                accepted_tokens=float(rows.accepted_tokens[index]),
                unconditional=tuple(rows.unconditional[index].tolist()),
                acceptance_length=float(rows.acceptance_length[index]),
                rounding=0.0005,
            )
        )

    @property
    def complaint(self) -> Fault | None:
        """Return what to say of a log that configures speculation and never reports it."""
        if self._configured is None and not self._method:
            return None
        wrong = "speculation is configured but no SpecDecoding metrics line was written"
        return Fault(wrong, "a log with traffic, without --disable-log-stats", self.file)

    def evidence(self) -> list[Evidence]:
        """Return one piece of evidence for each draft length that was seen."""
        self._add_rows()
        dropped = tuple(
            f"{many} line{'s' * (many > 1)} (first: {first}): {why}"
            for why, (many, first) in self._dropped.items()
        )
        found = [self._pooled(gamma, total, dropped) for gamma, total in self._sums.items()]
        if not found and self._without_rounds:
            found.append(self._first_v1(dropped, *self._without_rounds))
        if not found and self._v0:
            found.append(_v0_evidence(self.file, *self._v0))
        if not found and self._dropped:
            why, (_, first) = next(iter(self._dropped.items()))
            source = Source(self.file, KIND, line=first)
            raise source.fault(
                f"no window with a draft: {why}", "at least one complete SpecDecoding metrics line"
            )
        return found

    def _pooled(self, gamma: int, total: _Sum, dropped: tuple[str, ...]) -> Evidence:
        rates = tuple((total.by_position / total.drafts).tolist())
        return Evidence(
            Source(
                self.file,
                KIND,
                where=f"{total.windows} window{'s' * (total.windows > 1)}, "
                f"{line_span(total.first_line, total.last_line)}",
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
            latency=Latency(duration_s=total.duration_s if total.duration_s > 0 else None),
            dropped=dropped,
            warnings=() if _ALWAYS.search(self._method) else _UNSEEN,
        )

    def _first_v1(
        self, dropped: tuple[str, ...], first: int, many: int, accepted: int, drafted: int
    ) -> Evidence:
        """Return what the form before April 2025 holds: accepted and drafted, no rounds."""
        source = Source(
            self.file, KIND, f"{many} window{'s' * (many > 1)}", first, "vLLM V1 before PR 16665"
        )
        gamma = self._configured
        if not gamma or drafted % gamma:
            raise source.fault(
                f"{accepted} of {drafted} tokens accepted, but the line of this vLLM does not "
                "say in how many rounds",
                "a log that also holds num_speculative_tokens, a scrape of /metrics, or `specplan "
                f"acceptance convert gamma=K accepted={accepted} drafted={drafted}` with its K",
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
