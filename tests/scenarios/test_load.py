"""Scenario files: what is wrong with one is said all at once, in its line and column."""

from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import bundled, load, override, to_yaml, validated
from specplan.scenarios.source import parse_source

TOY = """\
name: toy
target:
  round: 100 ms
draft:
  step: 20 ms
speculation:
  method: draft_model
  gamma: 2
  acceptance: {alpha: 0.5}
workload:
  arrivals: {streams: 1}
  output_tokens: 128
"""
DEDICATED = ["draft.placement=dedicated", "draft.transfer=0 ms"]
STOP = "{if_rejected: 0.5, if_accepted: 0.1}"
TREE = "{width: 2, depth: 2}"
UP_TO_3 = "{hf_transient: {max: 3}}"


def faults(text: str, *sets: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        validated(parse_source(text, "toy.yaml"), sets)
    return [str(fault) for fault in caught.value.faults]


def test_the_toy_is_sound() -> None:
    assert validated(parse_source(TOY, "toy.yaml")).gamma == 2


def test_every_fault_is_named_at_its_place() -> None:
    text = TOY.replace("step: 20", "step: -20").replace("gamma", "gama").replace("0.5", "80")
    assert faults(text) == [
        "toy.yaml:5:9: draft.step: `-20 ms` is negative (zero or more seconds)",
        "toy.yaml:8:3: speculation.gama: unknown key (did you mean `gamma`?)",
        "toy.yaml:9:23: speculation.acceptance.alpha: 80 is outside [0, 1] "
        "(80 % is 0.8: write `0.8` or `80 %`)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("20 ms", "20", "5:9: draft.step: 20 has no unit (write `20 ms`, `20 us` or `20 s`)"),
        (
            "20 ms",
            "2 GiB",
            "5:9: draft.step: `2 GiB`: unknown unit of time `GiB` (ns, us, ms, s, min or h)",
        ),
        (
            "draft_model",
            "draft-model",
            "7:11: speculation.method: `draft-model` is unknown (did you mean `draft_model`? none, "
            "draft_model, one_pass, ngram, tree)",
        ),
        (
            "{alpha: 0.5}",
            "{conditional: [.8]}",
            "9:29: speculation.acceptance.conditional: states 1 draft positions and gamma is 2 "
            "(2 positions, a smaller γ, or a rule: "
            "`--set speculation.acceptance.extend=last_ratio`)",
        ),
        (
            "{alpha: 0.5}",
            "{unconditional: [.6, .7]}",
            "9:31: speculation.acceptance.unconditional: rises from 0.6 to 0.7 at position 2 (an "
            "unconditional list never rises; numbers given that all before were kept are "
            "`conditional`)",
        ),
        (
            "{alpha: 0.5}",
            "{pq: [{p: [.6, .3], q: [.5, .5]}, {p: [1, 0], q: [1, 0]}]}",
            "9:21: speculation.acceptance.pq.0: p sums to 0.9 (probabilities that sum to 1)",
        ),
        (
            "{alpha: 0.5}",
            "{pq: [{p: [.6, .4], q: [.5, .3, .2]}, {p: [1, 0], q: [1, 0]}]}",
            "9:21: speculation.acceptance.pq.0: p has 2 tokens and q has 3 "
            "(the same tokens in both)",
        ),
        (
            "{alpha: 0.5}",
            "{alpha: 0.5, conditional: [.8, .7]}",
            "9:15: speculation.acceptance: alpha and conditional exclude each other (one of them)",
        ),
        (
            "{alpha: 0.5}",
            "{acceptance_length: 3.5}",
            "9:35: speculation.acceptance.acceptance_length: 3.5 tokens per round with 2 drafted "
            "(at most γ + 1 = 3, bonus token included)",
        ),
        ("gamma: 2", "gamma: 2.5", "8:10: speculation.gamma: `2.5` is not a whole number "),
        ("gamma: 2", "gamma: true", "8:10: speculation.gamma: `True` is not a whole number "),
        ("gamma: 2", "gamma: -1", "8:10: speculation.gamma: is -1 (0 or more)"),
        ("gamma: 2", "gamma: 1000000", "8:10: speculation.gamma: is 1000000 (1000 or less)"),
        ("round: 100 ms", "round: 0 ms", "3:10: target.round: a pass of the target that costs "),
        (
            "output_tokens: 128",
            "output_tokens: 0",
            "12:18: workload.output_tokens: a request of 0 ",
        ),
        ("{streams: 1}", "{}", "11:13: workload.arrivals: nothing is chosen (one of streams, "),
        ("{streams: 1}", "fast", "11:13: workload.arrivals: `fast` does not say what it is "),
        ("  round: 100 ms", "  step: 100 ms", "2:1: target.round: is missing (One pass of the "),
        (
            "  method: draft_model\n",
            "",
            "6:1: speculation.method: is missing, and gamma and acceptance stated (`draft_model`, ",
        ),
        ("draft:", "draft: {}\ndraft:", "5:1: draft: is written twice, first in line 4 (once)"),
    ],
)
def test_a_fault(old: str, new: str, expected: str) -> None:
    found = faults(TOY.replace(old, new))
    assert any(fault.startswith(f"toy.yaml:{expected}") for fault in found), found


