"""Many points at once: the closed form in as few calls as possible, or a simulation each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import speedup
from specplan.models.acceptance import unconditional_from_alpha
from specplan.scenarios import closed_form
from specplan.scenarios.load import load
from specplan.scenarios.priced import Priced
from specplan.sim.axes import points, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from specplan.models.round_costs import RoundCosts
    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis
    from specplan.sim.records import Run

    Columns = dict[str, NDArray[Any]]
    Measure = Callable[[Run], Mapping[str, Any]]
    Progress = Callable[[int, int], None]

# Fields that one call can vary: they replace one array of the costs or of the acceptance, and every
# value between two valid ones is valid, so the ends are validated and the rest is arithmetic.
VECTORISED = (
    "draft.step",
    "target.round",
    "target.step",
    "speculation.overhead",
    "speculation.acceptance.alpha",
)
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
    "speedup_perfect_draft",
    "speedup_free_draft",
    "operations_factor",
    "target_reads_per_token",
)


@dataclass(frozen=True)
class Grid:
    """A finished sweep: one row a point, the last axis fastest.

    `columns` holds the figures and the axes (in seconds, bytes, …), each `(points,)`.
    """

    axes: tuple[Axis, ...]
    columns: Columns

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis) for axis in self.axes)

    def figure(self, name: str) -> NDArray[np.float64]:
        """One column in the shape of the grid."""
        return np.asarray(self.columns[name], dtype=np.float64).reshape(self.shape)


def predict_grid(name: str, sets: Sequence[str], axes: Sequence[Axis]) -> Grid:
    """Compute the closed form at every point, in one call where only `VECTORISED` fields vary.

    Other fields (γ, batch, lists, …) take one call for each of their combinations. Figures are
    the `FIGURES` of `models.speedup.Prediction`, NaN where one does not exist. Raises ScenarioError
    when any point is not a valid scenario.
    """
    shape = tuple(len(axis) for axis in axes)
    fast = [
        i for i, axis in enumerate(axes) if axis.path in VECTORISED and axis.numbers is not None
    ]
    slow = [i for i in range(len(axes)) if i not in fast]
    figures: dict[str, NDArray[Any]] = {}
    for place in product(*[range(len(axes[i])) for i in slow]):
        chosen = [f"{axes[i].path}={axes[i].values[j]}" for i, j in zip(slow, place, strict=True)]
        where: list[Any] = [slice(None)] * len(axes)
        for i, j in zip(slow, place, strict=True):
            where[i] = j
        found = _group(name, [*sets, *chosen], [axes[i] for i in fast])
        for figure in FIGURES:
            values = getattr(found, figure)
            if figure not in figures:
                figures[figure] = np.empty(shape, dtype=values.dtype)
            figures[figure][tuple(where)] = values
    flat = {key: values.reshape(-1) for key, values in figures.items()}
    return Grid(tuple(axes), {**flat, **_coordinates(axes)})


def simulate_grid(  # noqa: PLR0917
    name: str,
    sets: Sequence[str],
    axes: Sequence[Axis],
    measure: Measure,
    executor: Executor,
    progress: Progress | None = None,
) -> Grid:
    """Simulate every point on the scenario's own seed, so that all share their luck.

    `measure` turns a run into figures in the worker; its numbers become columns, whatever else it
    returns is left out. Results do not depend on `executor`, any of `concurrent.futures`.
    """
    combinations = list(points(axes))
    for combination in combinations:  # every fault is found before the first run
        load(name, [*sets, *combination])
    work = partial(_simulate_point, name, tuple(sets), measure)
    rows = []
    for done, row in enumerate(executor.map(work, combinations), start=1):
        rows.append(row)
        if progress is not None:
            progress(done, len(combinations))
    names = list(dict.fromkeys(key for row in rows for key in row))
    figures = {key: np.array([row.get(key, np.nan) for row in rows]) for key in names}
    return Grid(tuple(axes), {**_coordinates(axes), **figures})


def _simulate_point(
    name: str, sets: tuple[str, ...], measure: Measure, combination: tuple[str, ...]
) -> dict[str, float]:
    from specplan.sim.simulate import simulate

    figures = measure(simulate(load(name, [*sets, *combination])))
    numbers = {k: np.nan if v is None else v for k, v in figures.items()}
    return {k: float(v) for k, v in numbers.items() if isinstance(v, int | float)}


def _coordinates(axes: Sequence[Axis]) -> Columns:
    if not axes or not size(axes):
        return {}
    meshes = np.meshgrid(*[axis.table_values for axis in axes], indexing="ij")
    return {axis.column: mesh.reshape(-1) for axis, mesh in zip(axes, meshes, strict=True)}


def _group(name: str, sets: Sequence[str], axes: Sequence[Axis]) -> speedup.Prediction:
    """Vary the vectorised axes, `(n_1, n_2, …)`; point by point where one call would differ."""
    if not axes:
        return closed_form.predict(load(name, sets))
    corners = [load(name, [*sets, *corner]) for corner in _corners(axes)]
    vectors = _vectors(corners, axes)
    if vectors is None:
        return _one_by_one(name, sets, axes)
    acceptance, gamma, costs = vectors
    ratio = corners[0].draft.operations_ratio or 0.0
    return speedup.predict(acceptance, gamma, costs, draft_operations_ratio=ratio)


def _corners(axes: Sequence[Axis]) -> Iterator[tuple[str, ...]]:
    for pick in (np.argmin, np.argmax):
        yield tuple(
            f"{axis.path}={axis.values[int(pick(axis.numbers))]}"
            for axis in axes
            if axis.numbers is not None
        )


def _vectors(
    corners: Sequence[Scenario], axes: Sequence[Axis]
) -> tuple[Any, int, RoundCosts] | None:
    """Make the inputs of one call for all points; None where more than they depends on the axes.

    With open arrivals the batch moves with the costs; other placements fold more into a round. So
    the inputs made here are held against the scenario's own at both corners of the grid.
    """
    located = [closed_form.operating_point(corner) for corner in corners]
    if len({(point.batch, point.context_tokens, point.gamma) for point in located}) > 1:
        return None
    priced = [Priced(c, p.context_tokens) for c, p in zip(corners, located, strict=True)]
    own = [(at.acceptance, at.costs(located[0].batch, located[0].gamma)) for at in priced]
    acceptance, costs = own[0]
    lists: NDArray[np.float64] | None = None
    for index, axis in enumerate(axes):
        values = _along(axis, index, len(axes))
        if axis.path == "speculation.acceptance.alpha":
            lists = unconditional_from_alpha(values, acceptance.positions)
        else:
            costs = _replaced(costs, axis.path, values, corners[0])
    for (true_acceptance, true_costs), place in zip(own, (np.argmin, np.argmax), strict=True):
        at = tuple(int(place(axis.numbers)) for axis in axes if axis.numbers is not None)
        if not _same(costs, true_costs, at, plain=located[0].gamma == 0):
            return None
        if lists is not None and not _same_law(lists, true_acceptance, at):
            return None
    return acceptance if lists is None else lists, located[0].gamma, costs


def _along(axis: Axis, index: int, dimensions: int) -> NDArray[np.float64]:
    shape = [1] * dimensions
    shape[index] = len(axis)
    return np.asarray(axis.numbers).reshape(shape)


def _replaced(
    costs: RoundCosts, path: str, values: NDArray[np.float64], scenario: Scenario
) -> RoundCosts:
    if path == "draft.step":
        return dataclasses.replace(costs, draft_step_s=values)
    if path == "target.step":
        return dataclasses.replace(costs, step_s=values)
    if path == "speculation.overhead":
        return dataclasses.replace(costs, overhead_s=values)
    costs = dataclasses.replace(costs, verify_s=values[..., None])
    return costs if scenario.target.step else dataclasses.replace(costs, step_s=values)


def _same(costs: RoundCosts, own: RoundCosts, at: tuple[int, ...], *, plain: bool) -> bool:
    """Tell whether the varied costs at one point are the scenario's own there, to the last bit."""
    pairs = [(_at(costs.step_s, at), own.step_s)]
    if not plain:  # at γ = 0 the others cost nothing, whatever they are
        pairs += [
            (_at(costs.draft_step_s, at), own.draft_step_s),
            (_at(costs.overhead_s, at), own.overhead_s),
            (_at(costs.verify_s, at, trailing=1), own.verify_s),
        ]
    return all(bool(np.all(varied == true)) for varied, true in pairs)


def _at(values: NDArray[np.float64], at: tuple[int, ...], trailing: int = 0) -> NDArray[np.float64]:
    """Pick one grid point; an array that no axis varies has no grid dimensions and stays."""
    if values.ndim <= trailing:
        return values
    picked = (min(i, n - 1) for i, n in zip(at, values.shape, strict=False))
    return np.asarray(values[tuple(picked)])


def _same_law(lists: NDArray[np.float64], own: Any, at: tuple[int, ...]) -> bool:
    one = _at(lists, at, trailing=1)
    certain = bool(np.all(own.draft_probability == 1) and np.all(np.isinf(own.concentration)))
    return certain and len(own.weight) == 1 and bool(np.all(own.unconditional[0] == one))


def _one_by_one(name: str, sets: Sequence[str], axes: Sequence[Axis]) -> speedup.Prediction:
    found = [closed_form.predict(load(name, [*sets, *combination])) for combination in points(axes)]
    shape = tuple(len(axis) for axis in axes)
    return speedup.Prediction(
        **{
            field.name: np.array([getattr(p, field.name) for p in found]).reshape(shape)
            for field in dataclasses.fields(speedup.Prediction)
        }
    )
