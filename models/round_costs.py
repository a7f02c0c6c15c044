"""What one round costs, from the seconds of its passes (MODEL.md §3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import at_index, checked_gamma

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RoundCosts:
    """Seconds of the passes of a round, and how the passes combine; made by `round_costs`.

    - step_s (...): T, one target pass at width 1: the baseline
    - verify_s (..., positions): V, the pass that verifies 1, 2, … proposals (widths 2, 3, …);
      (..., 1) where the width does not matter. A tree: γ levels, the nodes on them + 1 wide
    - draft_step_s (...): d, one draft step; overhead_s (...): o, on every round while γ ≥ 1
    - draft_call_s (...): c, once in every round that drafts, before its steps
    - proposed (positions+1,): mean tokens that a drafting round proposes at γ = 0, 1, …; empty: γ.
      Where it is given, verify_s is the mean over those lengths
    - one_pass: one draft step whatever γ; extra_draft_step: one more after a fully accepted round,
      as the draft has to ingest its own last token before it drafts again
    - enabled_factor: a pass at width 1 in an engine that may speculate (a round without proposal),
      over T; verify_s has it already
    """

    step_s: Floats
    verify_s: Floats
    draft_step_s: Floats
    overhead_s: Floats
    draft_call_s: Floats
    proposed: Floats
    one_pass: bool
    extra_draft_step: bool
    enabled_factor: float = 1.0

    @property
    def undrafted_s(self) -> Floats:
        """Seconds of a round without a proposal: T, or more where it costs to have drafts on.

        >>> round_costs(0.1, 0.1, 0.0, enabled_factor=1.25).undrafted_s.item()
        0.125
        """
        return self.step_s * self.enabled_factor

    def proposals(self, gamma: ArrayLike) -> Floats:
        """Mean tokens that a drafting round proposes at γ: γ, or fewer where lengths vary.

        >>> round_costs(1.0, 1.0, 0.0, proposing=[1.0, 0.5]).proposals([0, 1, 2]).tolist()
        [0.0, 1.0, 1.5]
        """
        if not self.proposed.size:
            return np.asarray(gamma, dtype=np.float64)
        most = self.proposed.size - 1
        return self.proposed[np.minimum(np.asarray(gamma, dtype=np.intp), most)]

    def draft_steps(self, gamma: ArrayLike) -> Floats:
        """Draft steps of a round that proposes γ tokens: γ for a chain, 1 in one pass.

        >>> round_costs(1.0, 1.0, 0.1, one_pass=True).draft_steps([0, 1, 5]).tolist()
        [0.0, 1.0, 1.0]
        """
        proposed = self.proposals(gamma)
        return np.minimum(proposed, 1.0) if self.one_pass else proposed

    def verify(self, gamma: ArrayLike) -> Floats:
        """Seconds of the pass that verifies γ proposals, of none at γ = 0. gamma (...) → (...).

        Raises ValueError when there is no cost for that width.

        >>> round_costs(1.0, [1.1, 1.3], 0.1).verify([0, 1, 2]).tolist()
        [1.0, 1.1, 1.3]
        """
        proposals = np.asarray(gamma, dtype=np.intp)
        seconds = self.verify_s
        widths = seconds.shape[-1]
        if widths > 1 and proposals.max(initial=0) > widths:
            raise ValueError(
                f"verify_s has {widths} entries and gamma is {proposals.max()}; "
                f"it needs one for each of 1..gamma proposals, or a single one for all"
            )
        wide = at_index(seconds, np.clip(proposals - 1, 0, widths - 1))
        if proposals.min(initial=1) > 0:
            return wide
        return np.where(proposals == 0, self.undrafted_s, wide)

    def parts(
        self, gamma: ArrayLike, drafting: ArrayLike, fully_accepted: Floats | float
    ) -> tuple[Floats, Floats, Floats]:
        """Mean draft, verify and overhead seconds of a round, given the share of rounds that draft.

        draft = (drafting·steps + extra·fully_accepted)·d + drafting·c;
        verify = drafting·V + (1 − drafting)·T.

        >>> costs = round_costs(1.0, 1.5, 0.25, overhead_s=0.125)
        >>> [float(x) for x in costs.parts(2, 1.0, 0.25)]
        [0.5, 1.5, 0.125]
        """
        drafts = np.asarray(drafting, dtype=np.float64)
        steps = drafts * self.draft_steps(gamma)
        if self.extra_draft_step:
            steps = steps + fully_accepted
        verify = drafts * self.verify(gamma) + (1 - drafts) * self.undrafted_s
        drafts_any = np.asarray(gamma) > 0
        draft = steps * self.draft_step_s + drafts * drafts_any * self.draft_call_s
        return draft, verify, self.overhead_s * drafts_any

    def by_proposals(self, gamma: int) -> Floats:
        """Seconds (..., γ+1) of a round that proposes g = 0..γ, without the extra draft step.

        c + g·d + V(g + 1) + o; at γ = 0 the baseline T alone.

        >>> round_costs(1.0, 1.0, 0.5, overhead_s=0.25).by_proposals(1).tolist()
        [1.25, 1.75]
        """
        proposed = np.arange(checked_gamma(gamma) + 1)
        row = RoundCosts(
            self.step_s[..., None],
            self.verify_s[..., None, :],
            self.draft_step_s[..., None],
            self.overhead_s[..., None],
            self.draft_call_s[..., None],
            self.proposed,
            self.one_pass,
            extra_draft_step=False,
            enabled_factor=self.enabled_factor,
        )
        drafting = row.draft_steps(proposed) * row.draft_step_s + row.draft_call_s * (proposed > 0)
        return drafting + row.verify(proposed) + row.overhead_s * (gamma > 0)

    @property
    def grid(self) -> bool:
        """Whether these are the costs of several points: an array has axes beside the widths."""
        singles = (self.step_s, self.draft_step_s, self.overhead_s, self.draft_call_s)
        return self.verify_s.ndim > 1 or any(seconds.ndim for seconds in singles)

    @property
    def extra_draft_step_s(self) -> Floats:
        """Seconds added after a fully accepted round: d, or 0 without the extra draft step."""
        return self.draft_step_s * self.extra_draft_step


def round_costs(
    step_s: ArrayLike,
    verify_s: ArrayLike,
    draft_step_s: ArrayLike,
    *,
    overhead_s: ArrayLike = 0.0,
    draft_call_s: ArrayLike = 0.0,
    proposing: ArrayLike = (),
    one_pass: bool = False,
    extra_draft_step: bool = False,
    enabled_factor: float = 1.0,
) -> RoundCosts:
    """Return RoundCosts from seconds; verify_s (..., positions), or a scalar for every width.

    proposing (positions,): S_i, share of the drafting rounds that propose i tokens or more (n-gram
    matches end early); empty: all propose γ. Then V at γ is the mean over the lengths,
    Σ_{j<γ} (S_j − S_{j+1}) V_j + S_γ V_γ, so that every mean of a round stays exact.
    Raises ValueError unless step_s > 0, the others are ≥ 0, all finite, and S falls from 1.

    >>> round_costs(step_s=0.1, verify_s=0.1, draft_step_s=0.02).by_proposals(2).round(3).tolist()
    [0.1, 0.12, 0.14]
    """
    shares = np.asarray(proposing, dtype=np.float64)
    if shares.size and not (shares[0] == 1 and (np.diff(shares) <= 0).all() and shares[-1] >= 0):
        raise ValueError(
            f"proposing is {shares.tolist()}; shares that fall from 1 and stay above 0"
        )
    verify = np.atleast_1d(_seconds(verify_s, "verify_s"))
    return RoundCosts(
        _seconds(step_s, "step_s", above_zero=True),
        _mean_over_lengths(verify, shares) if shares.size else verify,
        _seconds(draft_step_s, "draft_step_s"),
        _seconds(overhead_s, "overhead_s"),
        _seconds(draft_call_s, "draft_call_s"),
        np.concatenate([[0.0], shares.cumsum()]) if shares.size else shares,
        one_pass,
        extra_draft_step,
        enabled_factor,
    )


def _mean_over_lengths(verify_s: Floats, proposing: Floats) -> Floats:
    """Mean V (..., positions) where a round at γ = 1, 2, … proposes as many tokens as it finds."""
    positions = verify_s.shape[-1]
    if positions == 1:
        return verify_s
    shares = np.zeros(positions + 1)
    shares[: min(len(proposing), positions)] = proposing[:positions]
    ended = (verify_s * (shares[:-1] - shares[1:])).cumsum(axis=-1)
    full = verify_s * shares[:-1]
    full[..., 1:] += ended[..., :-1]
    return full


def _seconds(values: ArrayLike, name: str, *, above_zero: bool = False) -> Floats:
    seconds = np.asarray(values, dtype=np.float64)
    bad = ~(np.isfinite(seconds) & (seconds > 0 if above_zero else seconds >= 0))
    if bad.any():
        least = "above 0" if above_zero else "0 or more"
        raise ValueError(f"{name} is {seconds[bad].flat[0]:g}; it is finite and {least}")
    return seconds
