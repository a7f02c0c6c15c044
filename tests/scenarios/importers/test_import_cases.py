"""Cases of kind parser_input in ../shared/cases/reports.json, expectations typed in by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specplan.results.acceptance.import_answer import import_answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.llamacpp_log import parse_statistics
from specplan.scenarios.importers.pool import pool
from specplan.scenarios.importers.recognise import read_file, read_scrape
from specplan.scenarios.importers.vllm_metrics import evidence, subtract
from specplan.scenarios.importers.vllm_window import parse_row, windows


def write(tmp_path: Path, text: str | bytes, name: str = "given") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def only(path: Path) -> Evidence:
    (found,) = read_file(path)
    return found


def vllm_line(length: str, accepted: int, drafted: int, rates: str, percent: str) -> str:
    return (
        f"(APIServer pid=1) INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean "
        f"acceptance length: {length}, Accepted throughput: 6.84 tokens/s, Drafted throughput: "
        f"8.27 tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position "
        f"acceptance rate: {rates}, Avg Draft acceptance rate: {percent}%\n"
    )


def counters(engine: str, drafts: float, accepted: float, created: float | None = None) -> str:
    labels = f'engine="{engine}",model_name="m"'
    text = ""
    for name, value in (
        ("num_drafts", drafts),
        ("num_draft_tokens", 3 * drafts),
        ("num_accepted_tokens", accepted),
    ):
        text += f"# TYPE vllm:spec_decode_{name}_total counter\n"
        text += f"vllm:spec_decode_{name}_total{{{labels}}} {value}\n"
        if created is not None:
            text += f"# TYPE vllm:spec_decode_{name}_created gauge\n"
            text += f"vllm:spec_decode_{name}_created{{{labels}}} {created}\n"
    return text


def test_c21_one_log_line_that_holds_everything(tmp_path: Path) -> None:
    """ggml-org/llama.cpp#24536: τ 2.92, draft step 1.257 ms, verify 22.66 ms; 259 = 87·3 − 2."""
    log = """\
0.06.895.980 I slot print_timing: id  1 | task 0 | prompt eval time =     300.11 ms /    20 tokens
0.06.895.998 I slot print_timing: id  1 | task 0 |        eval time =    2296.72 ms /   256 tokens
0.06.896.015 I slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   \
259 generated), mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)
0.06.896.057 I statistics     draft-eagle3: #calls(b,g,a) =    1     87     87, #gen drafts =     \
87, #acc drafts =    70, #gen tokens =    259, #acc tokens =   167, #mean acc len = 2.92, \
#acc rate/pos = (0.805, 0.632, 0.483), dur(b,g,a) = 0.005, 325.555, 0.114 ms
"""
    found = only(write(tmp_path, log))
    assert found.acceptance_length == pytest.approx(2.92, abs=0.005)
    assert found.latency.draft_step_s == pytest.approx(1.257e-3, rel=0.01)
    assert found.latency.verify_round_s == pytest.approx(22.66e-3, rel=0.01)
    assert found.latency.round_s == pytest.approx(26.4e-3, rel=0.01)
    assert found.latency.draft_round_s == pytest.approx(3.74e-3, rel=0.01)
    assert (found.gamma, found.method, found.draftless_rounds) == (3, "draft-eagle3", 0)
    assert found.unconditional == (0.805, 0.632, 0.483)


def test_c21_without_the_statistics_line(tmp_path: Path) -> None:
    log = (
        "slot print_timing: id 1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 "
        "generated), mean acceptance length =  2.92, acceptance rate per position = "
        "(0.805, 0.632, 0.483)\n"
    )
    found = only(write(tmp_path, log))
    assert found.drafting_rounds == pytest.approx(87, abs=0.1)
    assert found.acceptance_length == pytest.approx(2.92, abs=0.005)


