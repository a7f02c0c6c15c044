"""The closed form of a whole grid in one call, where the varied fields allow it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models import speedup
from specplan.models.acceptance import unconditional_from_alpha
from specplan.scenarios import closed_form
from specplan.scenarios.priced import Priced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from specplan.models.round_costs import RoundCosts
    from specplan.scenarios.lower import End
    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis

    Group = tuple[Axis, ...]

# Fields that one call can vary: they replace one array of the costs or of the acceptance, and every
# value between two valid ones is valid, so the ends are validated and the rest is arithmetic.
VECTORISED = (
    "draft.step",
    "target.round",
    "target.step",
    "speculation.overhead",
    "speculation.acceptance.alpha",
)


def one_call(group: Group) -> bool:
    """Tell whether all fields of a group may be arrays."""
    return all(axis.path in VECTORISED and axis.numbers is not None for axis in group)


def predict_at_once(
    at: Callable[[Sequence[str]], Scenario],
    groups: Sequence[Group],
    end: End = "unconditional",
) -> speedup.Prediction | None:
    """Predict every combination of the groups, `(n_1, n_2, …)`; None where one call would differ.

    `at` makes the scenario of some settings; `end` is one of the band of an extended acceptance.
    Raises ScenarioError where an end is no valid value.
    """
    if not groups:
        return without_finite(at(()), end)
    places = _corners(groups)
    corners = [
        at([f"{a.path}={a.values[i]}" for group, i in zip(groups, p, strict=True) for a in group])
        for p in places
    ]
    vectors = _vectors(corners, groups, places, end)
    if vectors is None:
        return None
    acceptance, gamma, costs = vectors
    ratio = corners[0].draft.operations_ratio or 0.0
    return speedup.predict(acceptance, gamma, costs, draft_operations_ratio=ratio)


def without_finite(scenario: Scenario, end: End = "unconditional") -> speedup.Prediction:
    """Predict one point of a sweep, which keeps no figure of a finite output."""
    point = closed_form.operating_point(scenario)
    return closed_form.predict_at(scenario, point, finite=False, end=end)


def _corners(groups: Sequence[Group]) -> list[tuple[int, ...]]:
    """Points of the grid among which every field has its smallest and its largest value."""
    ends = []
    for group in groups:
        numbers = [axis.numbers for axis in group if axis.numbers is not None]
        ends.append(sorted({int(pick(n)) for n in numbers for pick in (np.argmin, np.argmax)}))
    count = max(len(rows) for rows in ends)
    return [tuple(rows[min(k, len(rows) - 1)] for rows in ends) for k in range(count)]


def _vectors(
    corners: Sequence[Scenario],
    groups: Sequence[Group],
    places: Sequence[tuple[int, ...]],
    end: End,
) -> tuple[Any, int, RoundCosts] | None:
    """Make the inputs of one call for all points; None where more than they depends on the axes.

    With open arrivals the batch moves with the costs; other placements fold more into a round. So
    the inputs made here are held against the scenario's own at corners of the grid.
    """
    located = [closed_form.operating_point(corner) for corner in corners]
    if len({(point.batch, point.context_tokens, point.gamma) for point in located}) > 1:
        return None
    priced = [Priced(c, p.context_tokens, end) for c, p in zip(corners, located, strict=True)]
    own = [(at.acceptance, at.costs(located[0].batch, located[0].gamma)) for at in priced]
    acceptance, costs = own[0]
    lists: NDArray[np.float64] | None = None
    for index, group in enumerate(groups):
        for axis in group:
            values = _along(axis, index, len(groups))
            if axis.path == "speculation.acceptance.alpha":
                lists = unconditional_from_alpha(values, acceptance.positions)
            else:
                costs = _replaced(costs, axis.path, values, corners[0])
    for (true_acceptance, true_costs), place in zip(own, places, strict=True):
        if not _same(costs, true_costs, place, plain=located[0].gamma == 0):
            return None
        if lists is not None and not _same_law(lists, true_acceptance, place):
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
