"""The block solver against the recurrence stepped one value at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.recurrence import linear_recurrence


def stepped(weights: np.ndarray, inputs: np.ndarray, history: np.ndarray) -> np.ndarray:
    values = list(history)
    for given_input in inputs:
        values.append(given_input + sum(w * values[-1 - j] for j, w in enumerate(weights)))
    return np.array(values[len(history) :])


@given(st.integers(1, 90), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_blocks_equal_steps(order: int, length: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(order))
    inputs, history = random.random(length), random.random(order)
    solved = linear_recurrence(weights, inputs, history)
    assert_allclose(solved, stepped(weights, inputs, history), rtol=1e-10)


def test_leading_axes_broadcast() -> None:
    random = np.random.default_rng(1)
    weights, inputs = random.dirichlet(np.ones(4), 3), random.random((2, 1, 150))
    history = random.random(4)
    solved = linear_recurrence(weights, inputs, history)
    assert solved.shape == (2, 3, 150)
    for i, j in np.ndindex(2, 3):
        assert_allclose(solved[i, j], stepped(weights[j], inputs[i, 0], history), rtol=1e-12)
