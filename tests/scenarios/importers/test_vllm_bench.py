"""`vllm bench serve` results, as JSON and as the table on the console; single requests."""

import json
from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.pool import groups, pool
from specplan.scenarios.importers.recognise import read_file

RUN: dict[str, object] = {
    "date": "20260901-120000",
    "backend": "vllm",
    "model_id": "m",
    "request_rate": "inf",
    "max_concurrency": None,
    "duration": 10.0,
    "completed": 100,
    "failed": 0,
    "total_input_tokens": 51200,
    "total_output_tokens": 12800,
    "output_throughput": 1280.0,
    "mean_ttft_ms": 40.0,
    "mean_tpot_ms": 6.43,
    "mean_itl_ms": 9.02,
    "mean_e2el_ms": 860.0,
    "spec_decode_acceptance_rate": 20.27,
    "spec_decode_acceptance_length": 1.4054,
    "spec_decode_num_drafts": 10000,
    "spec_decode_draft_tokens": 20000,
    "spec_decode_accepted_tokens": 4054,
    "spec_decode_per_position_acceptance_rates": [0.3, 0.1054],
}


def write(tmp_path: Path, *runs: dict[str, object]) -> Path:
    path = tmp_path / "run.json"
    path.write_text("\n".join(json.dumps(run) for run in runs))
    return path


def test_round_over_token_is_the_acceptance_length(tmp_path: Path) -> None:
    """FORMATS.md A3, Qwen3-8B H100, K = 2: ITL 9.02 / TPOT 6.43 = 1.403, τ 1.405."""
    (found,) = read_file(write(tmp_path, RUN))
    assert found.acceptance_length == pytest.approx(1.4054)
    assert found.latency.round_s == pytest.approx(9.02e-3)
    assert found.latency.token_s == pytest.approx(6.43e-3)
    assert (found.gamma, found.model) == (2, "m")
    assert (found.latency.prompt_tokens, found.latency.output_tokens) == (512, 128)
    assert found.latency.concurrency is None


def test_appended_results_are_pooled_by_counts(tmp_path: Path) -> None:
    """`--append-result`: two objects in one file, 10,000 and 30,000 rounds."""
    more = {
        **RUN,
        "spec_decode_num_drafts": 30000,
        "spec_decode_draft_tokens": 60000,
        "spec_decode_accepted_tokens": 30000,
        "spec_decode_acceptance_rate": 50.0,
        "spec_decode_acceptance_length": 2.0,
        "spec_decode_per_position_acceptance_rates": [0.6, 0.4],
    }
    found = read_file(write(tmp_path, RUN, more))
    assert [e.source.line for e in found] == [1, 2]
    (group,) = groups(found)
    whole = pool(group)
    assert whole.acceptance_length == pytest.approx(1 + 34054 / 40000)
    assert whole.unconditional == pytest.approx([0.525, (0.1054 + 3 * 0.4) / 4])


def test_a_list_of_runs_is_the_runs(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"  # of `vllm bench sweep serve`
    path.write_text(json.dumps([{**RUN, "run_number": 0}, {**RUN, "run_number": 1}]))
    assert len(read_file(path)) == 2


def test_half_of_the_last_appended_result_is_dropped_and_said(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN) + "\n" + json.dumps(RUN)[:200])
    (found,) = read_file(path)
    assert found.dropped == ("line 2: cut-off or broken JSON",)


