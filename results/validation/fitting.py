"""Costs from the fit rows of a series, by the code a user calls: calibrate, tables, solving."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from specplan.results.calibrate.answer import calibrate_answer
from specplan.results.validation.conditions import (
    measured,
    predicted,
    settings,
    situation,
    token_s,
    tokens_per_round,
)
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import validated
from specplan.scenarios.schema_measured import label
from specplan.scenarios.source import parse_source
from specplan.scenarios.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_measured import MeasuredRow, MeasuredSeries

PASSES = 20  # over rows whose fields depend on each other
CLOSE = 2e-3  # a solved row is met to this, relative; a simulated row jumps a little


def fitted_settings(series: MeasuredSeries, base: Scenario, folder: Path) -> list[str]:
    """Give the settings that the fit rows determine, and no other row.

    `base` is the system, with the series' own settings; `folder` is where tables are written, which
    the settings then name. Raises ScenarioError: rows
    that do not determine what they are to.
    """
    rows = [row for row in series.rows if row.role == "fit"]
    match series.fit:
        case "rounds":
            return _calibrated(series, rows, base)
        case "passes":
            return _tables(series, rows, base, folder)
        case "solve":
            return _solved(series, rows, base)
        case _:
            return []


def calibrate_lines(series: MeasuredSeries, base: Scenario) -> tuple[list[str], str]:
    """Write the fit rows as `specplan calibrate` takes them: points, and the baseline.

    The baseline is the plain row among them, else the scenario's own step.
    """
    plain, points = "", []
    for row in series.rows:
        if row.role == "test":
            continue
        per_token = token_s(series, row, base)
        if row.gamma == 0:
            plain = _duration(per_token)
            continue
        here = situation(base, settings(row))
        tau = tokens_per_round(row) or here.tokens_per_round
        gamma = row.gamma if row.gamma is not None else here.scenario.gamma
        words = [f"gamma={gamma}", f"tau={tau:.8g}", f"tpot={_duration(per_token)}"]
        points.append(" ".join([*words, row.calibrate]).strip())
        plain = plain or _duration(float(here.prediction.baseline_tpot_s))
    return points, plain


def _duration(seconds: float) -> str:
    """Write seconds with more digits than any measurement has, and none of binary fractions."""
    return format_duration(float(f"{seconds:.9g}"))


def _calibrated(series: MeasuredSeries, rows: list[MeasuredRow], base: Scenario) -> list[str]:
    points, plain = calibrate_lines(series, base)
    if not points:
        raise ScenarioError(
            Fault(f"{len(rows)} fit rows and none that speculates", "a row with γ", series.name)
        )
    blocks = calibrate_answer(points=points, baseline=plain).json["scenarios"]
    if len(blocks) != 1:
        wrong = f"calibrate makes {len(blocks)} scenarios of the fit rows"
        raise ScenarioError(Fault(wrong, "rows of one system with τ and a time", series.name))
    found = validated(parse_source(blocks[0], series.name)).resolved()
    sets = [f"target.{name}={_flow(found['target'][name])}" for name in ("round", "step")]
    return [
        *sets,
        f"draft.step={_flow(found['draft']['step'])}",
        f"speculation.overhead={found['speculation']['overhead']}",
    ]


def _flow(cost: object) -> str:
    """Write a resolved cost block as a YAML value on one line."""
    import json

    return json.dumps(cost, ensure_ascii=False)


def _tables(
    series: MeasuredSeries, rows: list[MeasuredRow], base: Scenario, folder: Path
) -> list[str]:
    """Write tables of plain steps and of whole rounds over batch and context.

    A round's time holds its drafting, as what `calibrate` makes of a single γ does, so a table is
    for one γ.
    """
    sets: list[str] = []
    gammas: set[int] = set()
    plain = [row for row in rows if row.gamma == 0]
    rounds = [row for row in rows if row.gamma != 0]
    # The step is needed first: a speedup is a round's time only relative to it.
    for name, chosen in (("step", plain), ("round", rounds)):
        if not chosen:
            continue
        file = folder / f"{name}.csv"
        lines = []
        for row in chosen:
            here = situation(base, [*sets, *settings(row)])
            seconds = token_s(series, row, base, sets) * here.tokens_per_round
            gammas.add(here.scenario.gamma)
            # Up to γ + 1 the width does not matter: the table is of whole rounds at this γ.
            widths = [1] if name == "step" else sorted({2, here.scenario.gamma + 1})
            at = (here.point.context_tokens, seconds)
            lines += [(here.point.batch, width, *at) for width in widths]
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("batch", "width", "context_tokens", "pass_s"))
            writer.writerows(lines)
        sets.append(f"target.{name}={{table: {file}, evidence: fitted}}")
    if len(gammas - {0}) > 1:
        wrong = "a table of whole rounds at several γ"
        raise ScenarioError(Fault(wrong, "one γ; `fit: rounds` for several", series.name))
    return sets if not rounds else [*sets, "draft.step=0 ms", "speculation.overhead=0 ms"]


def _solved(series: MeasuredSeries, rows: list[MeasuredRow], base: Scenario) -> list[str]:
    """Find the fields of all rows together: each by itself, over and over, until all are met.

    Raises ScenarioError with what the range of a field gives where a row cannot be met.
    """
    sets = {row.solves.field: "" for row in rows if row.solves}

    def off(row: MeasuredRow) -> float:
        said = [one for one in sets.values() if one]
        return predicted(series, row, base, said) / measured(series, row) - 1

    for _ in range(PASSES):
        before = dict(sets)
        for row in rows:
            _meet(row, sets, off)
        if max(abs(off(row)) for row in rows) <= CLOSE:
            return list(sets.values())
        if sets == before:
            break
    faults = []
    for row in rows:
        if row.solves and abs(off(row)) > CLOSE:
            low, high = row.solves.between
            wrong = (
                f"{row.solves.field} from {low:g} to {high:g} comes no closer to {row.value:g} "
                f"{row.unit or series.unit} than {100 * off(row):+z.1f} %"
            )
            faults.append(Fault(wrong, "a range that holds it", f"{series.name}: {label(row)}"))
    raise ScenarioError(faults)


def _meet(row: MeasuredRow, sets: dict[str, str], off: Callable[[MeasuredRow], float]) -> None:
    """Leave in `sets` the value of the row's field that meets it, or the nearer end."""
    assert row.solves is not None  # the schema refuses a row without
    solves = row.solves

    def away(value: float) -> float:
        sets[solves.field] = f"{solves.field}={value:.12g} {solves.unit}".rstrip()
        return off(row)

    low, high = solves.between
    at_low, at_high = away(low), away(high)
    if (at_low > 0) == (at_high > 0):
        away(low if abs(at_low) < abs(at_high) else high)
        return
    from scipy.optimize import brentq

    away(float(brentq(away, low, high, xtol=1e-12, rtol=CLOSE / 100)))
