"""Every entrance but the importers (their own test): an answer that can be true, or one refusal.

`SPECPLAN_FUZZ=50000 pytest tests/robustness/test_fuzz.py` is the long mode; SPECPLAN_FUZZ_SEED
gives other inputs. An input that fails is printed with the failure.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.prediction import predict_answer
from specplan.results.simulation import simulate_answer
from specplan.results.store import dumps
from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.traces import read_lengths, read_trace
from specplan.scenarios.load import bundled, override, published, schema_json, validated
from specplan.scenarios.source import parse_source
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

INPUTS = int(os.environ.get("SPECPLAN_FUZZ", "2400"))
SEED = os.environ.get("SPECPLAN_FUZZ_SEED", "")
LONGEST_S = 120  # of one input, on a busy machine
MOST_MEMORY = 2 << 30
SIMULATED_TOKENS = 100_000  # largest run that is simulated here
SCHEMA = schema_json()
# Blocks of which one alternative is written.
CHOICES = {"AcceptanceBlock", "CostBlock", "Arrivals", "Lengths", "Policy", "Warmup"}
NAMES = sorted({**bundled(), **published()})
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 10**9, 10**30, 1e-300, 1e300, float("inf"), float("nan"),
    0.5, "", "nan", "1e-300 s", "1e300 s", "20 ms", "20", "-3 us", "4/s", "inf", "1e9/s", "80 %",
    "4 GiB", "0 GiB", "trace", "/dev/zero", "/dev/stdin", ".", "\0", "\u0661", "x" * 3000, [], {},
    [[]], [1, 2], [0.5, 0.6], [[1, 8, 5]], {"alpha": 0.5}, {"a": {"a": {}}}, [0.1] * 2000,
]  # fmt: skip


@contextmanager
def bounded(given: object) -> Iterator[None]:
    """Fail, and show the input, for what is no ScenarioError, for a hang, and for much memory."""

    def late(*_: object) -> None:
        raise TimeoutError(f"took longer than {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_S)
    try:
        yield
    except ScenarioError as refused:
        faults = [str(fault) for fault in refused.faults]
        assert faults, given
        assert all("\n" not in one and len(one) < 5000 for one in faults), given
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\ninput: {given!r}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert used < MOST_MEMORY, given


# Scenarios


def written(schema: dict[str, Any], luck: random.Random, name: str = "") -> Any:
    """Draw a value that a part of the JSON Schema allows, near its edges more often than not."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return written(SCHEMA["$defs"][name], luck, name)
    if "anyOf" in schema:
        kinds = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return written(luck.choice(kinds), luck, name)
    if "enum" in schema:
        return luck.choice(schema["enum"])
    if "pattern" in schema:
        return quantity(schema["pattern"], luck)
    match schema.get("type"):
        case "object":
            return block(schema, luck, name)
        case "array":
            few = schema.get("minItems", 0)
            most = max(few, min(schema.get("maxItems", 5), 5))
            items = schema.get("prefixItems") or [schema["items"]] * luck.randint(few, most)
            return [written(item, luck) for item in items]
        case "boolean":
            return luck.random() < 0.5
        case "integer" | "number":
            return amount(schema, luck)
        case "string":
            return luck.choice(["x", "h100-sxm", "no-such-file", "", "α β"])
    return luck.choice(ODD)


def block(schema: dict[str, Any], luck: random.Random, name: str) -> dict[str, Any]:
    fields = schema.get("properties", {})
    if not fields:
        inner = schema.get("additionalProperties")
        inner = inner if isinstance(inner, dict) else {"type": "string"}
        return {key: written(inner, luck) for key in luck.sample(["a", "chat", "code"], 2)}
    chosen = set(schema.get("required", ()))
    if name in CHOICES:
        chosen.add(luck.choice([key for key, field in fields.items() if nullable(field)]))
    chosen |= {key for key in fields if luck.random() < (0.05 if name in CHOICES else 0.2)}
    return {key: written(fields[key], luck) for key in fields if key in chosen}


