"""Luck: one uniform number a round, a pure function of (seed, request, round).

The number does not depend on batch, replica, γ or acceptance, so two scenarios with one seed are
compared on the same luck, and raising any unconditional acceptance never shortens a round.
The hash is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), used as a counter-based generator.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specplan.sim.compiled import inner

# Streams of one request that must not share their numbers.
ROUND, STOP = np.uint64(0), np.uint64(1)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)
_UNIT = 1.0 / (1 << 53)


def mixed(x: Any) -> Any:
    """Scramble 64 bits so that neighbouring inputs have unrelated outputs (SplitMix64)."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


_mixed = inner(mixed)


@inner
def uniform(key, round_number, stream):
    """Draw the number in [0, 1) of one round of the request with this key."""
    counter = (np.uint64(round_number) << _ONE) + stream
    return np.float64(_mixed(key + _GOLDEN * (counter + _ONE)) >> _S11) * _UNIT


def request_keys(seed: int, requests: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Key of each request's luck, from the seed and the request's number. Shape as given."""
    with np.errstate(over="ignore"):
        root = mixed(np.uint64(seed) + _GOLDEN)
        keys: NDArray[np.uint64] = mixed(root ^ mixed(requests.astype(np.uint64) + _GOLDEN))
    return keys


def request_uniforms(seed: int, requests: NDArray[np.int64], purpose: int) -> NDArray[np.float64]:
    """One uniform number a request for a named purpose (its class, its length, …), in [0, 1)."""
    with np.errstate(over="ignore"):
        salted = request_keys(seed, requests) + _GOLDEN * np.uint64(2 * purpose + 1)
        drawn: NDArray[np.float64] = (mixed(mixed(salted)) >> _S11) * _UNIT
    return drawn