def test_a_run_without_speculation_is_latency_only(tmp_path: Path) -> None:
    plain = {key: value for key, value in RUN.items() if not key.startswith("spec_decode")}
    (found,) = read_file(write(tmp_path, plain))
    assert not found.says_acceptance
    assert found.latency.token_s == pytest.approx(6.43e-3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"completed": 0, "failed": 100}, "completed: 0 requests completed \\(100 failed\\)"),
        ({"spec_decode_num_drafts": 0}, "0 rounds drafted"),
        (
            {"spec_decode_acceptance_rate": 0.2027},
            "0.2027 is a fraction .a percentage, as vllm bench serve writes it: 20.27",
        ),
        ({"spec_decode_acceptance_rate": 31.0}, "31 %, but accepted / drafted is 20.27 %"),
        (
            {"spec_decode_per_position_acceptance_rates": [30.0, 10.54]},
            "30 is a percentage .fractions",
        ),
        (
            {"spec_decode_acceptance_length": 0.4054},
            "0.4054, but 1 \\+ accepted / drafts is 1.405",
        ),
        (
            {"spec_decode_acceptance_length": 2.4054},
            "2.405, but 1 \\+ accepted / drafts is 1.405|2.4054, but",
        ),
        (
            {"spec_decode_per_position_acceptance_rates": [0.1054, 0.3]},
            "acceptance rises at position 2 from 0.1054 to 0.3",
        ),
        (
            {"spec_decode_per_position_acceptance_rates": [0.3, 0.2]},
            "acceptance length 1.4054 but 1 \\+ the rates per position is 1.5",
        ),
        ({"spec_decode_accepted_tokens": 30000}, "accepted / drafted is 150 %"),
        ({"mean_tpot_ms": 0.0}, "mean_tpot_ms: a duration of 0"),
        ({"mean_tpot_ms": "6.43"}, 'mean_tpot_ms: "6.43" is not a number'),
        ({"completed": -3}, "completed: -3"),
        ({"completed": True}, "true is not a number"),
        ({"spec_decode_per_position_acceptance_rates": 0.3}, "0.3 is not a list"),
        ({"spec_decode_per_position_acceptance_rates": [0.3, None]}, "null is not a number"),
    ],
)
def test_refused(tmp_path: Path, change: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        read_file(write(tmp_path, {**RUN, **change}))
    assert all(fault.file and fault.line == 1 for fault in caught.value.faults)


def test_tau_above_gamma_plus_one(tmp_path: Path) -> None:
    run: dict[str, object] = {"mean_tpot_ms": 1.0, "spec_decode_acceptance_length": 3.5}
    run["spec_decode_per_position_acceptance_rates"] = [0.9, 0.8]
    with pytest.raises(ScenarioError, match=r"acceptance length 3\.5 is above γ \+ 1 = 3"):
        read_file(write(tmp_path, run))


TABLE = """\
============ Serving Benchmark Result ============
Successful requests:                     20
Failed requests:                         0
Maximum request concurrency:             1
Benchmark duration (s):                  266.90
Total input tokens:                      81920
Total generated tokens:                  20480
Output token throughput (tok/s):         76.73
---------------Time to First Token----------------
Mean TTFT (ms):                          2522.55
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          12.65
---------------Inter-token Latency----------------
Mean ITL (ms):                           40.50
---------------Speculative Decoding---------------
Acceptance rate (%):                     73.47
Acceptance length:                       3.20
Drafts:                                  6393
Draft tokens:                            19179
Accepted tokens:                         14090
Per-position acceptance (%):
  Position 0:                            83.42
  Position 1:                            72.91
  Position 2:                            64.07
==================================================
"""


def table(tmp_path: Path, text: str) -> Evidence:
    path = tmp_path / "console.txt"
    path.write_text(text)
    (found,) = read_file(path)
    return found


def test_console_table(tmp_path: Path) -> None:
    """A table printed by vllm bench serve (quoted in a public repository): 6393 drafts, τ 3.20."""
    found = table(tmp_path, TABLE)
    assert found.source.kind == "vllm-console"
    assert (found.gamma, found.drafting_rounds) == (3, 6393)
    assert found.acceptance_length == pytest.approx(3.20, abs=0.005)
    assert found.unconditional == pytest.approx([0.8342, 0.7291, 0.6407])
    assert found.latency.round_s == pytest.approx(40.50e-3)
    assert found.latency.token_s == pytest.approx(12.65e-3)  # 40.50 / 12.65 = 3.20


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("requests:                     20", "requests:                     0", "0 successful"),
        (
            "Mean TPOT (ms):                          12.65",
            "Mean TPOT (ms): 0.00",
            "mean tpot is 0",
        ),
        ("Accepted tokens:                         14090", "Accepted tokens: 1", "3.2, but 1 \\+"),
        (
            "Position 0:                            83.42",
            "Position 0: 60.00",
            "rises at position 2",
        ),
    ],
)
def test_console_table_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TABLE
    with pytest.raises(ScenarioError, match=says):
        table(tmp_path, TABLE.replace(old, new))


def response(histogram: object, **more: object) -> dict[str, object]:
    block = {"acceptance_histogram": histogram, "num_spec_tokens": 3, **more}
    return {"id": "r", "metrics": {"speculative_decoding": block}}


def test_per_request_histograms_are_added(tmp_path: Path) -> None:
    """FORMATS.md A5: r_i = Σ_{j>i} hist[j] / Σ hist; 10 and 30 rounds of two requests."""
    two = (response([4, 3, 2, 1]), response([0, 0, 0, 30]), {"id": "n", "metrics": None})
    path = tmp_path / "responses.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in two))
    (found,) = read_file(path)
    assert found.histogram == (4, 3, 2, 31)
    assert found.unconditional == pytest.approx([36 / 40, 33 / 40, 31 / 40])
    assert found.request_lengths == (2.0, 4.0)
    assert found.acceptance_length == pytest.approx(1 + 100 / 40)


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (response([4, 3, 2, 1, 1]), "5 counts for γ = 3"),
        (response([4, -3, 2, 1]), "-3 rounds"),
        (response([4, 3, 2, 1], num_spec_steps=11), "11, but the histogram holds 10"),
        (response([4, 3, 2, 1], num_accepted_draft_tokens=9), "9, but the histogram holds 10"),
        (response({"0": 3, "x": 1}), "keys that are no token counts"),
    ],
)
def test_per_request_refused(tmp_path: Path, one: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        read_file(write(tmp_path, one))
