"""Exact queueing results: what the simulator is held against, and first answers without it.

All rates are per second, all times in seconds, everything broadcasts. Where the load reaches 1 a
queue has no steady state: the mean wait is infinite, and that is what these functions return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def utilisation(arrival_rate: ArrayLike, service_s: ArrayLike, servers: ArrayLike = 1) -> Floats:
    """ρ = λ E[S]/c: share of time each of c servers is busy; at 1 or more the queue grows.

    >>> float(utilisation(4.0, 0.125))
    0.5
    """
    load: Floats = (
        _finite(arrival_rate, "arrival_rate")
        * _finite(service_s, "service_s")
        / _finite(servers, "servers")
    )
    return load


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


def mm1_wait_s(arrival_rate: ArrayLike, service_s: ArrayLike) -> Floats:
    """Mean wait with exponential service: W = ρ E[S]/(1 − ρ), since E[S²] = 2 E[S]².

    >>> float(mm1_wait_s(0.5, 1.0))
    1.0
    """
    mean = np.asarray(service_s, dtype=np.float64)
    return pollaczek_khinchine_wait_s(arrival_rate, mean, 2 * mean**2)


def md1_wait_s(arrival_rate: ArrayLike, service_s: ArrayLike) -> Floats:
    """Mean wait with constant service: W = ρ E[S]/(2(1 − ρ)), half of M/M/1.

    >>> float(md1_wait_s(0.5, 1.0))
    0.5
    """
    mean = np.asarray(service_s, dtype=np.float64)
    return pollaczek_khinchine_wait_s(arrival_rate, mean, mean**2)


def mmc_wait_s(arrival_rate: ArrayLike, service_s: ArrayLike, servers: int) -> Floats:
    """Mean wait of M/M/c: W = C(c, λ E[S]) E[S]/(c(1 − ρ)), C by Erlang's recursion (Erlang 1917).

    B(0) = 1, B(k) = aB(k−1)/(k + aB(k−1)), C = B/(1 − ρ(1 − B)), a = λ E[S]. inf where ρ ≥ 1.

    >>> float(mmc_wait_s(1.0, 1.0, 2).round(9))
    0.333333333
    """
    mean = _finite(service_s, "service_s")
    offered = _finite(arrival_rate, "arrival_rate") * mean
    load = offered / servers
    blocking = np.ones_like(offered)
    for busy in range(1, servers + 1):
        blocking = offered * blocking / (busy + offered * blocking)
    with np.errstate(divide="ignore", invalid="ignore"):
        waiting = blocking / (1 - load * (1 - blocking))
        return np.where(load < 1, waiting * mean / (servers * (1 - load)), np.inf)


def little_population(rate: ArrayLike, time_s: ArrayLike) -> Floats:
    """L = λ W: mean number inside, from the rate through and the mean time inside (Little 1961).

    >>> float(little_population(4.0, 0.25))
    1.0
    """
    population: Floats = _finite(rate, "rate") * _finite(time_s, "time_s")
    return population


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
