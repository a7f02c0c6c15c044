"""The formulas compiled for scalars give what NumPy gives, bit for bit, in every kind of cost."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.extending import register_jitable

from specplan.models import cost
from specplan.models.cost import Cost, constant, linear, table
from specplan.models.hardware import Gpu, Model
from specplan.models.layers import Attention, Layer, Mlp

for formula in cost.FORMULAS:
    register_jitable(formula)
# As the kernel compiles them: without a heap, dividing as NumPy does.
njit: Any = numba.njit
compiled_seconds = njit(cost.seconds, error_model="numpy", _nrt=False)

GPU = Gpu("h100", 80e9, 3.35e12, {"bf16": 989e12, "fp8": 1979e12}, 450e9)
MOE = Model(
    "moe",
    2048,
    151936,
    (
        Layer(Attention(32, 4, 128), Mlp(0, 128, 8, 768), 24),
        Layer(Attention(32, 4, 128, window=128), Mlp(6144), 24),
    ),
)
BATCHES, WIDTHS, CONTEXTS = [1, 4, 16], [1, 2, 8], [0, 500, 4000]
TIMES = np.cumsum(np.ones((3, 3, 3)), axis=1) + np.arange(27).reshape(3, 3, 3) / 64

COSTS = {
    "constant": constant(0.1),
    "linear": linear(5.886e-3, 1e-5, 2.101e-5, 3.926e-8),
    "composed": linear(1e-3, 1e-5, 1e-6, 1e-7).composed(2e-3, 1e-4),
    "roofline": cost.roofline(GPU, MOE, "fp8", tensor_parallel=2),
    "table refuse": table(BATCHES, WIDTHS, TIMES, CONTEXTS),
    "table hold padded": table(BATCHES, WIDTHS, TIMES, CONTEXTS, outside="hold", pads_batch=True),
    "table extend": table(BATCHES, WIDTHS, TIMES, CONTEXTS, outside="extend"),
}


@pytest.mark.parametrize("priced", COSTS.values(), ids=COSTS)
@given(
    batch=st.integers(0, 20),
    width=st.integers(0, 9),
    context=st.integers(0, 5000),
    prefill=st.sampled_from([0, 0, 3, 512]),
)
def test_compiled_scalars_are_bit_identical(
    priced: Cost, batch: int, width: int, context: int, prefill: int
) -> None:
    totals = [float(x) for x in (batch, batch * width, batch * context, prefill)]
    array = np.asarray(cost.seconds(*priced.arrays(), *(np.array([x, x]) for x in totals)))
    scalar = compiled_seconds(*priced.arrays(), *totals)
    assert np.array_equal(array, [scalar, scalar], equal_nan=True)


@pytest.mark.parametrize("priced", COSTS.values(), ids=COSTS)
def test_no_work_costs_nothing(priced: Cost) -> None:
    assert priced.seconds(3, 0, 100) == 0.0
    assert compiled_seconds(*priced.arrays(), 3.0, 0.0, 300.0, 0.0) == 0.0
