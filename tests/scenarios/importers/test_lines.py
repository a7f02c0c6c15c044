"""Finding marked lines: as a plain reader would, whatever the size of the chunks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.scenarios.importers import lines
from specplan.scenarios.importers.lines import clean, find_lines

MARKERS = (b"alpha", b"beta:")


def plain(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return every marker of every line, by splitting the whole file."""
    found = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        hits = []
        for index, marker in enumerate(MARKERS):
            at = line.find(marker)
            while at >= 0:
                hits.append((at, index))
                at = line.find(marker, at + len(marker))
        found += [(number, index, clean(line[at:])) for at, index in sorted(hits)]
    return found


@given(
    pieces=st.lists(st.sampled_from([b"alpha", b"beta: 3", b"\n", b"x" * 9, b" ", b"\r", b"\0"])),
    chunk=st.integers(1, 40),
)
def test_as_a_plain_reader(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk: int
) -> None:
    data = b"".join(pieces)
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", chunk)
        assert list(find_lines(path, MARKERS)) == plain(data)


def test_dense_lines_are_cleaned_too(tmp_path: Path) -> None:
    """More than a thousand hits in a chunk take the short way, which must not skip the cleaning."""
    path = tmp_path / "dense"
    path.write_bytes(b"alpha \x1b[1m7\x1b[0m\r bar\n" * 2000)
    found = list(find_lines(path, MARKERS))
    assert len(found) == 2000
    assert {text for _, _, text in found} == {b"alpha 7"}
    path.write_bytes(b"alpha 7\n" * 2000)
    assert [number for number, _, _ in find_lines(path, MARKERS)] == list(range(1, 2001))


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    path.write_bytes(b"alpha " + b"x" * (10 * lines.LONGEST_LINE_BYTES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", 1 << 15)
        found = list(find_lines(path, MARKERS))
    assert [number for number, _, _ in found] == [1]
    assert len(found[0][2]) <= lines.LONGEST_LINE_BYTES


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        (b"length: \x1b[1m2.87\x1b[0m", b"length: 2.87"),
        (b"length: \\u001b[1;36m2.87\\u001b[0;0m", b"length: 2.87"),
        (b"\x1b[38;5;208mx\x1b[0m", b"x"),
        (b"a [4821] b", b"a [4821] b"),
        (b"**5.14**", b"5.14"),
        (b"a\0b", b"ab"),
        (b"done\r\n", b"done"),
    ],
)
def test_clean(given_text: bytes, wanted: bytes) -> None:
    assert clean(given_text) == wanted
