"""The cost models of `models.cost`, compiled, and packed one behind the other into one array."""

from collections.abc import Sequence

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from specplan.models import cost
from specplan.models.cost import Cost
from specplan.sim.compiled import interpreted, outlined

# numba compiles a function once more for every literal it is called with; NumPy integers are none.
STEP, ROUND, TARGET_PREFILL, DRAFT_STEP, DRAFT_PREFILL = np.arange(5)
NOTHING = np.int64(0)

if not interpreted:
    for _formula in cost.FORMULAS:
        register_jitable(_formula)
_seconds = outlined(cost.seconds)


def packed(costs: Sequence[Cost]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Lay costs one behind the other: the numbers, and for each (kind, start, five lengths)."""
    numbers: list[NDArray[np.float64]] = []
    index = np.zeros((len(costs), 7), np.int64)
    start = 0
    for row, model in enumerate(costs):
        kind, coefficients, *axes, values = model.arrays()
        index[row] = (kind, start, len(coefficients), *(len(axis) for axis in axes), values.size)
        numbers += [coefficients, *axes, values.ravel()]
        start += int(index[row, 2:].sum())
    return np.concatenate(numbers), index


@outlined
def price(tables, which, sequences, tokens, context_tokens, prefill_tokens):
    """Price one pass under cost number `which`, in seconds; arguments are totals over the batch."""
    row = tables.cost_index[which]
    a = row[1]
    b = a + row[2]
    c = b + row[3]
    d = c + row[4]
    e = d + row[5]
    f = e + row[6]
    numbers = tables.costs
    return _seconds(
        row[0],
        numbers[a:b],
        numbers[b:c],
        numbers[c:d],
        numbers[d:e],
        numbers[e:f].reshape((row[3], row[4], row[5])),
        float(sequences),
        float(tokens),
        float(context_tokens),
        float(prefill_tokens),
    )
