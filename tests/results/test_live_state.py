"""Sliders to settings and to the URL and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specplan.results.live.controls import controls, deepest
from specplan.results.live.state import State, command, named, query, read, start
from specplan.results.live.state import settings as moved_settings
from specplan.results.live.view import Base, View
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

NAMES = ("toy-20ms", "llama31-8b-eagle3-h100", "llama31-8b-ngram-h100", "shared-draft-pool-70b")


def state_of(base: Base, **values: float) -> State:
    own = start(base.scenario, base.controls)
    renamed = {path.replace("__", "."): value for path, value in values.items()}
    return State({**own.values, **renamed}, own.groups)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_moved_is_the_scenario_itself(name: str) -> None:
    base = Base.read(name)
    view = View(base, start(base.scenario, base.controls))
    assert view.sets == []
    assert view.command() == f"specplan predict {name}"
    assert query(name, base.controls, view.state, base.scenario) == f"?scenario={name}"


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=15)
def test_url_and_command_line_lead_to_the_same_state(name: str, data: st.DataObject) -> None:
    base = Base.read(name)
    values = {}
    for control in base.controls:
        step = data.draw(st.integers(0, 20), label=control.path)
        value = control.least + step * (control.most - control.least) / 20
        values[control.path] = float(round(value) if control.step == 1 else round(value, 6))
    groups = {"acceptance": data.draw(st.sampled_from(["alpha", "positions"])),
              "load": data.draw(st.sampled_from(["streams", "rate"]))}  # fmt: skip
    state = State(values, groups)
    url = query(name, base.controls, state, base.scenario)
    back = read(url, base.scenario, base.controls)
    assert back.ignored == ()
    sets = moved_settings(base.scenario, base.controls, state)
    assert moved_settings(base.scenario, base.controls, back) == sets
    try:
        view = View(base, state)
    except ScenarioError:
        return
    assert load(name, sets) == view.scenario


def test_the_seed_case_by_slider() -> None:
    """d = 50 ms: 114.2857 ms per token, 0.875x (MODEL.md § 3)."""
    base = Base.read("toy-20ms")
    view = View(base, state_of(base, draft__step=50.0))
    assert view.sets == ["draft.step=50 ms"]
    assert dict(view.facts)["Time per token"] == "114.29 ms"
    assert dict(view.facts)["Speedup"] == "0.875x"


def test_a_fitted_cost_that_is_moved_is_called_assumed() -> None:
    base = Base.read("llama31-8b-eagle3-h100")
    view = View(base, state_of(base, **{"target.round.per_token": 0.05}))
    cost = view.scenario.target_round()
    assert (cost.provenance, cost.source) == ("assumed", "changed on the live page")
    assert cost.coefficients[0] == pytest.approx(5.886e-3)


def test_the_largest_gamma_follows_the_acceptance() -> None:
    scenario = load("llama31-8b-eagle3-h100")  # states five positions
    assert [deepest(scenario, kind) for kind in ("file", "positions", "alpha")] == [5, 8, 12]


@given(st.text(max_size=300))
def test_no_text_is_too_odd_for_a_url(text: str) -> None:
    scenario = load("toy-20ms")
    made = controls(scenario)
    state = read(text, scenario, made)
    moved_settings(scenario, made, state)
    named(text)


@pytest.mark.parametrize(
    "path",
    ["workload.arrivals.trace", "target.round.table", "target.round.roofline.model", "name",
     "speculation.acceptance.recorded_file"],
)  # fmt: skip
def test_a_url_names_no_file(path: str) -> None:
    scenario = load("toy-20ms")
    state = read(f"?{path}=/etc/passwd", scenario, controls(scenario))
    assert moved_settings(scenario, controls(scenario), state) == []
    assert state.ignored == (f"`{path}` has no slider here",)


@pytest.mark.parametrize("value", ["nan", "inf", "-1 ms", "1e99 ms", "<script>", "", "9" * 400])
def test_values_out_of_reach_stay_as_they_were(value: str) -> None:
    scenario = load("toy-20ms")
    state = read(f"?draft.step={value}", scenario, controls(scenario))
    assert state.values["draft.step"] == 20.0
    assert len(state.ignored) == 1


def test_a_command_is_quoted_for_a_shell() -> None:
    assert command("my file.yaml", ["name='; rm -rf /"]) == (
        "specplan predict 'my file.yaml' --set 'name='\"'\"'; rm -rf /'"
    )


def test_a_table_is_replaced_as_a_whole(tmp_path: Any) -> None:
    table = tmp_path / "costs.csv"
    table.write_text("batch,width,ms\n1,1,10\n1,4,12\n8,1,11\n8,4,14\n", encoding="utf-8")
    sets = [f"target.round.table={table}", "speculation.gamma=2", "workload.prompt_tokens=0"]
    base = Base.read("toy-20ms", sets)
    view = View(base, state_of(base, **{"target.round.per_token": 1.0}))
    assert view.scenario.target.round.kind == "linear"
    assert view.scenario.target.round.linear is not None
    assert view.scenario.target.round.linear.base == pytest.approx(0.0113333333, rel=1e-3)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("gamma", "speculation.gamma"),
        ("alpha", "speculation.acceptance.alpha"),
        ("speculation.gama", "speculation.gamma"),
    ],
)
def test_a_key_without_a_slider_names_the_one_that_is_meant(key: str, meant: str) -> None:
    toy = load("toy-20ms")
    (says,) = read(f"?{key}=3", toy, controls(toy)).ignored
    assert says == f"`{key}` has no slider here (did you mean `{meant}`?)"
