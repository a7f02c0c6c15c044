"""What a scenario asks an engine to reproduce, and what an engine's synthetic law makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.rounds import tokens_per_round_variance
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from specplan.scenarios.schema import Scenario

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wanted:
    """The acceptance to reproduce: A_i (γ,) of a round that drafts, pooled over all requests.

    A scenario may give requests different laws; an engine draws every round from one. Rounds of a
    law are as frequent as weight/(tokens per round), and so pooled they keep the long-run τ.
    tree_width: most children of a node, 1 for a chain. left_out: what else of the scenario makes
    rounds differ, in sentences.
    """

    gamma: int
    unconditional: Floats
    draft_probability: float
    method: str
    tree_nodes: int | None
    tree_width: int
    draft: str
    requests_differ: bool
    replayed: bool
    left_out: tuple[str, ...] = ()

    @property
    def acceptance_length(self) -> float:
        """τ of rounds that draft, bonus included."""
        return float(1 + self.unconditional.sum())

    @property
    def is_chain(self) -> bool:
        """Whether a round drafts one token a position."""
        return self.tree_nodes is None


@dataclass(frozen=True)
class Export:
    """How one engine is told; `unconditional` (γ,) is the law that it will then follow.

    arguments: one `--flag value` each; config: a line for the engine's YAML file, if it has one.
    """

    engine: str
    mode: str
    environment: dict[str, str]
    arguments: tuple[str, ...]
    setting: str
    bonus: str
    unconditional: Floats
    differences: tuple[str, ...]
    config: str = ""

    @property
    def acceptance_length(self) -> float:
        """Return the τ (bonus included) that the engine will show."""
        return float(1 + self.unconditional.sum())

    @property
    def variance(self) -> float:
        """Return the variance of its tokens per round."""
        return float(tokens_per_round_variance(self.unconditional))

    @property
    def command(self) -> str:
        """Return environment and arguments in one line, as they surround the engine's command."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*settings, *self.arguments])


def wanted(scenario: Scenario, draft: str | None = None) -> Wanted:
    """Return what a scenario asks an engine to reproduce.

    `draft` is the draft checkpoint to name in the flags. Raises ScenarioError for a scenario
    without speculation.

    >>> from specplan.scenarios.load import load
    >>> wanted(load("toy-20ms")).unconditional.tolist()
    [0.5, 0.25]
    """
    gamma = scenario.gamma
    if not gamma:
        wrong = "there is no acceptance to reproduce without speculation"
        raise ScenarioError(Fault(wrong, "a scenario with gamma of 1 or more", field="speculation"))
    stated = scenario.acceptance(gamma)
    laws = stated.spread()
    tokens = 1 + laws.draft_probability * laws.unconditional.sum(axis=-1)
    rounds = laws.weight / tokens
    drafting = rounds * laws.draft_probability / rounds.sum()
    if not drafting.sum():
        wrong = "no round drafts anything"
        raise ScenarioError(Fault(wrong, "a draft_probability above 0", field="speculation"))
    tree = scenario.speculation.method == "tree"
    paths = scenario.speculation.tree_paths if tree else ()
    return Wanted(
        gamma=gamma,
        unconditional=np.asarray(drafting @ laws.unconditional / drafting.sum()),
        draft_probability=float(drafting.sum()),
        method=scenario.speculation.method,
        tree_nodes=len(paths) if tree else None,
        tree_width=1 + max((path[-1] for path in paths), default=0),
        draft=draft or "DRAFT_MODEL",
        requests_differ=len(laws.weight) > 1,
        replayed=stated.recorded is not None,
        left_out=tuple(_left_out(scenario)),
    )


def _left_out(scenario: Scenario) -> Iterator[str]:
    """Say why a scenario's rounds draft something else than γ tokens each."""
    stated, gamma = scenario.speculation, scenario.gamma
    if stated.policy.kind not in {"fixed", "hf_constant"}:
        yield f"the scenario changes γ ({stated.policy.kind}); here it is {gamma} in every round"
    if stated.confidence_stop:
        yield (
            "the scenario stops drafting early (confidence_stop); here every round drafts"
            f" {gamma} tokens"
        )
    if stated.proposal_lengths:
        yield (
            f"some rounds of the scenario propose fewer than {gamma} tokens (proposal_lengths);"
            f" here every round that drafts is taken to propose {gamma}"
        )


def differences(what: Wanted, law: Floats) -> list[str]:
    """Tell what any single synthetic law loses, and what `law` changes in spread and tail.

    >>> from specplan.scenarios.load import load
    >>> differences(wanted(load("toy-20ms")), np.array([0.5, 0.25]))
    []
    """
    told = list(what.left_out)
    if what.requests_differ:
        told.append(
            "the scenario's requests differ in acceptance, the engine's do not: its per-request"
            " figures (TPOT percentiles) will be narrower"
        )
    if what.replayed:
        told.append("recorded accept lengths are drawn from their law, not replayed in order")
    if what.draft_probability < 1:
        told.append(
            f"the scenario drafts in {what.draft_probability:.4g} of the rounds; how often the"
            " engine drafts is up to its own drafter, not to this setting"
        )
    if not np.allclose(law, what.unconditional, rtol=0, atol=1e-5):
        told.append(
            "same tokens per round, another law: variance"
            f" {float(tokens_per_round_variance(law)):.4g} instead of"
            f" {float(tokens_per_round_variance(what.unconditional)):.4g}; all {what.gamma} drafts"
            f" accepted in {law[-1]:.3g} of the rounds instead of {what.unconditional[-1]:.3g}, and"
            f" none in {1 - law[0]:.3g} instead of {1 - what.unconditional[0]:.3g}"
        )
    return told


def tree_differences(what: Wanted) -> list[str]:
    """Tell what a chain engine changes about a tree; nothing for a chain."""
    if what.is_chain:
        return []
    return [
        f"this engine drafts a chain: a round verifies {what.gamma + 1} positions instead of the"
        f" tree's {(what.tree_nodes or 0) + 1}, so its round time is not the scenario's"
    ]


def one_pass_differences(what: Wanted) -> list[str]:
    """Tell what an engine that drafts token by token changes about a draft of one pass."""
    if what.method != "one_pass":
        return []
    return [
        f"this engine drafts token by token, {what.gamma} steps where the scenario takes one, so"
        " its round time is not the scenario's"
    ]
