"""Broken files: an answer that can be true or one sentence, never a traceback or a silent zero.

`SPECPLAN_FUZZ=10000 pytest tests/scenarios/importers/test_import_fuzz.py` is the long mode;
SPECPLAN_FUZZ_SEED=anything gives other inputs, SPECPLAN_FUZZ_KEEP=FOLDER keeps what fails.
"""

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from specplan.results.acceptance.import_answer import import_answer
from specplan.results.answer import Answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.recognise import read_file

DATA = Path(__file__).parents[4] / "shared" / "data"
INPUTS = int(os.environ.get("SPECPLAN_FUZZ", "400"))
SEED = os.environ.get("SPECPLAN_FUZZ_SEED", "")
LARGEST = 30_000

OWN = [
    b"(APIServer pid=1) INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance "
    b"length: 2.87, Accepted throughput: 48.90 tokens/s, Drafted throughput: 157.20 tokens/s, "
    b"Accepted: 489 tokens, Drafted: 1572 tokens, Per-position acceptance rate: 0.740, 0.473, "
    b"0.309, 0.187, 0.099, 0.057, Avg Draft acceptance rate: 31.1%\n" * 3,
    b"INFO metrics.py:316] Speculative metrics: Draft acceptance rate: 0.607, System efficiency: "
    b"0.510, Number of speculative tokens: 4, Number of accepted tokens: 32594, Number of draft "
    b"tokens: 53716, Number of emitted tokens: 34244.\n",
    b"slot print_timing: id 1 | task 0 |        eval time =    2296.72 ms /   256 tokens\n"
    b"slot print_timing: id 1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 "
    b"generated), mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, "
    b"0.483)\nstatistics draft-eagle3: #calls(b,g,a) = 1 87 87, #gen drafts = 87, #acc drafts = "
    b"70, #gen tokens = 259, #acc tokens = 167, #mean acc len = 2.92, #acc rate/pos = (0.805, "
    b"0.632, 0.483), dur(b,g,a) = 0.005, 325.555, 0.114 ms\n",
    b'{"completed": 100, "total_input_tokens": 51200, "total_output_tokens": 12800, '
    b'"mean_tpot_ms": 6.43, "mean_itl_ms": 9.02, "spec_decode_acceptance_rate": 20.27, '
    b'"spec_decode_acceptance_length": 1.4054, "spec_decode_num_drafts": 10000, '
    b'"spec_decode_draft_tokens": 20000, "spec_decode_accepted_tokens": 4054, '
    b'"spec_decode_per_position_acceptance_rates": [0.3, 0.1054]}\n' * 2,
    b'{"metrics": {"speculative_decoding": {"acceptance_histogram": [4, 3, 2, 1], '
    b'"num_spec_steps": 10, "num_accepted_draft_tokens": 10, "num_draft_tokens": 30, '
    b'"num_spec_tokens": 3, "per_step_accepted": [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]}}}\n' * 2,
    b'{"timings": {"predicted_n": 256, "predicted_ms": 3007.9, "draft_n": 237, '
    b'"draft_n_accepted": 207}}\n',
    b"============ Serving Benchmark Result ============\nSuccessful requests: 20\n"
    b"Total generated tokens: 20480\nMean TPOT (ms): 12.65\nMean ITL (ms): 40.50\n"
    b"Acceptance length: 3.20\nDrafts: 6393\nDraft tokens: 19179\nAccepted tokens: 14090\n"
    b"  Position 0: 83.42\n  Position 1: 72.91\n  Position 2: 64.07\n",
    b"m:\n  thinking_on:\n    1: 1.84\n    2: 2.50\n    3: 2.99\n",
    b'vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 12275.0\n'
    b'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 24550.0\n'
    b'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 16163.0\n'
    b'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} '
    b"9586.0\nvllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\","
    b'position="1"} 6577.0\nvllm:inter_token_latency_seconds_count{engine="0",model_name="m"} '
    b"20000\nvllm:inter_token_latency_seconds_sum{engine=\"0\",model_name=\"m\"} 200.0\n",
]  # fmt: skip


def corpus() -> list[bytes]:
    found = list(OWN)
    if DATA.is_dir():
        for folder in ("acceptance", "engine", "constructed"):
            for path in sorted((DATA / folder).rglob("*")):
                if path.is_file():
                    found.append(path.read_bytes()[:LARGEST])
                    if path.stat().st_size > LARGEST:  # cut off, and whole enough to parse
                        found.append(path.read_bytes()[:200_000])
    return found


NUMBERS = b"0 -1 1 1e308 NaN Infinity -Infinity null [] {} true 1e-320 0.5 101 nan inf 2.1".split()
NUMBERS += [b'"x"', b"9" * 40]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def replace_number(data: bytes, luck: random.Random) -> bytes:
    places = list(_NUMBER.finditer(data[:LARGEST]))
    if not places:
        return data
    place = luck.choice(places)
    return data[: place.start()] + luck.choice(NUMBERS) + data[place.end() :]


def scale_number(data: bytes, luck: random.Random) -> bytes:
    places = list(_NUMBER.finditer(data[:LARGEST]))
    if not places:
        return data
    place = luck.choice(places)
    value = float(place[0]) * luck.choice([-1, 0.01, 0.5, 1.5, 2, 100, 1e9])
    return data[: place.start()] + repr(value).encode() + data[place.end() :]


def cut(data: bytes, luck: random.Random) -> bytes:
    return data[: luck.randrange(len(data) + 1)]


