"""Measured passes as a roofline: `specplan calibrate TABLE --gpu GPU --model CONFIG`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specplan.models.cost import Cost
from specplan.models.roofline import Efficiency, roofline_of
from specplan.models.roofline_fit import RooflineFit, fit_roofline
from specplan.results.calibrate.block import folded, rounded, scenario_text
from specplan.results.tables import columns, facts, heading, milliseconds, percent
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.gpus import find_gpu
from specplan.scenarios.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from specplan.models.hardware import Model
    from specplan.scenarios.importers.costs_passes import PassTimes


@dataclass(frozen=True)
class Stack:
    """What the passes ran on: a GPU by its bundled name, the model's config, how many GPUs.

    `dtype` None keeps what the config says; `tensor_parallel` None what the table says, or 1.
    """

    gpu: str
    config: Path
    model: Model
    tensor_parallel: int | None = None
    dtype: str | None = None

    def gpus(self, times: PassTimes) -> int:
        """Count the GPUs of a table's passes; raises ScenarioError where it says otherwise."""
        stated, asked = times.tensor_parallel, self.tensor_parallel
        if stated and asked and stated != asked:
            wrong = f"{times.label} ran on {stated} GPUs and --tensor-parallel is {asked}"
            raise ScenarioError(Fault(wrong, "the same, or none", times.source))
        return stated or asked or 1


@dataclass(frozen=True)
class Bent:
    """The roofline of one table's passes."""

    times: PassTimes
    stack: Stack
    fit: RooflineFit

    def value(self) -> dict[str, Any]:
        """Give everything as plain JSON."""
        return {
            "source": self.times.source,
            "kind": self.times.kind,
            "label": self.times.label,
            "evidence": self.times.evidence,
            "gpu": find_gpu(self.stack.gpu).name,
            "tensor_parallel": self.stack.gpus(self.times),
            "slowdown": self.fit.slowdown,
            "launch_floor_s": self.fit.floor_s,
            "points": self.fit.points,
            "unknowns": 2,
            "median_residual": self.fit.median,
            "worst_residual": self.fit.worst,
            "residuals": list(self.fit.residuals),
            "trust": self.fit.trust(),
            "notes": list(self.times.notes),
        }

    def block(self) -> str:
        """Write the scenario: a target without speculation, at one stream."""
        gpus, fit = self.stack.gpus(self.times), self.fit
        dtype = f"      dtype: {self.stack.dtype}\n" if self.stack.dtype else ""
        floor = format_duration(rounded(fit.floor_s))
        source = f"{self.times.source} ({self.times.kind}): {fit.trust()}"
        body = (
            f"target:\n  round:\n    roofline:\n      gpu: {find_gpu(self.stack.gpu).name}\n"
            f'      model: "{self.stack.config.absolute()}"\n{dtype}'
            f"      tensor_parallel: {gpus}\n      slowdown: {rounded(fit.slowdown):g}\n"
            f"{f'    launch_floor: {floor}{chr(10)}' if fit.floor_s else ''}"
            f"    evidence: fitted\n    source: {folded(source, 6)}\n"
            f"speculation:\n  method: none\ncluster:\n  gpus_per_replica: {gpus}"
        )
        batches = [one.batch for one in self.times.passes]
        widest = max(one.width for one in self.times.passes)
        reach = f"batch {min(batches):g} to {max(batches):g}, up to {widest:g} wide"
        return scenario_text(self.times.label, body, 1.0, "; ".join((reach, *self.times.notes)))


def bent(passes: Sequence[PassTimes], stack: Stack) -> list[Bent]:
    """Fit the roofline of the stack to the passes of each table.

    Raises ScenarioError: an unknown GPU, passes that are too few, too much alike or scattered.
    """
    if not passes:
        right = "a table of pass times, such as batch,width,context,ms"
        raise ScenarioError(Fault("there are no passes to fit a roofline to", right, field="--gpu"))
    return [Bent(one, stack, _fit(one, stack)) for one in passes]


def _fit(times: PassTimes, stack: Stack) -> RooflineFit:
    gpu, gpus = find_gpu(stack.gpu), stack.gpus(times)
    try:
        shape = roofline_of(gpu, stack.model.with_dtype(stack.dtype), gpus, Efficiency())
        cost = Cost("roofline", shape.coefficients())
        names = ("batch", "width", "context", "seconds")
        batch, width, context, measured_s = (
            [getattr(one, name) for one in times.passes] for name in names
        )
        work_s = cost.seconds(batch, width, context) - shape.fixed_s
        return fit_roofline(work_s, shape.fixed_s, measured_s)
    except ValueError as error:
        raise ScenarioError(Fault(str(error), file=times.source)) from error


def bent_text(fits: Sequence[Bent]) -> list[RenderableType]:
    """Lay out the fits, one a line."""
    header = ("roofline", "GPUs", "slowdown", "launch floor", "n", "median", "worst")
    rows = [
        (
            one.times.label or one.times.kind,
            str(one.stack.gpus(one.times)),
            f"{one.fit.slowdown:.3g}",
            milliseconds(one.fit.floor_s) if one.fit.floor_s else "none seen",
            str(one.fit.points),
            percent(one.fit.median),
            percent(one.fit.worst),
        )
        for one in fits
    ]
    says = "A pass takes max(slowdown × its work by the datasheet + latencies, launch floor)."
    parts: list[RenderableType] = [heading(says), columns(header, rows)]
    if len(fits) == 1:
        lines = [("Trust", fits[0].fit.trust())]
        parts.append(facts([*lines, *(("Note", note) for note in fits[0].times.notes)]))
    return parts
