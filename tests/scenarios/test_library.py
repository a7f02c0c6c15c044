"""The bundled scenarios load, say where their numbers are from, and are answered at once."""

import math

import pytest

from specplan.scenarios.closed_form import operating_point, predict
from specplan.scenarios.load import bundled, load
from specplan.scenarios.schema import Scenario

NAMES = sorted(bundled())


def bring(name: str) -> Scenario:
    # The trace is the user's own; a Poisson rate stands in for it.
    needs_file = load(name).workload.arrivals.trace is not None
    sets = ["workload.arrivals.rate=4/s", "workload.output_tokens=200"] if needs_file else []
    return load(name, sets)


@pytest.mark.parametrize("name", NAMES)
def test_a_bundled_scenario(name: str) -> None:
    scenario = bring(name)
    assert scenario.name == name
    assert scenario.description.endswith(".")
    assert scenario.record.gaps() == []
    found = predict(scenario)
    assert 0 < float(found.speedup) <= float(found.speedup_perfect_draft) + 1e-12
    assert math.isfinite(float(found.generation_s))
    assert not operating_point(scenario).saturated


def test_the_seed_cases_are_those_of_the_model_reference() -> None:
    assert {"toy-20ms", "toy-50ms"} <= set(NAMES)
    toy = load("toy-20ms")
    assert (toy.gamma, toy.seed, toy.draft.step.constant) == (2, 1, 0.02)
    assert load("toy-50ms").draft.step.constant == 0.05
