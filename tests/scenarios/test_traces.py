"""Traces of every public format: exact times, and a line for what is wrong."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.traces import Trace, read_lengths, read_trace

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="real traces are at ../shared beside the checkout, and not here"
)


def read(tmp_path: Path, content: str | bytes, name: str = "trace.csv") -> Trace:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_trace(path)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, content)
    return str(caught.value).removeprefix(f"{tmp_path}/")


AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def test_azure_times_are_exact_to_100_ns(tmp_path: Path) -> None:
    # Midnight is crossed, seven digits count, CRLF, and no newline at the end.
    trace = read(
        tmp_path,
        AZURE + "2023-11-16 23:59:59.9999999,374,44\r\n2023-11-17 00:00:00.0000001,396,109",
    )
    assert trace.kind == "azure"
    assert trace.arrival_s.tolist() == [0.0, 2e-7]
    assert trace.prompt_tokens.tolist() == [374, 396]
    assert trace.output_tokens.tolist() == [44, 109]


@pytest.mark.parametrize("zone", ["", "Z", "+00:00", "+0000"])
@pytest.mark.parametrize("digits", ["", ".5", ".500000", ".5000000"])
def test_azure_2024_may_vary_in_digits_and_zone(tmp_path: Path, zone: str, digits: str) -> None:
    first, second = f"2024-05-10 00:00:00{digits}{zone}", f"2024-05-10 00:00:01{digits}{zone}"
    trace = read(tmp_path, f"{AZURE}{first},10,20\r\n{second},10,20\r\n")
    assert trace.arrival_s.tolist() == [0.0, 1.0]


def test_an_azure_multimodal_trace_is_gzipped_and_has_one_more_column(tmp_path: Path) -> None:
    text = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 00:00:00.1,2,10,20\n"
    assert read(tmp_path, gzip.compress(text.encode())).prompt_tokens.tolist() == [10]


@pytest.mark.parametrize(
    ("kind", "text", "second_s"),
    [
        (
            "burstgpt",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
            40.0,
        ),
        (
            "burstgpt",
            "Timestamp,Session ID,Elapsed time (s),Model,Request tokens,Response tokens,"
            "Total tokens,Log Type\n5270414.0,a,1,GPT-4,4,8,12,API log\n"
            "5270414.25,a,1,GPT-4,4,8,12,API log\n",
            0.25,
        ),
        (
            "vidur",
            "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4,8\n4.314579,4,8\n",
            4.314579,
        ),
        (
            "splitwise",
            "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,"
            "token_size\n0,2,0,1,1,4,8\n1,2,0,3,1,4,8\n",
            2.0,
        ),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 4, "output_length": 8, "hash_ids": [0]}\n'
            '{"timestamp": 27, "input_length": 4, "output_length": 8, "hash_ids": [0, 1]}\n',
            0.027,
        ),
        (
            "bailian",
            '{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 4, '
            '"output_length": 8, "type": "text", "turn": 1, "hash_ids": [7]}\n'
            '{"chat_id": 2, "parent_chat_id": -1, "timestamp": 61.614, "input_length": 4, '
            '"output_length": 8, "type": "text", "turn": 1, "hash_ids": [7]}\n',
            0.5,
        ),
        (
            "llmservingsim",
            '{"input_toks": 4, "output_toks": 8, "arrival_time_ns": 46926808}\n'
            '{"input_toks": 4, "output_toks": 8, "arrival_time_ns": 347938951}\n',
            0.301012143,
        ),
        (
            "dsdsim",
            '{"request_id": "a", "arrival_ms": 0.0, "prompt_tokens": 4, "target_tokens": 8}\n'
            '{"request_id": "b", "arrival_ms": 25.0, "prompt_tokens": 4, "target_tokens": 8}\n',
            0.025,
        ),
        ("specplan", "arrival_s,prompt_tokens,output_tokens\n0,4,8\n0.5,4,8\n", 0.5),
    ],
)
def test_kinds_are_told_by_their_fields(
    tmp_path: Path, kind: str, text: str, second_s: float
) -> None:
    trace = read(tmp_path, text)
    assert (trace.kind, trace.arrival_s[0]) == (kind, 0.0)
    assert trace.arrival_s[1] == pytest.approx(second_s, rel=1e-12)
    assert trace.output_tokens[1] in (8, 230)


def test_hash_ids_are_kept_flat(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        '{"timestamp": 0, "input_length": 600, "output_length": 8, "hash_ids": [0, 5]}\n'
        '{"timestamp": 0, "input_length": 4, "output_length": 8, "hash_ids": [0]}\n',
    )
    assert trace.hash_ids is not None
    assert trace.hash_starts is not None
    assert (trace.hash_ids.tolist(), trace.hash_starts.tolist()) == ([0, 5, 0], [0, 2, 3])
    assert trace.hash_block_tokens == 512


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "trace.csv: is empty (a trace with a request a line)"),
        (AZURE, "trace.csv: has no requests (a request on each line below the first)"),
        (
            AZURE + "2023-11-16 18:00:01,4,8\n\n2023-11-16 18:00:00,4,8\n",
            "trace.csv:4: TIMESTAMP: goes back in time, as 1 of 2 rows do (rows sorted by arrival)",
        ),
        (
            AZURE + "2023-11-16 18:00:01,4,8\n2023-11-16 18:00:02,4,0\n",
            "trace.csv:3: GeneratedTokens: 0 tokens, as in 1 of 2 requests "
            "(at least 1; leave out requests that failed)",
        ),
        (
            AZURE + "2023-11-16 18:00:01,4,8\n2023-11-16,4\n",
            "trace.csv:3: 2 fields, and the header names 3 (as many in each row)",
        ),
        (AZURE + "yesterday,4,8\n", "trace.csv:2: `yesterday` is no time (a time such as "),
        (AZURE + "2023-11-16 18:00:01,4,many\n", "trace.csv:2: GeneratedTokens: `many` is no "),
        (AZURE + "2023-11-16 18:00:01,4,8.5\n", "trace.csv:2: GeneratedTokens: `8.5` is no "),
        (
            AZURE + "2023-11-16 18:00:01,4,99999999999\n",
            "trace.csv:2: GeneratedTokens: 99999999999 ",
        ),
        (
            "arrival_s,prompt_tokens,output_tokens\n0,4,8\nnan,4,8\n",
            "trace.csv:3: arrival_s: is not a time (a number)",
        ),
        (
            "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n4,8,12,2\n",
            "trace.csv:1: has lengths but no arrivals (name it as `workload.lengths`, with "
            "arrivals such as `{rate: 4/s}`)",
        ),
        ("a,b\n1,2\n", "trace.csv:1: no known trace has the fields a, b (Azure, BurstGPT, "),
        ('[{"conversations": []}]', "trace.csv: is one JSON document (ShareGPT holds texts, "),
        (
            '{"timestamp": 0, "input_length": 4, "output_length": 8}\n{oops\n',
            "trace.csv:2: is not JSON",
        ),
        (
            '{"timestamp": 0, "input_length": 4, "output_length": 8}\n{"timestamp": 1}\n',
            "trace.csv:2: input_length: input_length is missing (input_length in each row)",
        ),
        (
            '{"delay": 5, "input_length": 4, "output_length": 8}\n',
            "trace.csv:1: has delays after a former turn, not arrivals (a `timestamp` in each row)",
        ),
        (b"\xff\xfe\x00\x01", "trace.csv: is not text"),
        (b"\x1f\x8b\x08broken", "trace.csv: cannot be read"),
    ],
)
def test_refusals_name_the_line(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert refusal(tmp_path, content).startswith(expected)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(ScenarioError, match="is a folder"):
        read_trace(tmp_path)


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    text = "arrival_s,prompt_tokens,output_tokens\n0,4,8\n"
    assert len(read(tmp_path, text).arrival_s) == 1
    assert len(read(tmp_path, text + "1,4,8\n").arrival_s) == 2


@needs_shared
@pytest.mark.parametrize(
    ("name", "kind", "requests", "lasts_s", "prompt", "output"),
    [
        # Rows counted with `wc -l`, first and last row read by eye, sums by awk.
        ("AzureLLMInferenceTrace_conv.csv", "azure", 19366, 3501.721937, 22361870, 4088665),
        ("AzureLLMInferenceTrace_code.csv", "azure", 8819, 3435.948056, 18059974, 245896),
        ("mooncake_conversation_trace.head5000.jsonl", "mooncake", 5000, 1593.0, None, None),
        ("mooncake_synthetic_trace.jsonl", "mooncake", 3993, 1022.025, None, None),
        ("dsdsim_gsm8k_trace_1s.jsonl", "dsdsim", 41, 1.0, None, None),
        ("splitwise_sim_test_trace.csv", "splitwise", 3, 3.0, 8192, 56),
        ("burstgpt_documented_3rows.csv", "burstgpt", 3, 113.0, 1976, 524),
        ("aiperf_template_production_trace.jsonl", "mooncake", 10, 1.5, None, None),
    ],
)
def test_real_traces(
    name: str, kind: str, requests: int, lasts_s: float, prompt: int | None, output: int | None
) -> None:
    trace = read_trace(SHARED / "traces" / name)
    assert (trace.kind, len(trace.arrival_s)) == (kind, requests)
    assert trace.arrival_s[-1] == pytest.approx(lasts_s, abs=1e-6)
    assert prompt is None or trace.prompt_tokens.sum() == prompt
    assert output is None or trace.output_tokens.sum() == output
    assert (np.diff(trace.arrival_s) >= 0).all()


@needs_shared
def test_mooncake_blocks_cover_the_prompt() -> None:
    # FORMATS.md B: len(hash_ids) = ceil(input/512) holds for all rows.
    trace = read_trace(SHARED / "traces" / "mooncake_conversation_trace.head5000.jsonl")
    assert trace.hash_starts is not None
    assert (np.diff(trace.hash_starts) == -(-trace.prompt_tokens // 512)).all()


@needs_shared
def test_lengths_without_arrivals() -> None:
    path = SHARED / "traces" / "vidur_fork_sharegpt_val_10k_llama2.csv"
    lengths = read_lengths(path)
    assert (lengths.prompt_tokens[0], lengths.output_tokens[0]) == (3742, 284)
    assert len(lengths.prompt_tokens) == 10_000
    with pytest.raises(ScenarioError, match="has lengths but no arrivals"):
        read_trace(path)
