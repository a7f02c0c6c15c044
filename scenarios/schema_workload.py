"""The workload block: when requests arrive, how long they are, and of which kinds they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge, Le
from pydantic import Field, field_validator, model_validator

from specplan.scenarios.fields import (
    Choice,
    Duration,
    FilePath,
    Fraction,
    Name,
    Number,
    Positive,
    Rate,
    Requests,
    Section,
    Tokens,
    Whole,
    fault,
)
from specplan.scenarios.schema_acceptance import AcceptanceBlock
from specplan.scenarios.schema_serving import Slo

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class OnOff(Section):
    """Poisson arrivals that come and go in periods of fixed length."""

    rate: Rate = Field(description="Requests per second while on.")
    on: Duration = Field(description="Length of a period with arrivals.")
    off: Duration = Field(description="Length of a period without.")

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        if not self.on > 0 or math.isinf(self.rate):
            raise fault("arrivals need time", "`on` above zero and a finite rate")
        return self


class Arrivals(Choice):
    """When requests come: exactly one of a closed loop, a rate, an interval, on/off, a trace."""

    alternatives: ClassVar = ("streams", "rate", "interval", "on_off", "trace")
    belongs: ClassVar = {
        "think_time": ("streams",),
        "burstiness": ("rate",),
        "time_scale": ("trace",),
    }

    streams: Annotated[Whole, Ge(1), Le(1_000_000)] | None = Field(
        default=None,
        description="Closed loop: so many clients, each sending its next request when one ends.",
    )
    rate: Rate | None = Field(
        default=None,
        description="Open loop: mean arrivals per time; `inf` sends everything at once.",
    )
    interval: Duration | None = Field(
        default=None, description="Open loop, deterministic: one request each interval."
    )
    on_off: OnOff | None = Field(default=None, description="Poisson bursts.")
    trace: FilePath | None = Field(
        default=None,
        description="A file of arrivals and lengths (Azure, Mooncake, BurstGPT, …), relative to "
        "this file; its kind is recognised by content.",
    )
    think_time: Duration = Field(
        default=0.0, description="streams: pause of a client between its requests."
    )
    burstiness: Positive = Field(
        default=1.0,
        description="rate: shape of the gamma law of gaps, as in `vllm bench serve`: 1 is Poisson, "
        "below 1 burstier.",
    )
    time_scale: Positive = Field(
        default=1.0,
        description="trace: arrival times are multiplied by this; 0.5 doubles the load.",
    )

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.interval is not None and not self.interval > 0:
            raise fault("an interval of zero", "an interval above zero, or `rate: inf`")
        return self

    @property
    def open(self) -> bool:
        """Whether arrivals come without regard to completions."""
        return self.streams is None


class Lognormal(Section):
    """Lengths whose logarithm is normal, given by the mean of the lengths themselves."""

    mean: Positive = Field(description="Mean length in tokens.")
    sigma: Annotated[Number, Ge(0), Le(5)] = Field(
        description="Standard deviation of the logarithm; 0 is no spread, 1 a heavy tail."
    )


class Lengths(Choice):
    """Tokens of a request: a number, a distribution, or the trace's own."""

    alternatives: ClassVar = ("fixed", "uniform", "lognormal", "choice", "trace")
    bare: ClassVar = "fixed"
    words: ClassVar = ("trace",)

    fixed: Tokens | None = Field(default=None, description="The same length; `128` says this.")
    uniform: tuple[Tokens, Tokens] | None = Field(
        default=None, description="Every whole number from lo to hi alike: `[lo, hi]`."
    )
    lognormal: Lognormal | None = Field(default=None, description="`{mean: 1020, sigma: 1.2}`.")
    choice: Annotated[tuple[Tokens, ...], Field(min_length=1, max_length=1_000_000)] | None = Field(
        default=None, description="One of the listed lengths, each as likely."
    )
    trace: bool | None = Field(
        default=None, description="From the trace, or from the file of `workload.lengths`."
    )

    @field_validator("uniform")
    @classmethod
    def _in_order(cls, ends: tuple[int, int] | None) -> tuple[int, int] | None:
        if ends and ends[0] > ends[1]:
            raise fault(f"the range [{ends[0]}, {ends[1]}] is empty", "the smaller number first")
        return ends

    @field_validator("trace")
    @classmethod
    def _true(cls, value: bool | None) -> bool | None:
        if value is False:
            raise fault("`trace: false` says nothing", "leave it out, or write `trace`")
        return value

    @property
    def smallest(self) -> int | None:
        """Shortest length this can give; None when only a file knows."""
        match self.kind:
            case "fixed":
                return self.fixed
            case "uniform":
                return self.uniform[0] if self.uniform else None
            case "choice":
                return min(self.choice or (0,))
            case "lognormal":
                return 1
            case _:
                return None

    @property
    def largest(self) -> int | None:
        """Longest length this can give; None when only a file knows, or nothing bounds it."""
        match self.kind:
            case "fixed":
                return self.fixed
            case "uniform":
                return self.uniform[1] if self.uniform else None
            case "choice":
                return max(self.choice or (0,))
            case _:
                return None

    def mean(self) -> float:
        """Mean length in tokens; for `trace`, ask the file."""
        match self.kind:
            case "uniform" if self.uniform:
                return (self.uniform[0] + self.uniform[1]) / 2
            case "lognormal" if self.lognormal:
                return self.lognormal.mean
            case "choice" if self.choice:
                return math.fsum(self.choice) / len(self.choice)
            case "fixed":
                return float(self.fixed or 0)
            case _:
                raise ValueError("the mean of a trace's lengths is known by the trace")

    def tokens(self, uniform: ArrayLike) -> NDArray[np.int64]:
        """Lengths for uniform numbers in (0, 1), by inverse transform; same shape, at least 0.

        Lognormal: exp(ln m − σ²/2 + σ Φ⁻¹(u)), rounded, at least 1 token.

        >>> Lengths.model_validate({"uniform": [1, 4]}).tokens([0.1, 0.6, 0.99])
        array([1, 3, 4])
        """
        u = np.asarray(uniform, dtype=np.float64)
        match self.kind:
            case "fixed":
                return np.full(u.shape, self.fixed, dtype=np.int64)
            case "uniform" if self.uniform:
                low, high = self.uniform
                return np.minimum(low + (u * (high - low + 1)).astype(np.int64), high)
            case "choice" if self.choice:
                place = np.minimum(np.floor(u * len(self.choice)), len(self.choice) - 1)
                return np.asarray(self.choice, dtype=np.int64)[place.astype(np.int64)]
            case "lognormal" if self.lognormal:
                from scipy.special import ndtri

                sigma = self.lognormal.sigma
                located = math.log(self.lognormal.mean) - sigma**2 / 2
                drawn: NDArray[np.float64] = np.exp(located + sigma * ndtri(u))
                return np.clip(np.rint(drawn), 1, 10_000_000).astype(np.int64)
            case _:
                raise ValueError("lengths of a trace are read from the trace, not drawn")


