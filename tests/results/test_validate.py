"""Validation: the code path is the user's own, the totals hold, docs/accuracy.md is current."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from specplan.cli import app
from specplan.models.other_calculators import CALCULATORS, exact
from specplan.results.calibrate.answer import calibrate_answer
from specplan.results.catalogue import list_answer
from specplan.results.validation.answer import every_point, unexplained, validate_answer, value_of
from specplan.results.validation.fitting import calibrate_lines, fitted_settings
from specplan.results.validation.points import Point, points_of
from specplan.results.validation.scores import score, signs, sweeps
from specplan.results.validation.shown import MEDIAN_OWED, P90_OWED, markdown
from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import bundled, load, override, published
from specplan.scenarios.schema_measured import MeasuredSeries

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return every_point()


# the figures owed


def test_costs_fitted_on_other_rows(points: list[Point]) -> None:
    found = score([point for point in points if point.given == "costs"])
    assert found is not None
    assert found.points >= 25
    assert found.median_error <= MEDIAN_OWED
    assert found.p90_error <= P90_OWED
    # and still with those that were fitted on another model or GPU
    all_fitted = score([point for point in points if point.given in {"costs", "carried"}])
    assert all_fitted is not None
    assert all_fitted.p90_error <= P90_OWED


def test_ranking_and_sign(points: list[Point]) -> None:
    chosen = sweeps(points)
    assert sum(sweep.right for sweep in chosen) >= 0.9 * len(chosen)
    assert sum(not sweep.simulated for sweep in chosen) >= 4
    effect = signs([point for point in points if point.given != "simulated"])
    assert effect.right >= 0.95 * effect.points


def test_every_miss_has_a_cause_and_every_cause_a_miss(points: list[Point]) -> None:
    assert [f"{one.scenario} {one.label}" for one in unexplained(points)] == []
    idle = [one for one in points if one.row.cause and one.within]
    assert [f"{one.scenario} {one.label}" for one in idle] == []


@pytest.mark.skipif(not DOCS.parent.is_dir(), reason="docs/ is not in the source distribution")
def test_the_document_is_current(points: list[Point]) -> None:
    # Digits may differ between machines where rows are simulated; words and rows may not.
    says = "run: specplan validate --markdown docs/accuracy.md --force"
    written, made_now = DOCS.read_text(encoding="utf-8"), markdown(points)
    assert NUMBER.sub("#", written) == NUMBER.sub("#", made_now), says
    before, now = (np.array(NUMBER.findall(text), dtype=float) for text in (written, made_now))
    assert np.allclose(before, now, rtol=5e-3, atol=0.2), says


# leave-out: fit rows alone decide


def test_fit_rows_are_met_and_test_rows_change_nothing() -> None:
    scenario = load("eagle1-llama3-8b-vllm")
    rows = points_of(scenario)
    assert max(abs(one.error) for one in rows if not one.tested) < 1e-4
    raw = scenario.model_dump(mode="json", exclude_none=True)
    for row in raw["measured"]["series"][0]["rows"]:
        if row["role"] == "test":
            row["value"] *= 2
    changed = points_of(type(scenario).model_validate(raw))
    assert [one.predicted for one in changed] == [one.predicted for one in rows]


def test_the_path_is_that_of_calibrate_and_predict(tmp_path: Path) -> None:
    """What a user gets by hand from the fit rows is what `validate` reports for the others."""
    scenario = load("eagle1-llama3-8b-vllm")
    assert scenario.measured is not None
    series = scenario.measured.series[0]
    lines, baseline = calibrate_lines(series, scenario.model_copy(update={"measured": None}))
    assert lines == ["gamma=2 tau=2.1 tpot=4.37 ms", "gamma=7 tau=2.47 tpot=5.2 ms"]
    file = tmp_path / "calibrated.yaml"
    calibrate_answer(points=lines, baseline=baseline, output=file)
    sets = ["speculation.gamma=4", "speculation.acceptance={acceptance_length: 2.39, at_gamma: 4}"]
    by_hand = 1e3 * float(predict(load(file, sets)).tpot_s)
    row = next(one for one in points_of(scenario) if one.row.gamma == 4)
    assert row.predicted == pytest.approx(by_hand, rel=1e-6)
    # 7.686 + 4 · 0.74 ms over 2.39, report C04; the fit here is on K = 2 and 7 alone
    assert by_hand == pytest.approx((7.686 + 4 * 0.74) / 2.39, rel=0.01)


@pytest.mark.parametrize(
    "name",
    ["angelslim-qwen3", "eagle1-llama3-8b-vllm", "eagle3-paper", "llamacpp-consumer-gpus",
     "spec-bench", "specbundle-llama33-70b"],
)  # fmt: skip
def test_the_costs_written_in_a_file_are_those_of_its_first_series(
    name: str, tmp_path: Path
) -> None:
    scenario = load(name)
    assert scenario.measured is not None
    sets = fitted_settings(scenario.measured.series[0], scenario, tmp_path)
    fitted = override(scenario, sets)
    assert fitted.target.round.constant == pytest.approx(scenario.target.round.constant, rel=0.005)
    assert fitted.draft.step.constant == pytest.approx(scenario.draft.step.constant, rel=0.005)


def test_a_table_of_rounds_is_interpolated_between_its_batches() -> None:
    rows = {one.label: one for one in points_of(load("gaudi-deepseek-mtp"))}
    # R/T = τ/S at batch 4 and 256, in a straight line at 32
    low, high = 1.8798 / 1.6, 1.8829 / 1.0
    ratio = low + (high - low) * (32 - 4) / (256 - 4)
    assert rows["γ 1, batch 32"].predicted == pytest.approx(1.883 / ratio, rel=1e-5)


def test_fields_are_solved_together() -> None:
    rows = points_of(load("magicdec-a100"))
    assert max(abs(one.error) for one in rows if not one.tested) <= 2e-3


def test_rows_that_cannot_be_fitted_are_named() -> None:
    scenario = load("chinchilla")
    raw = scenario.model_dump(mode="json", exclude_none=True)
    raw["measured"]["series"][0]["rows"][0]["solves"]["between"] = [0.05, 0.1]
    with pytest.raises(ScenarioError, match=r"comes no closer to 1\.92 x than"):
        points_of(type(scenario).model_validate(raw))


def test_without_measurements() -> None:
    with pytest.raises(ScenarioError, match="nothing measured in it"):
        validate_answer(["toy-20ms"])


# totals


def made(**changes: Any) -> Point:
    series = MeasuredSeries.model_validate(
        {
            "name": "a", "quantity": "speedup", "unit": "x", "tolerance": 0.1, "sweep": True,
            "rows": [{"value": changes.pop("measured"), "gamma": changes.pop("gamma", 1)}],
        }
    )  # fmt: skip
    return Point(
        scenario="s", series=series, row=series.rows[0], source="", given="costs",
        low=1.0, high=1.0, tolerance=0.1,
        **{"speedup_measured": None, "speedup_predicted": None, **changes},
    )  # fmt: skip


def test_scores() -> None:
    found = score([made(measured=1.0, predicted=1 + e) for e in (0.01, -0.02, 0.03, -0.2, 0.05)])
    assert found is not None
    assert found.median_error == pytest.approx(0.03)
    assert found.p90_error == pytest.approx(np.quantile([0.01, 0.02, 0.03, 0.2, 0.05], 0.9))
    assert found.within == pytest.approx(0.8)
    assert score([]) is None


def test_a_gamma_within_two_percent_of_the_best_is_right() -> None:
    near = [
        made(measured=1.50, gamma=2, predicted=1.5),
        made(measured=1.48, gamma=3, predicted=1.6),
    ]
    assert [(s.best_measured, s.best_predicted, s.right) for s in sweeps(near)] == [(2, 3, True)]
    far = [
        made(measured=1.50, gamma=2, predicted=1.5),
        made(measured=1.40, gamma=3, predicted=1.6),
    ]
    assert not sweeps(far)[0].right


def test_only_effects_above_five_percent_have_a_sign() -> None:
    effects = [(1.04, 0.9), (1.2, 1.1), (0.8, 1.1)]
    rows = [
        made(measured=1.0, predicted=1.0, speedup_measured=m, speedup_predicted=p)
        for m, p in effects
    ]
    found = signs(rows)
    assert (found.points, found.right) == (2, 1)


# other calculators


@pytest.mark.parametrize(("alpha", "gamma", "ratio"), [(0.5, 1, 0.0), (0.8, 4, 0.1), (1.0, 3, 0.2)])
def test_other_formulas_differ_as_explained(alpha: float, gamma: int, ratio: float) -> None:
    formulas: dict[str, Callable[[float, int, float], float]] = {n: f for n, f, _ in CALCULATORS}
    ours = exact(alpha, gamma, ratio)
    round_cost = gamma * ratio + 1
    assert ours - formulas["bonus token dropped"](alpha, gamma, ratio) == pytest.approx(
        1 / round_cost
    )
    assert ours - formulas["E capped at γ"](alpha, gamma, ratio) == pytest.approx(
        alpha**gamma / round_cost
    )
    assert formulas["progress 1 + αγ"](alpha, gamma, ratio) >= ours - 1e-12
    assert formulas["verify as γ + 1 requests"](alpha, gamma, ratio) <= 1


# the command


def test_the_command(tmp_path: Path) -> None:
    html = tmp_path / "accuracy.html"
    run = CliRunner().invoke(app, ["validate", "chinchilla", "--json", "--html", str(html)])
    assert run.exit_code == 0, run.output
    value = json.loads(run.stdout)
    assert value["totals"]["acceptance"]["points"] == 3
    assert value["unexplained_misses"] == 0
    assert "Every predicted point" in html.read_text(encoding="utf-8")
    text = CliRunner().invoke(app, ["validate", "chinchilla"])
    assert "Acceptance fitted on other rows" in text.stdout
    assert "XSum, greedy" in text.stdout


def test_an_unexplained_miss_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    source = published()["chinchilla"].read_text(encoding="utf-8")
    file.write_text(source.replace("- {value: 5.73}", "- {value: 7.73}"), encoding="utf-8")
    answer = validate_answer([str(file)])
    assert answer.exit_code == 1
    assert answer.json["unexplained_misses"] == 1


def test_json_has_every_point(points: list[Point]) -> None:
    value = value_of(points)
    assert len(value["points"]) == len(points)
    assert all(one["source"] and one["unit"] for one in value["points"])
    assert json.loads(json.dumps(value)) == value


def test_what_has_measurements_is_listed_by_name() -> None:
    for name in ("nosuch", "toy-20ms", "n" * 300):
        with pytest.raises(ScenarioError) as refused:
            validate_answer([name])
        assert all(known in str(refused.value) for known in published())
    listed = list_answer()
    assert set(listed.json["published"]) == set(published())
    assert set(listed.json["scenarios"]) == set(bundled())