def test_c21_positions_from_the_request_lines(tmp_path: Path) -> None:
    """A statistics line without rates beside request lines that hold them; blanks squeezed."""
    log = (
        "I slot print_timing: id 0 | task 0 | prompt eval time = 300.11 ms / 20 tokens\n"
        "I slot print_timing: id 0 | task 0 | eval time = 2296.72 ms / 256 tokens\n"
        "draft acceptance = 0.64479 ( 167 accepted / 259 generated), mean acceptance length = "
        "2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n"
        "statistics draft-eagle3: #calls(b,g,a) = 1 87 87, #gen drafts = 87, #acc drafts = 70, "
        "#gen tokens = 259, #acc tokens = 167, dur(b,g,a) = 0.005, 325.555, 0.114 ms\n"
    )
    found = only(write(tmp_path, log))
    assert found.unconditional == pytest.approx((0.805, 0.632, 0.483))
    assert (found.gamma, found.drafting_rounds) == (3, 87)
    assert found.latency.verify_round_s == pytest.approx(22.66e-3, rel=0.01)
    # counts of another life of the server have other positions: they are not taken for these
    (other,) = read_file(write(tmp_path, log.replace("#acc tokens = 167", "#acc tokens = 160")))
    assert other.unconditional == ()


V0 = (
    "INFO 08-08 10:00:00 metrics.py:316] Speculative metrics: Draft acceptance rate: {}, System "
    "efficiency: {}, Number of speculative tokens: {}, Number of accepted tokens: {}, Number of "
    "draft tokens: {}, Number of emitted tokens: {}.\n"
)


def test_d05_v0_counters_that_contradict_each_other(tmp_path: Path) -> None:
    """vllm#7301: emitted counts, τ 2.55; 1 + accepted/round would be 3.43."""
    found = only(write(tmp_path, V0.format("0.607", "0.510", 4, 32594, 53716, 34244)))
    assert found.acceptance_length == pytest.approx(2.55, abs=0.005)
    assert found.drafting_rounds == 13429
    assert "inconsistent_counters" in found.warnings[0]
    assert "3.43" in found.warnings[0]


def test_d04_v0_system_efficiency(tmp_path: Path) -> None:
    """reports.json D04: 2149 emitted in 662 rounds is 3.246; efficiency .649 · 5 agrees."""
    found = only(write(tmp_path, V0.format("0.655", "0.649", 4, 1735, 2648, 2149)))
    assert found.acceptance_length == pytest.approx(3.246, abs=0.005)


def test_v0_lines_are_cumulative_so_the_last_counts(tmp_path: Path) -> None:
    lines = V0.format("0.200", "0.167", 5, 1, 5, 1) + V0.format("0.067", "0.167", 5, 1, 15, 3)
    found = only(write(tmp_path, lines))  # vllm#7301, comment of 2025-02-06
    assert found.drafting_rounds == 3
    assert found.acceptance_length == 1


def test_d08_fifteen_drafts_ten_zeros(tmp_path: Path) -> None:
    """τ 2.37, rate 27.4 % with 5 drafts, conditional beyond the last acceptance unknown."""
    rates = "0.600, 0.385, 0.215, 0.108, 0.062, " + ", ".join(["0.000"] * 10)
    path = write(tmp_path, vllm_line("2.37", 89, 975, rates, "9.1"))
    found = only(path)
    assert (found.gamma, found.drafting_rounds) == (15, 65)
    assert found.acceptance_length == pytest.approx(2.37, abs=0.005)
    assert found.acceptance_rate == pytest.approx(0.091, abs=5e-4)
    assert sum(found.unconditional[:5]) / 5 == pytest.approx(0.274, abs=0.002)
    (group,) = import_answer([path]).json["groups"]
    assert group["conditional"][:5] == pytest.approx([0.6, 0.642, 0.558, 0.502, 0.574], abs=1e-3)
    assert group["conditional"][5] == 0
    assert group["conditional"][6:] == [None] * 9


