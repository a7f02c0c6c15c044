"""Many points at once: the closed form in as few calls as possible, or a simulation each."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields
from html import escape
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import speedup
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.extrapolated import ENDS, stated_positions
from specplan.scenarios.load import override
from specplan.sim.design import Design
from specplan.sim.ledger import numbers_of, point_key
from specplan.sim.vectorised import one_call, predict_at_once, without_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd
    from numpy.typing import NDArray

    from specplan.scenarios.lower import End
    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis
    from specplan.sim.ledger import Ledger
    from specplan.sim.records import Run

    Columns = dict[str, NDArray[Any]]
    Figures = dict[str, float]
    Measure = Callable[[Run], Mapping[str, Any]]
    Progress = Callable[[int, int], None]

AHEAD = 256  # points handed to the executor at a time: enough to keep any cluster busy
# The fields of a Prediction that a sweep keeps; those of a finite output cost a recursion a point.
FIGURES = (
    "gamma",
    "speedup",
    "tpot_s",
    "baseline_tpot_s",
    "tokens_per_round",
    "round_s",
    "round_cost_ratio",
    "break_even_alpha",
    "break_even_draft_step_s",
    "best_gamma",
    "best_gamma_speedup",
    "best_gamma_searched_to",
    "speedup_perfect_draft",
    "speedup_free_draft",
    "operations_factor",
    "target_reads_per_token",
)
BANDS = ("speedup", "tokens_per_round")


@dataclass(frozen=True, repr=False)
class Grid:
    """A finished sweep: one row a point, the last group of fields fastest.

    `columns` holds the figures and the varied fields (in seconds, bytes, …), each `(points,)`.
    `by` is `closed-form` or `simulate`.
    """

    design: Design
    columns: Columns
    name: str
    by: str

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The field each dimension is laid out by."""
        return self.design.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each dimension."""
        return self.design.shape

    def figure(self, name: str) -> NDArray[np.float64]:
        """One column in the shape of the grid."""
        return np.asarray(self.columns[name], dtype=np.float64).reshape(self.shape)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table, one row a point."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __repr__(self) -> str:
        return f"Grid({self.name}: {len(self.design):,} points, {self.by})"

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return f"<p>{escape(repr(self))}</p>" + self.to_pandas().to_html(max_rows=20, notebook=True)


def at(scenario: Scenario, settings: Iterable[str]) -> Scenario:
    """Apply the settings of a point; its faults name --vary. Raises ScenarioError."""
    try:
        return override(scenario, settings)
    except ScenarioError as error:
        told = [
            Fault(f.wrong, f.right, f.file.replace("--set", "--vary"), f.line, f.column, f.field)
            for f in error.faults
        ]
        raise ScenarioError(told) from None


def check_ends(scenario: Scenario, design: Design) -> None:
    """Validate the smallest and the largest value of every field before any work on a grid.

    A field of words is tried at its first and last. Each is a point of the grid, the other groups
    at their first value. Raises ScenarioError.
    """
    first = [0] * len(design.groups)
    tried = {tuple(first)}
    at(scenario, design.settings(first))
    for index, group in enumerate(design.groups):
        for axis in group:
            numbers = np.arange(len(axis)) if axis.numbers is None else axis.numbers
            for end in (int(np.argmin(numbers)), int(np.argmax(numbers))):
                place = (*first[:index], end, *first[index + 1 :])
                if place not in tried:
                    tried.add(place)
                    at(scenario, design.settings(place))


def predict_grid(scenario: Scenario, design: Design, progress: Progress | None = None) -> Grid:
    """Compute the closed form at every point, in one call where `sim.vectorised` allows.

    Other fields (γ, batch, lists, …) take one call for each of their combinations. Figures are
    the `FIGURES` of `models.speedup.Prediction`, NaN where one does not exist; where a rule extends
    the acceptance, both ends of its band are the columns `BANDS`_low and _high, NaN at γ that are
    stated. Raises ScenarioError when any point is not a valid scenario.
    """
    check_ends(scenario, design)
    groups, shape = design.groups, design.shape
    fast = [i for i, group in enumerate(groups) if one_call(group)]
    slow = [i for i in range(len(groups)) if i not in fast]
    figures: dict[str, NDArray[Any]] = {}
    places = list(product(*[range(shape[i]) for i in slow]))
    for done, place in enumerate(places, start=1):
        chosen = Design(tuple(groups[i] for i in slow)).settings(place)
        where: list[Any] = [slice(None)] * len(groups)
        for i, j in zip(slow, place, strict=True):
            where[i] = j
        varied = Design(tuple(groups[i] for i in fast))
        found = _part(scenario, chosen, varied)
        for figure in FIGURES:
            values = getattr(found, figure)
            if figure not in figures:
                figures[figure] = np.empty(shape, dtype=values.dtype)
            figures[figure][tuple(where)] = values
        first = varied.settings([0] * len(varied.groups))  # no value of these states positions
        beyond = found.gamma > stated_positions(at(scenario, [*chosen, *first]))
        for end in ENDS if beyond.any() else ():
            part = _part(scenario, chosen, varied, end)
            for figure in BANDS:
                column = figures.setdefault(f"{figure}_{end}", np.full(shape, np.nan))
                column[tuple(where)] = np.where(beyond, getattr(part, figure), np.nan)
        if progress is not None:
            progress(done, len(places))
    flat = {key: values.reshape(-1) for key, values in figures.items()}
    return Grid(design, {**flat, **design.coordinates()}, scenario.name, "closed-form")


def _part(
    scenario: Scenario, chosen: Sequence[str], design: Design, end: End = "unconditional"
) -> speedup.Prediction:
    """Predict the vectorised fields of a grid; point by point where one call would differ."""
    found = predict_at_once(lambda more: at(scenario, [*chosen, *more]), design.groups, end)
    if found is not None:
        return found
    each = [without_finite(at(scenario, [*chosen, *more]), end) for more in design.points()]
    return speedup.Prediction(
        **{
            field.name: np.array([getattr(p, field.name) for p in each]).reshape(design.shape)
            for field in fields(speedup.Prediction)
        }
    )


def simulate_grid(  # noqa: PLR0917
    scenario: Scenario,
    design: Design,
    measure: Measure,
    executor: Executor,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> Grid:
    """Simulate every point on the scenario's own seed, so that all share their luck.

    `measure` turns a run into figures in the worker; its numbers become columns, whatever else it
    returns is left out. Points that `ledger` knows are not computed again, new ones are written to
    it as they come. Results depend neither on `executor`, any of `concurrent.futures`, nor on the
    order in which points finish. Raises ScenarioError before the first run when any point is not a
    valid scenario, and when a worker process dies.
    """
    check_ends(scenario, design)
    asked = [at(scenario, settings) for settings in design.points()]
    keys = [point_key(point, measure.__qualname__) for point in asked]
    rows = ledger.known() if ledger is not None else {}
    missing = [(k, p) for k, p in dict(zip(keys, asked, strict=True)).items() if k not in rows]
    for done, (key, figures) in enumerate(_computed(missing, measure, executor), start=1):
        rows[key] = figures
        if ledger is not None:
            ledger.add(key, figures)
        if progress is not None:
            progress(done, len(missing))
    names = list(dict.fromkeys(name for key in keys for name in rows[key]))
    columns = {name: np.array([rows[key].get(name, np.nan) for key in keys]) for name in names}
    return Grid(design, {**design.coordinates(), **columns}, scenario.name, "simulate")


def _computed(
    missing: Sequence[tuple[str, Scenario]], measure: Measure, executor: Executor
) -> Iterator[tuple[str, Figures]]:
    """Compute points as workers become free, in the order in which they finish."""
    waiting = iter(missing)
    running: dict[Future[Figures], str] = {}
    try:
        while True:
            for key, point in islice(waiting, AHEAD - len(running)):
                running[executor.submit(simulate_point, point, measure)] = key
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as error:
        wrong = "a worker process was killed (out of memory?)"
        raise ScenarioError(Fault(wrong, "fewer --workers; --resume goes on")) from error
    finally:
        for future in running:
            future.cancel()


def simulate_point(scenario: Scenario, measure: Measure) -> Figures:
    """Simulate one point and take its figures, in whatever process this is."""
    from specplan.sim.simulate import simulate

    run = simulate(scenario)
    if run.interrupted:  # half a run is no result
        raise KeyboardInterrupt
    return numbers_of(measure(run))
