"""A scenario to the closed form: the batch and context it runs at, and the prediction there."""

from __future__ import annotations

import dataclasses
import math
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models import speedup
from specplan.models.cost import constant
from specplan.scenarios.batch import batch_notes
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.offered import offered
from specplan.scenarios.priced import LONGEST_EXACT, Priced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from specplan.models.speedup import Prediction
    from specplan.scenarios.lower import End
    from specplan.scenarios.offered import Offered
    from specplan.scenarios.schema import Scenario

DEFAULT_REQUESTS = 1000


@dataclass(frozen=True)
class OperatingPoint:
    """Where the closed form evaluates the costs, and what it leaves out.

    - batch: sequences that decode together on one replica, as a request sees them
    - context_tokens: mean context of a sequence, prompt + output/2
    - output_tokens: mean output; rounds make all of it, or all but the first token with prompts
    - gamma: γ of a full round at this batch
    - prefill_share: share of an engine's time spent on prompts
    - tpot_s: time per output token with the prompts of others in between
    - requests_per_s: requests that one replica completes
    - load: arrivals over the most a replica completes; None for a closed loop
    - saturated: load ≥ 1: a queue that grows without end
    - notes: assumptions and omissions, in words
    """

    batch: float
    context_tokens: float
    output_tokens: float
    gamma: int
    prefill_share: float
    tpot_s: float
    requests_per_s: float
    load: float | None
    saturated: bool
    notes: tuple[str, ...]


def predict(scenario: Scenario) -> Prediction:
    """Compute the closed form of MODEL.md §3 for a scenario, at its operating point.

    The finite figures are those of an output of mean length, rounded. Raises ScenarioError.

    >>> from specplan.scenarios.load import load
    >>> toy = predict(load("toy-20ms"))
    >>> float(toy.tpot_s.round(9)), float(toy.speedup.round(9))
    (0.08, 1.25)
    """
    return predict_at(scenario, operating_point(scenario))


def predict_at(
    scenario: Scenario,
    point: OperatingPoint,
    *,
    finite: bool = True,
    end: End = "unconditional",
) -> Prediction:
    """Compute the closed form at a given batch, context and γ; raises ScenarioError.

    The exact figures of a `finite` output take a recursion, nearly all of the time of one point.
    `end`: an end of the band of an acceptance that a rule extends.
    """
    at = Priced(scenario, point.context_tokens, end)
    made = round(point.output_tokens) - at.by_prefill
    exact = finite and made <= LONGEST_EXACT
    try:
        found = speedup.predict(
            at.acceptance,
            point.gamma,
            at.costs(point.batch, point.gamma),
            draft_operations_ratio=scenario.draft.operations_ratio or 0.0,
            output_tokens=max(made, 0) if exact else None,
        )
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field=scenario.name)) from None
    if scenario.draft.placement != "parallel" or not point.gamma:
        return found
    return dataclasses.replace(found, break_even_draft_step_s=_parallel_break_even_s(at, point))


def _parallel_break_even_s(at: Priced, point: OperatingPoint) -> NDArray[np.float64]:
    """Draft step at which a round whose drafting runs beside the verifying costs τ·T.

    The shorter of both is hidden, so R(d) is flat until the draft takes longer, then linear in d;
    NaN where R > τ·T even for a free draft.
    """
    from scipy.optimize import brentq  # slow to import, and seldom needed

    gamma = point.gamma
    drafting, full = at.figures.drafting[gamma], at.figures.fully_accepted[gamma]
    priced = copy(at)

    def over_s(draft_step_s: float) -> float:
        priced.draft = constant(draft_step_s)
        costs = priced.costs(point.batch, gamma)
        round_s = float(sum(costs.parts(gamma, drafting, full)))
        return round_s - float(at.figures.tokens[gamma] * costs.step_s)

    if over_s(0.0) > 0:
        return np.array(np.nan)
    longest_s = (gamma + 1) * float(at.costs(point.batch, gamma).step_s)  # τ ≤ γ + 1
    while over_s(longest_s) < 0:  # rounds that do not draft leave more room
        longest_s *= 2
    return np.array(brentq(over_s, 0.0, longest_s))


def operating_point(scenario: Scenario) -> OperatingPoint:
    """Find the batch a request runs in, by Little's law and the arrival theorem.

    With W(b) the seconds a request runs in a batch of b (rounds × R(b), slowed by the prompts of
    the others), λ its arrivals at a replica and Z the think time:
    closed loop: b + Z·b/W(b) = streams; open: b = 1 + λ·W(b), what an arrival finds and itself
    (exact for processor sharing, R ∝ b, and for R independent of b). Both are capped by
    max_num_seqs and by the KV cache.

    >>> from specplan.scenarios.load import load
    >>> operating_point(load("toy-20ms")).batch
    1.0
    """
    try:
        return _located(scenario)
    except ValueError as error:  # a cost that has no answer here, such as beyond a table
        raise ScenarioError(Fault(str(error), field=scenario.name)) from None