@pytest.mark.parametrize(
    ("sets", "field"),
    [
        (["draft.placement=dedicated"], "draft.transfer"),
        (["draft.placement=shared"], "draft.transfer"),
        (["draft.ping_pong=true"], "draft.ping_pong"),
        (["draft.gpus=2"], "draft.gpus"),
        ([*DEDICATED, "draft.ping_pong=true", "scheduler.max_num_seqs=1"], "draft.ping_pong"),
        (["speculation.method=ngram"], "draft.step"),
        (
            ["speculation.policy.hf_heuristic={min: 3, max: 4}"],
            "speculation.policy.hf_heuristic",
        ),
        (["speculation.policy.goodput={min: 3}"], "speculation.policy.goodput"),
        (
            ["speculation.method=one_pass", f"speculation.confidence_stop={STOP}"],
            "speculation.confidence_stop",
        ),
        (
            [
                "speculation.method=tree",
                f"speculation.tree={TREE}",
                f"speculation.policy={UP_TO_3}",
            ],
            "speculation.policy",
        ),
        (["workload.lengths=a.csv", "workload.prompt_tokens=0"], "workload.lengths"),
        (["kv_cache={blocks: 100, prefix_caching: true}"], "kv_cache.prefix_caching"),
        (["cluster.engines_per_gpu=2"], "cluster.engines_per_gpu"),
        (["kv_cache.blocks=8"], "kv_cache.blocks"),
        (["scheduler.max_num_batched_tokens=2"], "scheduler.max_num_batched_tokens"),
        (["speculation.policy.by_batch=[[1, 4, 2], [6, 9, 1]]"], "speculation.policy.by_batch"),
        (["speculation.method=tree"], "speculation.tree"),
        (["speculation.method=tree", "speculation.tree.budget=8"], "speculation.tree.budget"),
        (
            ["speculation.method=tree", "speculation.tree.budget=8", "speculation.acceptance=null"],
            "speculation.tree.budget",
        ),
        (
            [
                "speculation.method=tree",
                "speculation.tree.budget=8",
                "speculation.acceptance={ranks: [0, 0]}",
            ],
            "speculation.tree.budget",
        ),
        (["speculation.acceptance.ranks=[0.6, 0.2]"], "speculation.acceptance.ranks"),
        (["workload.output_tokens=trace"], "workload.output_tokens"),
        (["workload.prompt_tokens=100"], "target.prefill"),
        (["workload.arrivals.burstiness=2"], "workload.arrivals"),
        (
            [
                "workload.prompt_tokens=9000",
                "target.prefill.per_token=1 us",
                "scheduler.chunked_prefill=false",
            ],
            "scheduler.max_num_batched_tokens",
        ),
    ],
)
def test_contradictions_name_the_field(sets: list[str], field: str) -> None:
    assert [line for line in faults(TOY, *sets) if f" {field}: " in f" {line}"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "x.yaml: the file is empty"),
        (b"# nothing\n", "x.yaml: the file is empty"),
        (b"- a\n", "x.yaml:1:1: the file holds a list"),
        (b"just words", "x.yaml:1:1: the file holds a single value"),
        (b"a: [1, 2\nb: 3\n", "x.yaml:2:2: is not YAML"),
        (b"name: caf\xe9\n", "x.yaml:1:10: byte 0xe9 is not UTF-8 text"),
        (b"\x7fELF\x00\x01", "x.yaml: is not YAML"),
        (b"a: !!python/object:os.system {}", "x.yaml"),
        (b"a: &a [*a]", "x.yaml"),
        (b"[" * 5000, "x.yaml"),
        (b"x" * 1_000_001, "x.yaml: is larger than 1 MB and no scenario"),
    ],
)
def test_files_that_are_no_scenario(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(caught.value.faults[0]).startswith(str(tmp_path / expected))


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for new, old in zip("bcdefghi", "abcdefgh", strict=True):
        bomb += f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n"
    with pytest.raises(ScenarioError, match="unfolds to too much"):
        parse_source(bomb, "bomb.yaml")


def test_names_that_are_no_file_list_the_bundled_ones(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"did you mean `toy-20ms`\? bundled: .*toy-50ms"):
        load("toy-20s")
    with pytest.raises(ScenarioError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(ScenarioError, match="no such file"):
        load("x" * 5000)


def test_paths_start_at_the_scenario_file(tmp_path: Path) -> None:
    text = TOY.replace("{streams: 1}", "{trace: here.csv}").replace("  output_tokens: 128\n", "")
    (tmp_path / "toy.yaml").write_text(text)
    sets = ["target.prefill.per_token=0 us"]
    assert load(tmp_path / "toy.yaml", sets).workload.arrivals.trace == str(tmp_path / "here.csv")
    sets.append("workload.arrivals.trace=there.csv")
    assert load(tmp_path / "toy.yaml", sets).workload.arrivals.trace == str(
        Path("there.csv").absolute()
    )


@pytest.mark.parametrize("name", sorted(bundled()))
def test_what_is_written_loads_to_the_same(name: str, tmp_path: Path) -> None:
    scenario = load(name)
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(scenario), encoding="utf-8")
    assert load(path) == scenario
    assert override(scenario, []) == scenario