def test_d19_eight_engines_in_one_scrape(tmp_path: Path) -> None:
    """8,280 drafts, 12,336 accepted, τ 2.4899: summed before dividing; _created left out."""
    engines = [(1000, 1500), (1010, 1512), (1020, 1524), (1030, 1536)]
    engines += [(1040, 1548), (1050, 1560), (1060, 1572), (1070, 1584)]
    text = "".join(
        counters(str(engine), drafts, accepted, created=1.756736798e9)
        for engine, (drafts, accepted) in enumerate(engines)
    )
    found = only(write(tmp_path, text))
    assert found.drafting_rounds == 8280
    assert found.accepted_tokens == 12336
    assert found.acceptance_length == pytest.approx(2.4899, abs=5e-5)


def test_d20_interval_with_nothing_drafted(tmp_path: Path) -> None:
    line = (
        "SpecDecoding metrics: Mean acceptance length: nan, Accepted throughput: 0.00 tokens/s, "
        "Drafted throughput: 0.00 tokens/s, Accepted: 0 tokens, Drafted: 0 tokens, Per-position "
        "acceptance rate: , Avg Draft acceptance rate: nan%\n"
    )
    assert parse_row(line.encode()) == "nothing was drafted in the window"
    kept = vllm_line("2.87", 489, 1572, "0.740, 0.473, 0.309, 0.187, 0.099, 0.057", "31.1")
    found = only(write(tmp_path, line + kept + line))
    assert found.drafting_rounds == 262
    assert found.dropped == ("2 lines (first: 1): nothing was drafted in the window",)
    with pytest.raises(ScenarioError, match="nothing was drafted"):
        read_file(write(tmp_path, line, "alone"))


def llamacpp_statistics(calls: int, drafts: int, generated: int, accepted: int) -> str:
    return (
        f"statistics ngram-mod: #calls(b,g,a) = 1 {calls} {drafts}, #gen drafts = {drafts}, #acc "
        f"drafts = {min(drafts, accepted)}, #gen tokens = {generated}, #acc tokens = {accepted}, "
        "dur(b,g,a) = 0.340, 2.107, 1.102 ms\n"
    )


def test_d21_ngram_never_drafts(tmp_path: Path) -> None:
    """llama.cpp#19164: 629 calls, no draft: coverage 0 %, acceptance unknown and not 0."""
    path = write(tmp_path, llamacpp_statistics(629, 0, 0, 0))
    found = only(path)
    assert found.draft_probability == 0
    assert found.acceptance_length is None
    assert found.acceptance_rate is None
    with pytest.raises(
        ScenarioError, match=r"no round drafted \(0 of 629\): acceptance is unknown"
    ):
        import_answer([path])


def test_d21_coverage_is_kept_out_of_tau(tmp_path: Path) -> None:
    """12 accepted in 3 drafts over 1138 rounds: τ over all rounds 1.0106, over drafts 5."""
    found = only(write(tmp_path, llamacpp_statistics(1138, 3, 192, 12)))
    assert found.draft_probability == pytest.approx(0.003, abs=5e-4)
    assert found.acceptance_length == 5
    assert found.tokens_per_round == pytest.approx(1.0106, abs=0.002)


def test_d21_cumulative_rows_are_not_added() -> None:
    rows = [
        parse_statistics(llamacpp_statistics(*row).encode())
        for row in ((1138, 3, 192, 12), (2250, 5, 320, 44))
    ]
    assert rows[0] is not None
    assert rows[1] is not None
    since = rows[1] - rows[0]
    assert (since.drafted_tokens, since.accepted_tokens, since.drafts) == (128, 32, 2)


def test_d21_the_last_line_of_a_log_counts(tmp_path: Path) -> None:
    lines = llamacpp_statistics(1138, 3, 192, 12) + llamacpp_statistics(2250, 5, 320, 44)
    found = only(write(tmp_path, lines + llamacpp_statistics(3300, 6, 384, 47)))
    assert (found.drafted_tokens, found.accepted_tokens) == (384, 47)
    restarted = only(write(tmp_path, lines + llamacpp_statistics(10, 1, 64, 20), "restarted"))
    assert (restarted.drafted_tokens, restarted.accepted_tokens) == (320 + 64, 44 + 20)
    assert "counter_reset" in restarted.warnings[0]


