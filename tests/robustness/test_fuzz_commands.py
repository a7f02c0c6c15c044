"""Command lines and URLs: whatever is written, an exit code and a sentence, never a traceback."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import typer.main

from specplan.cli import app

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.robustness.conftest import Fuzz

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
    "draft.step=1ms..1s:log7", "a.b=1", "=", "é", "", "--", "-h", "--version", "/dev/null",
]  # fmt: skip
STARTS = [
    ["predict", "toy-20ms"], ["law", "--p", ".6,.3,.1", "--q", ".5,.25,.25"],
    ["acceptance", "convert"], ["acceptance", "export", "toy-20ms"],
    ["sweep", "toy-20ms", "--vary"], ["calibrate", "--baseline", "5 ms", "--point"],
    ["acceptance", "import"], ["predict", "toy-20ms", "--set"], [],
]  # fmt: skip
SLOW = {"serve", "plan", "report", "validate", "simulate", "compare", "init", "-o"}


def hold(found: Any, words: list[str]) -> None:
    """Hold what is true of every way out."""
    assert found.code in (0, 1, 2), found.err
    assert "Traceback" not in found.out + found.err
    assert "internal error" not in found.err
    if found.code == 2:
        assert found.err.strip()
    if found.code in (0, 1) and "--json" in words and not {"-h", "--version"} & set(words):
        json.loads(found.out, parse_constant=pytest.fail)


def test_words_in_any_order(
    fuzz: Fuzz,
    specplan_cli: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    luck = fuzz.luck("commands")
    for _ in range(fuzz.inputs // 24):
        words = [*luck.choice(STARTS), *luck.choices(WORDS, k=luck.randint(0, 5))]
        if SLOW & set(words):  # only what they refuse; the next test runs them
            words = [word for word in words if word != "-o"] + ["--no-such-option"]
        with fuzz.bounded(words):
            hold(specplan_cli(*words), words)


@dataclass(frozen=True)
class Command:
    """A command as its parser has it."""

    path: tuple[str, ...]
    parameters: tuple[Any, ...]

    def words(self, luck: random.Random) -> list[str]:
        """Draw arguments and options, most of them such as the command wants."""
        drawn = list(self.path)
        for one in self.parameters:
            if one.param_type_name == "argument":
                least = 1 if one.required and luck.random() < 0.95 else 0
                most = 1 if one.nargs == 1 else 3
                drawn += [value(one, luck) for _ in range(luck.randint(least, most))]
            elif luck.random() < (0.95 if one.required else 0.15):
                name = luck.choice(one.opts)
                for _ in range(luck.randint(1, 2) if one.multiple else 1):
                    drawn += [name] if one.is_flag else [name, value(one, luck)]
        if any("--set" in one.opts for one in self.parameters):
            drawn += ["--set", "workload.requests=12", "--set", "workload.output_tokens=5"]
        return drawn


# What is written where the help says this, or for the option of this name.
FITTING = {
    "SCENARIO": ["toy-20ms", "toy-50ms", "llama31-8b-eagle3-h100", "scenario.yaml", "nothing"],
    "A [B] ...": ["toy-20ms", "toy-50ms", "shared-draft-pool-70b", "scenario.yaml"],
    "RUN_FOLDER|SCENARIO...": ["toy-20ms", "out1", "out2", "scenario.yaml"],
    "PATH=VALUE": [
        "speculation.gamma=3", "draft.step=5 ms", "seed=7", "speculation.method=none", "slo.x=1",
        "scheduler.max_num_seqs=4", "workload.arrivals.rate=3/s", "cluster.replicas=2", "a=",
        "speculation.acceptance={alpha: 1}", "draft.placement=dedicated", "target.round=nan",
    ],
    "PATH=VALUES": ["speculation.gamma=0..4", "draft.step=1ms..9ms:3", "seed=1,2", "a=0..1e9"],
    "FOLDER": ["out1", "out2", "deep/out", "scenario.yaml", "/dev/null/x"],
    "FILE": ["engine.log", "bench.json", "trace.csv", "scenario.yaml", "table.csv", "none", "new"],
    "FILE...": ["engine.log", "bench.json", "plain.json", "table.csv", "trace.csv"],
    "FILES...": ["engine.log", "bench.json", "plain.json", "trace.csv", "."],
    "NAMES": ["toy-20ms", "scenario.yaml", "nothing"],
    "LIMIT": ["tpot p95 < 90 ms", "goodput >= 99 %", "ttft p99 < 1 ns", "tpot", "e2el mean < 1 s"],
    "LINE": ["gamma=3 404 tok/s tau=2.9", "gamma=0 190 tok/s", "batch=8 input=9 output=8", "x=1"],
    "STEP|SPEED|FILE": ["5 ms", "190 tok/s", "plain.json", "0 ms"],
    "NAME=VALUE": ["gamma=2", "step=12 ms", "acceptance={alpha: 0.5}", "step=x", "arrivals=1"],
    "P,P,…": [".6,.3,.1", "1,0,0", ".5,.5", "nan,1", "0,0,0"],
    "Q,Q,…": [".5,.25,.25", "1,0,0", ".1,.9", "-1,2"],
    "RATE": ["2/s", "1e9/s", "0/s", "x"],
    "TIME": ["0 s", "60 s", "-1 s"],
    "GPU": ["h100-sxm", "", "none"],
    "CONFIG": ["config.json", "none"],
    "ADDRESS": ["no-such-host:1"],
    "--workers": ["1", "0", "x"],
    "--replications": ["1", "2", "0", "-3"],
    "--requests": ["5", "0", "x"],
    "--tolerance": ["0.5", "0", "nan"],
    "--draws": ["0", "1000", "-1"],
    "--port": ["99999", "x"],
    "--by": ["closed-form", "simulate", "luck"],
}  # fmt: skip
ANY = ["0", "1", "3", "-1", "0.5", "nan", "1e300", "", "x", "é", "x" * 300, "vllm", "toy-20ms"]


def value(parameter: Any, luck: random.Random) -> str:
    if luck.random() < 0.05:
        return luck.choice(ANY)
    keys = (*parameter.opts, parameter.metavar)
    return luck.choice(next((FITTING[key] for key in keys if key in FITTING), ANY))


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Give every command but `serve`, which stays until it is stopped."""
    inner = getattr(command, "commands", None)
    if inner is None:
        if path != ("serve",):
            yield Command(path, tuple(command.params))
    else:
        for name, one in inner.items():
            yield from commands(one, (*path, name))


