"""What the live page shows for one state of its sliders: words, figures, YAML, command line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from specplan.results import prediction
from specplan.results.closed_curves import curves
from specplan.results.live.controls import controls
from specplan.results.live.state import command, settings
from specplan.results.sections import closed_sections
from specplan.results.tables import milliseconds, number, percent, times
from specplan.scenarios.load import load, override, to_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.models.speedup import Prediction
    from specplan.results.export import Section
    from specplan.results.live.controls import Control
    from specplan.results.live.state import State
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.schema import Scenario


@dataclass(frozen=True, eq=False)
class Base:
    """A scenario as it was named on the command line: where every slider starts."""

    target: str
    sets: tuple[str, ...]
    scenario: Scenario
    controls: tuple[Control, ...]

    @classmethod
    def read(cls, target: str, sets: Sequence[str] = ()) -> Base:
        """Read a bundled name or a file; raises ScenarioError."""
        scenario = load(target, sets)
        return cls(target, tuple(sets), scenario, controls(scenario))


class View:
    """One state of the sliders, computed. Raises ScenarioError for a state that contradicts itself.

    >>> from specplan.results.live.state import start
    >>> base = Base.read("toy-20ms")
    >>> View(base, start(base.scenario, base.controls)).verdict
    'faster than plain decoding, 1.25x: a round costs R/T = 1.4 plain steps (the implied round \
cost) and yields 1.75 tokens: more than it costs.'
    """

    def __init__(self, base: Base, state: State) -> None:
        self.base, self.state = base, state
        self.sets = settings(base.scenario, base.controls, state)
        self.scenario = override(base.scenario, self.sets) if self.sets else base.scenario
        self._made = curves(self.scenario)
        self._found = self._made.found

    @property
    def verdict(self) -> str:
        """Whether it pays, and why."""
        words = prediction.verdict(self._found)
        return f"{words}: {prediction.reason(self._found)}" if self.scenario.gamma else words

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The figures behind the verdict, name and value."""
        return list(_facts(self.scenario, self._found, self._made.point))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the closed form leaves out at this operating point."""
        return self._made.point.notes

    @cached_property
    def sections(self) -> list[Section]:
        """The closed form, drawn."""
        return list(closed_sections(self._made))

    @property
    def yaml(self) -> str:
        """The scenario file that gives what is seen."""
        return to_yaml(self.scenario)

    def command(self, verb: str = "predict") -> str:
        """Write the command line that gives what is seen."""
        return command(self.base.target, (*self.base.sets, *self.sets), verb)


def _facts(scenario: Scenario, found: Prediction, point: OperatingPoint) -> list[tuple[str, str]]:
    rows = [
        ("Time per token", milliseconds(float(found.tpot_s))),
        ("Plain decoding", milliseconds(float(found.baseline_tpot_s))),
        ("Speedup", times(float(found.speedup))),
    ]
    if scenario.gamma:
        alpha, draft_now_s = prediction.now(scenario, found, point)
        rows += [
            ("Tokens per round", number(float(found.tokens_per_round))),
            ("Round", milliseconds(float(found.round_s))),
            ("Break-even α", f"{_or_none(float(found.break_even_alpha))} (now {alpha:.4g})"),
            (
                "Break-even draft step",
                f"{milliseconds(float(found.break_even_draft_step_s))} "
                f"(now {milliseconds(draft_now_s)})",
            ),
            ("Best γ", prediction.best_words(scenario, found)),
            ("With a perfect draft", times(float(found.speedup_perfect_draft))),
            ("With a free draft", times(float(found.speedup_free_draft))),
        ]
    rows.append(("Batch, context", f"{point.batch:.3g}, {point.context_tokens:,.0f} tokens"))
    if point.load is not None:
        rows.append(("Load of a replica", percent(point.load)))
    return rows


def _or_none(value: float) -> str:
    return "none" if value != value else f"{value:.4g}"  # noqa: PLR0124 (NaN)
