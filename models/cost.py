"""What one pass through a model costs: every cost model behind one interface, with its source."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from specplan.models.cost_formulas import (
    FORMULAS,
    KINDS,
    constant_seconds,
    linear_seconds,
    seconds,
)
from specplan.models.cost_table import OUTSIDE_RULES, checked_axis, checked_values
from specplan.models.roofline import Efficiency, roofline_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from specplan.models.hardware import Gpu, Model

__all__ = [
    "FORMULAS",
    "KINDS",
    "PROVENANCES",
    "Cost",
    "constant",
    "constant_seconds",
    "linear",
    "linear_seconds",
    "roofline",
    "seconds",
    "table",
]

Arrays = tuple[
    int,
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]

PROVENANCES = ("measured", "fitted", "datasheet", "assumed", "analytical")


def _no_axis() -> NDArray[np.float64]:
    return np.zeros(0)


def _no_values() -> NDArray[np.float64]:
    return np.zeros((0, 0, 0))


@dataclass(frozen=True, eq=False)
class Cost:
    """The price of a pass: a formula and its numbers, what is put around it, and where it is from.

    `launch_floor_s` is a duration below which no pass gets; `overhead_s` is added to every pass.
    `provenance` is one of `PROVENANCES`; `source` says where the numbers were found, `name` whose
    cost it is, as errors call it.
    """

    kind: str
    coefficients: NDArray[np.float64]
    batch_axis: NDArray[np.float64] = field(default_factory=_no_axis)
    width_axis: NDArray[np.float64] = field(default_factory=_no_axis)
    context_axis: NDArray[np.float64] = field(default_factory=_no_axis)
    values: NDArray[np.float64] = field(default_factory=_no_values)
    launch_floor_s: float = 0.0
    overhead_s: float = 0.0
    provenance: str = "assumed"
    source: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"cost kind {self.kind!r} does not exist (one of {', '.join(KINDS)})")
        if self.provenance not in PROVENANCES:
            raise ValueError(
                f"provenance {self.provenance!r} does not exist (one of {', '.join(PROVENANCES)})"
            )
        for name, value in (
            ("launch_floor_s", self.launch_floor_s),
            ("overhead_s", self.overhead_s),
        ):
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} is {value} (a finite duration, 0 or more)")

    def arrays(self) -> Arrays:
        """Lower to what `seconds` takes before the totals.

        Kind number, coefficients (last two: launch floor, overhead), batch, width and context axes,
        values `(batch, width, context)`; everything but the kind is float64.
        """
        coefficients = np.append(self.coefficients, (self.launch_floor_s, self.overhead_s))
        return (
            KINDS.index(self.kind),
            coefficients,
            self.batch_axis,
            self.width_axis,
            self.context_axis,
            self.values,
        )

    def seconds(
        self,
        batch: ArrayLike,
        width: ArrayLike,
        context_tokens: ArrayLike = 0,
        prefill_tokens: ArrayLike = 0,
    ) -> NDArray[np.float64]:
        """Price a pass, in seconds; everything broadcasts.

        `batch` sequences of `width` positions with `context_tokens` cached positions *each*, and
        `prefill_tokens` prompt positions in the whole pass. Outside a table this raises ValueError,
        or warns where the table has a rule for it.

        >>> linear(0.006, per_token_s=21e-6).seconds(batch=[1, 32], width=4).round(6).tolist()
        [0.006084, 0.008688]
        """
        sequences = np.asarray(batch, dtype=np.float64)
        tokens = sequences * np.asarray(width, dtype=np.float64)
        context = sequences * np.asarray(context_tokens, dtype=np.float64)
        prefill = np.asarray(prefill_tokens, dtype=np.float64)
        totals = np.broadcast_arrays(sequences, tokens, context, prefill)
        if self.kind == "table":
            self._warn_or_refuse_outside(totals)
        return np.asarray(seconds(*self.arrays(), *totals), dtype=np.float64)

    def reach(self) -> str:
        """Say which passes a table covers; one context is for all.

        >>> table([1, 8], [1, 5], [[0.010, 0.012], [0.014, 0.020]]).reach()
        'batch 1 to 8, width 1 to 5'
        """
        axes = {"batch": self.batch_axis, "width": self.width_axis}
        if self.context_axis.size > 1:
            axes["context"] = self.context_axis
        return ", ".join(f"{name} {axis[0]:g} to {axis[-1]:g}" for name, axis in axes.items())

    def _warn_or_refuse_outside(self, totals: tuple[NDArray[np.float64], ...]) -> None:
        kind, coefficients, *grid = self.arrays()
        refusing = np.append(0.0, coefficients[1:])
        outside = np.isnan(seconds(kind, refusing, *grid, *totals))
        if not np.any(outside):
            return
        first = tuple(np.argwhere(outside)[0])
        batch = max(float(totals[0][first]), 1.0)
        width = float(totals[1][first] + totals[3][first]) / batch
        rule = OUTSIDE_RULES[int(coefficients[0])]
        context = f", context {totals[2][first] / batch:g}" if self.context_axis.size > 1 else ""
        sentence = (
            f"batch {batch:g}, width {width:g}{context} is outside the cost table: {self.reach()}"
        )
        sentence = f"{self.name}: {sentence}" if self.name else sentence
        if rule == "refuse":
            right = "measure there, or name a rule: `outside: hold` or `outside: extend`"
            raise ValueError(f"{sentence} ({right})")
        warnings.warn(f"{sentence}; rule {rule!r} is applied", stacklevel=3)

    def composed(self, launch_floor_s: float = 0.0, overhead_s: float = 0.0) -> Cost:
        """Add a launch floor (the larger one holds) and an overhead (they add up) around this cost.

        >>> float(constant(0.002).composed(launch_floor_s=0.003, overhead_s=0.001).seconds(1, 1))
        0.004
        """
        return replace(
            self,
            launch_floor_s=max(self.launch_floor_s, launch_floor_s),
            overhead_s=self.overhead_s + overhead_s,
        )


def constant(duration_s: float, provenance: str = "assumed", source: str = "") -> Cost:
    """Make a cost that is the same for every pass, in seconds.

    Raises ValueError for a negative or infinite duration.

    >>> float(constant(0.02).seconds(batch=8, width=1))
    0.02
    """
    return _checked("constant", (("duration_s", duration_s),), provenance, source)


def linear(  # noqa: PLR0917 (the coefficients, in the order of the formula)
    base_s: float,
    per_sequence_s: float = 0.0,
    per_token_s: float = 0.0,
    per_context_token_s: float = 0.0,
    provenance: str = "assumed",
    source: str = "",
) -> Cost:
    """Make a cost of base + per sequence + per position + per cached position, in seconds each.

    Raises ValueError for a negative or infinite coefficient.

    >>> float(linear(0.006, per_sequence_s=1e-5).seconds(batch=10, width=1))
    0.0061
    """
    named = (
        ("base_s", base_s),
        ("per_sequence_s", per_sequence_s),
        ("per_token_s", per_token_s),
        ("per_context_token_s", per_context_token_s),
    )
    return _checked("linear", named, provenance, source)


def table(
    batch: ArrayLike,
    width: ArrayLike,
    seconds: ArrayLike,
    context_tokens: ArrayLike = (0.0,),
    *,
    pads_batch: bool = False,
    outside: str = "refuse",
    provenance: str = "measured",
    source: str = "",
) -> Cost:
    """Make a cost from measured pass times `(batch, width)` or `(batch, width, context)`, seconds.

    Interpolated linearly along each axis; with `pads_batch` a batch costs what the next measured
    one does, as where an engine replays a captured graph. `outside` names what happens beyond the
    table: `refuse`, `hold` the edge's value, `extend` the edge's slope. One context is for all.

    Raises ValueError for axes out of order, holes, times not positive, and falling pass times.

    >>> float(table([1, 8], [1, 5], [[0.010, 0.012], [0.014, 0.020]]).seconds(1, 3))
    0.011
    """
    batches, widths = checked_axis("batch", batch), checked_axis("width", width)
    contexts = checked_axis("context", context_tokens)
    if outside not in OUTSIDE_RULES:
        raise ValueError(f"rule {outside!r} does not exist (one of {', '.join(OUTSIDE_RULES)})")
    times = checked_values(seconds, batches, widths, contexts)
    coefficients = np.array([OUTSIDE_RULES.index(outside), pads_batch, 0.0, np.nan])
    return Cost(
        "table",
        coefficients,
        batches,
        widths,
        contexts,
        times,
        provenance=provenance,
        source=source,
    )


def roofline(
    gpu: Gpu,
    model: Model,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    *,
    tensor_parallel: int = 1,
    efficiency: Efficiency | None = None,
    slowdown: float = 1.0,
) -> Cost:
    """Make a cost from a GPU's datasheet and a model's architecture (`roofline_of`, its docstring).

    `dtype` None keeps the types that the model's config says. `slowdown` multiplies what grows with
    the work, as `models.roofline_fit` finds it.

    Raises ValueError for an unknown dtype, a tensor-parallel size that does not divide the heads,
    and a slowdown that is not above 0.
    """
    if not 0 < slowdown < np.inf:
        raise ValueError(f"slowdown is {slowdown} (a finite number above 0)")
    stored = model.with_dtype(dtype, kv_dtype)
    reached = efficiency or Efficiency()
    shape = roofline_of(gpu, stored, tensor_parallel, reached).slower(slowdown)
    source = f"{gpu.name} × {model.name}, TP {tensor_parallel}; {gpu.source}; {reached.says()}"
    return Cost("roofline", shape.coefficients(), provenance="datasheet", source=source)


def _checked(kind: str, named: tuple[tuple[str, float], ...], provenance: str, source: str) -> Cost:
    for name, value in named:
        if not 0 <= value < np.inf:
            raise ValueError(f"{name} is {value} (a finite duration, 0 or more)")
    coefficients = np.array([value for _, value in named], dtype=np.float64)
    return Cost(kind, coefficients, provenance=provenance, source=source)
