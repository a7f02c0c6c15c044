"""Bytes of a file that somebody brought, as text or refused in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 1 << 16
LARGEST_WHOLE_BYTES = 1 << 28
_SIGNATURES = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PAR1": "Parquet",
    b"SQLite format 3": "SQLite",
    b"%PDF": "PDF",
    b"\x89PNG": "PNG",
}


def read_head(path: Path) -> bytes:
    """Return the first bytes of a text file; refuse what is no text.

    Raises ScenarioError: absent, a folder, empty, compressed, binary, or UTF-16.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise ScenarioError(Fault(reason, "a file that can be read", file)) from error
    if not head.strip(b" \t\r\n\0"):
        raise ScenarioError(Fault("the file is empty", "what an engine or benchmark wrote", file))
    for signature, name in _SIGNATURES.items():
        if head.startswith(signature):
            raise ScenarioError(Fault(f"a {name} file", "the text inside it", file))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _looks_utf16(head):
        raise ScenarioError(Fault("UTF-16 text, as PowerShell's > writes it", "UTF-8", file))
    odd = sum(head.count(bytes([code])) for code in (*range(1, 8), *range(14, 27), 127))
    if odd > len(head) // 50 + 2:
        raise ScenarioError(Fault("a binary file", "what an engine or benchmark wrote", file))
    return head.removeprefix(b"\xef\xbb\xbf")


def _looks_utf16(head: bytes) -> bool:
    """Return whether every second byte is NUL: UTF-16 of ASCII without its mark."""
    part = head[:4096]
    return len(part) > 8 and max(part[::2].count(0), part[1::2].count(0)) > 0.4 * len(part)


def whole_text(path: Path) -> str:
    """Return the text of a file that is read whole.

    Raises ScenarioError: not UTF-8, with the line of the first wrong byte, or larger than 256 MiB.
    """
    file = str(path)
    size = path.stat().st_size
    if size > LARGEST_WHOLE_BYTES:
        wrong = f"{size >> 20} MiB in one document"
        raise ScenarioError(Fault(wrong, "at most 256 MiB; logs may be larger", file))
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise ScenarioError(Fault(wrong, "UTF-8 text", file, line)) from error
