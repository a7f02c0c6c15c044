"""Times of whole target passes over batch × width × context, from any table that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from specplan.models.calibration import fit_passes
from specplan.models.cost_table import NOISE
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.models.calibration import LinearFit


@dataclass(frozen=True, slots=True)
class Pass:
    """One measured pass: `batch` sequences of `width` positions, `context` cached tokens each."""

    batch: float
    width: float
    context: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Passes of one system, where they are from, and what their times do or do not contain.

    `evidence` is measured, or analytical where passes are put together from operators;
    `tensor_parallel` counts the GPUs of a pass, 0 where the table does not say.
    """

    source: str
    kind: str
    passes: tuple[Pass, ...]
    notes: tuple[str, ...] = ()
    evidence: str = "measured"
    label: str = ""
    tensor_parallel: int = 0

    def fit(self) -> LinearFit:
        """Fit the linear cost; raises ScenarioError with the residuals where none fits."""
        columns = [[getattr(one, name) for one in self.passes] for name in Pass.__slots__]
        try:
            return fit_passes(*columns)
        except ValueError as error:
            raise ScenarioError(Fault(str(error), file=self.source)) from error

    @property
    def is_table(self) -> bool:
        """Whether every batch was measured once at every width, width 1 among them, one context."""
        places = [(one.batch, one.width) for one in self.passes]
        batches, widths = {place[0] for place in places}, {place[1] for place in places}
        whole = len(places) == len(set(places)) == len(batches) * len(widths)
        return whole and 1.0 in widths and len({one.context for one in self.passes}) == 1

    def table_csv(self) -> str:
        """Write the passes as `table:` reads them: batch, width, seconds."""
        ordered = sorted(self.passes, key=lambda one: (one.batch, one.width))
        rows = [f"{one.batch:g},{one.width:g},{one.seconds:.9g}" for one in ordered]
        return "\n".join(["batch,width,pass_s", *rows, ""])

    def verify_ratios(self) -> list[tuple[float, float, float]]:
        """Return (batch, width, V(b, w)/V(b, 1)) wherever both were measured, contexts apart."""
        plain = {(one.batch, one.context): one.seconds for one in self.passes if one.width == 1}
        return [
            (one.batch, one.width, one.seconds / plain[one.batch, one.context])
            for one in self.passes
            if one.width > 1 and (one.batch, one.context) in plain
        ]


def checked(times: PassTimes, file: str) -> PassTimes:
    """Return the passes when there are any, all are positive, and wider ones are not faster.

    Raises ScenarioError with the values.
    """
    if not times.passes:
        raise ScenarioError(Fault("no pass in it could be used", "; ".join(times.notes), file))
    faults = [
        Fault(f"a pass of {one.seconds:g} s at batch {one.batch:g}", "a time above 0", file)
        for one in times.passes
        if not 0 < one.seconds < float("inf")
    ]
    by_place: dict[tuple[float, float], list[Pass]] = {}
    for one in times.passes:
        by_place.setdefault((one.batch, one.context), []).append(one)
    for place in by_place.values():
        faults += _falling(sorted(place, key=lambda one: one.width), file)
    if faults:
        raise ScenarioError(faults[:10])
    return times


def _falling(passes: Sequence[Pass], file: str) -> list[Fault]:
    found = []
    for before, after in pairwise(passes):
        wider = after.width > before.width  # the same place may be measured again
        if wider and after.seconds < before.seconds * (1 - 2 * NOISE):
            found.append(
                Fault(
                    f"width {after.width:g} takes {1e3 * after.seconds:.4g} ms and width "
                    f"{before.width:g} {1e3 * before.seconds:.4g} ms (batch {after.batch:g})",
                    "times of whole passes never fall with width; is it a time per token?",
                    file,
                )
            )
    return found