def test_d24_colour_codes(tmp_path: Path) -> None:
    """vllm#25943: 489/1572, γ 6, τ 2.87 through escapes between name and number."""
    line = (
        "\x1b[1;36m(EngineCore_0 pid=272)\x1b[0;0m INFO 09-30 02:56:46 [metrics.py:86] "
        "SpecDecoding metrics: Mean acceptance length: \x1b[1m2.87\x1b[0m, Accepted: 489 tokens, "
        "Drafted: 1572 tokens, Per-position acceptance rate: 0.740, 0.473, 0.309, 0.187, 0.099, "
        "0.057, Avg Draft acceptance rate: 31.1%"
    )
    found = only(write(tmp_path, line))
    assert (found.accepted_tokens, found.drafted_tokens, found.gamma) == (489, 1572, 6)
    assert found.acceptance_length == pytest.approx(2.87, abs=0.005)
    wrapped = json.dumps({"log": line + "\n", "stream": "stderr"}) + "\n"
    assert only(write(tmp_path, wrapped, "docker.log")).accepted_tokens == 489


def test_d25_two_intervals(tmp_path: Path) -> None:
    """Rounds 262 and 265, pooled τ = 1 + 944/527 = 2.7913, not the mean of 2.87 and 2.72."""
    first = vllm_line("2.87", 489, 1572, "0.740, 0.473, 0.309, 0.187, 0.099, 0.057", "31.1")
    second = vllm_line("2.72", 455, 1590, "0.728, 0.445, 0.275, 0.151, 0.075, 0.042", "28.6")
    found = only(write(tmp_path, first + second))
    assert found.drafting_rounds == 262 + 265
    assert found.acceptance_length == pytest.approx(2.7913, abs=5e-5)


def test_d26_first_interval_is_longer() -> None:
    """513 at 6.84 tokens/s is 75 s, 925 at 92.49 is 10 s; ** of a pasted line ignored.

    The report gives no rates per position; these add up to its counts.
    """
    first = vllm_line("5.14", 513, 620, "0.944, 0.879, 0.823, 0.766, 0.725", "82.7")
    second = vllm_line("4.94", 925, 1175, "0.920, 0.850, 0.780, 0.720, 0.666", "78.7")
    rows = []
    for line in (first, second.replace("6.84", "92.49")):
        row = parse_row(line[line.index("SpecDecoding") :].encode())
        assert not isinstance(row, str)
        rows.append((1, row))
    both = windows(rows)[5]
    assert both.interval_s == pytest.approx([75.0, 10.0], rel=0.01)
    assert 1 + both.accepted_tokens / both.drafts == pytest.approx([5.137, 4.936], abs=0.005)


def test_d26_markdown_in_the_line(tmp_path: Path) -> None:
    line = vllm_line("**5.14**", 513, 620, "0.944, 0.879, 0.823, 0.766, 0.725", "**82.7**")
    assert only(write(tmp_path, line)).drafting_rounds == 124


def test_d27_bare_nan_in_a_benchmark(tmp_path: Path) -> None:
    """vllm-omni#6976: NaN and Infinity are not measured; what we write is strict JSON."""
    path = write(
        tmp_path,
        '{"mean_tpot_ms": NaN, "mean_ttft_ms": 120.5, "p99_itl_ms": -0.0, '
        '"spec_decode_acceptance_length": Infinity}',
    )
    found = only(path)
    assert found.latency.token_s is None
    assert found.latency.ttft_s == pytest.approx(0.1205)
    assert found.acceptance_length is None
    assert found.warnings[0].endswith("mean_tpot_ms, spec_decode_acceptance_length")
    answer = import_answer([path])
    json.dumps(answer.json, allow_nan=False)
    assert answer.exit_code == 1


@pytest.mark.parametrize("tpot", ["0.0", "-3.1"])
def test_d27_zero_and_negative_times_are_refused(tmp_path: Path, tpot: str) -> None:
    path = write(tmp_path, f'{{"mean_tpot_ms": {tpot}, "mean_ttft_ms": 120.5}}')
    with pytest.raises(ScenarioError, match=r"given:1: mean_tpot_ms: a duration of"):
        read_file(path)


