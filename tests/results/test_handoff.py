"""The handoff record: lossy rules are flagged, each input has a label, what is missing is named."""

import pytest

from specplan.results.handoff import acceptance_law, handoff
from specplan.results.prediction import predict_answer
from specplan.scenarios.closed_form import predict
from specplan.scenarios.load import bundled, load

LOSSY = [
    "typical acceptance (ε 0.1)",
    "lossy threshold 0.3",
    "lenience 0.5",
    "relaxed acceptance, top 10",
]
EXACT = [
    "exact rejection sampling",
    "greedy match",
    "not lossy: exact rejection sampling",
    "exact rejection sampling, no threshold",
]


@pytest.mark.parametrize("rule", LOSSY)
def test_lossy_rules_do_not_preserve_the_law(rule: str) -> None:
    preserves, says = acceptance_law(rule)
    assert preserves is False
    assert says.startswith("LOSSY")
    assert rule in says


@pytest.mark.parametrize("rule", EXACT)
def test_exact_rules_preserve_it(rule: str) -> None:
    assert acceptance_law(rule)[0] is True


@pytest.mark.parametrize("rule", [None, "", "as in SGLang; not stated", "ours"])
def test_other_rules_are_not_known_to(rule: str | None) -> None:
    assert acceptance_law(rule)[0] is None


def test_correct_and_worthwhile_are_two_lines() -> None:
    lossy = load("toy-20ms", ["record.acceptance_rule=typical acceptance"])
    found = handoff(lossy, predict(lossy))
    rows = dict(found.rows())
    assert rows["Sampling"].startswith("LOSSY")
    assert rows["Worthwhile"] == "faster than plain decoding, 1.25x"
    answer = predict_answer(lossy, None, force=False)
    assert answer.json["handoff"]["preserves_target_law"] is False
    assert any(note.startswith("LOSSY") for note in answer.notes)
    slow = load("toy-50ms")
    rows = dict(handoff(slow, predict(slow)).rows())
    assert rows["Sampling"].endswith("preserves the target's law, if implemented as stated")
    assert rows["Worthwhile"] == "slower than plain decoding, 0.875x"


def test_what_is_missing_is_named() -> None:
    bare = load("toy-20ms", ["record={}"])
    gaps = handoff(bare, predict(bare)).gaps
    assert "the target's model and revision, and its sampling rules" in gaps
    assert "the acceptance rule" in gaps
    assert "the source of target.round" in gaps
    assert any(gap.startswith("a label for speculation.acceptance") for gap in gaps)


def test_every_input_has_a_label() -> None:
    scenario = load("llama31-8b-eagle3-h100")
    inputs = handoff(scenario, predict(scenario)).inputs
    assert inputs["target.round"][0] == "fitted"
    assert inputs["speculation.acceptance"][0] == "measured"
    assert inputs["workload"][0] == "assumed"
    assert inputs["kv_cache"][0] == "datasheet"


@pytest.mark.parametrize("name", sorted(bundled()))
def test_of_every_bundled_scenario(name: str) -> None:
    if load(name).workload.arrivals.trace is not None:
        pytest.skip("needs the user's own trace")
    scenario = load(name)
    found = handoff(scenario, predict(scenario))
    assert found.preserves_law is not False
    assert dict(found.rows())["Worthwhile"]
