"""Files that cannot be imported: one clear sentence each, with the file and, if any, the line."""

import gzip
from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.recognise import read_file

LOG = (
    "INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: {}, "
    "Accepted throughput: 48.90 tokens/s, Drafted throughput: 157.20 tokens/s, Accepted: {} "
    "tokens, Drafted: {} tokens, Per-position acceptance rate: {}, Avg Draft acceptance rate: {}%\n"
)
GOOD = LOG.format("2.87", 489, 1572, "0.740, 0.473, 0.309, 0.187, 0.099, 0.057", "31.1")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\0" * 100, "the file is empty"),
        (gzip.compress(GOOD.encode()), "a gzip file .the text inside it"),
        (b"PAR1" + bytes(range(256)), "a Parquet file"),
        (bytes(range(256)) * 20, "a binary file"),
        (GOOD.encode("utf-16"), "UTF-16 text"),
        (GOOD.encode("utf-16-le"), "UTF-16 text"),
        (b"hello\nworld\n", "no line in it is of a known kind"),
        (b'{"completed": 1, "mean_tpot_ms": 2', "the JSON is cut off"),
        (b'{"a": 1', "the JSON is cut off"),
        (b'{"a": }', "not JSON"),
        (b'{"name": "\xe9"}', "byte 0xe9 is not UTF-8"),
        (b"name: mine\ntarget: {round: 1 ms}\nworkload: {}\n", "a scenario of specplan"),
        (b'{"a": 1}', r"an object of no known kind \(keys: a\)"),
        (b"[]", "JSON without any object"),
        (b"[[1, 2]]", "JSON without any object"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number is too long"),
        (GOOD.split(", Per-position")[0].encode(), "the line is cut short"),
        (LOG.format("7.50", 1703, 1572, "0.7, 0.4", "108.3").encode(), "1,703 tokens accepted"),
        (LOG.format("4.00", 489, 1572, "0.740, 0.473", "31.1").encode(), r"above γ \+ 1 = 3"),
        (
            LOG.format("2.50", 1500, 4000, "0.300, 0.400, 0.400, 0.400", "37.5").encode(),
            "acceptance rises at position 2 from 0.3 to 0.4",
        ),
        (
            LOG.format("2.87", 489, 1572, "74.0, 47.3, 30.9, 18.7, 9.9, 5.7", "31.1").encode(),
            "is it 74 percent",
        ),
        (
            GOOD.replace("length: 2.87", "length: 1.87").encode(),
            r"acceptance length 1\.87 but 1 \+ the rates per position is 2\.865",
        ),
        (b"m:\n  thinking_on:\n    3: 4.5\n", r"given:3: .* length 4\.5 is above γ \+ 1 = 4"),
        (b"m:\n  thinking_on:\n    3: high\n", r"given:3: m\.thinking_on\.3: 'high'"),
        (b"m:\n  thinking_on:\n    3: .nan\n", "acceptance length nan is below 1"),
        (b"a: &a [*a, *a]\n", "no line in it is of a known kind"),
        (b"Decode batch. #running-req: 1, accept len: 0.00, accept rate: 0.00,\n", "below 1"),
        (b'{"predicted_n": 9, "predicted_ms": 5.0, "draft_n": 5, "draft_n_accepted": 7}', "7 of 5"),
        (
            b'{"meta_info": {"spec_verify_ct": 4, "completion_tokens": 3}}',
            "more than the 4 rounds",
        ),
        (b'{"meta_info": {"spec_verify_ct": 0}}', "0 rounds"),
        (
            b'{"completed": 5, "accept_length": 0.3, "mean_tpot_ms": 3.0}',
            "acceptance length 0.3 is below 1",
        ),
        (b"{'speculative_config': {'num_speculative_tokens': 3}}\n", "no SpecDecoding metrics"),
        (b"Decode batch, #running-req: 8, cuda graph: True\n" * 2, "2 Decode batch lines, none"),
        (b"draft acceptance rate = nan (  0 accepted /   0 generated)\n", "nothing was drafted"),
        (b"draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n", "how many round"),
        (b"SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 66 tokens, Drafted: "
         b"132 tokens\n", "does not say in how many rounds"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=says) as caught:
        read_file(path)
    assert all(fault.file == str(path) for fault in caught.value.faults)
    assert str(caught.value).count("\n") == len(caught.value.faults) - 1


def test_wrong_bytes_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b'{"a": 1}\n{"name": "caf\xe9"}\n')
    with pytest.raises(ScenarioError, match=r"run\.json:2: byte 0xe9"):
        read_file(path)


