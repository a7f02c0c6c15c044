"""The measured block: what somebody measured on this system, how it was read, what may be fitted.

A series is one system: one set of costs. Its rows with `role: fit` determine what is fitted, its
rows with `role: test` are predicted and compared; no row is both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from annotated_types import Gt
from pydantic import Field, model_validator

from specplan.scenarios.fields import Fraction, Gamma, Name, Number, Positive, Section, fault

Quantity = Literal[
    "speedup",
    "answer_speedup",
    "tpot",
    "throughput",
    "user_throughput",
    "round",
    "throughput_ratio",
    "mean_e2el",
]
Fit = Literal["nothing", "rounds", "passes", "solve"]

#: Units of each quantity, and the factor to seconds, tokens per second or a ratio.
UNITS: dict[str, dict[str, float]] = {
    "speedup": {"x": 1.0},
    "answer_speedup": {"x": 1.0},
    "throughput_ratio": {"x": 1.0},
    "tpot": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "round": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "mean_e2el": {"s": 1.0, "ms": 1e-3},
    "throughput": {"tok/s": 1.0},
    "user_throughput": {"tok/s": 1.0},
}


class Solve(Section):
    """One field that a fit row determines: the value at which prediction and row agree."""

    field: str = Field(description="Path as in --set, such as `speculation.acceptance.alpha`.")
    between: tuple[Number, Number] = Field(description="Where the value is searched.")
    unit: str = Field(default="", description="Unit of the value: `ms`; absent for plain numbers.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.between[0] >= self.between[1]:
            low, high = self.between
            raise fault(f"the range [{low:g}, {high:g}] is empty", "the smaller number first")
        return self


class MeasuredRow(Section):
    """One measured value and the conditions it was measured under."""

    value: Positive = Field(description="The value as printed, in the unit of its series.")
    role: Literal["fit", "test"] = Field(
        default="test", description="fit: the costs are calibrated on it; test: it is predicted."
    )
    name: Name = Field(default="", description="What the row is called; absent: its conditions.")
    quantity: Quantity | None = Field(default=None, description="Absent: that of the series.")
    unit: str | None = Field(default=None, description="Absent: that of the series.")
    gamma: Gamma | None = Field(default=None, description="γ of the row; 0: plain decoding.")
    tau: Annotated[Number, Gt(0)] | None = Field(
        default=None, description="Tokens per round with the bonus token, as measured in this row."
    )
    rate: Fraction | None = Field(
        default=None, description="accepted/drafted of the row; τ = 1 + rate·γ."
    )
    batch: Annotated[Number, Gt(0)] | None = Field(
        default=None, description="Sequences decoded together (closed loop of so many streams)."
    )
    context: Annotated[Number, Gt(0)] | None = Field(
        default=None, description="Tokens in the cache of a sequence."
    )
    set: tuple[str, ...] = Field(default=(), description="Further conditions, as --set has them.")
    against: tuple[str, ...] = Field(
        default=(), description="throughput_ratio: settings of the configuration compared with."
    )
    calibrate: str = Field(
        default="", description="Said to `calibrate` beside the row: `draft=3.13 ms`."
    )
    solves: Solve | None = Field(default=None, description="fit: solve: what the row determines.")
    tolerance: Fraction | None = Field(default=None, description="Absent: that of the series.")
    cause: str = Field(default="", description="Why the row is missed, where it is.")

    def conditions(self) -> tuple[Any, ...]:
        """Everything but role and value: what makes two rows the same measurement."""
        return (
            self.name, self.quantity, self.gamma, self.tau, self.rate, self.batch, self.context,
            self.set, self.against,
        )  # fmt: skip


class MeasuredSeries(Section):
    """Rows of one system, what is fitted to some of them, and how far the others may be off."""

    name: Name = Field(description="The system: model, GPU, method.")
    quantity: Quantity = Field(
        description="What the values are; speedup in the long run, answer_speedup of whole answers "
        "whose last round is cut, throughput of the batch, user_throughput of one sequence."
    )
    unit: str = Field(description="Their unit: ms, s, tok/s, or x for ratios.")
    where: str = Field(default="", description="Table, figure or section, beyond the source.")
    fit: Fit = Field(
        default="nothing",
        description="rounds: `calibrate` solves verify and draft from the fit rows; passes: a "
        "table of round times over batch and context; solve: each fit row determines one field; "
        "nothing: all inputs are given.",
    )
    given: str = Field(default="", description="What stands in for fitted values, and from where.")
    carried: str = Field(
        default="", description="Fitted on another model or GPU than the one predicted: which."
    )
    simulated: bool = Field(
        default=False, description="The values are another simulator's, not measurements."
    )
    plain_known: bool = Field(
        default=True,
        description="Whether the plain step is measured; false: assumed, so faster or slower is "
        "not asked.",
    )
    sweep: bool = Field(
        default=False, description="The rows differ in γ alone: the best γ is compared, too."
    )
    tolerance: Fraction = Field(description="How far off a prediction may be, relative.")
    digitisation_error: Fraction | None = Field(default=None, description="Absent: the block's.")
    set: tuple[str, ...] = Field(default=(), description="Settings of all rows, as --set.")
    rows: Annotated[tuple[MeasuredRow, ...], Field(min_length=1)] = Field(
        description="The measured values."
    )

    def quantity_of(self, row: MeasuredRow) -> Quantity:
        """Give the quantity of a row: its own, or the series'."""
        return row.quantity or self.quantity

    def unit_s(self, row: MeasuredRow) -> float:
        """Give the factor of a row's unit to seconds, tokens per second, or a ratio."""
        return UNITS[self.quantity_of(row)][row.unit or self.unit]

    @model_validator(mode="after")
    def _units(self) -> Self:
        for quantity, unit in {
            (self.quantity, self.unit),
            *((self.quantity_of(row), row.unit or self.unit) for row in self.rows),
        }:
            if unit not in UNITS[quantity]:
                right = " or ".join(f"`{name}`" for name in UNITS[quantity])
                raise fault(f"`{unit}` is no unit of {quantity}", right)
        return self

    @model_validator(mode="after")
    def _honest(self) -> Self:
        roles: dict[tuple[Any, ...], str] = {}
        for row in self.rows:
            before = roles.setdefault(row.conditions(), row.role)
            if before != row.role:
                raise fault(
                    f"the row {label(row)} is fitted and tested, too",
                    "each row either fits or tests: a fitted row proves nothing",
                )
            if row.rate is not None and (row.gamma is None or row.tau is not None):
                raise fault("rate needs gamma, and excludes tau", "`gamma: 2, rate: 71 %`")
        fitted = [row for row in self.rows if row.role == "fit"]
        if (self.fit == "nothing") == bool(fitted):
            wrong = f"fit is {self.fit} and {len(fitted)} rows have the role fit"
            raise fault(wrong, "rows with `role: fit`, or `fit: nothing` and none of them")
        if any((row.solves is None) == (self.fit == "solve") for row in fitted):
            raise fault("solves and fit: solve go together", "`solves` in each fit row, or in none")
        return self


class Measured(Section):
    """Published measurements of the systems that the scenario describes, series by series."""

    source: Annotated[str, Field(min_length=1)] = Field(
        description="Who measured it and where it is published, with table or figure."
    )
    read: Annotated[str, Field(min_length=1)] = Field(
        description="How the numbers were read: typed in from a table, decoded from a plot, …"
    )
    digitisation_error: Fraction = Field(
        description="Relative error of reading: half a unit of the last printed digit, or the plot."
    )
    series: Annotated[tuple[MeasuredSeries, ...], Field(min_length=1)] = Field(
        description="One entry for each system."
    )


def label(row: MeasuredRow) -> str:
    """Name a row by what it is called, or by its conditions.

    >>> label(MeasuredRow(value=4.37, gamma=2, batch=8))
    'γ 2, batch 8'
    """
    if row.name:
        return row.name
    parts = [
        f"{word} {value:g}"
        for word, value in (("γ", row.gamma), ("batch", row.batch), ("context", row.context))
        if value is not None
    ]
    return ", ".join(parts) or ", ".join(row.set) or "as set"
