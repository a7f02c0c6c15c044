"""Exact queueing results: what the simulator is held against.

All rates are per second, all times in seconds, everything broadcasts. Where the load reaches 1 a
queue has no steady state: the mean wait is infinite, and that is what these functions return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def pollaczek_khinchine_wait_s(
    arrival_rate: ArrayLike, service_s: ArrayLike, service_second_moment_s2: ArrayLike
) -> Floats:
    """Mean wait in M/G/1: W = λ E[S²]/(2(1 − ρ)); inf where ρ ≥ 1 (Pollaczek 1930, Khinchine 1932).

    First-come first-served, one server. Raises ValueError when E[S²] < E[S]², which no law has.

    >>> float(pollaczek_khinchine_wait_s(0.5, 1.0, 1.0))  # M/D/1 at ρ = .5
    0.5
    """
    rate, mean = _finite(arrival_rate, "arrival_rate"), _finite(service_s, "service_s")
    second = _finite(service_second_moment_s2, "service_second_moment_s2")
    impossible = second < mean**2 * (1 - 1e-9)
    if np.any(impossible):
        second, mean = np.broadcast_arrays(second, mean)
        raise ValueError(
            f"service_second_moment_s2 is {second[impossible].flat[0]:g} s², below the square of "
            f"the mean ({mean[impossible].flat[0] ** 2:g} s²); E[S²] = variance + mean²"
        )
    load = rate * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load < 1, rate * second / (2 * (1 - load)), np.inf)


def two_resource_cycle_rate(
    sequences: ArrayLike, draft_s: ArrayLike, verify_s: ArrayLike
) -> Floats:
    """Return rounds per second when b sequences alternate between a draft and a target GPU.

    min(b/(D + V), 1/max(D, V)): the asymptotic bounds of a closed network (Denning & Buzen 1978,
    Eq. 18), reached exactly when both times are constant, one sequence at a time on each GPU.

    >>> two_resource_cycle_rate([1, 2, 4], 0.25, 0.75).tolist()
    [1.0, 1.3333333333333333, 1.3333333333333333]
    """
    draft, verify = _finite(draft_s, "draft_s"), _finite(verify_s, "verify_s")
    rate: Floats = np.minimum(
        _finite(sequences, "sequences") / (draft + verify), 1 / np.maximum(draft, verify)
    )
    return rate


def _finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        raise ValueError(f"{name} is {array[bad].flat[0]:g}; it is finite and 0 or more")
    return array
