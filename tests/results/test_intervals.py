"""Intervals cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from specplan.results.intervals import paired_difference, ratio_interval, t_interval


def test_t_interval_known_value() -> None:
    # Table of Student's t: t(0.975, 4) = 2.776; s of 1..5 is √2.5.
    interval = t_interval(np.arange(1.0, 6.0))
    assert interval.mean == 3
    assert interval.half_width == pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=1e-3)


def test_batch_means_cover_the_mean_of_a_correlated_series() -> None:
    """AR(1), φ = .8: the naive interval covers half the time, batch means nearly always."""
    rng = np.random.default_rng(7)
    covered, naive = 0, 0
    for _ in range(200):
        noise = rng.normal(size=4000)
        series = np.empty(4000)
        value = 0.0
        for i, step in enumerate(noise):
            value = 0.8 * value + step
            series[i] = value
        interval = ratio_interval(series)
        covered += interval.low <= 0 <= interval.high
        plain = t_interval(series)
        naive += plain.low <= 0 <= plain.high
    assert covered >= 180  # 95 % of 200 is 190; below 180 has a chance of 5e-5
    assert naive < 140


def test_ratio_weighs_by_the_denominator() -> None:
    top, bottom = np.tile([1.0, 9.0], 100), np.tile([1.0, 3.0], 100)
    assert ratio_interval(top, bottom).mean == 2.5


def test_pairing_removes_what_both_runs_share() -> None:
    rng = np.random.default_rng(3)
    shared = rng.gamma(2.0, 50.0, 1000)
    a, b = shared + rng.normal(0, 1, 1000), 0.99 * shared + rng.normal(0, 1, 1000)
    difference = paired_difference((a, None), (b, None))
    assert difference.high < 0  # 1 % of 100: far below the spread of either run
    assert ratio_interval(a).half_width > 3 * difference.half_width


def test_short_series_has_an_estimate_and_no_interval() -> None:
    interval = ratio_interval(np.ones(99))
    assert interval.mean == 1.0
    assert not interval.known
    assert interval.ends() is None
