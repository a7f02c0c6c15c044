"""Service level objectives of a plan: read from text or a scenario, judged on a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.results import metrics
from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.units import (
    UnitError,
    format_duration,
    parse_duration,
    parse_fraction,
    parse_rate,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

METRICS = ("ttft", "tpot", "itl", "e2el", "queue")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
FORM = "`ttft p99 < 500 ms`, `queue mean < 1 s`, `goodput >= 99 %`"
_TEXT = re.compile(r"\s*(\w+?)(?:[\s_]+(\w+))?\s*(<=|<|≤|>=|>|≥)\s*(.+)")
WINDOW = (0.1, 0.9)  # requests before fill the system, those after keep it full


@dataclass(frozen=True)
class Objective:
    """One limit: `metric` (ttft, tpot, itl, e2el, queue; seconds) by `statistic`, or goodput.

    For goodput `limit` is the least share of requests that meet the scenario's request limits.
    """

    metric: str
    statistic: str
    limit: float

    @property
    def name(self) -> str:
        """Name it as figures are named: ttft_p99, goodput."""
        return "goodput" if self.metric == "goodput" else f"{self.metric}_{self.statistic}"

    def __str__(self) -> str:
        if self.metric == "goodput":
            return f"goodput ≥ {100 * self.limit:g} %"
        return f"{self.metric} {self.statistic} ≤ {format_duration(self.limit)}"

    def ratio(self, figure: NDArray[np.float64]) -> NDArray[np.float64]:
        """Figure over limit: at most 1 when met; for goodput the failing share over the allowed.

        >>> Objective("goodput", "", 0.99).ratio(np.array([0.98])).round(9).tolist()
        [2.0]
        """
        if self.metric != "goodput":
            return figure / self.limit
        allowed = 1 - self.limit
        if allowed > 0:
            return (1 - figure) / allowed
        return np.where(figure < 1, np.inf, 0.0)


def parse_objective(text: str) -> Objective:
    """Read an objective as people write it. Raises ScenarioError.

    >>> str(parse_objective("ttft p99 < 500 ms")), str(parse_objective("goodput >= 99 %"))
    ('ttft p99 ≤ 500 ms', 'goodput ≥ 99 %')
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _fault(text, "is no objective", FORM)
    metric, statistic, sign, value = match[1].lower(), (match[2] or "").lower(), match[3], match[4]
    wants_less = metric != "goodput"
    if (sign[0] in "<≤") != wants_less:
        raise _fault(text, f"{metric} has a limit from {'above' if wants_less else 'below'}", FORM)
    try:
        if metric == "goodput":
            return Objective("goodput", "", parse_fraction(value.strip()))
        if metric not in METRICS or statistic not in STATISTICS:
            wrong = metric if metric not in METRICS else statistic or "no statistic"
            raise _fault(text, f"`{wrong}` is not known", _known(wrong, metric in METRICS))
        limit = parse_duration(value.strip())
    except UnitError as error:
        raise _fault(text, error.wrong, error.right) from error
    if not limit > 0:
        raise _fault(text, "no figure meets a limit of 0", "a duration above zero")
    return Objective(metric, statistic, limit)


def _known(wrong: str, is_statistic: bool) -> str:
    """List what may stand there, the closest first where one is close."""
    names = STATISTICS if is_statistic else (*METRICS, "goodput")
    close = nearest(wrong, names)
    what = f"{'a statistic' if is_statistic else 'a metric'}: {', '.join(names)}; {FORM}"
    return f"did you mean `{close}`? {what}" if close else what


