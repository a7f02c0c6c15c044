"""`SpecDecoding metrics` lines of vLLM V1: the counts of each, and the rounds that made them.

Many lines at once, as arrays, since a log can hold a million of them; positions on the last axis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NUMBER = rb"(?:nan|inf|[0-9]{1,15}(?:\.[0-9]{1,9})?)"
COUNTS = re.compile(rb"Accepted: *([0-9]{1,15}) tokens?, *Drafted: *([0-9]{1,15}) tokens?")
_LENGTH = re.compile(rb"Mean acceptance length: *(" + NUMBER + rb")(?=[,\s]|$)")
_RATES = re.compile(rb"Per-position acceptance rate: *((?:" + NUMBER + rb"(?:, *)?)*)")
_THROUGHPUT = re.compile(rb"Accepted throughput: *([0-9]{1,15}(?:\.[0-9]{1,9})?) tokens/s")
_PERCENT = re.compile(rb"(?:Avg )?Draft acceptance rate: *(" + NUMBER + rb") *%")
_WHOLE = re.compile(
    rb"SpecDecoding metrics: Mean acceptance length: ([0-9]{1,9}\.[0-9]{1,9}), "
    rb"(?:[A-Z][A-Za-z ]*: [0-9]+, )?"
    rb"(?:Accepted throughput: ([0-9]{1,15}\.[0-9]+) tokens/s, "
    rb"Drafted throughput: [0-9.]+ tokens/s, )?"
    rb"Accepted: ([0-9]{1,15}) tokens, Drafted: ([1-9][0-9]{0,14}) tokens, "
    rb"Per-position acceptance rate: ((?:[0-9]\.[0-9]{3}, )*[0-9]\.[0-9]{3}), "
    rb"Avg Draft acceptance rate: [0-9.]+%"
)

Row = tuple[bytes, bytes | None, bytes, bytes, bytes]
"""Texts of a line: mean acceptance length, accepted throughput, accepted, drafted, rates."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Log lines of one draft length K: counts since the line before each."""

    line: NDArray[np.int64]
    acceptance_length: Floats
    accepted_tokens_per_s: Floats
    accepted_tokens: Floats
    drafted_tokens: Floats
    unconditional: Floats

    @property
    def drafts(self) -> Floats:
        """Return the rounds with a draft: Drafted/K where the printed rates allow it exactly.

        Drafts may be shorter than K (grammar, end of the output); then accepted / Σ rates is the
        better estimate (three decimals each, against two of the mean acceptance length).

        >>> text = "0.740, 0.473, 0.309, 0.187, 0.099, 0.057"
        >>> windows([(7, (b"2.87", None, b"489", b"1572", text.encode()))])[6].drafts
        array([262.])
        >>> text = "0.785, 0.540, 0.347, 0.200"
        >>> windows([(7, (b"2.87", None, b"15135", b"31523", text.encode()))])[4].drafts.round()
        array([8085.])
        """
        gamma = self.unconditional.shape[-1]
        full, total = self.drafted_tokens / gamma, self.unconditional.sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept, estimate = self.accepted_tokens / full, self.accepted_tokens / total
        exact = (full == np.floor(full)) & (np.abs(kept - total) <= 0.0005 * gamma)
        exact &= np.abs(1 + kept - self.acceptance_length) <= 0.005
        nothing = (self.accepted_tokens == 0) | (total == 0)
        rounds: Floats = np.where(exact | nothing, full, np.fmax(estimate, full))
        return rounds

    @property
    def interval_s(self) -> Floats:
        """Return the length of each window, accepted / accepted throughput; NaN where unknown.

        The first window of a log is longer than the rest: it began with the server.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            interval_s = self.accepted_tokens / self.accepted_tokens_per_s
        interval_s[~np.isfinite(interval_s)] = np.nan
        return interval_s

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Return which lines meet every bound without rounding, so that nothing is to be said."""
        rates = self.unconditional
        fits = (self.accepted_tokens > 0) & (self.accepted_tokens <= self.drafted_tokens)
        fits &= np.abs(1 + rates.sum(axis=-1) - self.acceptance_length) <= 0.005
        fits &= (rates[:, 0] <= 1) & (rates[:, -1] >= 0)
        return np.asarray(fits & np.all(rates[:, 1:] <= rates[:, :-1], axis=-1))


def windows(rows: Sequence[tuple[int, Row]]) -> dict[int, Windows]:
    """Return (line number, row) pairs as arrays, by draft length."""
    by_gamma: dict[int, list[tuple[int, Row]]] = {}
    for row in rows:
        by_gamma.setdefault(row[1][4].count(b",") + 1, []).append(row)
    found = {}
    for gamma, group in by_gamma.items():
        lines, texts = zip(*group, strict=True)
        lengths, speeds, accepted, drafted, rates = zip(*texts, strict=True)
        found[gamma] = Windows(
            np.array(lines),
            _numbers(lengths),
            _numbers([speed or 0 for speed in speeds]),
            _numbers(accepted),
            _numbers(drafted),
            _numbers(b",".join(rates).split(b",")).reshape(-1, gamma),
        )
    return found


def _numbers(texts: Sequence[Any]) -> Floats:
    return np.array(list(map(float, texts)))


def parse_row(text: bytes) -> Row | str:
    """Return the numbers of one line (from the marker on) as text, or why there are none.

    >>> parse_row(b"SpecDecoding metrics: Mean acceptance length: nan, Accepted: 0 tokens, "
    ...           b"Drafted: 0 tokens, Per-position acceptance rate: , "
    ...           b"Avg Draft acceptance rate: nan%")
    'nothing was drafted in the window'
    """
    whole = _WHOLE.match(text)  # what vLLM writes; below, what a paste or a terminal made of it
    if whole:
        return whole.groups()  # type: ignore[return-value]
    counts = COUNTS.search(text)
    if counts is None:
        return "the line is cut short"
    if not int(counts[2]) and not int(counts[1]):
        return "nothing was drafted in the window"
    length, rates = _LENGTH.search(text), _RATES.search(text)
    if length is None:
        return "no mean acceptance length (vLLM before April 2025): rounds cannot be counted"
    if rates is None or _PERCENT.search(text, rates.end()) is None:
        return "the line is cut short"
    values = rates[1].replace(b",", b" ").split()
    if not values:
        return "no rates per position"
    speed = _THROUGHPUT.search(text)
    return (length[1], speed and speed[1], counts[1], counts[2], b", ".join(values))