def _located(scenario: Scenario) -> OperatingPoint:
    load = offered(scenario)
    context = load.prompt_tokens + load.output_tokens / 2
    at = Priced(scenario, context)
    cap, notes = _cap(scenario, load)
    prompt_s = at.prompt_s(load.prompt_tokens)
    think_s = scenario.workload.arrivals.think_time

    def decoding_s(batch: float) -> float:
        return at.decoding_s(load.output_tokens, batch)

    def running_s(batch: float) -> float:
        return decoding_s(batch) + batch * prompt_s(batch)

    rate, busy = load.rate, None
    if math.isnan(load.streams):
        busy = rate * running_s(cap) / cap if running_s(cap) else 0.0
    saturated = busy is not None and busy >= 1
    if busy is None:
        batch = _closed_batch(load.streams, think_s, running_s, cap)
        if load.streams > cap:
            notes.append(f"{load.streams:g} streams on {cap:g} places: requests wait for one")
    elif saturated:
        asked = scenario.workload.requests or DEFAULT_REQUESTS
        batch = min(cap, max(1.0, asked / scenario.cluster.replicas)) if math.isinf(rate) else cap
        notes.append("more arrives than can be served: the queue grows without end")
    else:
        batch = _open_batch(rate, decoding_s, prompt_s, cap)
    if busy is None or saturated:
        at_once = batch if saturated else min(batch, load.streams)
        rate = at_once / running_s(batch) if running_s(batch) else math.inf
    share = min(1.0, rate * prompt_s(batch)) if prompt_s(batch) else 0.0
    made = max(round(load.output_tokens) - at.by_prefill, 1)
    return OperatingPoint(
        batch=float(batch),
        context_tokens=context,
        output_tokens=load.output_tokens,
        gamma=at.gamma(batch),
        prefill_share=float(share),
        tpot_s=decoding_s(batch) / (1 - share) / made if share < 1 else math.inf,
        requests_per_s=float(rate),
        load=None if busy is None else float(busy),
        saturated=saturated,
        notes=(*load.notes, *notes, *batch_notes(scenario), *_omissions(scenario, load)),
    )


def _closed_batch(
    streams: float, think_s: float, running_s: Callable[[float], float], cap: float
) -> float:
    """Solve b + Z·b/W(b) = streams; at least the request itself, at most the cap."""
    top = min(max(streams, 1.0), cap)
    if not think_s or not running_s(top):
        return top
    batch = _root(lambda b: streams - b - think_s * b / running_s(b), 1e-9 * top, top)
    return max(batch, min(1.0, top))


def _open_batch(
    rate: float,
    decoding_s: Callable[[float], float],
    prompt_s: Callable[[float], float],
    cap: float,
) -> float:
    """Solve b = 1 + λ·W(b), W(b) = rounds·R(b)/(1 − λP); the cap where even that is passed."""

    def missing(batch: float) -> float:
        free = 1 - rate * prompt_s(batch)
        return 1 + rate * decoding_s(batch) / free - batch if free > 0 else math.inf

    return cap if missing(cap) >= 0 else _root(missing, 1.0, cap)


def _root(falls: Callable[[float], float], low: float, high: float) -> float:
    """Bisect for the zero of a falling function; an end where it does not cross."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return high


def _cap(scenario: Scenario, load: Offered) -> tuple[float, list[str]]:
    """Sequences that fit at once: max_num_seqs, or what the KV cache holds at the mean context."""
    places = float(scenario.scheduler.max_num_seqs)
    budget = scenario.scheduler.max_num_batched_tokens // scenario.verify_width
    notes = []
    if budget < places:
        places = float(budget)
        notes.append(f"the token budget admits {budget} sequences of width γ + 1")
    cache, total = scenario.kv_cache, scenario.kv_blocks
    if cache is not None and total is not None:
        tokens = load.prompt_tokens + load.output_tokens / 2 + scenario.gamma
        blocks = math.ceil(tokens / cache.block_tokens)
        held = total * (1 - cache.watermark) / blocks
        if held < places:
            places = max(1.0, held)
            notes.append(f"the KV cache holds {places:.4g} sequences of {tokens:.4g} tokens")
    return places, notes


def _omissions(scenario: Scenario, load: Offered) -> list[str]:
    """Name what the simulation has and the closed form has not."""
    notes = []
    policy, gamma = scenario.speculation.policy.kind, scenario.gamma
    if gamma and policy in ("hf_heuristic", "hf_transient"):
        notes.append(f"policy {policy} is left out: γ stays {gamma}")
    chosen = scenario.speculation.policy
    if gamma and (chosen.hysteresis or chosen.patience > 1):
        notes.append("hysteresis and patience are left out: γ is that of the batch alone")
    if gamma and scenario.speculation.confidence_stop:
        notes.append("confidence_stop is left out: every round drafts γ tokens")
    if gamma and scenario.draft.placement == "shared":
        notes.append("waiting for the shared draft GPUs is left out")
    if gamma and scenario.draft.ping_pong:
        notes.append("ping-pong of half batches is left out")
    if scenario.cluster.engines_per_gpu > 1:
        notes.append("waiting for engines on the same GPU is left out")
    if load.output_tokens - 1 > LONGEST_EXACT:
        notes.append(f"outputs are too long for exact finite figures (above {LONGEST_EXACT})")
    if gamma and scenario.draft.operations_ratio is None:
        notes.append("the operations factor leaves out the draft (draft.operations_ratio)")
    return notes
