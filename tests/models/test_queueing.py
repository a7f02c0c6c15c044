"""Queueing: textbook values, and the service moments of speculative rounds."""

import ciw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.queueing import (
    pollaczek_khinchine_wait_s,
    two_resource_cycle_rate,
)
from specplan.models.round_costs import round_costs
from specplan.models.rounds import generation_s_moments

seconds = st.floats(1e-3, 1e3)


def test_textbook_values() -> None:
    # Kleinrock, Queueing Systems I (1975): M/M/1 waits W = ρ/(μ − λ), M/D/1 half as long
    assert_allclose(pollaczek_khinchine_wait_s(0.8, 1.0, 2.0), 4.0)
    assert_allclose(pollaczek_khinchine_wait_s(0.8, 1.0, 1.0), 2.0)


@given(st.floats(1, 5), seconds)
def test_overload_waits_forever(load: float, service_s: float) -> None:
    rate = load / service_s
    wait_s = pollaczek_khinchine_wait_s(rate, service_s, 2 * service_s**2)
    assert np.isinf(wait_s) or rate * service_s < 1


def test_wait_behind_speculative_requests_by_hand() -> None:
    # γ 1, α .5, two tokens: one round of 1.5 s with chance ½, else 1.5 s + 1 s.
    costs = round_costs(1.0, 1.0, 0.5)
    mean, square = generation_s_moments([0.5], 1, 2, costs)
    assert_allclose([mean, square], [2.0, (1.5**2 + 2.5**2) / 2])
    assert_allclose(pollaczek_khinchine_wait_s(0.25, mean, square), 0.25 * 4.25 / (2 * 0.5))


def test_ciw_finds_the_same_wait() -> None:
    # Two service times with equal chance: an independent simulator as the oracle.
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=0.25)],
        service_distributions=[ciw.dists.Pmf([1.5, 2.5], [0.5, 0.5])],
        number_of_servers=[1],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(120_000)
    waits = [record.waiting_time for record in simulation.get_all_records()]
    assert_allclose(np.mean(waits[1000:]), 1.0625, rtol=0.06)


@given(seconds, seconds, st.integers(1, 64))
def test_cycle_of_two_resources_is_bounded_by_both(
    draft_s: float, verify_s: float, sequences: int
) -> None:
    rate = two_resource_cycle_rate(sequences, draft_s, verify_s)
    assert rate * max(draft_s, verify_s) <= 1 + 1e-12
    assert rate * (draft_s + verify_s) <= sequences + 1e-9
    assert_allclose(two_resource_cycle_rate(1, draft_s, verify_s), 1 / (draft_s + verify_s))


def test_impossible_moments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"second_moment_s2 is 0\.5 s², below the square"):
        pollaczek_khinchine_wait_s(0.5, 1.0, 0.5)
    with pytest.raises(ValueError, match="arrival_rate is -1"):
        pollaczek_khinchine_wait_s(-1.0, 1.0, 2.0)
