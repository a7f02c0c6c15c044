"""Where acceptance is no longer stated but continued by a rule, and how far that may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import speedup
from specplan.scenarios.lower import going_on, stated_list
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.lower import End
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_acceptance import AcceptanceBlock

    Floats = NDArray[np.float64]

ENDS: tuple[End, End] = ("low", "high")


@dataclass(frozen=True, eq=False)
class Band:
    """Figures at γ beyond the positions that the acceptance states, at both ends of its band.

    - stated: positions stated; rules: those that go on from there; warnings: what speaks against
    - gamma (n,); tokens_per_round, speedup (n, 2): low and high
    """

    stated: int
    rules: tuple[str, ...]
    warnings: tuple[str, ...]
    gamma: NDArray[np.int64]
    tokens_per_round: Floats
    speedup: Floats

    def value(self) -> dict[str, Any]:
        """Give everything as plain JSON."""
        rows = zip(self.gamma, self.tokens_per_round, self.speedup, strict=True)
        return {
            "stated_positions": self.stated,
            "rules": list(self.rules),
            "by_gamma": [
                {"gamma": int(gamma), "tokens_per_round": tau.tolist(), "speedup": gain.tolist()}
                for gamma, tau, gain in rows
            ],
            "warnings": list(self.warnings),
        }

    def words(self, gamma: int) -> str:
        """Say what the band is at one of its γ."""
        at = int(np.flatnonzero(self.gamma == gamma)[0])
        (least, most), (slow, fast) = self.tokens_per_round[at], self.speedup[at]
        return f"{least:.4g} to {most:.4g} tokens per round, {slow:.4g}x to {fast:.4g}x"

    @property
    def border(self) -> str:
        """Say from where on which rule holds."""
        return f"beyond the {self.stated} positions stated, by {' and '.join(self.rules)}"


def stated_positions(scenario: Scenario) -> float:
    """Draft positions whose acceptance is stated; those beyond follow a rule of the scenario.

    `inf` where the statement is a law without an end, such as one α.

    >>> from specplan.scenarios.load import load
    >>> text = "speculation.acceptance={unconditional: [.5, .3], extend: plateau}"
    >>> stated_positions(load("toy-20ms", [text]))
    2
    """
    return min((block.states(scenario.gamma) for block in _blocks(scenario)), default=math.inf)


def band(scenario: Scenario, point: OperatingPoint, gammas: Iterable[int]) -> Band | None:
    """Evaluate the closed form at both ends of the band; None where no γ is beyond what is stated.

    Raises ScenarioError as `closed_form.predict_at`.

    >>> from specplan.scenarios.closed_form import operating_point
    >>> from specplan.scenarios.load import load
    >>> text = "speculation.acceptance={unconditional: [.5, .25], extend: plateau}"
    >>> toy = load("toy-20ms", [text])
    >>> band(toy, operating_point(toy), [2, 3]).words(3)
    '1.859 to 1.894 tokens per round, 1.162x to 1.184x'
    """
    stated = stated_positions(scenario)
    beyond = sorted({gamma for gamma in gammas if gamma > stated})
    if not beyond:
        return None
    ends = [Priced(scenario, point.context_tokens, end) for end in ENDS]
    tokens, gains = np.empty((len(beyond), 2)), np.empty((len(beyond), 2))
    for i, gamma in enumerate(beyond):
        for j, at in enumerate(ends):
            found = speedup.predict(at.acceptance, gamma, at.costs(point.batch, gamma))
            tokens[i, j], gains[i, j] = found.tokens_per_round, found.speedup
    rules, warnings = told(scenario, beyond[-1])
    return Band(int(stated), rules, warnings, np.array(beyond), tokens, gains)


def remarks(scenario: Scenario, positions: int) -> list[str]:
    """Say which of the positions follow a rule and what speaks against it; empty where none does.

    >>> from specplan.scenarios.load import load
    >>> text = "speculation.acceptance={unconditional: [.5, .3], extend: plateau}"
    >>> remarks(load("toy-20ms", [text]), 3)
    ['acceptance beyond the 2 positions stated is extrapolated by plateau']
    """
    rules, warnings = told(scenario, positions)
    if not rules:
        return []
    border = f"acceptance beyond the {stated_positions(scenario):g} positions stated"
    says = f"{border} is extrapolated by {' and '.join(rules)}"
    return [says, *(f"warning: {text}" for text in warnings)]


def told(scenario: Scenario, positions: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the rules that apply to some of the positions, and their warnings, each once."""
    blocks = [block for block in _blocks(scenario) if block.states(scenario.gamma) < positions]
    found = [going_on(block, stated_list(scenario, block), positions) for block in blocks]
    warnings = dict.fromkeys(text for one in found for text in one.warnings)
    return tuple(dict.fromkeys(block.extend for block in blocks)), tuple(warnings)


def _blocks(scenario: Scenario) -> Iterator[AcceptanceBlock]:
    """Every statement about acceptance that some request follows, mixtures taken apart."""
    own = [kind.acceptance for kind in scenario.workload.classes] or [None]
    for block in own:
        used = block or scenario.speculation.acceptance
        if used is not None:
            yield from used.mixture or (used,)
