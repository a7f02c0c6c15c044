"""Predict: what a round yields and costs (MODEL.md §3); a grid of any shape is one call."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import at_index
from specplan.models.geometric import geometric_root, weighted_root
from specplan.models.long_run import RoundFigures, round_figures
from specplan.models.rounds import finite_output, generation_s_moments

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from specplan.models.acceptance import Acceptance
    from specplan.models.round_costs import RoundCosts

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The closed form of one scenario or of a grid: every field has the same shape (read-only).

    NaN where a figure does not exist: a break-even that no α or no draft step reaches, and the
    figures of a finite output when no `output_tokens` was given. Per-token seconds sum to tpot_s;
    wasted_draft_s_per_token is the part of draft_s_per_token spent on tokens that were rejected.
    """

    gamma: NDArray[np.int64]
    tokens_per_round: Floats
    tokens_per_round_variance: Floats
    round_s: Floats
    round_cost_ratio: Floats
    tpot_s: Floats
    baseline_tpot_s: Floats
    speedup: Floats
    break_even_alpha: Floats
    break_even_draft_step_s: Floats
    best_gamma: NDArray[np.int64]
    best_gamma_speedup: Floats
    best_gamma_searched_to: NDArray[np.int64]
    speedup_perfect_draft: Floats
    speedup_free_draft: Floats
    operations_factor: Floats
    target_reads_per_token: Floats
    drafted_per_round: Floats
    draft_s_per_token: Floats
    wasted_draft_s_per_token: Floats
    verify_s_per_token: Floats
    overhead_s_per_token: Floats
    rounds: Floats
    draft_steps: Floats
    generation_s: Floats
    baseline_generation_s: Floats

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a point, the last dimension fastest, and one column a field."""
        import pandas as pd

        columns = {one.name: np.ravel(getattr(self, one.name)) for one in fields(self)}
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        """Show the figures in a notebook: one point as a column, a grid as rows."""
        table = self.to_pandas()
        shown = table.T.rename(columns={0: ""}) if len(table) == 1 else table
        return str(shown.to_html(max_rows=40, notebook=True))


def predict(
    acceptance: Acceptance | ArrayLike,
    gamma: ArrayLike,
    costs: RoundCosts,
    *,
    draft_probability: ArrayLike = 1.0,
    draft_operations_ratio: ArrayLike = 0.0,
    output_tokens: ArrayLike | None = None,
) -> Prediction:
    """Every closed-form figure of MODEL.md §5, over whatever shape the inputs broadcast to.

    speedup = τ·T/R, time per output token R/τ, break-even τ = R/T (Leviathan et al. 2023, Theorem
    3.8 where V = T). acceptance: an Acceptance, or lists (..., positions) that broadcast with gamma
    (...) and the costs; `draft_probability` goes with lists only. The best γ is searched over
    0..positions (or the widths that verify_s knows). draft_operations_ratio ĉ: operations of one
    draft token over one target token; 0 leaves the draft's arithmetic out. output_tokens (...) adds
    the exact finite figures, at a cost of n·γ operations a point. Raises ValueError on γ that is
    not whole or beyond the positions, and on whatever the parts refuse.

    >>> from specplan.models.round_costs import round_costs
    >>> toy = predict([0.5, 0.25], 2, round_costs(step_s=0.1, verify_s=0.1, draft_step_s=0.02))
    >>> [float(x.round(9)) for x in (toy.tpot_s, toy.speedup, toy.break_even_draft_step_s)]
    [0.08, 1.25, 0.0375]
    """
    figures = round_figures(acceptance, draft_probability)
    draft = _whole_gamma(gamma, figures.tokens.shape[-1] - 1)
    tokens, drafting = at_index(figures.tokens, draft), at_index(figures.drafting, draft)
    full = at_index(figures.fully_accepted, draft)
    step = costs.step_s
    draft_s, verify_s, overhead_s = costs.parts(draft, drafting, full)
    round_s = draft_s + verify_s + overhead_s
    drafted = drafting * costs.proposals(draft)
    best, best_speedup, searched_to = _best_gamma(figures, costs)
    with np.errstate(invalid="ignore", divide="ignore"):
        wasted = draft_s * np.where(drafted > 0, 1 - (tokens - 1) / drafted, 0.0)
    draft_tokens = drafted + full * costs.extra_draft_step
    operations = 1 + drafted + draft_tokens * np.asarray(draft_operations_ratio, dtype=np.float64)
    perfect_s = sum(costs.parts(draft, drafting, drafting))
    columns = {
        "gamma": draft,
        "tokens_per_round": tokens,
        "tokens_per_round_variance": at_index(figures.variance, draft),
        "round_s": round_s,
        "round_cost_ratio": round_s / step,
        "tpot_s": round_s / tokens,
        "baseline_tpot_s": step,
        "speedup": tokens * step / round_s,
        "break_even_alpha": _break_even_alpha(draft, drafting, costs),
        "break_even_draft_step_s": _break_even_draft_step_s(draft, drafting, full, tokens, costs),
        "best_gamma": best,
        "best_gamma_speedup": best_speedup,
        "best_gamma_searched_to": np.array(searched_to, dtype=np.int64),
        "speedup_perfect_draft": (1 + drafted) * step / perfect_s,
        "speedup_free_draft": tokens * step / (verify_s + overhead_s),
        "operations_factor": operations / tokens,
        "target_reads_per_token": 1 / tokens,
        "drafted_per_round": drafted,
        "draft_s_per_token": draft_s / tokens,
        "wasted_draft_s_per_token": wasted / tokens,
        "verify_s_per_token": verify_s / tokens,
        "overhead_s_per_token": overhead_s / tokens,
        **_finite(acceptance, draft, costs, draft_probability, output_tokens),
    }
    shape = np.broadcast_shapes(*(np.shape(column) for column in columns.values()))
    return Prediction(
        **{f.name: np.broadcast_to(columns[f.name], shape) for f in fields(Prediction)}
    )


def token_s(figures: RoundFigures, gamma: ArrayLike, costs: RoundCosts) -> Floats:
    """Seconds per output token R/τ alone, as `predict` has them: what curves and maps need.

    figures (..., positions+1) and costs broadcast with gamma (...). Raises ValueError as `predict`.

    >>> from specplan.models.round_costs import round_costs
    >>> costs = round_costs(step_s=0.1, verify_s=0.1, draft_step_s=0.02)
    >>> token_s(round_figures([0.5, 0.25]), [0, 2], costs).round(9).tolist()
    [0.1, 0.08]
    """
    draft = _whole_gamma(gamma, figures.tokens.shape[-1] - 1)
    drafting = at_index(figures.drafting, draft)
    parts = costs.parts(draft, drafting, at_index(figures.fully_accepted, draft))
    return np.asarray((parts[0] + parts[1] + parts[2]) / at_index(figures.tokens, draft))


def _whole_gamma(gamma: ArrayLike, positions: int) -> NDArray[np.int64]:
    values = np.asarray(gamma)
    bad = ~((values >= 0) & (values == np.floor(values)))
    if bad.any():
        raise ValueError(f"gamma is {values[bad].flat[0]:g}; it is a whole number, 0 or more")
    if values.max(initial=0) > positions:
        raise ValueError(
            f"acceptance is known for {positions} draft positions and gamma is {values.max():g}; "
            f"give as many positions as gamma or name a rule to extrapolate"
        )
    return values.astype(np.int64)


def _best_gamma(figures: RoundFigures, costs: RoundCosts) -> tuple[NDArray[np.int64], Floats, int]:
    """Search γ = 0..positions for the least time per token; the smallest γ wins a tie.

    Also returns the last γ that was tried.
    """
    widths = np.atleast_1d(costs.verify_s).shape[-1]
    positions = figures.tokens.shape[-1] - 1
    last = positions if widths == 1 else min(positions, widths)
    step = costs.step_s
    if figures.tokens.ndim == 1 and not costs.grid:
        depths = np.arange(last + 1)  # one point: all γ in one call
        shares = (figures.drafting[: last + 1], figures.fully_accepted[: last + 1])
        speedups = figures.tokens[: last + 1] * (step / sum(costs.parts(depths, *shares)))
        speedups[0] = 1.0
        first = np.argmax(speedups)
        return np.asarray(first, dtype=np.int64), np.asarray(speedups[first]), last
    most, best = np.ones(()), np.zeros((), dtype=np.int64)
    for gamma in range(1, last + 1):
        parts = costs.parts(gamma, figures.drafting[..., gamma], figures.fully_accepted[..., gamma])
        speedup = figures.tokens[..., gamma] * (step / (parts[0] + parts[1] + parts[2]))
        best = np.where(speedup > most, gamma, best)
        most = np.maximum(speedup, most)
    return best, most, last


def _break_even_alpha(gamma: NDArray[np.int64], drafting: Floats, costs: RoundCosts) -> Floats:
    """Solve τ(α) = R(α)/T for the iid α: 0 when R ≤ T, NaN when even α = 1 does not reach it.

    With h the share of rounds that draft and δ = d/T for the extra draft step (else 0):
    Σ_{i<γ} α^i + (1 − δ) α^γ = (R(0)/T − 1)/h. For δ > 1 and V ≥ T there is no solution.
    Where only a share S_i of those rounds proposes i tokens, Σ_{i≤γ} S_i α^i stands on the left.
    """
    step = costs.step_s
    ratio = sum(costs.parts(gamma, drafting, 0.0)) / step
    last = 1 - costs.extra_draft_step_s / step
    with np.errstate(invalid="ignore", divide="ignore"):
        total = (ratio - 1) / drafting
    if costs.proposed.size:
        reachable = (drafting > 0) & (total <= costs.proposals(gamma))
        alpha = weighted_root(np.where(reachable, total, 0.0), gamma, np.diff(costs.proposed))
        return np.where(reachable, alpha, np.nan)
    reachable = (drafting > 0) & (last >= 0) & (total <= gamma - 1 + last)
    alpha = geometric_root(np.where(reachable, total, 0.0), gamma, np.clip(last, 0, 1))
    return np.where(reachable, alpha, np.nan)


def _break_even_draft_step_s(
    gamma: NDArray[np.int64], drafting: Floats, full: Floats, tokens: Floats, costs: RoundCosts
) -> Floats:
    """Solve R = τ·T for the draft step; NaN where verifying alone costs more or nothing drafts."""
    steps = drafting * costs.draft_steps(gamma) + full * costs.extra_draft_step
    _, verify_s, overhead_s = costs.parts(gamma, drafting, full)
    room = tokens * costs.step_s - verify_s - overhead_s - drafting * costs.draft_call_s
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((room >= 0) & (steps > 0), room / steps, np.nan)


def _finite(
    acceptance: Acceptance | ArrayLike,
    gamma: NDArray[np.int64],
    costs: RoundCosts,
    draft_probability: ArrayLike,
    output_tokens: ArrayLike | None,
) -> dict[str, Floats]:
    """Exact figures of a finite output; a recursion for each γ that occurs."""
    names = ("rounds", "draft_steps", "generation_s", "baseline_generation_s")
    if output_tokens is None:
        return dict.fromkeys(names, np.array(np.nan))
    chosen: tuple[Floats, ...] = (np.array(np.nan),) * 3
    for one in np.unique(gamma):
        g = int(one)
        proposed = costs.proposals(np.arange(g + 1))
        output = finite_output(acceptance, g, output_tokens, draft_probability, proposed)
        steps = output.draft_steps(one_pass=costs.one_pass, extra_draft_step=costs.extra_draft_step)
        seconds, _ = generation_s_moments(acceptance, g, output_tokens, costs, draft_probability)
        found = (output.rounds, steps, seconds)
        chosen = tuple(
            np.where(gamma == g, new, old) for new, old in zip(found, chosen, strict=True)
        )
    baseline = np.asarray(output_tokens) * costs.step_s
    return dict(zip(names, (*chosen, baseline), strict=True))
