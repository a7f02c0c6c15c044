"""`specplan validate`: every published point predicted, the totals, and the misses."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.validation.points import GIVEN, points_of
from specplan.results.validation.scores import score, signs, sweeps
from specplan.results.validation.shown import markdown, text
from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.load import bundled, load, published

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from specplan.results.validation.points import Point


def validate_answer(
    names: Sequence[str] = (),
    *,
    html: Path | None = None,
    markdown_file: Path | None = None,
    force: bool = False,
) -> Answer:
    """Predict the measured points of files or bundled names; all published ones where none is said.

    `html` gets a page with the plot of predicted against measured, `markdown_file` the table. The
    exit code is 1 when a point is outside its stated tolerance and its file names no cause.

    Raises ScenarioError: files without measurements, rows that cannot be fitted or predicted.
    """
    for file in (html, markdown_file):
        if file is not None:
            store.check_file(file, force=force)
    points = every_point(names)
    notes = []
    if html is not None:
        from specplan.results.validation.figure import accuracy_page

        store.write_text(html, accuracy_page(points), force=force)
        notes.append(f"written to {html}: open it in a browser")
    if markdown_file is not None:
        store.write_text(markdown_file, markdown(points), force=force)
        notes.append(f"written to {markdown_file}")
    return Answer(value_of(points), text(points), notes, 1 if unexplained(points) else 0)


def _known(name: str) -> str:
    """Pass a file or a bundled name on; raises ScenarioError that lists what has measurements."""
    if name not in {*published(), *bundled()} and not os.path.lexists(name):
        close = nearest(name, published())
        hint = f"did you mean `{close}`? " if close else ""
        right = f"{hint}a file, or one of those with measurements: {', '.join(published())}"
        raise ScenarioError(Fault("no such file and no published measurement", right, name))
    return name


def every_point(names: Sequence[str] = ()) -> list[Point]:
    """Predict all points of the named scenarios; raises ScenarioError with the faults of all."""
    points, faults = [], []
    for name in names or published():
        try:
            points += points_of(load(_known(name)))
        except ScenarioError as error:
            faults += error.faults
    if faults:
        raise ScenarioError(faults)
    return points


def unexplained(points: Iterable[Point]) -> list[Point]:
    """Give the points outside their tolerance whose file names no cause."""
    return [one for one in points if one.tested and not one.within and not one.row.cause]


def value_of(points: Sequence[Point]) -> dict[str, Any]:
    """Give everything as plain numbers: points, totals by what was given, sweeps, signs."""
    totals = {}
    for given in GIVEN:
        found = score([one for one in points if one.given == given])
        totals[given] = None if found is None else asdict(found)
    seen = [one for one in points if one.given != "simulated"]
    overall = score(seen)
    return {
        "points": [_point(one) for one in points],
        "totals": totals,
        "all_measured": None if overall is None else asdict(overall),
        "sweeps": [{**asdict(one), "right": one.right} for one in sweeps(points)],
        "signs": asdict(signs(seen)),
        "unexplained_misses": len(unexplained(points)),
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "scenario": point.scenario,
        "series": point.series.name,
        "row": point.label,
        "role": point.row.role,
        "given": point.given,
        "quantity": point.series.quantity_of(point.row),
        "unit": point.row.unit or point.series.unit,
        "measured": point.measured,
        "measured_low": point.low,
        "measured_high": point.high,
        "predicted": point.predicted,
        "error": point.error,
        "tolerance": point.tolerance,
        "within": point.within,
        "speedup_measured": point.speedup_measured,
        "speedup_predicted": point.speedup_predicted,
        "cause": point.row.cause or None,
        "source": point.source,
    }
