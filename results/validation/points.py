"""Every measured point beside its prediction, with what was given for it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.results.validation.conditions import (
    MORE_IS_BETTER,
    measured,
    predicted,
    settings,
    situation,
    token_s,
)
from specplan.results.validation.fitting import fitted_settings
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import override, published
from specplan.scenarios.schema_measured import label

if TYPE_CHECKING:
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_measured import Measured, MeasuredRow, MeasuredSeries

#: What was given, in the order of the table, in a word for totals and in a sentence.
BRIEF = {
    "nothing": "nothing fitted",
    "costs": "costs fitted",
    "acceptance": "acceptance fitted",
    "carried": "costs carried over",
    "simulated": "another simulator",
}
GIVEN = {
    "nothing": "nothing fitted: every input is stated by the source",
    "costs": "costs fitted on other rows of the same system",
    "acceptance": "acceptance fitted on other rows (the source states none)",
    "carried": "costs carried over from another model or GPU",
    "simulated": "another simulator with the same inputs (no measurement)",
}


@dataclass(frozen=True)
class Point:
    """One row with its prediction; values in the unit of its series.

    `low`, `high`: the measured value less and plus its reading error. `speedup_measured`,
    `speedup_predicted`: over plain decoding, None where the source gives no plain speed.
    """

    scenario: str
    series: MeasuredSeries
    row: MeasuredRow
    source: str
    given: str
    predicted: float
    low: float
    high: float
    tolerance: float
    speedup_measured: float | None
    speedup_predicted: float | None

    @property
    def measured(self) -> float:
        """The value as printed."""
        return self.row.value

    @property
    def label(self) -> str:
        """Name of the row within its series."""
        return label(self.row)

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1

    @property
    def within(self) -> bool:
        """Whether the prediction is inside the stated tolerance."""
        return abs(self.error) <= self.tolerance

    @property
    def tested(self) -> bool:
        """Whether the point was predicted, not fitted."""
        return self.row.role == "test"

    @property
    def better(self) -> int:
        """1 where more is better, −1 where less is."""
        return 1 if self.series.quantity_of(self.row) in MORE_IS_BETTER else -1


def points_of(scenario: Scenario) -> list[Point]:
    """Fit and predict every series of a scenario's measured block, fit rows included.

    Raises ScenarioError: no block, or rows that cannot be fitted or predicted.
    """
    block = scenario.measured
    if block is None:
        wrong = "nothing measured in it"
        right = f"a `measured` block (docs/scenario.md), or one of: {', '.join(published())}"
        raise ScenarioError(Fault(wrong, right, scenario.name))
    base = scenario.model_copy(update={"measured": None})
    return [point for series in block.series for point in _series(series, base, block)]


def given(series: MeasuredSeries) -> str:
    """Say which of GIVEN the series is."""
    if series.simulated:
        return "simulated"
    if series.carried:
        return "carried"
    return {"nothing": "nothing", "solve": "acceptance"}.get(series.fit, "costs")


def _series(series: MeasuredSeries, base: Scenario, block: Measured) -> list[Point]:
    reading = series.digitisation_error
    reading = block.digitisation_error if reading is None else reading
    source = f"{block.source}{', ' if series.where else ''}{series.where}"
    found = []
    with tempfile.TemporaryDirectory(prefix="specplan-") as folder:
        system = override(base, series.set)
        fitted = override(system, fitted_settings(series, system, Path(folder)))
        for row in series.rows:
            value = predicted(series, row, fitted)
            over_plain = _speedups(series, row, fitted, value)
            found.append(
                Point(
                    scenario=base.name,
                    series=series,
                    row=row,
                    source=source,
                    given=given(series),
                    predicted=value / series.unit_s(row),
                    low=row.value * (1 - reading),
                    high=row.value * (1 + reading),
                    tolerance=series.tolerance if row.tolerance is None else row.tolerance,
                    speedup_measured=over_plain[0],
                    speedup_predicted=over_plain[1],
                )
            )
    return found


def _speedups(
    series: MeasuredSeries, row: MeasuredRow, base: Scenario, value: float
) -> tuple[float | None, float | None]:
    """Measured and predicted speedup over what the source compares with."""
    quantity = series.quantity_of(row)
    if quantity in ("speedup", "answer_speedup", "throughput_ratio"):
        return measured(series, row), value
    if quantity == "mean_e2el" or row.gamma == 0 or not series.plain_known:
        return None, None
    here = situation(base, settings(row))
    plain = float(here.prediction.baseline_tpot_s)
    return plain / token_s(series, row, base), float(here.prediction.speedup)
