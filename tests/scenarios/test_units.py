"""Quantities with units: pint is the oracle, and what is written is read back exactly."""

import math

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.scenarios.units import (
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration,
    parse_fraction,
    parse_rate,
)

PINT: pint.UnitRegistry[float] = pint.UnitRegistry()
AMOUNTS = st.floats(min_value=1e-3, max_value=1e5, allow_nan=False)


@given(AMOUNTS, st.sampled_from(["ns", "us", "µs", "ms", "s", "min", "h"]))
def test_durations_are_those_of_pint(amount: float, unit: str) -> None:
    expected = PINT.Quantity(amount, unit).to("s").magnitude
    assert parse_duration(f"{amount!r} {unit}") == pytest.approx(expected, rel=1e-15)


@given(AMOUNTS, st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB"]))
def test_sizes_are_those_of_pint(amount: float, unit: str) -> None:
    expected = PINT.Quantity(amount, unit).to("byte").magnitude
    assert parse_bytes(f"{amount!r}{unit}") == pytest.approx(expected, rel=1e-15)


@given(AMOUNTS, st.sampled_from(["s", "min", "h"]))
def test_rates_are_those_of_pint(amount: float, unit: str) -> None:
    expected = PINT.Quantity(amount, f"1/{unit}").to("1/s").magnitude
    assert parse_rate(f"{amount!r}/{unit}") == pytest.approx(expected, rel=1e-15)


@given(st.one_of(st.just(0.0), st.floats(min_value=1e-3, max_value=1e10), st.integers(1, 10**9)))
def test_what_is_written_is_read_back_exactly(number: float) -> None:
    assert parse_duration(format_duration(number)) == number
    assert parse_bytes(format_bytes(number)) == number
    if number > 0:
        assert parse_rate(format_rate(number)) == number


def test_decimal_units_do_not_add_rounding() -> None:
    assert parse_duration("20 ms") == 0.02
    assert parse_duration("21.01 us") == 2.101e-05
    assert parse_fraction("57.5 %") == 0.575


@pytest.mark.parametrize(
    ("value", "wrong", "right"),
    [
        (20, "20 has no unit", "write `20 ms`, `20 us` or `20 s`"),
        ("20", "20 has no unit", "write `20 ms`, `20 us` or `20 s`"),
        ("-3 ms", "`-3 ms` is negative", "zero or more seconds"),
        ("3 mins", "`3 mins`: unknown unit of time `mins`", "ns, us, ms, s, min or h"),
        ("3 GiB", "`3 GiB`: unknown unit of time `GiB`", "ns, us, ms, s, min or h"),
        ("fast", "`fast` is not a duration", "write it as `20 ms`, `1.5 us` or `2 s`"),
        (True, "`True` is not a duration", "write it as `20 ms`, `1.5 us` or `2 s`"),
        (math.nan, "`nan` is not a duration", "write it as `20 ms`, `1.5 us` or `2 s`"),
        ("1e300 s", "`1e300 s` is out of reach", "from 1e-18 to 1e+10 seconds"),
        ("1e-300 s", "`1e-300 s` is out of reach", "from 1e-18 to 1e+10 seconds"),
        ("1e999 s", "`1e999 s` is not a duration", "write it as `20 ms`, `1.5 us` or `2 s`"),
    ],
)
def test_a_wrong_duration_says_what_would_be_right(value: object, wrong: str, right: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(value)
    assert (caught.value.wrong, caught.value.right) == (wrong, right)


@pytest.mark.parametrize("value", [0, 0.0, "0", "0 ms"])
def test_zero_needs_no_unit(value: object) -> None:
    assert parse_duration(value) == 0.0


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (80, "80 % is 0.8: write `0.8` or `80 %`"),
        ("0.8 %", "write `0.8` or `80 %`"),
        (1.0000001, "1 % is 0.01: write `0.01` or `1 %`"),
        (-0.1, "a fraction from 0 to 1"),
        (math.inf, "write it as `0.8` or `80 %`"),
        ("120 %", "a fraction from 0 to 1"),
        ("80 ms", "write it as `0.8` or `80 %`"),
    ],
)
def test_percent_and_fraction_are_not_mixed_up(value: object, right: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_fraction(value)
    assert caught.value.right == right


@pytest.mark.parametrize("value", [4, "4", "4 ms", "0/s", "-1/s", "4/d"])
def test_rates_need_their_own_unit(value: object) -> None:
    with pytest.raises(UnitError):
        parse_rate(value)


def test_an_infinite_rate_is_everything_at_once() -> None:
    assert parse_rate("inf") == parse_rate(math.inf) == math.inf