def test_d33_counter_reset(tmp_path: Path) -> None:
    """Drafts 1,000,000 then 2,000: the server restarted, the second scrape alone is τ 2.30."""
    before = read_scrape(write(tmp_path, counters("0", 1e6, 1.5e6, 1776924394.0), "s1"))
    after = read_scrape(write(tmp_path, counters("0", 2000, 2600, 1777010000.0), "s2"))
    since, warnings = subtract(before, after)
    assert "counter_reset" in warnings[0]
    (found,) = evidence(since, warnings=warnings)
    assert found.acceptance_length == pytest.approx(2.30)


def test_d33_created_alone_tells_a_restart(tmp_path: Path) -> None:
    before = read_scrape(write(tmp_path, counters("0", 100, 150, 1776924394.0), "s1"))
    after = read_scrape(write(tmp_path, counters("0", 2000, 2600, 1777010000.0), "s2"))
    since, warnings = subtract(before, after)
    assert "counter_reset" in warnings[0]
    assert since.total("spec_decode_num_drafts_total") == 2000


def test_d33_the_same_server_in_the_wrong_order(tmp_path: Path) -> None:
    before = read_scrape(write(tmp_path, counters("0", 2000, 2600, 1776924394.0), "s1"))
    after = read_scrape(write(tmp_path, counters("0", 100, 150, 1776924394.0), "s2"))
    with pytest.raises(ScenarioError, match="the earlier scrape first"):
        subtract(before, after)


def test_d03_sglang_rate_of_2025(tmp_path: Path) -> None:
    """sglang#11948: 2.17/0.54, 1.95/0.49, 1.80/0.45: three drafts; one round time, 10.88 ms."""
    lines = "".join(
        f"[2025-10-22 10:27:57 TP0] Decode batch. #running-req: 1, #token: 186, token usage: 0.00, "
        f"accept len: {length}, accept rate: {rate}, cuda graph: True, gen throughput (token/s): "
        f"{speed}, #queue-req: 0, \n"
        for length, rate, speed in (
            ("1.95", "0.49", "178.86"),
            ("1.80", "0.45", "165.41"),
            ("2.05", "0.51", "188.68"),
        )
    )
    found = only(write(tmp_path, lines))
    assert found.gamma == 3
    assert found.latency.round_s == pytest.approx(10.88e-3, rel=0.003)
    assert "not accepted/drafted" in found.warnings[0]


def test_d16_sglang_counts_without_the_prefill_token(tmp_path: Path) -> None:
    """D16: τ = (completion − requests) / verify_ct; here one request of 20 tokens in 5 rounds."""
    meta = {"completion_tokens": 20, "spec_verify_ct": 5}
    found = only(write(tmp_path, json.dumps({"text": "", "meta_info": meta})))
    assert found.acceptance_length == pytest.approx(19 / 5)


@pytest.mark.parametrize(
    ("length", "rates"),
    [
        ("2.72", "0.707, 0.453, 0.307, 0.253"),
        ("2.63", "0.723, 0.455, 0.291, 0.160"),
        ("1.47", "0.470"),
    ],
)
def test_published_log_lines_are_unconditional(tmp_path: Path, length: str, rates: str) -> None:
    """published.json vllm-log-perpos-*: E = 1 + Σ A, within the printed 0.01."""
    gamma = rates.count(",") + 1
    accepted = round(1000 * sum(map(float, rates.split(","))))
    found = only(write(tmp_path, vllm_line(length, accepted, 1000 * gamma, rates, "43.0")))
    assert found.acceptance_length == pytest.approx(float(length), abs=0.01)
    assert found.drafting_rounds == 1000


def test_pooled_ratio_of_sums_not_mean_of_ratios(tmp_path: Path) -> None:
    one = only(write(tmp_path, counters("0", 1000, 1500)))
    other = replace(one, drafting_rounds=10.0, accepted_tokens=0.0, drafted_tokens=30.0)
    whole = pool([one, replace(other, acceptance_length=1.0)])
    assert whole.acceptance_length == pytest.approx(1 + 1500 / 1010)
