"""Quantities as people write them (`20 ms`, `8/s`, `4 GiB`, `80 %`) to seconds, tokens, bytes."""

from __future__ import annotations

import math
import re

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # micro sign
    "μs": 1e-6,  # Greek mu
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
_BYTES = {"B": 1} | {
    prefix + unit: base**power
    for base, unit in ((1024, "iB"), (1000, "B"))
    for power, prefix in enumerate(("K", "M", "G", "T"), start=1)
}
_BYTES["kB"] = 1000
_DURATIONS_S = (1e-18, 1e10)  # an attosecond for a cached token … three centuries
_RATES_PER_S = (1e-10, 1e10)
_SIZES_BYTES = (1e-3, 1e18)
_QUANTITY = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*)", re.DOTALL)
_COMMA = re.compile(r"([-+]?[0-9]+),([0-9]+)([^0-9,].*|)", re.DOTALL)


class UnitError(ValueError):
    """A quantity that cannot be read: `wrong` says what it is, `right` what to write."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(f"{wrong} ({right})")
        self.wrong, self.right = wrong, right


def parse_duration(value: object) -> float:
    """Read a duration as seconds; zero needs no unit, everything else does.

    Raises UnitError for a missing or unknown unit, and for what is negative or not finite.

    >>> parse_duration("20 ms"), parse_duration("1.5us"), parse_duration(0)
    (0.02, 1.5e-06, 0.0)
    """
    number, unit = _split(value, "a duration", "write it as `20 ms`, `1.5 us` or `2 s`")
    if not unit:
        if number == 0:
            return 0.0
        raise UnitError(f"{value} has no unit", f"write `{value} ms`, `{value} us` or `{value} s`")
    if unit not in _SECONDS:
        raise UnitError(f"`{value}`: unknown unit of time `{unit}`", "ns, us, ms, s, min or h")
    return _within(_scaled(number, _SECONDS[unit]), *_DURATIONS_S, value, "seconds")


def parse_rate(value: object) -> float:
    """Read a rate as events per second; `inf` means all at once, as in `vllm bench serve`.

    >>> parse_rate("8/s"), parse_rate("90 / min"), parse_rate("inf")
    (8.0, 1.5, inf)
    """
    if isinstance(value, str) and value.strip().lower() in {"inf", ".inf"}:
        return math.inf
    if isinstance(value, float) and math.isinf(value) and value > 0:
        return math.inf
    number, unit = _split(value, "a rate", "write it as `8/s` or `90/min`")
    per = unit.removeprefix("/").strip().removeprefix("per ").strip()
    if not unit:
        raise UnitError(f"{value} has no unit", f"write `{value}/s`, `{value}/min` or `{value}/h`")
    if per not in ("s", "min", "h"):
        raise UnitError(f"`{value}`: unknown unit of rate `{unit}`", "/s, /min or /h")
    rate = _within(number / _SECONDS[per], *_RATES_PER_S, value, "per second")
    if rate == 0:
        raise UnitError(f"`{value}`: a rate of zero sends nothing", "a rate above zero: `8/s`")
    return rate


def parse_bytes(value: object) -> float:
    """Read a size as bytes: KiB … TiB are powers of 1024, KB … TB powers of 1000.

    >>> parse_bytes("4 GiB"), parse_bytes("80 GB"), parse_bytes("128 KiB")
    (4294967296.0, 80000000000.0, 131072.0)
    """
    number, unit = _split(value, "a size", "write it as `4 GiB` or `80 GB`")
    if not unit:
        if number == 0:
            return 0.0
        raise UnitError(f"{value} has no unit", f"write `{value} GiB` or `{value} GB`")
    if unit not in _BYTES:
        raise UnitError(f"`{value}`: unknown unit of size `{unit}`", "B, KiB … TiB or KB … TB")
    return _within(number * _BYTES[unit], *_SIZES_BYTES, value, "bytes")


def parse_fraction(value: object) -> float:
    """Read a probability or share in [0, 1]; percentages count when they carry their sign.

    A bare number above 1 is refused (80 may be 80 %), and so is a percentage below 1 %, which is
    nearly always a fraction with a percent sign behind it (0.8 %).

    >>> parse_fraction(0.8), parse_fraction("80 %")
    (0.8, 0.8)
    """
    number, unit = _split(value, "a fraction", "write it as `0.8` or `80 %`")
    if unit == "%":
        if 0 < number < 1:
            right = f"write `{number:g}` or `{100 * number:g} %`"
            raise UnitError(f"`{value}` is {number / 100:g} as a fraction", right)
        if not 0 <= number <= 100:
            raise UnitError(f"`{value}` is outside 0 % … 100 %", "a fraction from 0 to 1")
        return _scaled(number, 1e-2)
    if unit:
        raise UnitError(f"`{value}` is not a fraction", "write it as `0.8` or `80 %`")
    if 1 < number <= 100:
        right = f"{number:g} % is {number / 100:g}: write `{number / 100:g}` or `{number:g} %`"
        raise UnitError(f"{value} is outside [0, 1]", right)
    if not 0 <= number <= 1:
        raise UnitError(f"{value} is outside [0, 1]", "a fraction from 0 to 1")
    return number


def format_duration(seconds: float) -> str:
    """Write seconds in the largest unit that keeps the number at 1 or more, read back exactly.

    >>> format_duration(0.02), format_duration(1.207e-3), format_duration(90.0)
    ('20 ms', '1.207 ms', '90 s')
    """
    if seconds == 0:
        return "0 ms"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        text = f"{seconds / scale:.15g} {unit}"
        if seconds >= scale and parse_duration(text) == seconds:
            return text
    return f"{seconds!r} s"


def format_rate(per_second: float) -> str:
    """Write a rate so that it is read back exactly.

    >>> format_rate(8.0), format_rate(float("inf"))
    ('8/s', 'inf')
    """
    return "inf" if math.isinf(per_second) else f"{_plain(per_second)}/s"


def format_bytes(size: float) -> str:
    """Write bytes so that they are read back exactly.

    >>> format_bytes(131072.0), format_bytes(80e9)
    ('128 KiB', '80 GB')
    """
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "KB"):
        text = f"{size / _BYTES[unit]:.15g} {unit}"
        if size and size % _BYTES[unit] == 0 and parse_bytes(text) == size:
            return text
    return f"{_plain(size)} B"


def _split(value: object, what: str, right: str) -> tuple[float, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"`{value}` is not {what}", right)
    match = _QUANTITY.fullmatch(str(value).strip()) if not isinstance(value, float) else None
    number = value if isinstance(value, float) else float(match[1]) if match else math.nan
    if not math.isfinite(number):
        raise UnitError(f"`{value}` is not {what}", right)
    if match and (comma := _COMMA.fullmatch(str(value).strip())):
        whole, decimals, rest = comma.groups()
        point = f"`{whole}.{decimals}{rest}`"
        meant = f"{point}, or `{whole}{decimals}{rest}`" if len(decimals) == 3 else point
        raise UnitError(f"`{value}` has a decimal comma", f"a decimal point: {meant}")
    return number, match[2].strip() if match else ""


def _scaled(number: float, scale: float) -> float:
    """Multiply by a power of ten as a decimal, so that `20 ms` is 0.02 and not 0.02 + 1 ulp."""
    if scale >= 1:
        return number * scale
    mantissa, _, exponent = repr(number).partition("e")
    return float(f"{mantissa}e{int(exponent or 0) + round(math.log10(scale))}")


def _within(number: float, least: float, most: float, value: object, what: str) -> float:
    """Refuse what is negative, and what only a slip of the hand can mean."""
    if number < 0:
        raise UnitError(f"`{value}` is negative", f"zero or more {what}")
    if number and not least <= number <= most:
        raise UnitError(f"`{value}` is out of reach", f"from {least:g} to {most:g} {what}")
    return number


def _plain(number: float) -> str:
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else repr(number)
