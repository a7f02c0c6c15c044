"""Files in, evidence out: Prometheus scrapes as one, a difference or several, all else as it is."""

from __future__ import annotations

from dataclasses import replace
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers import vllm_metrics
from specplan.scenarios.importers.evidence import Evidence, checked
from specplan.scenarios.importers.files import read_head
from specplan.scenarios.importers.recognise import is_prometheus, read_file, read_scrape

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_evidence(
    paths: Sequence[str | Path],
    *,
    model: str = "",
    gamma: int | None = None,
    delta: bool = False,
    separate: bool = False,
) -> list[Evidence]:
    """Return the evidence of all files, latency-only evidence too.

    `model` keeps one model, `gamma` one draft length (and states it where a file does not).
    `delta`: two scrapes of one server, the earlier first. `separate`: scrapes of several servers.

    Raises ScenarioError: one fault for each file that cannot be imported, all at once.
    """
    files = [Path(path) for path in paths]
    real = [realpath(file) for file in files]  # never raises, unlike Path.resolve
    twice = [file for index, file in enumerate(files) if real[index] in real[:index]]
    if twice:
        raise ScenarioError(Fault("given twice", "each file once", str(twice[0])))
    faults: list[Fault] = []
    found: list[Evidence] = []
    scrapes: list[vllm_metrics.Scrape] = []
    for file in files:
        try:
            if is_prometheus(read_head(file)):
                scrapes.append(read_scrape(file, model))
            else:
                found += read_file(file)
        except ScenarioError as error:
            faults += error.faults
    if faults:
        raise ScenarioError(faults)
    found = _of_scrapes(scrapes, delta=delta, separate=separate) + found
    return _chosen(found, model, gamma)


def _of_scrapes(
    scrapes: Sequence[vllm_metrics.Scrape], *, delta: bool, separate: bool
) -> list[Evidence]:
    if delta:
        if len(scrapes) != 2:
            raise ScenarioError(
                Fault(f"--delta with {len(scrapes)} scrapes", "two scrapes, the earlier first")
            )
        before, after = scrapes
        difference, warnings = vllm_metrics.subtract(before, after)
        origin = "" if warnings else before.file
        return vllm_metrics.evidence(difference, delta_from=origin, warnings=warnings)
    if len(scrapes) > 1 and not separate:
        raise ScenarioError(
            Fault(
                f"{len(scrapes)} scrapes: counters since the start of a server would count twice",
                "--delta for two scrapes of one server, --separate for scrapes of several",
            )
        )
    return [one for scrape in scrapes for one in vllm_metrics.evidence(scrape)]


def _chosen(found: Sequence[Evidence], model: str, gamma: int | None) -> list[Evidence]:
    """Return the evidence of the model and draft length asked for."""
    chosen = [one for one in found if not model or one.model in ("", model)]
    if not chosen:
        known = ", ".join(sorted({one.model for one in found}))
        raise ScenarioError(Fault(f"no evidence for model {model!r}", f"models: {known}"))
    if gamma is None:
        return list(chosen)
    matching = [
        one
        if one.gamma is not None or not one.says_acceptance
        else checked(replace(one, gamma=gamma))
        for one in chosen
        if one.gamma in (None, 0, gamma)
    ]
    if not any(one.gamma == gamma for one in matching):
        gammas = sorted({one.gamma for one in chosen if one.gamma})
        known = ", ".join(str(one) for one in gammas)
        raise ScenarioError(Fault(f"no evidence for γ = {gamma}", f"γ of the files: {known}"))
    return matching
