"""What a person reads when something is wrong: one sentence that fits what they did."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., Any]

BENCH = {  # `vllm bench serve` without per-position rates: 8,000 rounds of 3 drafts, half kept
    "completed": 100,
    "duration": 100.0,
    "max_concurrency": 1,
    "total_input_tokens": 1000,
    "total_output_tokens": 20000,
    "output_throughput": 200.0,
    "mean_ttft_ms": 20.0,
    "mean_tpot_ms": 5.0,
    "mean_itl_ms": 12.5,
    "spec_decode_acceptance_rate": 50.0,
    "spec_decode_acceptance_length": 2.5,
    "spec_decode_num_drafts": 8000,
    "spec_decode_draft_tokens": 24000,
    "spec_decode_accepted_tokens": 12000,
}


def _refused(cli: Cli, *words: str) -> str:
    found = cli(*words)
    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1
    assert "Errno" not in found.err
    return str(found.err)


def test_an_empty_scenario_name(specplan_cli: Cli) -> None:
    assert "the name of the scenario is empty" in _refused(specplan_cli, "predict", "")


def test_two_documents(specplan_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text("name: a\n---\nname: b\n")
    says = _refused(specplan_cli, "predict", str(tmp_path / "two.yaml"))
    assert "two.yaml:2:1: a second YAML document begins here" in says


@pytest.mark.parametrize(
    ("setting", "point"),
    [
        ("draft.step=1,6 ms", "`1.6 ms`"),
        ("draft.step=1,600 us", "`1.600 us`, or `1600 us`"),
        ("speculation.acceptance.alpha=0,8", "`0.8`"),
    ],
)
def test_a_decimal_comma(specplan_cli: Cli, setting: str, point: str) -> None:
    says = _refused(specplan_cli, "predict", "toy-20ms", "--set", setting)
    assert f"has a decimal comma (a decimal point: {point})" in says


@pytest.mark.parametrize(
    ("name", "reason"),
    [("loop", "Too many levels of symbolic links"), ("broken", "No such file or directory")],
)
def test_links_to_nothing(specplan_cli: Cli, tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    assert f"cannot be read: {reason}" in _refused(specplan_cli, "predict", str(tmp_path / name))


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "toy-20ms", "--vary", "@nope.csv"),
        ("predict", "toy-20ms", "--set", "speculation.acceptance.recorded_file=nope"),
        ("predict", "toy-20ms", "--set", "workload.arrivals.trace=nope"),
        ("predict", "toy-20ms", "--set", "target.round.table=nope.csv"),
    ],
)
def test_a_file_that_is_not_there(specplan_cli: Cli, words: tuple[str, ...]) -> None:
    assert "No such file or directory" in _refused(specplan_cli, *words)


@pytest.mark.parametrize("year", ["0001", "1969", "2200", "9999"])
def test_a_year_out_of_reach_is_a_time_all_the_same(
    specplan_cli: Cli, tmp_path: Path, year: str
) -> None:
    rows = f"TIMESTAMP,ContextTokens,GeneratedTokens\n{year}-01-01 00:00:00,10,10\n"
    (tmp_path / "t.csv").write_text(rows)
    setting = f"workload.arrivals.trace={tmp_path / 't.csv'}"
    says = _refused(specplan_cli, "predict", "toy-20ms", "--set", setting)
    assert f"`{year}-01-01 00:00:00` is out of reach (a year from 1970 to 2199)" in says


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\x1b[31mred", "a\x7f", "a\u2028b"])
def test_names_of_one_line(specplan_cli: Cli, name: str) -> None:
    says = _refused(specplan_cli, "predict", "toy-20ms", "--set", f"name={json.dumps(name)}")
    assert "holds a control character" in says


def test_plain_decoding_reads_no_fewer_weights(specplan_cli: Cli) -> None:
    out = specplan_cli("predict", "toy-20ms", "--set", "speculation.gamma=0").out
    assert "1 read of the target's weights per token: this is plain" in out
    assert "0.0 % fewer" not in out


def test_one_label_for_everything_labels_the_acceptance(specplan_cli: Cli, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.yaml")
    assert specplan_cli("init", file).code == 0
    found = specplan_cli("predict", file, "--json").json["handoff"]
    assert found["inputs"]["speculation.acceptance"]["evidence"] == "assumed"
    assert not [gap for gap in found["missing"] if "speculation.acceptance" in gap]
    mixed = 'record.evidence="costs measured, acceptance assumed"'
    found = specplan_cli("predict", file, "--set", mixed, "--json").json["handoff"]
    assert found["inputs"]["speculation.acceptance"]["evidence"] == "unlabelled"


@pytest.mark.parametrize("words", [(), ("acceptance",)])
def test_no_summary_is_cut_at_80_columns(
    specplan_cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    commands = specplan_cli(*words, "--help").out.partition("Commands:\n")[2]
    assert len(commands.splitlines()) > 2
    assert not re.search(r"\.\.\.$", commands, re.MULTILINE)


def test_compare_says_that_settings_are_for_all(specplan_cli: Cli) -> None:
    assert "Set a field of all." in specplan_cli("compare", "--help").out


def test_calibrate_takes_gamma_from_the_counts(specplan_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(json.dumps(BENCH))
    out = specplan_cli("calibrate", str(tmp_path / "bench.json"), "--baseline", "8 ms").out
    words = " ".join(out.split())
    assert "γ = 3 2.5 12.5 ms" in words  # 24,000 / 8,000
    assert "undetermined: only γ = 3 is measured" in words


def test_a_base_that_the_varied_fields_complete(specplan_cli: Cli) -> None:
    words = ("sweep", "toy-20ms", "--set", "kv_cache.bytes_per_token=128 KiB", "--json", "--vary")
    found = specplan_cli(*words, "kv_cache.memory=4 GiB,8 GiB")
    assert found.code == 0
    assert found.json["columns"]["kv_cache.memory_bytes"] == [4 * 2**30, 8 * 2**30]
    found = specplan_cli(*words, "speculation.gamma=0..2")
    assert found.code == 2
    assert "kv_cache: no capacity given" in found.err
