"""Measured and fitted costs as a scenario file, with the provenance of every number in it."""

from __future__ import annotations

import re
from textwrap import fill
from typing import TYPE_CHECKING

from specplan.models.calibration import RoundFit
from specplan.results.calibrate.rows import mean_of, together, unusable
from specplan.scenarios.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specplan.models.calibration import LinearFit
    from specplan.results.diagnose.answer import Finding, Row
    from specplan.scenarios.importers.costs_passes import PassTimes

DIGITS = 6
WIDTH = 79
# Not measured by any of the evidence: what the scenario serves until somebody says otherwise.
_WORKLOAD = """workload:  # assumed
  arrivals: {{streams: {streams}}}
  requests: 500
  prompt_tokens: 0
  output_tokens: 512
scheduler:
  max_num_seqs: {streams}
"""


def round_block(found: Finding) -> str:
    """Write the scenario of a group, at its fastest γ; "" where something needed is missing.

    What drafting and verifying cost is taken as measured, else as fitted; where neither is known
    the whole round stands in `target.round` and the draft is free, which holds at this γ only.
    """
    rows = [row for row in found.rows if not unusable(row)]
    if not rows:
        return ""
    used, fit = together(rows), found.fit
    point = used[0].point
    measured = mean_of(used)
    gamma = round(point.gamma or 0)
    source = _source(used)
    overhead_s, extra = 0.0, False
    kinds: tuple[str, ...]
    comment = ""
    if isinstance(fit, RoundFit) and point.draft_s is None and point.verify_s is None:
        round_s, draft_s = fit.verify_s, fit.draft_s
        source = _source(
            [row for row in found.rows if row.point.gamma and row.point.round_s], fitted=True
        )
        kinds = ("fitted", "fitted")
        residual = max(map(abs, fit.residuals))
        exact = "solved exactly" if fit.points == 2 else f"largest residual {100 * residual:.2g} %"
        source += f"; {exact}"
    elif measured.draft_s is not None and measured.verify_s is not None:
        extra = 0.5 < (point.extra_draft_steps or 0.0) < 1.5
        steps = point.draft_steps or gamma
        round_s, draft_s = measured.verify_s, measured.draft_s / steps
        solved = (point.verify_s is None, point.draft_s is None)
        kinds = tuple("fitted" if one else "measured" for one in solved)
        overhead_s = max(measured.overhead_s or 0.0, 0.0)
    else:
        round_s, draft_s = measured.round_s, 0.0
        kinds = ("measured", "assumed")
        comment = (
            f"# target.round is a whole round at gamma {gamma}, drafting included:\n"
            "# do not change gamma\n"
        )
    base = found.group.baseline
    step_source = base.source if base else ""
    lines = [
        f"target:\n  round:\n{_cost(round_s, kinds[0], source)}",
        f"  step:\n{_cost(measured.step_s, 'measured', step_source)}",
        f"draft:\n  step:\n{_cost(draft_s, kinds[1], source)}",
        "speculation:",
        "  method: draft_model",
        f"  gamma: {gamma}",
        *([f"  overhead: {format_duration(rounded(overhead_s))}"] if overhead_s else []),
        *(["  extra_draft_step: true"] if extra else []),
        f"  acceptance:\n{_acceptance(used, gamma)}",
    ]
    trust = fit.trust() if isinstance(fit, RoundFit) else "one configuration; no fit to check"
    trust += _left_out(rows, used)
    rests_on = {"speculation.acceptance": f"measured: {_source(used)}"}
    if overhead_s:
        rests_on["speculation.overhead"] = f"measured: what the phases leave of a round, {source}"
    body = comment + "\n".join(lines)
    return scenario_text(found.group.label, body, found.group.batch, trust, rests_on)


def _source(rows: Sequence[Row], *, fitted: bool = False) -> str:
    count = f"{len(rows)} measured point{'s' * (len(rows) > 1)}"
    mean = "mean of " * (len(rows) > 1 and not fitted)
    return f"{mean}{count}: {'; '.join(row.point.source for row in rows)}"


def _left_out(rows: Sequence[Row], used: Sequence[Row]) -> str:
    """Say what the acceptance is of, where several points stand at the γ of the scenario."""
    others = [row for row in rows if row.point.gamma == used[0].point.gamma and row not in used]
    says = f"; tokens per round: the mean of {len(used)} points" if len(used) > 1 else ""
    if others:
        listed = "; ".join(row.point.source for row in others)
        says += f"; the fastest point stands here, not {listed}"
    return says


