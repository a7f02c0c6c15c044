"""Why a simulation and the closed form differ: the parts of the gap, in milliseconds and words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results import metrics
from specplan.results.prediction import prediction_json
from specplan.results.tables import columns, duration, milliseconds, percent
from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from specplan.models.speedup import Prediction
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.sim.records import Run

NEGLIGIBLE_S = 5e-8  # steps below this are not shown
EQUAL = 5e-5  # figures that differ by less are equal in the digits shown


@dataclass(frozen=True)
class Gap:
    """The closed form beside a run: steps (name, seconds, why) that lead from one to the other."""

    steps: tuple[tuple[str, float, str], ...]
    sentences: tuple[str, ...]
    json: dict[str, Any]

    def table(self) -> Table:
        """Lay the steps out, the first and the last as levels, those between as differences."""
        levels = {i for i, step in enumerate(self.steps) if i == 0 or step[0] == "simulated"}
        rows = [
            (name, milliseconds(s) if i in levels else _signed(s), why)
            for i, (name, s, why) in enumerate(self.steps)
            if i in levels or abs(s) >= NEGLIGIBLE_S
        ]
        table = columns(("time per output token", "", ""), rows)
        table.columns[2].justify, table.columns[2].no_wrap = "left", False
        return table


def explain(run: Run, figures: Mapping[str, Any]) -> Gap:
    """Split simulated mean TPOT − closed form into clipping, batch growth, prefill and a rest.

    The closed form of one request alone with an endless output is R/τ. Clipping is the exact finite
    recursion at the mean length against it; batch growth the same at the batch that requests saw
    (Σ b² t / Σ b t); prefill the share of busy time that decoding sequences wait for prompts; the
    rest is what none of these accounts for. Queueing delays the first token and is told apart.
    """
    point = operating_point(run.scenario)
    alone = replace(point, batch=1.0)
    seen = replace(point, batch=mean_batch(run))
    base, batched = predict_at(run.scenario, alone), predict_at(run.scenario, seen)
    planned = predict_at(run.scenario, point)
    start, finite, grown = (
        float(base.tpot_s),
        _finite_tpot_s(run, base, alone),
        _finite_tpot_s(run, batched, seen),
    )
    prefill = prefill_share(run)
    waits = grown * prefill / (1 - prefill) if prefill < 1 else 0.0
    mean = figures["mean_tpot_ms"]
    steps = [
        ("closed form, alone", start, f"R/τ = {milliseconds(float(base.round_s))} / "
         f"{float(base.tokens_per_round):.4g} tokens"),
        ("clipping", finite - start, "last rounds draft less; the first chunk is in TTFT"),
        ("batch growth", grown - finite, f"requests see a batch of {seen.batch:.3g}"),
        ("prefill", waits, f"{percent(prefill)} of busy time goes to prompts"),
    ]  # fmt: skip
    if mean is not None:
        rest = mean / 1e3 - sum(step[1] for step in steps)
        steps += [
            ("rest", rest, _causes(run, figures, point)),
            ("simulated", mean / 1e3, _interval_words(figures)),
        ]
    return Gap(
        tuple(steps),
        tuple(_sentences(run, figures, planned, point)),
        {
            **{name.replace(", ", "_").replace(" ", "_") + "_s": s for name, s, _ in steps},
            "batch_seen": seen.batch,
            "planned_batch": point.batch,
            "planned_tpot_s": float(planned.tpot_s),
            "prediction": prediction_json(planned),
        },
    )


def _causes(run: Run, figures: Mapping[str, Any], point: OperatingPoint) -> str:
    """Name what can make up the rest in this scenario: what varies in it, and luck."""
    scenario = run.scenario
    lengths = (scenario.output_tokens, scenario.prompt_tokens)
    varies = []
    if scenario.workload.classes or any(length.fixed is None for length in lengths):
        varies.append("lengths")
    if _depends_on_context(run, point):
        varies.append("context")
    if np.count_nonzero(run.batch_time_s[1:]) > 1:
        varies.append("batch")
    says = []
    if varies:
        listed = " and ".join(filter(None, (", ".join(varies[:-1]), varies[-1])))
        plural = len(varies) > 1 or varies == ["lengths"]
        says.append(
            f"{listed} {'vary' if plural else 'varies'} around "
            f"{'their means' if plural else 'its mean'}"
        )
    if figures["drafted_tokens"]:
        says.append(f"luck over {figures['completed']:,} requests")
    return "; ".join(says) or "what the closed form leaves out"


def _depends_on_context(run: Run, point: OperatingPoint) -> bool:
    """Tell whether a round costs more when more tokens are cached."""
    try:
        near, far = (
            float(predict_at(run.scenario, replace(point, context_tokens=c), finite=False).round_s)
            for c in (point.context_tokens, 0.5 * point.context_tokens)
        )
    except ScenarioError:  # a table over contexts that does not go so low
        return True
    return near != far


def mean_batch(run: Run) -> float:
    """Batch as a running request sees it: Σ b² t / Σ b t over the time t at each size b, or 1."""
    sizes = np.arange(len(run.batch_time_s), dtype=np.float64)
    weight = float(sizes @ run.batch_time_s)
    return max(1.0, float(sizes**2 @ run.batch_time_s) / weight) if weight > 0 else 1.0


def prefill_share(run: Run) -> float:
    """Share of the replicas' busy time that goes to prompts."""
    replicas = [phases for gpu, phases in run.phases.items() if gpu.startswith("replica")]
    busy = sum(s for phases in replicas for phase, s in phases.items() if phase != "idle")
    return sum(phases.get("prefill", 0.0) for phases in replicas) / busy if busy > 0 else 0.0