def nullable(field: dict[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in field.get("anyOf", ()))


def amount(schema: dict[str, Any], luck: random.Random) -> float:
    least = schema.get("ge", schema.get("gt", -2))
    most = schema.get("le", schema.get("lt", 1000))
    whole = schema["type"] == "integer"
    drawn = luck.choice([least, most, 1, 2, 3, 8, 0.5, 0.99, luck.uniform(least, min(most, 50))])
    return int(drawn) if whole else float(drawn)


def quantity(pattern: str, luck: random.Random) -> str:
    number = luck.choice(["0", "1", "20", "0.5", "1e-3", "7.25", "1e4", f"{luck.random():.4g}"])
    if "ns|us" in pattern:
        return f"{number} {luck.choice(['us', 'ms', 'ms', 's'])}"
    return number + ("/s" if "/" in pattern else " %" if "%" in pattern else " GiB")


@cache
def plain(name: str) -> str:
    """Give a bundled scenario as JSON."""
    text = {**published(), **bundled()}[name].read_text(encoding="utf-8")
    return json.dumps(parse_source(text, name).data)


def mutated(luck: random.Random) -> dict[str, Any]:
    """Replace blocks of a bundled scenario by others that the schema allows, or by anything."""
    data: dict[str, Any] = json.loads(plain(luck.choice(NAMES)))
    workload = data.setdefault("workload", {})
    if luck.random() < 0.9 and isinstance(workload, dict):
        workload["requests"] = luck.randint(1, 60)
        if luck.random() < 0.8:
            workload["output_tokens"] = luck.choice([1, 2, 7, {"uniform": [1, 40]}])
    for _ in range(luck.choice([0, 1, 1, 2, 3, 5])):
        holder, schema = data, SCHEMA
        while True:
            key = luck.choice(sorted(schema["properties"]))
            field = schema["properties"][key]
            inner = next(
                (one for one in (field, *field.get("anyOf", ())) if "$ref" in one), {"$ref": ""}
            )
            below = SCHEMA["$defs"].get(inner["$ref"].rpartition("/")[2], {})
            if "properties" not in below or luck.random() < 0.3:
                break
            if not isinstance(holder.get(key), dict):
                holder[key] = {}
            holder, schema = holder[key], below
        holder[key] = luck.choice(ODD) if luck.random() < 0.2 else written(field, luck)
    return data


def hold(scenario: Scenario) -> None:
    """Hold what is true of every closed form: bounds of τ and of the speedup."""
    point = operating_point(scenario)
    found = predict_at(scenario, point)
    tokens, gamma = float(found.tokens_per_round), int(found.gamma)
    assert 1 - 1e-9 <= tokens <= gamma + 1 + 1e-9
    assert float(found.speedup) <= tokens / float(found.round_cost_ratio) * (1 + 1e-9)
    assert 0 < point.batch <= scenario.scheduler.max_num_seqs
    answer = predict_answer(scenario, None, force=False)
    json.loads(dumps(answer.json))


def small(scenario: Scenario) -> bool:
    """Tell whether a run is short enough for this test."""
    if scenario.workload.arrivals.trace or scenario.workload.lengths:
        return False
    kinds = scenario.workload.classes
    lengths = [scenario.prompt_tokens, scenario.output_tokens]
    lengths += [length for kind in kinds for length in (kind.prompt_tokens, kind.output_tokens)
                if length is not None]  # fmt: skip
    longest = sum(int(length.tokens(np.array([0.999]))[0]) for length in lengths)
    return (scenario.workload.requests or 1000) * longest < SIMULATED_TOKENS


def conserved(run: Run) -> None:
    """Hold tokens, time, Little's law and work of a run."""
    done = run.requests
    assert set(done["status"]) <= {0, 1, 2}
    if run.preemptions == 0 and not done["status"].any():
        first = (done["prompt_tokens"] > 0).astype(int)
        made = done["rounds"] + done["accepted_tokens"] + first
        np.testing.assert_array_equal(made, done["output_tokens"])
        served_s = (done["finish_s"] - done["admitted_s"]).sum()
        inside_s = np.arange(len(run.batch_time_s)) @ run.batch_time_s
        assert inside_s == pytest.approx(served_s, rel=1e-6, abs=1e-9 * run.duration_s)
    assert 0 <= run.accepted_tokens <= run.drafted_tokens
    finished = done["status"] == 0
    assert (done["admitted_s"] >= done["arrival_s"])[finished].all()
    assert (done["finish_s"] >= done["first_token_s"])[finished].all()
    for phases in run.phases.values():
        assert min(phases.values()) >= 0
        lasted_s = sum(phases.values())
        assert lasted_s >= run.duration_s * (1 - 1e-6)
        if not done["status"].any():  # else the last pass may outlast the client that gave up
            assert lasted_s == pytest.approx(run.duration_s, rel=1e-6, abs=1e-12)


def test_scenarios_of_the_schema_and_mutations_of_the_bundled_ones() -> None:
    luck = random.Random(f"scenarios {SEED}")
    accepted = simulated = 0
    for number in range(INPUTS // 2):
        data = block(SCHEMA, luck, "") if number % 8 == 0 else mutated(luck)
        text = json.dumps(data)
        with bounded(text):
            scenario = validated(parse_source(text, "fuzz"))
            accepted += 1
            with bounded(text):
                hold(scenario)
            if number % 4 and small(scenario):
                run = simulate(scenario)
                simulated += 1
                conserved(run)
            elif small(scenario):
                dumps(simulate_answer(scenario, None, force=False).json)
    assert accepted > INPUTS // 20
    assert simulated > INPUTS // 100


def test_closed_form_and_simulation_are_equal_where_both_apply() -> None:
    """One stream without luck (α 0 or 1) at constant costs: every request takes the recursion."""
    luck = random.Random(f"equal {SEED}")
    for _ in range(max(INPUTS // 60, 20)):
        gamma, output = luck.randint(0, 9), luck.randint(1, 60)
        sets = [
            f"target.round={luck.randint(1, 40)} ms", f"target.step={luck.randint(1, 40)} ms",
            f"draft.step={luck.randint(0, 9)} ms", f"speculation.gamma={gamma}",
            f"speculation.overhead={luck.randint(0, 3)} ms", "workload.requests=3",
            f"speculation.acceptance.alpha={luck.randint(0, 1)}",
            f"workload.output_tokens={output}",
            f"speculation.extra_draft_step={luck.choice(['true', 'false'])}",
            f"speculation.method={luck.choice(['draft_model', 'one_pass'])}",
        ]  # fmt: skip
        with bounded(sets):
            scenario = override(validated(parse_source(plain("toy-20ms"), "toy")), sets)
            expected_s = float(predict_at(scenario, operating_point(scenario)).generation_s)
            done = simulate(scenario).requests
            lasted_s = done["finish_s"] - done["admitted_s"]
            np.testing.assert_allclose(lasted_s, expected_s, rtol=1e-12, err_msg=str(sets))


def spoiled(text: str, luck: random.Random) -> str:
    """Change a few characters of a text."""
    pieces = [":", "\n", "  ", "- ", "&a ", "*a", "!!x ", "{", "}", "[", "]", "'", "#", "\t", "\r",
              "\0", "\ufeff", "é", ",", "-", "1e999", "NaN",
              "9" * 30, "<<: ", "? ", "| ", "%"]  # fmt: skip
    for _ in range(luck.choice([1, 1, 2, 4])):
        at = luck.randrange(len(text) + 1)
        text = text[:at] + luck.choice(pieces) + text[at + luck.choice([0, 0, 1, 3, 30]) :]
    return text


def test_spoiled_scenario_files() -> None:
    luck = random.Random(f"spoiled {SEED}")
    texts = [path.read_text(encoding="utf-8") for path in bundled().values()]
    for _ in range(INPUTS // 8):
        text = spoiled(luck.choice(texts), luck)
        with bounded(text):
            hold(validated(parse_source(text, "fuzz")))


TRACES = [
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n",
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n',
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n4.314579,396,109\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
    "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1.5,11,21\n",
]  # fmt: skip


def test_spoiled_traces(tmp_path: Path) -> None:
    luck = random.Random(f"traces {SEED}")
    path = tmp_path / "trace"
    for number in range(INPUTS // 8):
        text = spoiled(luck.choice(TRACES), luck)
        path.write_text(f"{text}", encoding="utf-8", newline="")
        with bounded(text):
            trace = (read_lengths if number % 4 == 0 else read_trace)(path)
            assert (trace.prompt_tokens >= 1).all()
            assert (trace.output_tokens >= 1).all()
            if number % 4:
                assert np.isfinite(trace.arrival_s).all()
                assert (np.diff(trace.arrival_s) >= 0).all()


# Command lines

WORDS = [
    "predict", "law", "list", "schema", "acceptance", "convert", "export", "import", "calibrate",
    "sweep", "simulate", "compare", "plan", "report", "validate", "init", "serve", "toy-20ms",
    "llama31-8b-eagle3-h100", "nothing", "--json", "--set", "--vary", "--by", "closed-form", "-o",
    "--force", "--resume", "--p", "--q", ".6,.3,.1", ".5,.25,.25", "1,0", "nan,1", "--gamma", "3",
    "-1", "1000000", "--draws", "--seed", "--temperature", "0", "--rule", "exact", "--point",
    "gamma=3 404 tok/s tau=2.9", "gamma=3 0 tok/s tau=9", "--baseline", "5.264 ms", "0 ms",
    "gamma=4", "acceptance_length=3.3", "acceptance_rate=101%", "length=2", "rate=0.5",
    "accepted=10", "drafted=0", "conditional=0.5,0.6", "histogram=1,2,3", "engine=vllm",
    "--engine", "vllm", "speculation.gamma=0..8", "speculation.gamma=0..1e9",
    "draft.step=5ms..1ms:3",
    "draft.step=1ms..1s:log7", "a.b=1", "=", "é", "", "\0", "--", "-h", "--version", "/dev/null",
]  # fmt: skip
STARTS = [
    ["predict", "toy-20ms"], ["law", "--p", ".6,.3,.1", "--q", ".5,.25,.25"],
    ["acceptance", "convert"], ["acceptance", "export", "toy-20ms"],
    ["sweep", "toy-20ms", "--vary"], ["calibrate", "--baseline", "5 ms", "--point"],
    ["acceptance", "import"], ["predict", "toy-20ms", "--set"], [],
]  # fmt: skip
HEAVY = {"serve", "plan", "report", "validate", "simulate", "compare", "init", "-o"}


def test_command_lines(
    specplan_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    luck = random.Random(f"commands {SEED}")
    for _ in range(INPUTS // 12):
        words = [*luck.choice(STARTS), *luck.choices(WORDS, k=luck.randint(0, 5))]
        if HEAVY & set(words):  # long by design: only what they refuse
            words = [word for word in words if word != "-o"] + ["--no-such-option"]
        words = [word.replace("\0", "") for word in words]  # no shell passes one
        with bounded(words):
            found = specplan_cli(*words)
            assert found.code in (0, 1, 2), found.err
            assert "Traceback" not in found.out + found.err
            if found.code == 2:
                assert found.err.strip()
            if found.code in (0, 1) and "--json" in words and not {"-h", "--version"} & set(words):
                json.loads(found.out, parse_constant=pytest.fail)


# URLs of the live page


def test_urls_of_the_live_page() -> None:
    pytest.importorskip("dash", reason="needs the extra `serve`")
    from urllib.parse import quote

    from specplan.results import live
    from specplan.results.live_state import command, query, read
    from specplan.results.live_view import Base, View

    luck = random.Random(f"urls {SEED}")
    bases = [Base.read(name) for name in ("toy-20ms", "llama31-8b-eagle3-h100")]
    client = live.make_app("toy-20ms").server.test_client()
    for number in range(INPUTS // 12):
        base = luck.choice(bases)
        pairs = [
            f"{luck.choice(base.controls).path if luck.random() < 0.8 else 'name'}="
            f"{quote(str(luck.choice([*ODD, luck.uniform(0, 20), luck.randint(0, 9)])))}"
            for _ in range(luck.randint(0, 5))
        ]
        search = spoiled("?" + "&".join(pairs), luck) if number % 2 else "?" + "&".join(pairs)
        with bounded(search):
            state = read(search, base.scenario, base.controls)
            assert len(query(base.target, base.controls, state, base.scenario)) < 4000
            view = View(base, state)
            assert view.verdict
            assert command(base.target, view.sets)
        if number % 8 == 0:
            path = re.sub(r"[\r\n]", "", search)
            with bounded(path):
                answer = client.get(f"/{quote(path)}{path}", headers={"Host": "localhost"})
                assert answer.status_code < 500


# What is made to hurt


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n" + "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]\n"
                                for p, c in zip("abcdefghijkl", "bcdefghijklm", strict=True)),
        "a: &a {b: *a}", "{" * 1000, "[" * 1000, "- " * 1000, "a: " + "9" * 500_000,
        "a: 0x" + "f" * 400_000, "? " * 1000, "x" * 900_000, "%YAML 9.9\n--- a",
        "a: !!python/object:os.system x",
        "\n".join(f"k{i}: {i}" for i in range(8_000)),
    ],
)  # fmt: skip
def test_documents_that_unfold_without_end(text: str) -> None:
    with bounded(text[:200]), pytest.raises(ScenarioError):
        validated(parse_source(text, "bomb.yaml"))
    with bounded(text[:200]), pytest.raises(ScenarioError):
        raise_from(text)


def raise_from(text: str) -> None:
    validated(parse_source(plain("toy-20ms"), "toy"), [f"speculation={text}"])


@pytest.mark.parametrize(
    "setting",
    ["speculation.gamma=1000000", "draft.step=1e-300 s", "target.round=1e-300 s",
     "target.round=1e300 s", "workload.output_tokens=1000000000", "workload.requests=1e30",
     "scheduler.max_num_seqs=1e18", "cluster.replicas=1e12", "seed=1e40",
     "workload.arrivals.streams=1e12", "workload.arrivals.rate=1e300/s",
     "scheduler.max_num_batched_tokens=1e300"],
)  # fmt: skip
def test_sizes_out_of_reach_are_refused(setting: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(setting.partition("=")[0])):
        validated(parse_source(plain("toy-20ms"), "toy"), [setting])
