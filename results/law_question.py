"""The question of `specplan law` from the words of a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.models.sampling_rules import SamplingRules
from specplan.results.law_answer import LawQuestion
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence


def law_question(
    p: Sequence[str],
    q: Sequence[str],
    sampling: tuple[float, int, float, float],
    *,
    gamma: int | None,
    draws: int,
    seed: int,
) -> LawQuestion:
    """Read laws written `.6,.3,.1`, one a position, and (temperature, top_k, top_p, min_p).

    Raises ScenarioError for what is no number and for rules outside their range.

    >>> law_question([".6,.4"], [".5,.5"], (1.0, 0, 1.0, 0.0), gamma=None, draws=0, seed=1).p
    [[0.6, 0.4]]
    """
    try:
        rules = SamplingRules(*sampling)
    except ValueError as error:
        raise ScenarioError(Fault(str(error))) from None
    laws = [[_law(text, flag) for text in texts] for flag, texts in (("--p", p), ("--q", q))]
    return LawQuestion(laws[0], laws[1], sampling=rules, draws=draws, seed=seed, gamma=gamma)


def _law(text: str, flag: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ScenarioError(
            Fault(f"`{text}` is not a law", "probabilities: `.6,.3,.1`", flag)
        ) from None
