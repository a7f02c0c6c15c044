"""What one pass through a model costs: every cost model behind one interface.

A pass runs over `sequences` sequences with `tokens` decode positions (the sum of their widths),
`context_tokens` cached positions (the sum of their contexts) and `prefill_tokens` prompt positions.
The formulas take these totals and use only arithmetic that means the same for NumPy arrays and for
scalars inside numba, so that `sim/kernel.py` compiles these very functions:

    for formula in cost.FORMULAS:
        numba.extending.register_jitable(formula)
    seconds = numba.njit(cache=True)(cost.seconds)
    seconds(*some_cost.arrays(), sequences, tokens, context_tokens, prefill_tokens)

No `exp` or `**`: NumPy and LLVM round those differently, and predict and simulate must agree to the
last bit.
"""

# ruff: noqa: ARG001, PLR0917 (all formulas share one positional signature, which the kernel calls)

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Amount = float | NDArray[np.floating[Any]]
Arrays = tuple[
    int,
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]

CONSTANT, LINEAR = 0, 1
KINDS = ("constant", "linear")
PROVENANCES = ("measured", "fitted", "datasheet", "assumed", "analytical")


def constant_seconds(
    coefficients: NDArray[np.float64],
    sequences: Amount,
    tokens: Amount,
    context_tokens: Amount,
    prefill_tokens: Amount,
) -> Amount:
    """Price a pass at one fixed duration, `coefficients[0]` seconds, and at 0 without work.

    >>> constant_seconds(np.array([0.1]), 1, 3, 500, 0)
    np.float64(0.1)
    """
    priced: Amount = coefficients[0] * (tokens + prefill_tokens > 0)
    return priced


def linear_seconds(
    coefficients: NDArray[np.float64],
    sequences: Amount,
    tokens: Amount,
    context_tokens: Amount,
    prefill_tokens: Amount,
) -> Amount:
    """Price a pass as base + per sequence + per position + per cached position; 0 without work.

    Coefficients, in seconds: base, per sequence, per token, per context token. This is the form
    published for Llama-3.1-8B on one H100 (SpecDecode-Bench, arXiv 2601.11580, predictor.py).

    >>> round(linear_seconds(np.array([5.886e-3, 0.0, 2.101e-5, 3.926e-8]), 1, 4, 1000, 0), 9)
    np.float64(0.0060093)
    """
    priced: Amount = (
        coefficients[0]
        + coefficients[1] * sequences
        + coefficients[2] * (tokens + prefill_tokens)
        + coefficients[3] * context_tokens
    )
    worked: Amount = priced * (tokens + prefill_tokens > 0)
    return worked


def seconds(
    kind: int,
    coefficients: NDArray[np.float64],
    batch_axis: NDArray[np.float64],
    width_axis: NDArray[np.float64],
    context_axis: NDArray[np.float64],
    values: NDArray[np.float64],
    sequences: Amount,
    tokens: Amount,
    context_tokens: Amount,
    prefill_tokens: Amount,
) -> Amount:
    """Price a pass under a lowered cost: max(formula, launch floor) + overhead; 0 without work.

    The first six arguments are `Cost.arrays()`. The last two coefficients are the launch floor and
    the overhead, in seconds; those before them are the formula's own.

    >>> seconds(*constant(0.1).arrays(), 1, 1, 0, 0)
    np.float64(0.1)
    """
    if kind == 0:
        busy = constant_seconds(coefficients, sequences, tokens, context_tokens, prefill_tokens)
    else:
        busy = linear_seconds(coefficients, sequences, tokens, context_tokens, prefill_tokens)
    whole: Amount = np.maximum(busy, coefficients[-2]) + coefficients[-1]
    worked: Amount = whole * (tokens + prefill_tokens > 0)
    return worked


FORMULAS = (constant_seconds, linear_seconds)


def _no_axis() -> NDArray[np.float64]:
    return np.zeros(0)


def _no_values() -> NDArray[np.float64]:
    return np.zeros((0, 0, 0))


@dataclass(frozen=True, eq=False)
class Cost:
    """The price of a pass: a formula and its numbers, what is put around it, and where it is from.

    `launch_floor_s` is a duration below which no pass gets; `overhead_s` is added to every pass.
    `provenance` is one of `PROVENANCES`; `source` says where the numbers were found.
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
        `prefill_tokens` prompt positions in the whole pass.

        >>> linear(0.006, per_token_s=21e-6).seconds(batch=[1, 32], width=4).round(6).tolist()
        [0.006084, 0.008688]
        """
        sequences = np.asarray(batch, dtype=np.float64)
        tokens = sequences * np.asarray(width, dtype=np.float64)
        context = sequences * np.asarray(context_tokens, dtype=np.float64)
        prefill = np.asarray(prefill_tokens, dtype=np.float64)
        priced = seconds(*self.arrays(), *np.broadcast_arrays(sequences, tokens, context, prefill))
        return np.asarray(priced, dtype=np.float64)

    def composed(self, launch_floor_s: float = 0.0, overhead_s: float = 0.0) -> "Cost":
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


def linear(
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


def _checked(kind: str, named: tuple[tuple[str, float], ...], provenance: str, source: str) -> Cost:
    for name, value in named:
        if not 0 <= value < np.inf:
            raise ValueError(f"{name} is {value} (a finite duration, 0 or more)")
    coefficients = np.array([value for _, value in named], dtype=np.float64)
    return Cost(kind, coefficients, provenance=provenance, source=source)
