"""The long run of a γ that moves by request, where it can be solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.adaptive import adaptive_gamma
from specplan.models.long_run import round_figures
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.schema import Scenario


@dataclass(frozen=True)
class Adapted:
    """Means over the rounds of a long run; tpot_s is mean round over mean tokens per round."""

    mean_gamma: float
    tokens_per_round: float
    round_s: float
    tpot_s: float
    speedup: float


def long_run(scenario: Scenario, point: OperatingPoint) -> Adapted | None:
    """Solve policy hf_heuristic: γ + 2 after a fully kept round, else γ − 1, as a Markov chain.

    None for other policies, and where requests or rounds differ: each law then has its own chain,
    and γ is carried from one to the next. Raises ScenarioError.

    >>> from specplan.scenarios.closed_form import operating_point
    >>> from specplan.scenarios.load import load
    >>> sets = ["speculation.acceptance.alpha=0.8", "speculation.policy=hf_heuristic"]
    >>> toy = load("toy-20ms", sets)
    >>> round(long_run(toy, operating_point(toy)).mean_gamma, 2)
    5.45
    """
    speculation = scenario.speculation
    schedule = speculation.policy.hf_heuristic
    if not scenario.gamma or schedule is None or speculation.confidence_stop:
        return None
    at = Priced(scenario, point.context_tokens)
    law = at.acceptance
    alike = len(law.weight) == 1 and np.isinf(law.concentration[0]) and law.recorded is None
    if not alike or law.draft_probability[0] < 1:
        return None
    chain = adaptive_gamma(
        law.unconditional[0, : schedule.max],
        increase=schedule.increase,
        decrease=schedule.decrease,
        lowest=schedule.min,
    )
    gammas = np.flatnonzero(chain.share)
    figures = round_figures(law)
    priced = [
        sum(at.costs(point.batch, int(g)).parts(g, figures.drafting[g], figures.fully_accepted[g]))
        for g in gammas
    ]
    round_s = float(chain.share[gammas] @ np.array(priced))
    tpot_s = round_s / chain.tokens_per_round
    plain_s = float(at.costs(point.batch, scenario.gamma).step_s)
    return Adapted(chain.mean_gamma, chain.tokens_per_round, round_s, tpot_s, plain_s / tpot_s)
