"""A measured row as a scenario, and what the model says of it in the row's own quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import override
from specplan.scenarios.schema_measured import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.models.speedup import Prediction
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_measured import MeasuredRow, MeasuredSeries

#: Quantities of which more is better.
MORE_IS_BETTER = frozenset(
    {"speedup", "answer_speedup", "throughput", "user_throughput", "throughput_ratio"}
)


@dataclass(frozen=True)
class Situation:
    """The scenario of one row, where the closed form evaluates it, and what it gives there."""

    scenario: Scenario
    point: OperatingPoint
    prediction: Prediction

    @property
    def tokens_per_round(self) -> float:
        """τ of the row's scenario."""
        return float(self.prediction.tokens_per_round)


def situation(base: Scenario, sets: Sequence[str]) -> Situation:
    """Apply settings as `--set` does and compute the closed form; raises ScenarioError."""
    scenario = override(base, sets)
    point = operating_point(scenario)
    return Situation(scenario, point, predict_at(scenario, point))


def settings(row: MeasuredRow) -> list[str]:
    """Say the conditions of a row as `--set` has them.

    >>> from specplan.scenarios.schema_measured import MeasuredRow
    >>> settings(MeasuredRow(value=4.37, gamma=2, tau=2.1))[-1]
    'speculation.acceptance={acceptance_length: 2.1, at_gamma: 2}'
    """
    sets: list[str] = []
    tau = tokens_per_round(row)
    if row.gamma == 0:
        sets.append("speculation.method=none")
    elif row.gamma is not None:
        sets.append(f"speculation.gamma={row.gamma}")
    if row.batch is not None:
        streams = round(row.batch)
        sets += [f"workload.arrivals={{streams: {streams}}}", f"scheduler.max_num_seqs={streams}"]
    if row.context is not None:
        sets.append(f"workload.prompt_tokens={round(row.context)}")
    if tau is not None:
        at = "" if row.gamma is None else f", at_gamma: {row.gamma}"
        sets.append(f"speculation.acceptance={{acceptance_length: {tau:.6g}{at}}}")
    return [*sets, *row.set]


def tokens_per_round(row: MeasuredRow) -> float | None:
    """Give the τ that the row states, itself or as accepted/drafted."""
    if row.rate is not None and row.gamma is not None:
        return 1 + row.rate * row.gamma
    return row.tau


def measured(series: MeasuredSeries, row: MeasuredRow) -> float:
    """Give the measured value in seconds, tokens per second, or as a ratio."""
    return row.value * series.unit_s(row)


def predicted(
    series: MeasuredSeries, row: MeasuredRow, base: Scenario, sets: Sequence[str] = ()
) -> float:
    """Predict the row's quantity in its system, with further settings before the row's own.

    Raises ScenarioError: conditions that the scenario refuses.
    """
    conditions = [*sets, *settings(row)]
    quantity = series.quantity_of(row)
    if quantity == "mean_e2el":
        return simulated_e2el_s(override(base, conditions))
    here = situation(base, conditions)
    match quantity:
        case "speedup":
            return float(here.prediction.speedup)
        case "answer_speedup":
            return float(here.prediction.baseline_generation_s / here.prediction.generation_s)
        case "round":
            return float(here.prediction.round_s)
        case "throughput":
            return here.point.batch / float(here.prediction.tpot_s)
        case "user_throughput":
            return 1 / float(here.prediction.tpot_s)
        case "throughput_ratio":
            other = situation(base, [*conditions, *row.against])
            return float(other.prediction.tpot_s / here.prediction.tpot_s)
        case _:
            return float(here.prediction.tpot_s)


def simulated_e2el_s(scenario: Scenario) -> float:
    """Simulate, and give the mean end-to-end latency in seconds of the requests that were served.

    Of a saturated run it is the mean over a run of this length, as in the measurement.
    """
    import numpy as np

    from specplan.sim.simulate import simulate

    requests = simulate(scenario).requests
    return float(np.nanmean(requests["finish_s"] - requests["arrival_s"]))


def token_s(
    series: MeasuredSeries, row: MeasuredRow, base: Scenario, sets: Sequence[str] = ()
) -> float:
    """Give the seconds per output token of a sequence that the measured value implies.

    A ratio needs what it is a ratio to: the scenario's plain step, or the configuration `against`.
    Raises ScenarioError for a quantity that implies none.
    """
    value, quantity = measured(series, row), series.quantity_of(row)
    conditions = [*sets, *settings(row)]
    match quantity:
        case "tpot":
            return value
        case "user_throughput":
            return 1 / value
        case "throughput":
            return situation(base, conditions).point.batch / value
        case "round":
            return value / situation(base, conditions).tokens_per_round
        case "speedup":
            return float(situation(base, conditions).prediction.baseline_tpot_s) / value
        case "throughput_ratio":
            other = situation(base, [*conditions, *row.against])
            return float(other.prediction.tpot_s) / value
        case _:
            wrong = f"{quantity} is no time of a token"
            raise ScenarioError(Fault(wrong, "fit: solve for it", f"{series.name}: {label(row)}"))
