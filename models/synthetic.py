"""Synthetic acceptance: what engines do when told an acceptance length instead of running a draft.

One τ, two laws: the mean is the same, the tail is not, so latency percentiles differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from specplan.models.conversions import (
    ROUNDING,
    alpha_from_tokens_per_round,
    checked_gamma,
    unconditional_from_alpha,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Engine = Literal["vllm", "sglang", "tensorrt-llm", "llama.cpp"]


def minimum_variance(acceptance_length: float, gamma: int) -> Floats:
    """Return A = (1, …, 1, fraction, 0, …) with Σ A = τ − 1: the law of least variance.

    vLLM `synthetic_acceptance_length`, SGLang `SGLANG_SIMULATE_ACC_METHOD=match-expected` (there
    one draw for the whole batch), TensorRT-LLM forced tokens (InferenceX golden_al README). → (γ,).
    Raises ValueError unless 1 ≤ τ ≤ γ + 1.

    >>> minimum_variance(3.5, 4).tolist()
    [1.0, 1.0, 0.5, 0.0]
    """
    accepted = _accepted(acceptance_length, gamma)
    return np.clip(accepted - np.arange(gamma), 0.0, 1.0)


def constant_conditional(acceptance_length: float, gamma: int) -> Floats:
    """Return A_i = p^i with p + … + p^γ = τ − 1: llama.cpp `--spec-synth-len`. → (γ,).

    >>> constant_conditional(1.75, 2).round(12).tolist()
    [0.5, 0.25]
    """
    alpha = alpha_from_tokens_per_round(1 + _accepted(acceptance_length, gamma), gamma)
    return unconditional_from_alpha(alpha, gamma)


def engine_unconditional(engine: Engine, acceptance_length: float, gamma: int) -> Floats:
    """Return the list A (γ,) that an engine produces when asked for τ (bonus included).

    >>> engine_unconditional("tensorrt-llm", 3.5, 4).tolist()
    [1.0, 1.0, 0.5, 0.0]
    """
    law = constant_conditional if engine == "llama.cpp" else minimum_variance
    return law(acceptance_length, gamma)


def engine_setting(engine: Engine, acceptance_length: float) -> float:
    """Return the number to give the engine for τ: TensorRT-LLM counts drafts only, so τ − 1.

    >>> engine_setting("tensorrt-llm", 3.5), engine_setting("vllm", 3.5)
    (2.5, 3.5)
    """
    return acceptance_length - 1 if engine == "tensorrt-llm" else acceptance_length


def _accepted(acceptance_length: float, gamma: int) -> float:
    accepted = acceptance_length - 1
    if not -ROUNDING <= accepted <= checked_gamma(gamma) + ROUNDING:
        raise ValueError(
            f"acceptance length is {acceptance_length:g} at gamma {gamma}; "
            f"with the bonus token it lies between 1 and gamma + 1 = {gamma + 1}"
        )
    return min(max(accepted, 0.0), float(gamma))
