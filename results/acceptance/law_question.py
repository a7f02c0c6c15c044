"""The question of `specplan law` from the words of a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.models.sampling_rules import SamplingRules
from specplan.results.acceptance.law_answer import LawQuestion
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import find
from specplan.scenarios.pairs import Pairs, inline_law, read_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence


def law_question(
    laws: Pairs,
    sampling: tuple[float, int, float, float],
    *,
    lenience: float = 1.0,
    gamma: int | None = None,
    draws: int = 0,
    seed: int = 1,
    rule: str = "exact",
) -> LawQuestion:
    """Join laws with (temperature, top_k, top_p, min_p) and the Monte Carlo run asked for.

    Raises ScenarioError for rules outside their range.

    >>> law_question(stated_laws(None, [".6,.4"], [".5,.5"]), (1.0, 0, 1.0, 0.0)).p
    [[0.6, 0.4]]
    """
    try:
        rules = SamplingRules(*sampling)
    except ValueError as error:
        raise ScenarioError(Fault(str(error))) from None
    return LawQuestion(
        laws.p,
        laws.q,
        laws.bonus,
        sampling=rules,
        lenience=lenience,
        draws=draws,
        seed=seed,
        rule=rule,
        gamma=gamma,
    )


def stated_laws(
    source: str | None, p: Sequence[str], q: Sequence[str], bonus: str | None = None
) -> Pairs:
    """Read laws written `.6,.3,.1`, one a position, or those of a file or bundled scenario.

    Raises ScenarioError when both or neither are given, and for what is no law.

    >>> stated_laws(None, [".6,.4"], [".5,.5"], "1,0").bonus
    [1.0, 0.0]
    """
    inline = [*p, *q, *([bonus] if bonus else [])]
    if bool(source) == bool(inline):
        wrong = "laws are given twice" if source else "no laws are given"
        raise ScenarioError(Fault(wrong, "a FILE with p and q, or --p and --q"))
    if source:
        return read_pairs(find(source))
    return Pairs(
        [inline_law(text, "--p") for text in p],
        [inline_law(text, "--q") for text in q],
        inline_law(bonus, "--bonus") if bonus else None,
    )
