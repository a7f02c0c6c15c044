"""Scenarios in a notebook: what the commands do, as methods, with tables that show themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specplan.scenarios.load import load as load_scenario
from specplan.scenarios.schema import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from specplan.models.speedup import Prediction
    from specplan.results.answer import Answer
    from specplan.sim.records import Run
    from specplan.sim.sweep import Grid


class Study(Scenario):
    """A scenario with the questions one asks of it; everywhere else it is a scenario like any.

    >>> study = load("toy-20ms")
    >>> study.sweep({"speculation.gamma": [0, 2]}).to_pandas()["speedup"].round(9).tolist()
    [1.0, 1.25]
    """

    def set(self, *settings: str) -> Study:
        """Return a copy with `PATH=VALUE` settings. Raises ScenarioError.

        >>> load("toy-20ms").set("draft.step=50 ms").predict().speedup.round(9).item()
        0.875
        """
        from specplan.scenarios.load import override

        return _study(override(self, settings))

    def predict(self) -> Prediction:
        """Compute the closed form at the scenario's operating point."""
        from specplan.scenarios.closed_form import predict

        return predict(self)

    def simulate(self) -> Run:
        """Simulate the scenario; `specplan.summary` gives its figures."""
        from specplan.sim.simulate import simulate

        return simulate(self)

    def sweep(
        self,
        values: Mapping[str | tuple[str, ...], Any] | Sequence[str],
        *,
        by: str = "closed-form",
        workers: int = 1,
        cluster: str | None = None,
        yes: bool = False,
    ) -> Grid:
        """Vary fields: a dict of fields to values, or texts as `--vary` takes them.

        `{"speculation.gamma": range(9), "draft.step": "5ms..50ms:10"}` crosses two fields;
        `{("speculation.gamma", "draft.step"): [(1, "5 ms"), (2, "6 ms")]}` moves them together.
        `to_pandas()` of the result is one row a point. Raises ScenarioError.
        """
        from specplan.results.sweep.answer import Means, check_size, compute
        from specplan.sim.design import design_of, parse_design

        texts = not hasattr(values, "items")
        design = parse_design(list(values)) if texts else design_of(values)  # type: ignore[arg-type]
        means = Means(by=by, workers=workers, cluster=cluster, yes=yes)
        check_size(self, design, means)
        return compute(self, design, means, None)

    def plan(self, *slo: str, rate: float | None = None, **how: Any) -> Answer:
        """Plan capacity as `specplan plan` does; `how` are the keywords of `plan_answer`.

        `json` of the answer is a dict; in a notebook the answer shows its text.
        """
        from specplan.results.planning.answer import plan_answer

        return plan_answer(self, slo, rate, **how)

    def compare(self, *others: Scenario, replications: int = 1, workers: int = 1) -> Answer:
        """Compare others with this one on the same luck, or this one with plain decoding.

        The answer shows its ranking and differences; `json` is a dict. Raises ScenarioError.

        >>> toy = load("toy-20ms", ["workload.requests=200"])
        >>> toy.compare(toy.set("draft.step=50 ms")).json["ranking"][0]["scenario"]
        'toy-20ms (A)'
        """
        from specplan.results.compare.answer import beside_plain, compared, told_apart
        from specplan.results.replications import Replications

        scenarios = told_apart([self, *others]) if others else beside_plain(self)
        return compared(scenarios, how=Replications(replications, workers))

    def _repr_html_(self) -> str:
        """Show the scenario file in a notebook."""
        from html import escape

        from specplan.scenarios.load import to_yaml

        return f"<pre>{escape(to_yaml(self))}</pre>"


def load(name_or_path: str | Path, sets: Iterable[str] = ()) -> Study:
    """Load a bundled scenario by name or a file by path, with `PATH=VALUE` settings applied.

    Raises ScenarioError with everything that is wrong.

    >>> load("toy-20ms", ["speculation.gamma=3"]).gamma
    3
    """
    return _study(load_scenario(name_or_path, sets))


def _study(scenario: Scenario) -> Study:
    return Study.model_construct(
        _fields_set=scenario.model_fields_set,
        **{name: getattr(scenario, name) for name in Scenario.model_fields},
    )