class RequestClass(Section):
    """A kind of request: what it does not state is as in the rest of the scenario."""

    name: Name = Field(description="The key under which the class is written.")
    weight: Positive = Field(default=1.0, description="Share of requests, relative to the others.")
    prompt_tokens: Lengths | None = Field(default=None, description="Own prompt lengths.")
    output_tokens: Lengths | None = Field(default=None, description="Own output lengths.")
    acceptance: AcceptanceBlock | None = Field(default=None, description="Own acceptance.")
    draft_probability: Fraction | None = Field(default=None, description="Own n-gram hit chance.")
    slo: Slo | None = Field(default=None, description="Own objectives.")
    priority: Whole = Field(
        default=0, description="Lower is served first, where scheduler.policy is priority."
    )


class Warmup(Choice):
    """The part of a run that no figure counts, by exactly one rule."""

    alternatives: ClassVar = ("requests", "time", "fraction", "mser")
    words: ClassVar = ("mser",)

    requests: Requests | None = Field(default=None, description="The first so many requests.")
    time: Duration | None = Field(default=None, description="Requests that arrive before this.")
    fraction: Fraction | None = Field(default=None, description="This share of the requests.")
    mser: bool | None = Field(
        default=None,
        description="Found by MSER-5: the truncation with the least marginal standard error.",
    )


class Workload(Section):
    """The requests: when, how many, how long, of which kinds."""

    arrivals: Arrivals = Field(description="When requests come.")
    requests: Requests | None = Field(
        default=None, description="How many; absent: 1000, or all of a trace."
    )
    prompt_tokens: Lengths | None = Field(
        default=None, description="Prompt lengths; absent: the trace's, or 0 (no prefill)."
    )
    output_tokens: Lengths | None = Field(
        default=None, description="Output lengths; absent: the trace's. At least 1."
    )
    lengths: FilePath | None = Field(
        default=None,
        description="A file of prompt and output lengths (vidur's of ShareGPT, any trace) for "
        "`trace` lengths under other arrivals; its rows are used in order, over and over.",
    )
    classes: tuple[RequestClass, ...] = Field(
        default=(), description="Kinds of request by name: `{chat: {weight: 3}, code: {…}}`."
    )
    timeout: Duration | None = Field(
        default=None, description="A client gives up so long after its arrival; absent: never."
    )
    warmup: Warmup | None = Field(
        default=None,
        description="What is cut off before steady state: `{requests: 500}`, `{time: 60 s}`, "
        "`{fraction: 0.1}` or `mser`; absent: nothing.",
    )

    @field_validator("classes", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if any(isinstance(item, Mapping) and "name" in item for item in value.values()):
            raise fault("a class is named twice", "the key is its name")
        return tuple(
            {"name": str(name), **item} if isinstance(item, Mapping) else item
            for name, item in value.items()
        )

    @property
    def accepts_by_class(self) -> bool:
        """Whether a class has an acceptance, or a chance to draft, of its own."""
        return any(one.acceptance or one.draft_probability is not None for one in self.classes)

    @model_validator(mode="after")
    def _defaults(self) -> Self:
        if self.timeout is not None and not self.timeout > 0:
            raise fault("a timeout of zero aborts everything", "a duration above zero")
        return self