def drop_line(data: bytes, luck: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[luck.randrange(len(lines))]
    return b"\n".join(lines)


def repeat_line(data: bytes, luck: random.Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(luck.randrange(len(lines)), luck.choice(lines))
    return b"\n".join(lines)


def insert(data: bytes, luck: random.Random) -> bytes:
    noise = b'\x1b[1;31m|\xff\xfe|**|\n|\r|"|{|}|]|&a |\xc3|\0|Decode batch|statistics |: '.split(
        b"|"
    )
    at = luck.randrange(len(data) + 1)
    return data[:at] + luck.choice(noise) + data[at:]


def delete(data: bytes, luck: random.Random) -> bytes:
    at = luck.randrange(len(data) + 1)
    return data[:at] + data[at + luck.choice([1, 2, 10, 200]) :]


def flip(data: bytes, luck: random.Random) -> bytes:
    if not data:
        return data
    at = luck.randrange(len(data))
    return data[:at] + bytes([luck.randrange(256)]) + data[at + 1 :]


def retype(data: bytes, luck: random.Random) -> bytes:
    """Replace one value of a JSON document by one of another type."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return insert(data, luck)
    places: list[tuple[dict[str, object] | list[object], object]] = []
    todo = [document]
    while todo:
        node = todo.pop()
        inner = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in inner if isinstance(node, dict | list) else ():
            places.append((node, key))
            if isinstance(value, dict | list):
                todo.append(value)
    if places:
        owner, key = luck.choice(places)
        owner[key] = luck.choice(  # type: ignore[index,call-overload]
            [None, [], {}, "x", -1, 0, 1e308, True, [1, 2, 3], {"a": 1}, [None], float("nan")]
        )
    return json.dumps(document).encode()


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    replace_number, replace_number, scale_number, scale_number, cut, drop_line, repeat_line,
    insert, delete, flip, retype, retype,
]  # fmt: skip


def check_true(one: Evidence) -> None:
    """Everything that is said can be true, and nothing stands for a measurement that is none."""
    slack = one.rounding + 1e-6
    counts = (
        one.drafting_rounds,
        one.draftless_rounds,
        one.drafted_tokens,
        one.accepted_tokens,
    )
    assert all(count is None or (isfinite(count) and count >= 0) for count in counts)
    if one.acceptance_length is not None:
        assert 1 - slack <= one.acceptance_length < 1e18
        if one.gamma:
            assert one.acceptance_length <= one.gamma + 1 + slack
    assert all(0 <= rate <= 1 + slack for rate in one.unconditional)
    assert one.draft_probability is None or 0 <= one.draft_probability <= 1
    for name, time_s in asdict(one.latency).items():
        if name.endswith("_s") and isinstance(time_s, float) and name != "output_tokens_per_s":
            assert isfinite(time_s)
            assert time_s > 0
    assert one.says_anything or one.warnings or one.dropped


def try_import(path: Path) -> str:
    """Import a file; return what came of it."""
    try:
        for one in read_file(path):
            check_true(one)
        answer = import_answer([path])
    except ScenarioError as caught:
        refusal = caught
    else:
        check_answer(answer)
        return "imported"
    assert refusal.faults
    assert all(len(str(fault)) < 1500 and "\n" not in str(fault) for fault in refusal.faults)
    return "refused"


def check_answer(answer: Answer) -> None:
    json.dumps(answer.json, allow_nan=False)
    for group in answer.json["groups"]:
        loaded = YAML(typ="safe").load(group["block"])
        assert "acceptance" in loaded["speculation"]


@pytest.mark.parametrize("part", range(4))
def test_mutated_files(tmp_path: Path, part: int) -> None:
    luck = random.Random(f"importers {part} {SEED}")
    files = corpus()
    path = tmp_path / "given"
    outcomes: dict[str, int] = {}
    for number in range(INPUTS // 4):
        data = luck.choice(files)
        for _ in range(luck.choice([1, 1, 1, 2, 5])):
            data = luck.choice(MUTATIONS)(data, luck)
        path.write_bytes(data)
        try:
            outcome = try_import(path)
        except Exception as error:
            kept = Path(os.environ.get("SPECPLAN_FUZZ_KEEP", str(tmp_path))) / f"{part}-{number}"
            kept.write_bytes(data)
            raise AssertionError(f"input kept as {kept}") from error
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert min(outcomes["refused"], outcomes["imported"]) > INPUTS // 40


@settings(max_examples=max(INPUTS // 8, 20))
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(str.encode),
        st.lists(st.sampled_from([*OWN, b"{", b"[", b"\0", b"nan", b"# TYPE a b\n"])).map(b"".join),
    )
)
def test_anything(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "anything"
    path.write_bytes(data)
    try_import(path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["completed", "accept_length", "mean_tpot_ms", "mean_itl_ms", "spec_decode_num_drafts",
     "spec_decode_accepted_tokens", "spec_decode_draft_tokens", "spec_decode_acceptance_length",
     "spec_decode_per_position_acceptance_rates", "timings", "predicted_n", "predicted_ms",
     "draft_n", "metrics", "strategy", "benchmarks", "load_summary", "successes", "failures",
     "request_info", "performance", "decoding_stats", "meta_info", "acceptance_histogram",
     "request_latency", "request_count", "server_info", "acc_length", "batch_size", "runs",
     "queued_ts", "first_token_ts", "last_token_ts", "output_toks", "metadata"]
)  # fmt: skip


@settings(max_examples=max(INPUTS // 8, 20))
@given(document=st.dictionaries(KEYS, JSON_VALUES, max_size=12))
def test_any_value_under_any_key(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "document"
    path.write_text(json.dumps(document))
    try_import(path)
