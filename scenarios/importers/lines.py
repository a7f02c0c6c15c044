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

_UNCLEAN = (b"\x1b", b"\0", b"\r", b"**", b"1b[", b"033[")


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
    hits: list[tuple[int, int]] = []
    for index, marker in enumerate(markers):
        at = block.find(marker)
        while at >= 0:
            hits.append((at, index))
            at = block.find(marker, at + len(marker))
    plain = len(hits) > 1000 and not any(mark in block for mark in _UNCLEAN)
    hits.sort()  # already in order, and then cheap, where one marker made them all
    counted = 0
    for at, index in hits:
        number += block.count(b"\n", counted, at)
        counted = at
        end = block.find(b"\n", at)
        if end < 0:
            end = len(block)
        if end - at > LONGEST_LINE_BYTES:
            end = at + LONGEST_LINE_BYTES
        yield number, index, block[at:end] if plain else clean(block[at:end])


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
