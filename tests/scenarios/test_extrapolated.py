"""The band of an acceptance that a rule continues, in the figures people read."""

import pytest

from specplan.scenarios.closed_form import operating_point, predict
from specplan.scenarios.extrapolated import Band, band, stated_positions
from specplan.scenarios.load import load
from specplan.scenarios.schema import Scenario


def stating(text: str, *sets: str) -> Scenario:
    return load("toy-20ms", [f"speculation.acceptance={text}", *sets])


def made(scenario: Scenario, *gammas: int) -> Band:
    found = band(scenario, operating_point(scenario), gammas)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("{alpha: 0.5}", float("inf")),
        ("{unconditional: [.5, .3], extend: iid}", 2),
        ("{histogram: [2, 1, 1], extend: plateau}", 2),
        ("{acceptance_length: 1.6, at_gamma: 2, extend: iid}", 2),
        ("{mixture: [{weight: 1, alpha: .5}, {weight: 1, conditional: [.5, .4], extend: iid}]}", 2),
    ],
)
def test_where_the_statement_ends(text: str, stated: float) -> None:
    assert stated_positions(stating(text)) == stated


def test_the_band_is_around_the_figure_and_grows() -> None:
    scenario = stating("{unconditional: [.7, .45], extend: plateau}", "speculation.gamma=6")
    found = made(scenario, 2, 3, 6)
    assert found.gamma.tolist() == [3, 6]  # at γ 2 nothing is extrapolated
    assert (found.stated, found.rules) == (2, ("plateau",))
    tau = float(predict(scenario).tokens_per_round)
    assert found.tokens_per_round[1, 0] < tau < found.tokens_per_round[1, 1]
    assert found.speedup[1, 0] < float(predict(scenario).speedup) < found.speedup[1, 1]
    width = found.tokens_per_round[:, 1] - found.tokens_per_round[:, 0]
    assert width[0] < width[1]


def test_one_tau_bounds_the_rest_by_its_mean() -> None:
    # τ 2.5 at γ 2: A_i ≤ .75 beyond, and 0 at least; at γ 4 that is 2.5 to 4.0
    scenario = stating("{acceptance_length: 2.5, at_gamma: 2, extend: iid}", "speculation.gamma=4")
    found = made(scenario, 4)
    assert found.tokens_per_round[0].tolist() == pytest.approx([2.5, 4.0])
    assert "do not say how acceptance falls" in found.warnings[0]
    # 180 ms a round (V 100, d 20): speedup τ·100/180
    assert found.speedup[0].tolist() == pytest.approx([2.5 / 1.8, 4 / 1.8])


def test_one_position_is_warned_of() -> None:
    found = made(stating("{unconditional: [.7], extend: iid}"), 2)
    assert found.tokens_per_round[0].tolist() == pytest.approx([1.7, 2.4])
    assert "iid) overestimated" in found.warnings[0]


def test_nothing_is_extrapolated_where_all_is_stated() -> None:
    scenario = stating("{unconditional: [.7, .5]}")
    assert band(scenario, operating_point(scenario), [0, 1, 2]) is None


def test_classes_have_a_band_together() -> None:
    scenario = load(
        "toy-20ms",
        [
            "speculation.gamma=3",
            "workload.classes={a: {acceptance: {conditional: [.5, .5], extend: last_ratio}}, "
            "b: {acceptance: {alpha: .9}}}",
        ],
    )
    found = made(scenario, 3)
    assert (found.stated, found.rules) == (2, ("last_ratio",))
    tau = float(predict(scenario).tokens_per_round)
    assert found.tokens_per_round[0, 0] < tau < found.tokens_per_round[0, 1]
