"""Lines of a log of any size, found by what they must contain, in constant memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CHUNK_BYTES = 1 << 22
LONGEST_LINE_BYTES = 1 << 16
ANSI = re.compile(rb"(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;?]*[ -/]*[@-~]")

_UNCLEAN = (b"\x1b", b"\0", b"\r", b"\\", b"**")  # what `clean` takes out, or begins with


def find_lines(path: Path, markers: Sequence[bytes]) -> Iterator[tuple[int, int, bytes]]:
    r"""Yield (line number, index of the marker, text from the marker on) in the order of the file.

    A search for bytes, not a split into lines: what does not hold a marker costs one memory scan
    per marker. The text is cut at the end of its line, without colour codes, NUL bytes, `**` of
    pasted markdown, and what a carriage return overwrites. Lines longer than 64 KiB are cut.
    """
    number, rest = 1, b""
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            block = rest + chunk
            cut = block.rfind(b"\n") + 1
            if not cut and len(block) > LONGEST_LINE_BYTES:
                cut = len(block) - LONGEST_LINE_BYTES // 2
            block, rest = block[:cut], block[cut:]
            yield from _in_block(block, markers, number)
            number += block.count(b"\n")
    yield from _in_block(rest, markers, number)


def _in_block(
    block: bytes, markers: Sequence[bytes], number: int
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the marked lines of whole lines `block`, whose first line has this number."""
    present = [(index, marker) for index, marker in enumerate(markers) if marker in block]
    if not present:
        return
    dirty = any(mark in block for mark in _UNCLEAN)
    hits = sum(block.count(marker) for _, marker in present)
    if 8 * hits > block.count(b"\n"):
        for at, line in enumerate(block.split(b"\n"), start=number):
            for index, text in _in_line(line, present):
                yield at, index, clean(text) if dirty else text
        return
    counted = 0
    for at in _hit_lines(block, present):
        number += block.count(b"\n", counted, at)
        counted = at
        end = block.find(b"\n", at)
        for index, text in _in_line(block[at : end if end >= 0 else len(block)], present):
            yield number, index, clean(text) if dirty else text


def _hit_lines(block: bytes, present: Sequence[tuple[int, bytes]]) -> list[int]:
    """Return where the first marker of each marked line begins, in the order of the block."""
    hits = []
    for _, marker in present:
        at = block.find(marker)
        while at >= 0:
            hits.append(at)
            at = block.find(marker, at + len(marker))
    first_of_line, end = [], -1
    for at in sorted(hits):
        if at > end:
            first_of_line.append(at)
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
    return first_of_line


def _in_line(line: bytes, present: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return (index of the marker, text from it on) for every marker of a line, in order."""
    found = []
    for index, marker in present:
        at = line.find(marker)
        while at >= 0:
            found.append((at, index))
            at = line.find(marker, at + len(marker))
    if len(found) > 1:
        found.sort()
    return [(index, line[at : at + LONGEST_LINE_BYTES]) for at, index in found]


def clean(text: bytes) -> bytes:
    r"""Return the text without colour codes, NUL bytes and pasted markdown, up to a `\r`.

    >>> clean(b"length: \x1b[1m2.87\x1b[0m, **Accepted**: 4\x0089\r 50%|###  |")
    b'length: 2.87, Accepted: 489'
    """
    if b"[" in text:
        text = ANSI.sub(b"", text)
    if b"\0" in text:
        text = text.replace(b"\0", b"")
    if b"**" in text:
        text = text.replace(b"**", b"")
    return text.split(b"\r", 1)[0] if b"\r" in text else text


def line_span(first: int, last: int) -> str:
    """Name the lines that something was read from.

    >>> line_span(3, 3), line_span(3, 8)
    ('line 3', 'lines 3–8')
    """
    return f"line {first}" if first == last else f"lines {first}–{last}"
