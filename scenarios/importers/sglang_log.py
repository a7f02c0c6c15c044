"""SGLang's `Decode batch` log lines.

The trap: builds of 2025 print accept rate = accept len / number of draft tokens, 0.5.23 prints
correct drafts / (number of draft tokens − 1). Which one holds is read off the numbers.
"""

from __future__ import annotations

import re

from specplan.scenarios.errors import Fault
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked
from specplan.scenarios.importers.lines import line_span

KIND = "sglang-log"
MARKERS = (b"Decode batch",)

_NUMBER = rb"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_PAIR = re.compile(rb"accept len: *" + _NUMBER + rb", accept rate: *" + _NUMBER)
_WIDTHS = range(2, 130)
Reading = tuple[str, int]
"""(formula, number of draft tokens): `old` len / n, `new` (len − 1) / (n − 1)."""


def readings(accept_length: float, accept_rate: float) -> set[Reading]:
    """Return the formulas and numbers of draft tokens that print these two numbers.

    >>> sorted(readings(2.17, 0.54))  # sgl-project/sglang #11948: 3 drafts, true rate 0.39
    [('old', 4)]
    >>> sorted(readings(2.00, 0.50))
    [('new', 3), ('old', 4)]
    """
    found: set[Reading] = set()
    for n in _WIDTHS:
        if abs(accept_length / n - accept_rate) <= 0.005 + 0.005 / n + 1e-9:
            found.add(("old", n))
        if abs((accept_length - 1) / (n - 1) - accept_rate) <= 0.005 + 0.005 / (n - 1) + 1e-9:
            found.add(("new", n))
    return {(formula, n) for formula, n in found if accept_length <= n + 0.005}


def _after(text: bytes, name: bytes) -> bytes:
    """Return what stands between a name and the next comma, b"" where the name is absent."""
    at = text.find(name)
    if at < 0:
        return b""
    end = text.find(b",", at)
    return text[at + len(name) : end if end >= 0 else len(text)]


class LogReader:
    """Takes marked lines one by one, keeps sums only, and returns evidence at the end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._lines = self._plain = self._broken = 0
        self._first = self._last = 0
        self._running = self._weighted = self._round_s = 0.0
        self._timed = 0
        self._readings: dict[bool, set[Reading]] = {}
        self._seen: set[tuple[bool, bytes, bytes]] = set()

    def take(self, line: int, text: bytes) -> None:
        """Take one `Decode batch` line."""
        at = text.find(b"accept len:")
        if at < 0:
            self._plain += 1
            return
        pair = _PAIR.match(text, at)
        if pair is None:
            self._broken += 1
            return
        length_text, rate_text = pair.groups()
        length, rate = float(length_text), float(rate_text)
        try:
            running = int(_after(text, b"#running-req:"))
            speed = float(_after(text, b"(token/s):") or 0)
        except ValueError:
            self._broken += 1
            return
        if not (0 <= running < 1e9 and 0 <= speed < 1e12):
            self._broken += 1  # NaN fails every comparison
            return
        self._first, self._last = self._first or line, line
        self._lines += 1
        self._running += running
        self._weighted += running * length
        dotted = text.startswith(b"Decode batch.")  # builds of 2025 end the words with a dot
        seen = (dotted, length_text, rate_text)
        if seen not in self._seen:
            self._seen.add(seen)
            self._read_rate(line, length, rate, dotted=dotted)
        if running and speed > 0:
            self._round_s += running * length / speed
            self._timed += 1

    def _dropped(self) -> tuple[str, ...]:
        said = {"without accept len": self._plain, "cut short": self._broken}
        return tuple(f"{many} Decode batch lines {what}" for what, many in said.items() if many)

    def _read_rate(self, line: int, length: float, rate: float, *, dotted: bool) -> None:
        """Narrow the formulas and widths that fit every line of this style so far."""
        if length < 0.995:
            raise Source(self.file, KIND, line=line).fault(
                f"accept len {length:g} is below 1", "1 or more: it includes the bonus token"
            )
        fits = readings(length, rate)
        if dotted:
            fits = {(formula, n) for formula, n in fits if formula == "old"}
        self._readings[dotted] = self._readings.get(dotted, fits) & fits

    @property
    def complaint(self) -> Fault | None:
        """Return what to say of a log whose lines hold no acceptance."""
        if not self._plain and not self._broken:
            return None
        many = self._plain + self._broken
        wrong = f"{many} Decode batch lines, none with accept len and running requests"
        return Fault(wrong, "the log of a server that speculates", self.file)

    def evidence(self) -> list[Evidence]:
        """Return the pooled evidence: lines weighted by their running requests."""
        if not self._lines or not self._running:
            return []
        styles = list(self._readings.values())
        widths = set.intersection(*({n for _, n in fits} for fits in styles))
        fits = {(formula, n) for style in styles for formula, n in style if n in widths}
        many = self._lines
        source = Source(
            self.file,
            KIND,
            f"{many} line{'s' * (many > 1)}, {line_span(self._first, self._last)}",
            self._first,
            "SGLang",
        )
        return [
            checked(
                Evidence(
                    source,
                    gamma=widths.pop() - 1 if len(widths) == 1 else None,
                    acceptance_length=self._weighted / self._running,
                    rounding=0.005,
                    latency=Latency(
                        round_s=self._round_s / self._timed if self._timed else None,
                        concurrency=self._running / many,
                    ),
                    dropped=self._dropped(),
                    warnings=(_explain(fits), *_WEIGHT),
                )
            )
        ]


_WEIGHT = ("lines are weighted by their running requests: each covers equally many steps",)


def _explain(fits: set[Reading]) -> str:
    widths = {n for _, n in fits}
    if not fits:
        return "the lines fit no one γ: set γ yourself"
    if len(widths) > 1:
        shown = ", ".join(f"γ = {n - 1} ({formula} formula)" for formula, n in sorted(fits))
        return f"accept rate fits {shown}: set γ yourself"
    formulas = {formula for formula, _ in fits}
    if formulas == {"new"}:
        return "accept rate here is accepted / drafted (0.5.23)"
    if formulas == {"old"}:
        return (
            "accept rate here is accept len / draft tokens (builds of 2025): not accepted/drafted"
        )
    return "some lines print accept len / draft tokens as the rate (2025), some accepted / drafted"
