"""Scenarios of the simulator's tests: the toy scenario with fields set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specplan.scenarios.load import load
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run


@pytest.fixture(scope="session")
def toy() -> Callable[..., Scenario]:
    """Load toy-20ms (γ 2, α .5, T = V = 100 ms, d = 20 ms, one stream of 128), fields set."""
    return lambda *sets: load("toy-20ms", sets)


@pytest.fixture(scope="session")
def run(toy: Callable[..., Scenario]) -> Callable[..., Run]:
    """Simulate the toy scenario with fields set; KV blocks are checked after every step."""
    return lambda *sets: simulate(toy(*sets), check_blocks=True)
