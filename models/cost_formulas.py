"""The formulas of all cost kinds over the totals of a pass, and the one function that dispatches.

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

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specplan.models.cost_table import cell_index, cell_share, table_seconds
from specplan.models.roofline import exp_of_negative, larger_of, roofline_seconds

Amount = float | NDArray[np.floating[Any]]

KINDS = ("constant", "linear", "table", "roofline")


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
    the overhead, in seconds; those before them are the formula's own. Outside a table that refuses
    this is NaN: check for it.

    >>> seconds(0, np.array([0.1, 0.0, 0.0]), *[np.zeros(1)] * 3, np.zeros((1, 1, 1)), 1, 1, 0, 0)
    np.float64(0.1)
    """
    if kind == 0:
        busy = constant_seconds(coefficients, sequences, tokens, context_tokens, prefill_tokens)
    elif kind == 1:
        busy = linear_seconds(coefficients, sequences, tokens, context_tokens, prefill_tokens)
    elif kind == 2:
        busy = table_seconds(
            coefficients,
            batch_axis,
            width_axis,
            context_axis,
            values,
            sequences,
            tokens,
            context_tokens,
            prefill_tokens,
        )
    else:
        busy = roofline_seconds(coefficients, sequences, tokens, context_tokens, prefill_tokens)
    whole: Amount = np.maximum(busy, coefficients[-2]) + coefficients[-1]
    worked: Amount = whole * (tokens + prefill_tokens > 0)
    return worked


FORMULAS = (
    cell_index,
    cell_share,
    exp_of_negative,
    larger_of,
    constant_seconds,
    linear_seconds,
    table_seconds,
    roofline_seconds,
)
