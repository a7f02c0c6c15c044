"""`--set`: every leaf can be set, in whatever form the file gave it."""

from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, override
from specplan.scenarios.schema import Scenario


def toy(*sets: str) -> Scenario:
    return load("toy-20ms", sets)


def test_a_leaf() -> None:
    assert toy("speculation.gamma=3").gamma == 3


def test_a_block_that_the_file_does_not_have() -> None:
    cache = toy("kv_cache.blocks=100", "kv_cache.block_tokens=32").kv_cache
    assert cache is not None
    assert (cache.blocks, cache.block_tokens) == (100, 32)


def test_an_alternative_drops_the_others_and_what_belongs_to_them() -> None:
    scenario = toy("workload.arrivals.think_time=1 s", "workload.arrivals.rate=4/s")
    assert (scenario.workload.arrivals.streams, scenario.workload.arrivals.rate) == (None, 4.0)
    assert toy("speculation.acceptance.conditional=[.8, .7]").speculation.acceptance is not None


def test_a_term_of_a_constant_makes_it_a_linear_cost() -> None:
    cost = toy("target.round.per_token=1 ms").target_round()
    assert float(cost.seconds(batch=2, width=3)) == pytest.approx(0.106)


def test_a_constant_again() -> None:
    scenario = toy("target.round.per_token=1 ms", "target.round=50 ms")
    assert scenario.target.round.constant == 0.05


def test_items_of_lists_and_classes_by_name() -> None:
    sets = ["workload.classes={chat: {weight: 3}, code: {output_tokens: 20}}"]
    scenario = toy(*sets, "workload.classes.code.weight=2")
    assert [(kind.name, kind.weight) for kind in scenario.workload.classes] == [
        ("chat", 3.0),
        ("code", 2.0),
    ]
    listed = toy("speculation.acceptance.conditional=[.8, .7]")
    assert override(listed, ["speculation.acceptance.conditional.1=.6"]).acceptance(
        2
    ).unconditional.tolist() == [[0.8, 0.48]]


def test_an_acceptance_length_keeps_the_gamma_it_was_measured_at() -> None:
    # τ = 1.75 at γ = 2 is α = 0.5; at γ = 1 that α gives τ = 1.5, not 1.75.
    measured = toy("speculation.acceptance.acceptance_length=1.75")
    fewer = override(measured, ["speculation.gamma=1"])
    assert fewer.acceptance(1).unconditional.tolist() == [[0.5]]
    with pytest.raises(ScenarioError, match="states 2 draft positions and gamma is 4"):
        override(measured, ["speculation.gamma=4"])


RULE = "speculation.acceptance.extend=last_ratio"


@pytest.mark.parametrize("sets", [[RULE, "speculation.gamma=4"], ["speculation.gamma=4", RULE]])
def test_a_rule_beside_it_leaves_the_gamma_of_an_acceptance_length(sets: list[str]) -> None:
    """τ 1.75 at γ 2 is α .5, and goes on as 1.9375 at γ 4, not as τ 1.75 there."""
    measured = toy("speculation.acceptance={acceptance_length: 1.75}")
    both = override(measured, sets)
    assert both.acceptance(4).tokens_per_round(4) == pytest.approx(1.9375)


@pytest.mark.parametrize(
    ("acceptance", "way"),
    [
        ("{acceptance_length: 1.75}", f"or a rule: `--set {RULE}`"),
        ("{conditional: [.5, .5]}", f"or a rule: `--set {RULE}`"),
        ("{recorded: [0, 2, 1]}", "4 positions, or a smaller γ"),
        (
            "{mixture: [{weight: 1, alpha: .5}, {weight: 1, conditional: [.5, .5]}]}",
            "`--set speculation.acceptance.mixture.1.extend=last_ratio`",
        ),
    ],
)
def test_too_few_positions_name_the_whole_setting(acceptance: str, way: str) -> None:
    scenario = toy(f"speculation.acceptance={acceptance}")
    with pytest.raises(ScenarioError) as refused:
        override(scenario, ["speculation.gamma=4"])
    assert way in str(refused.value)
    if "--set" in way:
        setting = str(refused.value).partition("--set ")[2].rpartition("--set ")[2]
        override(scenario, [setting.partition("`")[0], "speculation.gamma=4"])


def test_switching_speculation_off_needs_nothing_else() -> None:
    plain = toy("speculation.method=none")
    assert (plain.gamma, plain.verify_width) == (0, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speculation.gama=3", "--set speculation.gama=3: speculation.gama: unknown key"),
        ("gamma", "--set gamma: `gamma` sets nothing"),
        ("=3", "--set =3: `=3` sets nothing"),
        ("a..b=3", "--set a..b=3: `a..b=3` sets nothing"),
        ("draft.step=[", "--set draft.step=[: is not YAML"),
        ("draft.step=20", "--set draft.step=20: draft.step: 20 has no unit"),
        (
            "speculation.policy.by_batch.7=[1, 2, 3]",
            "--set speculation.policy.by_batch.7=[1, 2, 3]: speculation.policy",
        ),
    ],
)
def test_a_faulty_set_is_named(text: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        toy(text)
    assert str(caught.value).startswith(expected)


def test_an_index_beyond_a_list_is_refused() -> None:
    listed = toy("speculation.acceptance.conditional=[.8, .7]")
    with pytest.raises(ScenarioError, match="conditional is a list of 2"):
        override(listed, ["speculation.acceptance.conditional.2=.6"])


@pytest.mark.parametrize(
    ("sets", "at"),
    [
        (["draft.placement=dedicated"], "--set draft.placement=dedicated"),
        (["seed=3", "draft.placement=shared", "draft.gpus=2"], "--set draft.placement=shared"),
        (["scheduler.max_num_batched_tokens=2"], "--set scheduler.max_num_batched_tokens=2"),
    ],
)
def test_a_contradiction_that_a_setting_makes_points_at_it(sets: list[str], at: str) -> None:
    """The scenario alone is right: whatever field is at fault, the setting brought it."""
    with pytest.raises(ScenarioError) as told:
        load("toy-20ms", sets)
    assert [fault.file for fault in told.value.faults] == [at]


def test_a_contradiction_of_the_file_stays_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "target: {round: 100 ms}\ndraft: {placement: dedicated}\nspeculation:\n"
        "  {method: draft_model, gamma: 2, acceptance: {alpha: 0.5}}\n"
        "workload: {arrivals: {streams: 1}, output_tokens: 8}\n"
    )
    with pytest.raises(ScenarioError) as told:
        load(file, ["draft.step=1 ms"])
    assert told.value.faults[0].file == str(file)
