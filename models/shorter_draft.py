"""Would a shorter draft have paid, given one measured round? A guess between two known widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models.acceptance import alpha_from_tokens_per_round, unconditional_from_alpha
from specplan.models.round_costs import round_costs
from specplan.models.speedup import predict

if TYPE_CHECKING:
    from specplan.models.diagnosis import Measured


def shorter_draft(measured: Measured) -> tuple[int, float] | None:
    """Return the best γ below the measured one and its speedup, None where none is faster.

    Assumes an iid α that gives the measured τ, and a verify pass that grows evenly from T at width
    1 to the measured V: to be measured, not believed. None where draft or verify is unknown.

    >>> from specplan.models.diagnosis import Measured
    >>> found = shorter_draft(Measured(90.9, 602.0, 6.49, 16, draft_s=164.8, verify_s=437.2))
    >>> found[0], found[1] > 1.2  # report C18: about 3 to 6 instead of 16
    (3, True)
    """
    gamma = round(measured.drafted or 0)
    known = measured.draft_s is not None and measured.verify_s is not None
    if gamma < 2 or not known or not 1 < measured.tokens_per_round <= gamma + 1:
        return None
    draft_s, verify_s = measured.draft_s or 0.0, measured.verify_s or 0.0
    grown = np.linspace(0.0, 1.0, gamma + 1)[1:]
    step_s = measured.step_s
    verify = step_s + max(verify_s - step_s, 0.0) * grown
    costs = round_costs(
        step_s, verify, draft_s / gamma, overhead_s=max(measured.overhead_s or 0.0, 0.0)
    )
    alpha = alpha_from_tokens_per_round(measured.tokens_per_round, gamma)
    found = predict(unconditional_from_alpha(alpha, gamma), gamma, costs)
    best = int(found.best_gamma)
    if not 0 < best < gamma:
        return None
    return best, float(found.best_gamma_speedup)
