"""The search on curves whose crossing is known, with noise that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.sim.capacity import largest_load
from specplan.sim.looks import Capacity, Look

if TYPE_CHECKING:
    from collections.abc import Callable


def linear(load: float) -> float:
    return load / 5


def queue(load: float) -> float:
    """ρ/(1 − ρ) of a server that takes 10/s: 1 at 5/s, no steady state from 10/s on."""
    return load / 10 / (1 - load / 10) if load < 10 else float("inf")


def noisy(
    curve: Callable[[float], float], seed: int, sigma: float, controlled: float = 0.0
) -> Callable[[float, int], Look]:
    """Look at a curve with common luck: run i is off by the same factor at every load."""

    def look(load: float, runs: int) -> Look:
        draws = [np.random.default_rng((seed, run)).normal(size=2) for run in range(runs)]
        luck = np.array(draws)
        factor = 1 + sigma * luck[:, 0] + controlled * luck[:, 1]
        return Look(load, (curve(load) * factor)[:, None], luck[:, 1])

    return look


@pytest.mark.parametrize("curve", [linear, queue])
@pytest.mark.parametrize("guess", [0.1, 4.9, 80.0])
def test_without_noise_the_crossing_is_inside_the_tolerance(
    curve: Callable[[float], float], guess: float
) -> None:
    found = largest_load(noisy(curve, 0, 0.0), guess, 0.02)
    low, high = found.interval
    assert low * (1 - 1e-9) <= 5 <= high * (1 + 1e-9)
    assert high <= low * 1.021
    assert found.resolved


@pytest.mark.parametrize("curve", [linear, queue])
def test_with_noise_the_interval_holds_the_crossing_19_times_in_20(
    curve: Callable[[float], float],
) -> None:
    inside = 0
    for seed in range(60):
        found = largest_load(noisy(curve, seed, 0.1), 2.0, 0.1)
        low, high = found.interval
        inside += low <= 5 <= high
    assert inside >= 52  # 57 expected of 60; fewer than 52 in one of 100 such series


def test_what_straddles_the_limit_is_never_met() -> None:
    for seed in range(30):
        found = largest_load(noisy(linear, seed, 0.3), 2.0, 0.01)
        assert not found.resolved
        assert found.met is not None
        assert found.met.means[0] + found.met.half_widths[0] <= 1
        assert found.missed is not None
        assert found.missed.means[0] - found.missed.half_widths[0] > 1


def test_a_control_takes_out_the_noise_it_explains() -> None:
    look = noisy(linear, 3, 0.01, controlled=0.3)(5.0, 20)
    blind = Look(look.load, look.ratios, np.zeros(20))
    assert look.half_widths[0] < 0.1 * blind.half_widths[0]
    assert abs(look.means[0] - 1) < 0.02


def test_out_of_reach_even_when_idle() -> None:
    found = largest_load(lambda _, runs: noisy(linear, 0, 0.0)(6.0, runs), 1.0, 0.1)
    assert found.met is None
    assert found.load == 0
    assert found.missed is not None
    assert found.missed.means[0] == pytest.approx(1.2)


def test_no_load_is_too_much() -> None:
    found = largest_load(noisy(lambda _: 0.5, 0, 0.0), 1.0, 0.1, most_load=3.0)
    assert found.missed is None
    assert found.load == 3.0
    assert not found.resolved
    assert isinstance(found, Capacity)


def test_one_run_without_steady_state_is_a_miss() -> None:
    look = Look(1.0, np.array([[0.5], [0.5], [np.inf], [0.5]]), np.zeros(4))
    assert look.missed
    assert not look.met


def test_a_control_that_is_the_same_up_to_rounding_explains_nothing() -> None:
    """A trace offers the same load in every replication; what differs is the last bit."""
    ratios = np.linspace(0.7, 0.9, 8)[:, None]
    same = 0.3 + 5.6e-17 * np.tile([0.0, 1.0], 4)
    blind = Look(1.0, ratios, np.zeros(8))
    for control in (same, same - 0.3):
        look = Look(1.0, ratios, control)
        assert look.means[0] == pytest.approx(0.8)
        assert look.half_widths[0] == pytest.approx(blind.half_widths[0])


def test_no_control_leads_below_zero() -> None:
    """A line through ratios of 0 to 0.02 says −0.09 for an average load; no ratio is that."""
    control = np.linspace(0.1, 0.12, 8)
    look = Look(1.0, (control - 0.1)[:, None], control)
    assert look.means[0] == pytest.approx(0.01)
    with pytest.raises(ValueError, match="below 0"):
        Look(1.0, np.array([[-0.1]]), np.zeros(1))
