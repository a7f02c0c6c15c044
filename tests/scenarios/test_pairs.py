"""Laws typed inline or read from files."""

from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.pairs import Pairs, inline_law, read_pairs

PAIR = Pairs([[0.6, 0.3, 0.1]], [[0.5, 0.25, 0.25]])


@pytest.mark.parametrize("text", ["0.6,0.3,0.1", "[0.6, 0.3, 0.1]", "0.6 0.3 0.1"])
def test_inline(text: str) -> None:
    assert inline_law(text, "--p") == [0.6, 0.3, 0.1]


def test_inline_names_the_option() -> None:
    with pytest.raises(ScenarioError, match=r"--q: `0\.6;0\.4` is not a list of numbers"):
        inline_law("0.6;0.4", "--q")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[{"p": [0.6, 0.3, 0.1], "q": [0.5, 0.25, 0.25]}]'),
        ("a.json", '{"p": [0.6, 0.3, 0.1], "q": [0.5, 0.25, 0.25]}'),
        ("a.yaml", "- p: [.6, .3, .1]\n  q: [.5, .25, .25]\n"),
        ("a.yaml", "p: [[.6, .3, .1]]\nq: [[.5, .25, .25]]\n"),
        ("a.yaml", "pq: [{p: [.6, .3, .1], q: [.5, .25, .25]}]\n"),
        (
            "a.yaml",
            "speculation:\n  acceptance:\n    pq: [{p: [.6, .3, .1], q: [.5, .25, .25]}]\n",
        ),
    ],
)
def test_every_shape_of_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_pairs(path) == PAIR


def test_a_last_law_without_q_is_the_bonus(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("- {p: [.6, .3, .1], q: [.5, .25, .25]}\n- {p: [0, 0, 1]}\n")
    assert read_pairs(path) == Pairs(PAIR.p, PAIR.q, [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no p and q"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"[1, 2]", "holds no p and q"),
        (b"- {p: [1]}\n- {p: [1], q: [1]}", "position 1 lacks p or q"),
        (b"- {p: [a], q: [1]}", "p at position 1 is not a list of numbers"),
        (b"p: [[1]]", "q is missing"),
        (b"{p: [1", "while parsing"),
        (b"speculation: {acceptance: {alpha: 0.5}}", "p is missing"),
        (b"speculation: 3", "holds no p and q"),
    ],
)
def test_a_file_without_laws_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=says) as caught:
        read_pairs(path)
    assert caught.value.faults[0].file == str(path)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        read_pairs("nowhere.yaml")