def objectives_of(scenario: Scenario, texts: Sequence[str] = ()) -> tuple[Objective, ...]:
    """Take the objectives of a plan: those written, or else the scenario's own.

    Limits without a suffix (`ttft: 500 ms`) hold for single requests: 99 % of the requests must
    meet them. Raises ScenarioError when there are none, or goodput has no request limits.
    """
    found = [parse_objective(text) for text in texts]
    if not found:
        for name, limit in scenario.slo.targets().items():
            metric, _, statistic = name.partition("_")
            found.append(Objective(metric, statistic, limit))
        stated = scenario.slo.model_dump(exclude_none=True)
        if any(name in stated for name in ("ttft", "tpot", "e2el")):
            found.append(Objective("goodput", "", 0.99))
    if not found:
        right = "--slo 'ttft p99 < 500 ms', or `slo:` in the scenario"
        raise ScenarioError(Fault("there is no objective to plan for", right, field="slo"))
    if any(o.metric == "goodput" for o in found) and not scenario.slo.request_limits():
        right = "`slo: {ttft: 500 ms}` in the scenario, or --set slo.ttft='500 ms'"
        raise ScenarioError(Fault("goodput needs limits for single requests", right, field="slo"))
    return tuple(found)


def parse_rate_option(text: str | None) -> float | None:
    """Read a rate in requests per second, `40/s`; None stays None. Raises ScenarioError.

    >>> parse_rate_option("120/min")
    2.0
    """
    if text is None:
        return None
    try:
        rate = parse_rate(text)
    except UnitError as error:
        raise ScenarioError(Fault(error.wrong, error.right, file="--rate")) from error
    if not 0 < rate < float("inf"):
        raise ScenarioError(Fault(f"`{text}` is no load", "a finite rate above 0", file="--rate"))
    return rate


def measure(run: Run, objectives: Sequence[Objective] = ()) -> dict[str, float]:
    """Take the figures a plan needs: seconds, tokens/s, and one entry an objective.

    Counted are the middle 80 % of the requests; `prompt_all`, `output_all` and `arrivals_per_s` are
    means over all of them. Everything about latency is inf in a run without
    steady state. `completed_share` is of those counted.
    """
    rows = run.requests
    count = len(rows["status"])
    place = np.arange(count)
    inside = (place >= WINDOW[0] * count) & (place < WINDOW[1] * count)
    done = rows["status"] == 0
    latency = {key: values[inside[done]] for key, values in metrics.latencies(run).items()}
    figures = {
        f"{name}_mean": _mean(latency[f"{name}_s"]) for name in ("ttft", "tpot", "e2el", "queue")
    }
    for objective in objectives:
        figures[objective.name] = _figure(run, latency, int(inside.sum()), objective)
    if run.saturated:
        lost = {o.name for o in objectives if o.metric == "goodput"}
        figures = {name: 0.0 if name in lost else float("inf") for name in figures}
    span_s = float(rows["arrival_s"][-1] - rows["arrival_s"][0])
    tokens = float(rows["output_tokens"][done].sum())
    return {
        **figures,
        "throughput": tokens / run.duration_s if run.duration_s > 0 else 0.0,
        "tokens_per_request": _mean(latency["output_tokens"]),
        "prompt_all": float(rows["prompt_tokens"].mean()),
        "output_all": float(rows["output_tokens"].mean()),
        "arrivals_per_s": (count - 1) / span_s if span_s > 0 else 0.0,
        "completed_share": float(np.mean(done[inside])) if inside.any() else 0.0,
    }


def _figure(
    run: Run, latency: dict[str, NDArray[np.float64]], counted: int, objective: Objective
) -> float:
    if objective.metric == "goodput":
        met = np.ones(len(latency["e2el_s"]), dtype=bool)
        for metric, limit_s in run.scenario.slo.request_limits().items():
            value = latency[f"{metric}_s"]
            met &= (value <= limit_s) | np.isnan(value)
        return float(np.count_nonzero(met)) / max(1, counted)
    quantile = None if objective.statistic == "mean" else float(objective.statistic[1:]) / 100
    if objective.metric == "itl":
        if quantile is not None:
            return run.itl.quantile(quantile)
        return float(latency["gap_s"].sum() / max(1.0, latency["gaps"].sum()))
    values = latency[f"{objective.metric}_s"]
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return float("nan")
    return float(values.mean() if quantile is None else np.quantile(values, quantile))


def _mean(values: NDArray[np.float64]) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else float("nan")


def _fault(text: str, wrong: str, right: str) -> ScenarioError:
    return ScenarioError(Fault(f"`{text}`: {wrong}", right, file="--slo"))