def _finite_tpot_s(run: Run, prediction: Prediction, point: OperatingPoint) -> float:
    """TPOT of the exact finite output: what is left after the first chunk, per further token."""
    generation, rounds = float(prediction.generation_s), float(prediction.rounds)
    if not isfinite(generation) or rounds <= 0:
        return float(prediction.tpot_s)
    tokens = float(prediction.baseline_generation_s) / float(prediction.baseline_tpot_s)
    if _has_prompts(run):  # the prefill pass made the first token, `tokens` are the n − 1 others
        return generation / tokens
    if tokens <= 1:
        return float(prediction.tpot_s)
    return (generation - _first_round_s(run, prediction, point, round(tokens))) / (tokens - 1)


def _first_round_s(run: Run, prediction: Prediction, point: OperatingPoint, tokens: int) -> float:
    """Seconds of the first round: it drafts min(γ, n − 1) tokens, as a short output clips it."""
    drafted = min(point.gamma, tokens - 1)
    if drafted == point.gamma:
        return float(prediction.round_s)
    at = Priced(run.scenario, point.context_tokens)
    drafting, full = at.figures.drafting[drafted], at.figures.fully_accepted[drafted]
    return float(sum(at.costs(point.batch, point.gamma).parts(drafted, drafting, full)))


def _has_prompts(run: Run) -> bool:
    if run.tally is not None:
        return run.tally.prompt_tokens > 0
    return bool(np.any(run.requests["prompt_tokens"] > 0))


def _sentences(
    run: Run, figures: Mapping[str, Any], planned: Prediction, point: OperatingPoint
) -> list[str]:
    says = [_agreement(run, figures, planned, point)]
    tally = metrics.tallied(run)
    wait, whole = tally.queue_s, tally.queue_s + tally.service_s
    if figures["saturated"]:
        says.append(
            "Queueing: the load is above what the replicas can serve; no closed form holds."
        )
    elif tally.completed and wait > 1e-3 * whole:
        says.append(
            f"Queueing: a request waits {duration(wait / tally.completed)} for admission, "
            f"{percent(wait / whole)} of its time in the system; the closed form has no queue."
        )
    if figures["preemptions"]:
        says.append(f"Memory: {figures['preemptions']:,} preemptions made requests start again.")
    left_out = [note for note in point.notes if "operations factor" not in note]  # not of time
    return says + [f"Closed form: {note}." for note in left_out]


def _agreement(
    run: Run, figures: Mapping[str, Any], planned: Prediction, point: OperatingPoint
) -> str:
    mean, ends = figures["mean_tpot_ms"], figures["mean_tpot_ms_ci95"]
    if mean is None:
        return "There is no steady-state TPOT to hold against the closed form."
    predicted = 1e3 * _finite_tpot_s(run, planned, point)
    says = (
        f"For outputs of this length at the batch it expects ({point.batch:.3g}), the closed form "
        f"gives {predicted:.4g} ms"
    )
    if not predicted > 0:
        return "The closed form has no time per token for so short an answer."
    off = mean / predicted - 1
    if abs(off) < EQUAL:
        return f"{says}: equal to the simulation."
    if ends and ends[0] <= predicted <= ends[1]:
        return f"{says}: inside the simulated interval."
    text = f"{says}; the simulation is {_percents(off)} off it."
    return text if ends else f"{text[:-1]}, and has too few requests to tell whether that is luck."


def _interval_words(figures: Mapping[str, Any]) -> str:
    ends = figures["mean_tpot_ms_ci95"]
    if not ends:
        return "mean TPOT, too few requests for an interval"
    if ends[1] - ends[0] < 2 * EQUAL * ends[1]:
        return "mean TPOT; its 95 % interval is narrower than these digits"
    return f"mean TPOT, 95 % interval {ends[0]:.4g} … {ends[1]:.4g} ms"


def _percents(share: float) -> str:
    """Write a signed difference with a digit that is not zero.

    >>> _percents(-0.016), _percents(0.0002)
    ('-1.6 %', '+0.02 %')
    """
    return f"{100 * share:+.{1 if abs(share) >= 5e-4 else 2}f} %"


def _signed(seconds: float) -> str:
    text = milliseconds(abs(seconds))
    return ("−" if seconds < 0 else "+") + text
