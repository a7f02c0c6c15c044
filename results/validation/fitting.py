"""Costs from the fit rows of a series, by the code a user calls: calibrate, tables, solving."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from specplan.results.calibrate_answer import calibrate_answer
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
    from pathlib import Path

    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_measured import MeasuredRow, MeasuredSeries

HALVINGS = 50
CLOSE = 1e-6  # a solved row is met to this, relative


def fitted_settings(series: MeasuredSeries, base: Scenario, folder: Path) -> list[str]:
    """Give the settings that the fit rows determine, and no other row.

    `folder` is where tables are written, which the settings then name. Raises ScenarioError: rows
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


def calibrate_lines(
    series: MeasuredSeries, base: Scenario
) -> tuple[list[str], str]:
    """Write the fit rows as `specplan calibrate` takes them: points, and the baseline.

    The baseline is the plain row among them, else the scenario's own step.
    """
    plain, points = "", []
    for row in series.rows:
        if row.role == "test":
            continue
        per_token = token_s(series, row, base, series.set)
        if row.gamma == 0:
            plain = format_duration(per_token)
            continue
        here = situation(base, [*series.set, *settings(row)])
        tau = tokens_per_round(row) or here.tokens_per_round
        gamma = row.gamma if row.gamma is not None else here.scenario.gamma
        words = [f"gamma={gamma}", f"tau={tau:.8g}", f"tpot={format_duration(per_token)}"]
        points.append(" ".join([*words, row.calibrate]).strip())
        plain = plain or format_duration(float(here.prediction.baseline_tpot_s))
    return points, plain


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
    plain = [row for row in rows if row.gamma == 0]
    rounds = [row for row in rows if row.gamma != 0]
    # The step is needed first: a speedup is a round's time only relative to it.
    for name, chosen in (("step", plain), ("round", rounds)):
        if not chosen:
            continue
        file = folder / f"{name}.csv"
        lines = []
        for row in chosen:
            here = situation(base, [*series.set, *sets, *settings(row)])
            seconds = token_s(series, row, base, [*series.set, *sets]) * here.tokens_per_round
            width = 1 if name == "step" else here.scenario.gamma + 1
            lines.append((here.point.batch, width, here.point.context_tokens, seconds))
        if name == "round" and len({width for _, width, _, _ in lines}) > 1:
            wrong = "a table of whole rounds at several γ"
            raise ScenarioError(Fault(wrong, "one γ; `fit: rounds` for several", series.name))
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("batch", "width", "context_tokens", "pass_s"))
            writer.writerows(lines)
        sets.append(f"target.{name}={{table: {file}, outside: hold, evidence: fitted}}")
    return sets if plain and not rounds else [*sets, "draft.step=0 ms", "speculation.overhead=0 ms"]


def _solved(series: MeasuredSeries, rows: list[MeasuredRow], base: Scenario) -> list[str]:
    """Find each field by bisection, in the order of the rows, each with those before it."""
    sets: list[str] = []
    for row in rows:
        assert row.solves is not None  # the schema refuses a row without
        aim, solves = measured(series, row), row.solves
        low, high = solves.between

        def off(value: float, row: MeasuredRow = row, aim: float = aim) -> float:
            assert row.solves is not None
            field = f"{row.solves.field}={value:.12g} {row.solves.unit}".rstrip()
            return predicted(series, row, base, [*series.set, *sets, field]) - aim

        at_low, at_high = off(low), off(high)
        if (at_low > 0) == (at_high > 0):
            wrong = (
                f"{solves.field} from {low:g} to {high:g} gives {aim + at_low:.4g} to "
                f"{aim + at_high:.4g}, and {aim:.4g} was measured"
            )
            raise ScenarioError(Fault(wrong, "a range that holds it", f"{series.name}: {label(row)}"))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            away = off(middle)
            low, high = (middle, high) if (away > 0) == (at_low > 0) else (low, middle)
            if abs(away) <= CLOSE * aim:
                break
        sets.append(f"{solves.field}={middle:.9g} {solves.unit}".rstrip())
    return sets
