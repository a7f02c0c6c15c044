"""Synthetic modes: one τ, each engine's own law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.acceptance import conditional_from_unconditional
from specplan.models.rounds import tokens_per_round, tokens_per_round_variance
from specplan.models.synthetic import Engine, engine_setting, engine_unconditional

ENGINES: list[Engine] = ["vllm", "sglang", "tensorrt-llm", "llama.cpp"]


def test_laws_of_the_engines_by_hand() -> None:
    # published.json synthetic-al: τ 3.5 at γ 4 is conditional 1, 1, .5, 0 (InferenceX README)
    least = engine_unconditional("vllm", 3.5, 4)
    assert_allclose(conditional_from_unconditional(least), [1, 1, 0.5, 0], atol=1e-12)
    assert_allclose(tokens_per_round_variance(least), 0.25, atol=1e-12)
    # llama.cpp --spec-synth-len 1.75 at γ 2: p + p² = .75
    assert_allclose(engine_unconditional("llama.cpp", 1.75, 2), [0.5, 0.25], atol=1e-12)


def test_tensorrt_llm_is_told_one_less() -> None:
    # InferenceX README: a golden acceptance length of 3.5 becomes 2.5
    assert engine_setting("tensorrt-llm", 3.5) == 2.5
    assert [engine_setting(engine, 3.24) for engine in ("vllm", "sglang")] == [3.24, 3.24]


@given(st.sampled_from(ENGINES), st.integers(1, 16), st.floats(0, 1))
def test_every_engine_keeps_the_mean_and_vllm_has_the_least_variance(
    engine: Engine, gamma: int, share: float
) -> None:
    tau = 1 + share * gamma
    law = engine_unconditional(engine, tau, gamma)
    assert_allclose(tokens_per_round(law), tau, rtol=1e-9)
    least = tokens_per_round_variance(engine_unconditional("vllm", tau, gamma))
    assert tokens_per_round_variance(law) >= least - 1e-9
    fraction = np.mod(tau, 1)
    assert_allclose(least, fraction * (1 - fraction), atol=1e-9)


@pytest.mark.parametrize("tau", [0.9, 5.1])
def test_impossible_lengths_are_refused(tau: float) -> None:
    with pytest.raises(ValueError, match=f"acceptance length is {tau} at gamma 4"):
        engine_unconditional("vllm", tau, 4)
