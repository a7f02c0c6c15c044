"""Numbers as people copy them out of logs: fractions, percentages, lists, with their rounding."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from specplan.models.statements import Figure
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from specplan.models.counts import Warned

_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

COARSEST = 0.005
"""Half a unit of the second decimal: a number typed with fewer decimals is meant as exact."""


def shown(text: str) -> str:
    """Return `text` fit for one line of a message.

    >>> shown(" 0.8  %")
    '0.8 %'
    """
    return " ".join(text.split())[:60]


def read_number(text: str, field: str) -> Figure:
    """Read a plain number with the rounding of its last printed digit.

    Raises ScenarioError naming `field` for anything that is not one finite number.

    >>> read_number("2.17", "acceptance_length")
    Figure(value=2.17, rounding=0.005)
    """
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped) or not math.isfinite(float(stripped)):
        raise ScenarioError(
            Fault(f"`{shown(text)}` is not a number", "write it as 2.17", field=field)
        )
    decimals = "." in stripped and min(_half_unit(stripped), COARSEST)
    return Figure(float(stripped), decimals or 0.0)


def read_whole(text: str, field: str) -> int:
    """Read a whole number of 0 or more; raises ScenarioError naming `field`.

    >>> read_whole("5", "gamma")
    5
    """
    value = read_number(text, field).value
    if value != int(value) or value < 0:
        raise ScenarioError(
            Fault(f"{shown(text)} is not a whole number of 0 or more", "4", field=field)
        )
    return int(value)


def read_share(text: str, field: str) -> tuple[Figure, list[Warned]]:
    """Read a share: `0.84`, `84 %`, or `84` (taken as percent, and said so).

    A percentage below 1 is nearly always a fraction with a percent sign behind it: it is read as
    written and warned about. Raises ScenarioError outside 0 … 100 %.

    >>> read_share("84%", "rate")
    (Figure(value=0.84, rounding=0.005), [])
    >>> read_share("0.84%", "rate")[1][0][0]
    'percent_below_one'
    """
    figures, warnings = read_shares(text, field)
    if len(figures) > 1:
        raise ScenarioError(Fault(f"`{shown(text)}` is a list", "one number", field=field))
    return figures[0], warnings


def read_shares(text: str, field: str) -> tuple[tuple[Figure, ...], list[Warned]]:
    """Read a list of shares, separated by commas, slashes or blanks; one scale for all of them.

    >>> [round(figure.value, 3) for figure in read_shares("99.2/95.5/94.7", "positions")[0]]
    [0.992, 0.955, 0.947]
    """
    parts = [part for part in re.split(r"[,\s/;]+", _joined(text)) if part]
    if not parts:
        raise ScenarioError(Fault("is empty", "0.85,0.78,0.72", field=field))
    signs = {part.endswith("%") for part in parts}
    numbers = [part.removesuffix("%") for part in parts]
    figures = [read_number(number, field) for number in numbers]
    if signs == {True, False}:
        raise ScenarioError(
            Fault(f"`{shown(text)}` mixes % and plain numbers", "one scale", field=field)
        )
    largest = max(figure.value for figure in figures)
    if min(figure.value for figure in figures) < 0 or largest > 100:
        wrong = f"`{shown(text)}` is outside 0 … 100 %"
        raise ScenarioError(Fault(wrong, "a fraction from 0 to 1, or a percentage", field=field))
    percent = signs == {True}
    warnings: list[Warned] = []
    if percent and 0 < largest < 1:
        warnings.append(
            (
                "percent_below_one",
                f"{field} {shown(text)} is {largest / 100:g} as a fraction; a percentage below 1 is"
                f" usually a fraction with a percent sign behind it ({largest:g})",
            )
        )
    if not percent and 1 < largest < 2:
        # 1.2 is neither: nobody prints 1.2 % without a sign, and no share is above 1.
        raise ScenarioError(Fault(f"{largest!r} is above 1", "a share lies in [0, 1]", field=field))
    if not percent and largest >= 2:
        percent = True
        warnings.append(
            (
                "percent_assumed",
                f"{field} {shown(text)} is above 1 and has no sign: read as percent",
            )
        )
        if any(figure.value == 1 for figure in figures):
            warnings.append(
                (
                    "one_is_ambiguous",
                    f"{field} holds 1 beside numbers above 1: read as 1 %, not as 100 %",
                )
            )
    if percent:
        figures = [
            Figure(figure.value / 100, _half_unit(number) / 100)
            for figure, number in zip(figures, numbers, strict=True)
        ]
    return tuple(figures), warnings


def read_counts(text: str, field: str) -> tuple[float, ...]:
    """Read a list of counts of 0 or more, separated by commas or blanks.

    >>> read_counts("1000,800", "histogram")
    (1000.0, 800.0)
    """
    parts = [part for part in re.split(r"[,\s]+", text.strip().strip("[]")) if part]
    if not parts:
        raise ScenarioError(Fault("is empty", "a list of counts: 5,4,2", field=field))
    return tuple(float(read_whole(part, field)) for part in parts)


def read_count(text: str, field: str) -> float:
    """Read a count, with the thousands separators of logs.

    >>> read_count("1,500", "drafts")
    1500.0
    """
    return float(read_whole(re.sub(r"(?<=[0-9]),(?=[0-9]{3})", "", text), field))


def _joined(text: str) -> str:
    """`84 %` is one number: the sign belongs to what stands before it."""
    return re.sub(r"\s+%", "%", text.strip().strip("[]"))


def _half_unit(number: str) -> float:
    """Half a unit of the last printed digit."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return float(0.5 * 10.0**-decimals)