def test_absent_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such file"):
        read_file(tmp_path / "absent")
    with pytest.raises(ScenarioError, match="is a directory"):
        read_file(tmp_path)


def test_all_faults_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"hello\n")
    with pytest.raises(ScenarioError) as caught:
        read_evidence([tmp_path / "empty", tmp_path / "text", tmp_path / "absent"])
    assert len(caught.value.faults) == 3


def test_a_file_given_twice_would_count_twice(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(GOOD)
    with pytest.raises(ScenarioError, match="given twice"):
        read_evidence([tmp_path / "a.log", tmp_path / "a.log"])


def test_zero_acceptance_is_tau_one(tmp_path: Path) -> None:
    """reports.json D22: 13 drafts, nothing ever accepted: τ exactly 1, not an error."""
    rates = ", ".join(["0.000"] * 13)
    (tmp_path / "a.log").write_text(LOG.format("1.00", 0, 1300, rates, "0.0"))
    (found,) = read_file(tmp_path / "a.log")
    assert (found.acceptance_length, found.drafting_rounds) == (1.0, 100)


def test_a_log_still_being_written(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(GOOD + GOOD[:150])
    (found,) = read_file(tmp_path / "a.log")
    assert found.drafting_rounds == 262
    assert found.dropped == ("1 line (first: 2): the line is cut short",)


def test_noise_of_terminals(tmp_path: Path) -> None:
    """Progress bars ending in a carriage return, NUL bytes, Windows line ends, Latin-1."""
    bar = b"Loading:  50%|#####     | 5/10\r"
    lines = b"caf\xe9\r\n" + bar + GOOD.encode().replace(b"\n", b"\r\n") + b"\0\0\n"
    (tmp_path / "a.log").write_bytes(lines + bar + GOOD.encode().rstrip() + b"\r" + bar)
    (found,) = read_file(tmp_path / "a.log")
    assert found.drafting_rounds == 524


def test_two_draft_lengths_in_one_log_are_two_pieces(tmp_path: Path) -> None:
    other = LOG.format("1.70", 70, 100, "0.700", "70.0")
    (tmp_path / "a.log").write_text(GOOD + other + GOOD)
    assert [(e.gamma, e.drafting_rounds) for e in read_file(tmp_path / "a.log")] == [
        (6, 524),
        (1, 100),
    ]


def test_early_v1_lines_need_the_configured_length(tmp_path: Path) -> None:
    """vllm#15902: `Draft acceptance rate: 100.0%, Accepted: 66 tokens, Drafted: 66 tokens`."""
    line = "SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 66 tokens, "
    line += "Drafted: 132 tokens\n"
    args = "non-default args: {'speculative_config': {'num_speculative_tokens': 3}}\n"
    (tmp_path / "a.log").write_text(args + line)
    (found,) = read_file(tmp_path / "a.log")
    assert (found.gamma, found.drafting_rounds) == (3, 44)
    assert found.acceptance_length == 2.5


def test_newer_vllm_line_with_the_current_depth(tmp_path: Path) -> None:
    """A line of September 2026 in a public repository: depth 7, 256 of 308, τ 6.82."""
    line = (
        "(APIServer pid=1) INFO 09-04 11:01:16 [metrics.py:125] SpecDecoding metrics: Mean "
        "acceptance length: 6.82, Current speculative depth: 7, Accepted throughput: 6.46 "
        "tokens/s, Drafted throughput: 7.77 tokens/s, Accepted: 256 tokens, Drafted: 308 tokens, "
        "Per-position acceptance rate: 1.000, 1.000, 1.000, 1.000, 0.795, 0.614, 0.409, Avg Draft "
        "acceptance rate: 83.1%\n"
    )
    (tmp_path / "a.log").write_text(line)
    (found,) = read_file(tmp_path / "a.log")
    assert (found.gamma, found.drafting_rounds) == (7, 44)
    assert found.acceptance_length == pytest.approx(6.82, abs=0.005)


def test_utf8_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b'\xef\xbb\xbf{"mean_tpot_ms": 2.0}')
    (found,) = read_file(tmp_path / "r.json")
    assert found.latency.token_s == pytest.approx(2e-3)