def _acceptance(rows: Sequence[Row], gamma: int) -> str:
    lists = [row.point.unconditional for row in rows]
    if all(len(one) >= gamma for one in lists):
        means = [sum(one[i] for one in lists) / len(lists) for i in range(gamma)]
        rates = ", ".join(f"{rate:.{DIGITS}g}" for rate in means)
        return fill(f"    unconditional: [{rates}]", WIDTH, subsequent_indent="      ")
    tau = min(sum(row.point.tokens_per_round or 1.0 for row in rows) / len(rows), gamma + 1.0)
    return f"    acceptance_length: {tau:.{DIGITS}g}\n    at_gamma: {gamma}"


def table_block(times: PassTimes, fit: LinearFit | None, table: str) -> str:
    """Write the scenario of measured passes as they are: `table` is the file beside it."""
    off = "no linear cost fits" if fit is None else f"a linear cost is up to {fit.worst:.0%} off"
    context = times.passes[0].context
    at = f", {context:g} cached tokens a sequence" if context else ""
    source = f"{times.source} ({times.kind}): {len(times.passes)} passes; {off}"
    body = (
        f"target:\n  round:\n    table: {table}\n"
        f"    evidence: {times.evidence}\n"
        f"    source: {folded(source, 6)}\n"
        "speculation:\n  method: none"
    )
    batches, widths = [one.batch for one in times.passes], [one.width for one in times.passes]
    reach = f"batch {min(batches):g} to {max(batches):g}, width 1 to {max(widths):g}{at}"
    return scenario_text(times.label, body, min(batches), "; ".join((reach, *times.notes)))


def passes_block(times: PassTimes, fit: LinearFit) -> str:
    """Write the scenario of fitted passes: a target without speculation, at one stream."""
    terms = {
        "base": fit.base_s,
        "per_sequence": fit.per_sequence_s,
        "per_token": fit.per_token_s,
        "per_context_token": fit.per_context_token_s,
    }
    linear = "\n".join(
        f"      {name}: {format_duration(rounded(value))}" for name, value in terms.items() if value
    )
    source = f"{times.source} ({times.kind}): {fit.trust()}"
    widest = max(one.width for one in times.passes)
    body = (
        f"target:\n  round:\n    linear:\n{linear}\n"
        f"    evidence: {'fitted' if times.evidence == 'measured' else times.evidence}\n"
        f"    source: {folded(source, 6)}\n"
        "speculation:\n  method: none"
    )
    batches = [one.batch for one in times.passes]
    reach = f"batch {min(batches):g} to {max(batches):g}, width 1 to {widest:g}"
    return scenario_text(times.label, body, 1.0, "; ".join((reach, *times.notes, *fit.notes)))


def scenario_text(
    label: str, body: str, batch: float, trust: str, rests_on: Mapping[str, str] | None = None
) -> str:
    """Write a scenario around its costs: a name, a workload, and how far to trust it.

    `rests_on` labels what is no cost; the workload is assumed.
    """
    suffix = re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-").lower()
    name = "-".join(filter(None, ("calibrated", suffix)))
    streams = max(1, round(batch))
    labels = {**(rests_on or {}), "workload": "assumed: no part of the measurements"}
    listed = "".join(f"    {field}: {folded(says, 6)}\n" for field, says in labels.items())
    record = f"record:\n  evidence:\n{listed}"
    notes = f"  notes: {folded(f'specplan calibrate: {trust}', 4)}\n"
    return f"name: {name}\n{body}\n{_WORKLOAD.format(streams=streams)}{record}{notes}"


def _cost(seconds: float, kind: str, source: str) -> str:
    shown = format_duration(rounded(seconds))
    says = f"    source: {folded(source, 6)}" if source else "    source: not stated"
    return f"    constant: {shown}\n    evidence: {kind}\n{says}"


def rounded(seconds: float) -> float:
    """Keep the digits that a measurement has."""
    return float(f"{seconds:.{DIGITS}g}")


def folded(text: str, indent: int) -> str:
    """Write text as a folded YAML scalar, so that no terminal folds it into something else."""
    plain = "".join(one if one.isprintable() else "?" for one in text)
    blank = " " * indent
    return ">-\n" + fill(
        plain,
        WIDTH,
        initial_indent=blank,
        subsequent_indent=blank,
        break_long_words=False,
        break_on_hyphens=False,
    )
