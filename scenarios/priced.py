"""A scenario's costs and acceptance at one mean context, for any batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.models import speedup
from specplan.models.long_run import round_figures
from specplan.models.round_costs import round_costs
from specplan.models.rounds import mean_rounds
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.lower import lower_acceptance

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from specplan.models.acceptance import Acceptance
    from specplan.models.round_costs import RoundCosts
    from specplan.scenarios.lower import End
    from specplan.scenarios.schema import Scenario

    Floats = NDArray[np.float64]

SEARCHED_GAMMA = 32  # how deep the best γ is looked for where the acceptance has no end
LONGEST_EXACT = 20_000  # output tokens up to which the finite recursion is run


class Priced:
    """The costs and the acceptance of a scenario at one mean context."""

    def __init__(
        self, scenario: Scenario, context_tokens: float, end: End = "unconditional"
    ) -> None:
        """Take the acceptance at an `end` of its band, where a rule extends it."""
        self.scenario, self.context = scenario, context_tokens
        self.step, self.wide = scenario.target_step(), scenario.target_round()
        self.draft = scenario.draft_step()
        self.positions = self._positions()
        self.acceptance: Acceptance = lower_acceptance(scenario, self.positions, end=end)
        self.figures = round_figures(self.acceptance)
        self.by_prefill = 0 if scenario.prompt_tokens.fixed == 0 else 1
        self._rounds: dict[tuple[int, int], float] = {}  # by output and γ: a recursion each

    def _positions(self) -> int:
        scenario = self.scenario
        deepest = scenario.deepest_gamma
        if scenario.speculation.method in ("none", "tree") or deepest == 0:
            return deepest
        stated = int(min(scenario.stated_positions, SEARCHED_GAMMA))
        widest = self.wide.width_axis
        if len(widest):  # beyond a table's last width there is no cost
            stated = min(stated, int(widest[-1]) - 1)
        return max(deepest, stated)

    def gamma(self, batch: float) -> int:
        """Choose γ at a batch, as the scenario's policy does."""
        scenario, policy = self.scenario, self.scenario.speculation.policy
        rows = policy.rows(scenario.gamma)
        if scenario.gamma and rows:
            reached = [row for row in rows if row[0] <= batch] or rows[:1]
            return reached[-1][2]
        if scenario.gamma and policy.goodput:
            choices = np.arange(policy.goodput.min, scenario.deepest_gamma + 1)
            found = speedup.predict(self.acceptance, choices, self.costs(batch, scenario.gamma))
            return int(choices[np.argmax(found.speedup)])
        return scenario.gamma

    def costs(self, batch: float | Floats, gamma: int) -> RoundCosts:
        """Price the passes of a round at one batch or at several `(n,)`.

        Raises ScenarioError where a cost has no answer.
        """
        try:
            return self._costs(batch, gamma)
        except ValueError as error:
            raise ScenarioError(Fault(str(error), field=self.scenario.name)) from None

    def _costs(self, batch: float | Floats, gamma: int) -> RoundCosts:
        """Seconds of the passes of a round; the shorter of two parallel phases is hidden."""
        scenario = self.scenario
        method, placement = scenario.speculation.method, scenario.draft.placement
        step_s = np.asarray(self.step.seconds(batch, 1, self.context))
        each = np.asarray(batch)[..., None]
        if method == "tree" and gamma:
            widths = 1.0 + np.cumsum(self._level_sizes())
            draft_s, gammas = self._tree_draft_s(each), np.arange(1.0, len(widths) + 1)
        else:
            widths = np.arange(2, max(self.positions, 1) + 2, dtype=np.float64)
            drafted = max(gamma, 1) if method == "one_pass" else 1
            draft_s = np.asarray(self.draft.seconds(batch, drafted, self.context))
            gammas = widths - 1
        if not scenario.gamma:
            draft_s, verify_s = np.zeros(()), step_s[..., None]
        else:
            verify_s = self.wide.seconds(each, widths, self.context)
        factor = scenario.speculation.enabled_factor if scenario.gamma else 1.0
        verify_s = verify_s * factor
        call_s = scenario.draft.per_round if scenario.gamma else 0.0
        if placement == "parallel":
            steps = np.minimum(gammas, 1.0) if method == "one_pass" else gammas
            verify_s = np.maximum(verify_s, call_s + steps * draft_s[..., None])
            draft_s, call_s = np.zeros(()), 0.0
        away = placement != "colocated"
        return round_costs(
            step_s,
            verify_s,
            draft_s,
            overhead_s=scenario.speculation.overhead
            + (scenario.draft.transfer or 0.0) * (away and bool(scenario.gamma)),
            draft_call_s=call_s,
            enabled_factor=factor,
            proposing=scenario.speculation.proposing(self.positions),
            one_pass=method == "one_pass",
            extra_draft_step=scenario.speculation.extra_draft_step and placement != "parallel",
        )

    def _level_sizes(self) -> NDArray[np.int64]:
        """Nodes of a tree on its levels 1, 2, …: a round cut short drafts its upper levels."""
        return np.bincount([len(path) for path in self.scenario.speculation.tree_paths])[1:]

    def _tree_draft_s(self, batch: Floats) -> Floats:
        """Mean draft step of a tree `(...)` for batches `(..., 1)`.

        Each level reads the nodes of the level above.
        """
        inputs = np.concatenate([[1], self._level_sizes()[:-1]])
        return np.asarray(self.draft.seconds(batch, inputs, self.context).mean(axis=-1))

    def round_s(self, batch: float) -> float:
        """Seconds of a mean round at a batch, for γ as chosen there."""
        gamma = self.gamma(batch)
        drafting, full = self.figures.drafting[gamma], self.figures.fully_accepted[gamma]
        return float(sum(self.costs(batch, gamma).parts(gamma, drafting, full)))

    def decoding_s(self, output_tokens: float, batch: float) -> float:
        """Seconds of the rounds of an output of mean length at a batch, for γ as chosen there."""
        made, gamma = max(round(output_tokens) - self.by_prefill, 0), self.gamma(batch)
        if (made, gamma) not in self._rounds:
            self._rounds[made, gamma] = (
                mean_rounds(self.acceptance, gamma, made)
                if made <= LONGEST_EXACT
                else made / float(self.acceptance.tokens_per_round(gamma))
            )
        return self._rounds[made, gamma] * self.round_s(batch)

    def prompt_s(self, prompt_tokens: float) -> Callable[[float], float]:
        """Seconds that one mean prompt takes from an engine, as a function of the batch."""
        scenario = self.scenario
        own, draft = scenario.target_prefill(), scenario.draft_prefill()
        if prompt_tokens == 0:
            return lambda _: 0.0
        drafting_s = float(draft.seconds(1, 0, 0, prompt_tokens)) if scenario.gamma else 0.0
        if own is not None:
            alone_s = float(own.seconds(1, 0, 0, prompt_tokens)) + drafting_s
            return lambda _: alone_s
        cost, width = self.wide, scenario.verify_width

        def added_s(batch: float) -> float:
            with_prompt = cost.seconds(batch, width, self.context, prompt_tokens)
            return float(with_prompt - cost.seconds(batch, width, self.context)) + drafting_s

        return added_s
