"""One `SpecDecoding metrics` line of vLLM V1: its counts, and the rounds that made them."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = rb"(?:nan|inf|[0-9]{1,15}(?:\.[0-9]{1,9})?)"
_LENGTH = re.compile(rb"Mean acceptance length: *(" + _NUMBER + rb")(?=[,\s]|$)")
_RATES = re.compile(rb"Per-position acceptance rate: *((?:" + _NUMBER + rb"(?:, *)?)*)")
COUNTS = re.compile(rb"Accepted: *([0-9]{1,15}) tokens?, *Drafted: *([0-9]{1,15}) tokens?")
_THROUGHPUT = re.compile(rb"Accepted throughput: *(" + _NUMBER + rb") tokens/s")
_PERCENT = re.compile(rb"(?:Avg )?Draft acceptance rate: *(" + _NUMBER + rb") *%")
_WHOLE = re.compile(
    rb"SpecDecoding metrics: Mean acceptance length: ([0-9.]+), "
    rb"(?:[A-Z][A-Za-z ]*: [0-9]+, )?"
    rb"(?:Accepted throughput: ([0-9.]+) tokens/s, Drafted throughput: [0-9.]+ tokens/s, )?"
    rb"Accepted: ([1-9][0-9]{0,14}) tokens, Drafted: ([0-9]{1,15}) tokens, "
    rb"Per-position acceptance rate: ([0-9., ]+), Avg Draft acceptance rate: [0-9.]+%"
)


class Window(NamedTuple):
    """One log line of vLLM V1: counts since the line before it."""

    accepted_tokens: int
    drafted_tokens: int
    acceptance_length: float
    unconditional: tuple[float, ...]
    accepted_tokens_per_s: float | None = None

    @property
    def drafts(self) -> float:
        """Return the rounds with a draft: Drafted/K where the printed rates allow it exactly.

        Drafts may be shorter than K (grammar, end of the output); then accepted / Σ rates is the
        better estimate (three decimals each, against two of the mean acceptance length).

        >>> Window(489, 1572, 2.87, (0.740, 0.473, 0.309, 0.187, 0.099, 0.057)).drafts
        262.0
        >>> round(Window(15135, 31523, 2.87, (0.785, 0.540, 0.347, 0.200)).drafts)
        8085
        """
        gamma, accepted = len(self.unconditional), self.accepted_tokens
        full, total = self.drafted_tokens / gamma, sum(self.unconditional)
        if not accepted or not total or not full:
            return full
        excess = accepted / full
        if (
            full == int(full)
            and abs(excess - total) <= 0.0005 * gamma
            and abs(excess + 1 - self.acceptance_length) <= 0.005
        ):
            return full
        return max(accepted / total, full)

    @property
    def plain(self) -> bool:
        """Return whether the line meets the bounds without rounding, so nothing has to be said."""
        rates = self.unconditional
        return (
            0 < self.accepted_tokens <= self.drafted_tokens
            and abs(1 + sum(rates) - self.acceptance_length) <= 0.005
            and rates[0] <= 1
            and list(rates) == sorted(rates, reverse=True)
        )

    @property
    def interval_s(self) -> float | None:
        """Return the length of the window, accepted / accepted throughput; the first is longer."""
        if not self.accepted_tokens or not self.accepted_tokens_per_s:
            return None
        return self.accepted_tokens / self.accepted_tokens_per_s


def parse_window(text: bytes) -> Window | str:
    """Return the window of one line (from the marker on), or why there is none.

    >>> parse_window(b"SpecDecoding metrics: Mean acceptance length: nan, Accepted: 0 tokens, "
    ...              b"Drafted: 0 tokens, Per-position acceptance rate: , "
    ...              b"Avg Draft acceptance rate: nan%")
    'nothing was drafted in the window'
    """
    whole = _WHOLE.match(text)  # what vLLM writes; below, what a paste or a terminal made of it
    if whole:
        try:
            length_text, speed_text, accepted_text, drafted_text, rates_text = whole.groups()
            rates = tuple(map(float, rates_text.split(b", ")))
            speed = float(speed_text) if speed_text else None
            return Window(int(accepted_text), int(drafted_text), float(length_text), rates, speed)
        except ValueError:
            return "a number in it is broken"
    return _parse_loosely(text)


def _parse_loosely(text: bytes) -> Window | str:
    counts = COUNTS.search(text)
    if counts is None:
        return "the line is cut short"
    accepted, drafted = int(counts[1]), int(counts[2])
    if not drafted:
        return "nothing was drafted in the window"
    length, rates = _LENGTH.search(text), _RATES.search(text)
    if length is None:
        return "no mean acceptance length (vLLM before April 2025): rounds cannot be counted"
    if rates is None or _PERCENT.search(text, rates.end()) is None:
        return "the line is cut short"
    values = tuple(float(rate) for rate in rates[1].replace(b",", b" ").split())
    if not values:
        return "no rates per position"
    speed = _THROUGHPUT.search(text)
    return Window(accepted, drafted, float(length[1]), values, float(speed[1]) if speed else None)
