"""llama.cpp server logs: `statistics` lines, `draft acceptance` lines, and the eval time.

`statistics NAME: #calls(b,g,a) = begin generate accept` is cumulative since the start of the
server: the last line counts, a fall is a restart. generate calls − #gen drafts are the rounds
without a draft, and the second duration is what drafting took (ggml-org/llama.cpp#24536).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from specplan.scenarios.errors import Fault
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

KIND = "llamacpp-log"
MARKERS = (b"statistics ", b"draft acceptance", b"  eval time =", b"| eval time =")

_N = rb" *= *([0-9]{1,15})"
_F = rb"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_STATISTICS = re.compile(
    rb"#gen drafts" + _N + rb", *#acc drafts" + _N
    + rb", *#gen tokens" + _N + rb", *#acc tokens" + _N
    + rb"(?:, *#mean acc len *= *([0-9.]{1,20}|nan))?(?:, *#acc rate/pos *= *\(([^)]*)\))?"
    rb"(?:, *dur\(b,g,a\) *= *" + _F + rb", *" + _F + rb", *" + _F + rb" ms)?"
)  # fmt: skip
_NAMED = re.compile(
    rb"statistics +(?:statistics *)?([A-Za-z0-9_-]*):? *#calls(?:\(b,g,a\))?" + _N
    + rb"(?:[ ,]+([0-9]{1,15})[ ,]+([0-9]{1,15}))?"
)  # fmt: skip
_REQUEST = re.compile(
    rb"draft acceptance(?: rate)? *= *(?:[0-9.]+|nan|-nan) *"
    rb"\( *([0-9]{1,15}) accepted */ *([0-9]{1,15}) generated\)"
    rb"(?:, *mean (?:acceptance length|len) *= *" + _F + rb")?"
    rb"(?:, *acceptance rate per position *= *\(([^)]*)\))?"
)
_EVAL = re.compile(rb" eval time *= *" + _F + rb" ms */ *([0-9]{1,15}) (?:tokens|runs)")


@dataclass(frozen=True, slots=True)
class Statistics:
    """One `statistics` line: counts since the start of the server."""

    name: str
    calls: int
    drafts: int
    drafted_tokens: int
    accepted_tokens: int
    unconditional: tuple[float, ...] = ()
    draft_s: float | None = None

    def __sub__(self, before: Statistics) -> Statistics:
        """Return what happened since a line before, by counts (rates and times are cumulative)."""
        return Statistics(
            self.name,
            self.calls - before.calls,
            self.drafts - before.drafts,
            self.drafted_tokens - before.drafted_tokens,
            self.accepted_tokens - before.accepted_tokens,
        )


def parse_statistics(line: bytes) -> Statistics | None:
    """Return the counts of a whole `statistics` line, None where it is cut short."""
    named, found = _NAMED.search(line), _STATISTICS.search(line)
    if named is None or found is None:
        return None
    calls = int(named[3] or named[2])
    rates = tuple(
        float(part) for part in re.findall(rb"[0-9]{1,15}(?:\.[0-9]{1,9})?", found[6] or b"")
    )
    return Statistics(
        named[1].decode() or "draft",
        calls,
        int(found[1]),
        int(found[3]),
        int(found[4]),
        rates,
        float(found[8]) / 1e3 if found[8] else None,
    )


@dataclass
class _Requests:
    """`draft acceptance` lines, added up."""

    accepted: float = 0.0
    drafted: float = 0.0
    rounds: float = 0.0
    lines: int = 0
    first_line: int = 0
    by_position: list[float] = field(default_factory=list)  # rounds that kept each position

    def rates(self) -> tuple[float, ...]:
        """Return A_i, empty where no line gives them."""
        return tuple(kept / self.rounds for kept in self.by_position) if self.rounds else ()

    def add(self, line: int, accepted: int, drafted: int, rounds: int) -> None:
        self.accepted += accepted
        self.drafted += drafted
        self.rounds += rounds
        self.lines += 1
        self.first_line = self.first_line or line


@dataclass
class _Total:
    """One drafting method of the log: finished server lives, and the newest line."""

    line: int
    newest: Statistics
    lives: list[Statistics] = field(default_factory=list)

    def add(self, line: int, newest: Statistics) -> None:
        if newest.calls < self.newest.calls or newest.drafted_tokens < self.newest.drafted_tokens:
            self.lives.append(self.newest)
        self.line, self.newest = line, newest


class LogReader:
    """Takes marked lines one by one, keeps sums only, and returns evidence at the end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._totals: dict[str, _Total] = {}
        # Requests whose lines tell the rounds, and those whose lines do not.
        self._counted, self._uncounted = _Requests(), _Requests()
        self._eval = [0.0, 0.0, 0.0]  # seconds, tokens, requests
        self._unread: list[int] = [0, 0]  # lines, the first of them

    def take(self, line: int, marker: int, text: bytes) -> None:
        """Take one line that holds `MARKERS[marker]`."""
        if marker == 0:
            found = parse_statistics(text)
            if found is None:
                if b"#calls" in text:
                    self._cannot_read(line)
            elif found.name in self._totals:
                self._totals[found.name].add(line, found)
            else:
                self._totals[found.name] = _Total(line, found)
        elif marker == 1:
            self._take_request(line, text)
        elif timed := _EVAL.search(text):
            self._eval[0] += float(timed[1]) / 1e3
            self._eval[1] += int(timed[2])
            self._eval[2] += 1

    def _take_request(self, line: int, text: bytes) -> None:
        found = _REQUEST.search(text)
        if found is None:
            self._cannot_read(line)
            return
        accepted, drafted = int(found[1]), int(found[2])
        rates = [
            float(part) for part in re.findall(rb"[0-9]{1,15}(?:\.[0-9]{1,9})?", found[4] or b"")
        ]
        length = float(found[3]) if found[3] else 0.0
        excess = sum(rates) or length - 1
        rounds = round(accepted / excess) if excess > 0 else 0  # whole, and few in one request
        (self._counted if rounds else self._uncounted).add(line, accepted, drafted, rounds)
        kept = self._counted.by_position
        kept.extend([0.0] * (len(rates) - len(kept)))
        for position, rate in enumerate(rates):
            kept[position] += rate * rounds

    def _cannot_read(self, line: int) -> None:
        many, first = self._unread
        self._unread = [many + 1, first or line]

    @property
    def complaint(self) -> Fault | None:
        """Return what to say of a log whose requests drafted nothing."""
        first = self._uncounted.first_line
        if not first or self._counted.drafted or self._uncounted.drafted:
            return None
        right = "requests that drafted something, or the `statistics` lines"
        return Fault("nothing was drafted", right, self.file, first)

    def evidence(self) -> list[Evidence]:
        """Return one piece of evidence for each drafting method of the log."""
        dropped: tuple[str, ...] = ()
        many, first = self._unread
        if many:
            dropped = (f"{many} lines cut short (first: {first})",)
        if self._totals:
            found = [self._of_method(total) for total in self._totals.values()]
        elif self._counted.drafted or self._uncounted.drafted:
            found = [self._of_requests()]
        elif many:
            source = Source(self.file, KIND, line=first)
            raise source.fault("the line is cut short", "a whole statistics line")
        else:
            found = []
        return [replace(one, dropped=(*one.dropped, *dropped)) for one in found]

    def _of_method(self, total: _Total) -> Evidence:
        lives = [*total.lives, total.newest]
        calls = sum(life.calls for life in lives)
        drafts = sum(life.drafts for life in lives)
        drafted = sum(life.drafted_tokens for life in lives)
        accepted = sum(life.accepted_tokens for life in lives)
        rates = total.newest.unconditional if len(lives) == 1 else ()
        requests = self._counted
        if not rates and (requests.accepted, requests.drafted) == (accepted, drafted):
            # The same tokens, counted request by request: those lines tell the positions.
            rates = requests.rates()
        draft_s = sum(life.draft_s or 0.0 for life in lives)
        warnings = ["γ is the deepest position seen, not --draft-max"] if rates else []
        if total.lives:
            warnings.append(f"counter_reset: {len(total.lives)} restarts of the server, added up")
        others = len(self._totals) > 1
        if others:
            warnings.append(
                "several drafting methods take turns: rounds without a draft of one "
                "may be drafted by another"
            )
        return checked(
            Evidence(
                Source(self.file, KIND, f"line {total.line} (cumulative)", total.line, "llama.cpp"),
                method=total.newest.name,
                label=total.newest.name if others else "",
                gamma=len(rates) or None,
                drafting_rounds=drafts,
                draftless_rounds=max(calls - drafts, 0),
                drafted_tokens=drafted,
                accepted_tokens=accepted,
                unconditional=rates,
                acceptance_length=1 + accepted / drafts if drafts else None,
                rounding=0.0005,
                latency=self._latency(calls, drafts, drafted, draft_s, alone=not others),
                warnings=tuple(warnings),
            )
        )

    def _latency(
        self, calls: float, drafts: float, drafted: float, draft_s: float, *, alone: bool
    ) -> Latency:
        """Return round, draft and verify time: eval time and drafting divided by the rounds."""
        seconds, tokens, requests = self._eval
        timed = alone and seconds > draft_s > 0 and calls > 0
        return Latency(
            round_s=seconds / calls if timed else None,
            token_s=seconds / tokens if tokens and seconds else None,
            draft_round_s=draft_s / drafts if drafts and draft_s else None,
            draft_step_s=draft_s / drafted if drafted and draft_s else None,
            verify_round_s=(seconds - draft_s) / calls if timed else None,
            requests=requests or None,
            output_tokens=tokens / requests if requests else None,
        )

    def _of_requests(self) -> Evidence:
        """Return the evidence of `draft acceptance` lines, where no statistics were printed."""
        known, other = self._counted, self._uncounted
        seconds, tokens, requests = self._eval
        warnings: tuple[str, ...] = ()
        dropped: tuple[str, ...] = ()
        rounds = known.rounds
        if not rounds:  # the form before June 2026: rounds follow from the tokens
            known, other = other, known
            rounds = tokens - requests - known.accepted
            warnings = ("rounds = tokens − requests − accepted: those without a draft count",)
        elif other.drafted:
            what = f"{other.lines} requests whose lines do not tell their rounds"
            dropped = (f"{what}: {other.accepted:g} of {other.drafted:g} accepted",)
        source = Source(
            self.file,
            KIND,
            f"{known.lines} request{'s' * (known.lines > 1)}",
            known.first_line,
            "llama.cpp",
        )
        if rounds <= 0:
            raise source.fault(
                f"{known.accepted:g} of {known.drafted:g} tokens accepted, but nothing says in "
                "how many rounds",
                "a log that also holds the `eval time` or `statistics` lines, or, where every "
                f"round drafts K, `specplan acceptance convert gamma=K accepted={known.accepted:g} "
                f"drafted={known.drafted:g}`",
            )
        rates = known.rates()
        return checked(
            Evidence(
                source,
                gamma=len(rates) or None,
                drafting_rounds=rounds,
                drafted_tokens=known.drafted,
                accepted_tokens=known.accepted,
                unconditional=rates,
                acceptance_length=1 + known.accepted / rounds,
                rounding=0.005,
                latency=Latency(token_s=seconds / tokens if tokens and seconds else None),
                dropped=dropped,
                warnings=warnings,
            )
        )