FILES = {
    "engine.log": "INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance "
    "length: 2.50, Accepted throughput: 48.90 tokens/s, Drafted throughput: 157.20 tokens/s, "
    "Accepted: 600 tokens, Drafted: 1200 tokens, Per-position acceptance rate: 0.700, 0.500, "
    "0.300, Avg Draft acceptance rate: 50.0%\n",
    "plain.json": '{"backend": "vllm", "completed": 80, "duration": 60.0, "max_concurrency": 1, '
    '"total_input_tokens": 40960, "total_output_tokens": 10240, "mean_ttft_ms": 30.0, '
    '"mean_tpot_ms": 5.0, "mean_itl_ms": 5.0}',
    "bench.json": '{"backend": "vllm", "completed": 80, "duration": 60.0, "max_concurrency": 1, '
    '"total_input_tokens": 40960, "total_output_tokens": 10240, "mean_ttft_ms": 30.0, '
    '"mean_tpot_ms": 3.0, "mean_itl_ms": 7.5, "spec_decode_acceptance_length": 2.5, '
    '"spec_decode_num_drafts": 4000, "spec_decode_draft_tokens": 12000, '
    '"spec_decode_accepted_tokens": 6000, '
    '"spec_decode_per_position_acceptance_rates": [0.7, 0.5, 0.3]}',
    "trace.csv": "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1.5,11,21\n",
    "table.csv": "batch,width,ms\n1,1,5\n1,4,6\n8,1,7\n8,4,9\n",
}
RARE: dict[tuple[str, ...], float] = {
    ("plan",): 0.1,
    ("report",): 0.3,
}  # commands that take seconds each


def test_what_the_parser_knows(
    fuzz: Fuzz,
    specplan_cli: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commands with options and values that they know, in a folder of files that fit."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "scenario.yaml").write_text(fuzz.plain("toy-20ms"), encoding="utf-8")
    luck = fuzz.luck("parser")
    known = list(commands(typer.main.get_command(app)))
    answered = set()
    weights = [RARE.get(one.path, 1) for one in known]
    for chosen in luck.choices(known, weights, k=fuzz.inputs // 48):
        words = chosen.words(luck)
        with fuzz.bounded(words):
            found = specplan_cli(*words)
            hold(found, words)
            if found.code == 0:
                answered.add(chosen.path)
        assert not list(tmp_path.rglob("*.tmp*")), words
    assert len(answered) > len(known) / 4, answered


def test_urls_of_the_live_page(fuzz: Fuzz) -> None:
    pytest.importorskip("dash", reason="needs the extra `serve`")
    from specplan.results.live import app as live
    from specplan.results.live.state import command, query, read
    from specplan.results.live.view import Base, View

    luck = fuzz.luck("urls")
    bases = [Base.read(name) for name in ("toy-20ms", "llama31-8b-eagle3-h100")]
    client = live.make_app("toy-20ms").server.test_client()
    for number in range(fuzz.inputs // 12):
        base = luck.choice(bases)
        pairs = [
            f"{luck.choice(base.controls).path if luck.random() < 0.8 else 'name'}="
            f"{quote(str(luck.choice([*fuzz.odd, luck.uniform(0, 20), luck.randint(0, 9)])))}"
            for _ in range(luck.randint(0, 5))
        ]
        search = "?" + "&".join(pairs)
        search = fuzz.spoiled(search, luck) if number % 2 else search
        with fuzz.bounded(search):
            state = read(search, base.scenario, base.controls)
            assert len(query(base.target, base.controls, state, base.scenario)) < 4000
            view = View(base, state)
            assert view.verdict
            assert command(base.target, view.sets)
        if number % 8 == 0:
            path = re.sub(r"[\r\n]", "", search)
            with fuzz.bounded(path):
                answer = client.get(f"/{quote(path)}{path}", headers={"Host": "localhost"})
                assert answer.status_code < 500
