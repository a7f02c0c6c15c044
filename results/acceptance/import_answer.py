"""`specplan acceptance import`: what the files say, and the block a scenario can hold."""

from __future__ import annotations

import re
from dataclasses import asdict
from os.path import commonprefix
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specplan.results.answer import Answer
from specplan.results.store import write_text
from specplan.results.tables import milliseconds, number, percent, verbatim
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.block import provenance, scatter, speculation, to_yaml
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.curve import over_gamma
from specplan.scenarios.importers.pool import groups, pool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from specplan.scenarios.importers.evidence import Evidence

    Pooled = Sequence[tuple[Evidence, list[Evidence]]]

SHORTEST_SHARED = 8  # characters that all file names share, from which on they are said once
CELL = 16  # characters of a line in a cell that holds a file name


def import_answer(
    paths: Sequence[Path],
    *,
    model: str = "",
    gamma: int | None = None,
    label: str = "",
    delta: bool = False,
    separate: bool = False,
    output: Path | None = None,
    force: bool = False,
) -> Answer:
    """Read the files, pool what belongs together, and write one block for each group.

    Groups that differ in γ alone and state only τ make one block more, of all γ. `output` gets the
    block as YAML; there must be one group or one such curve then, and no such file yet, or `force`.
    The exit code is 1 when the files can be read but say nothing about acceptance.

    Raises ScenarioError: a file that cannot be imported, or evidence that cannot be pooled.
    """
    found = read_evidence(paths, model=model, gamma=gamma, delta=delta, separate=separate)
    if label:
        found = _labelled(found, label)
    pooled = [(pool(group), group) for group in groups(found)]
    curves = over_gamma(whole for whole, _ in pooled)
    silent = [one for one in found if not one.says_acceptance]
    if output is not None:
        _write(output, pooled, curves, force=force)
    value = {
        "groups": [_json(whole, group) for whole, group in pooled],
        "curves": [_json(whole, points) for whole, points in curves],
        "without_acceptance": [_json_of(one) for one in silent],
    }
    notes = [_summary(whole) for whole, _ in pooled] if len(pooled) == 1 else []
    notes += [f"warning: {said}" for _, group in pooled if (said := scatter(group))]
    if output is not None:
        notes.append(f"written to {output}")
    if _is_one_curve(pooled, curves):
        notes.append("the block is of all γ together; --gamma keeps a single one")
    elif len(pooled) > 1:
        notes.append(f"{len(pooled)} groups: --gamma, --model or --label choose one")
    if len(curves) > 1:
        notes.append(
            f"{len(curves)} curves over γ: --model or --label choose one, a block of all γ"
        )
    return Answer(value, _text(pooled, curves, silent), notes, exit_code=0 if pooled else 1)


def _labelled(found: Sequence[Evidence], label: str) -> list[Evidence]:
    kept = [one for one in found if label in (one.label, one.source.where)]
    if not kept:
        names = {name for one in found for name in (one.label or one.source.where,) if name}
        known = ", ".join(sorted(names)) or "none"
        raise ScenarioError(Fault(f"no evidence labelled {label!r}", f"labels: {known}"))
    return kept


def _is_one_curve(pooled: Pooled, curves: Pooled) -> bool:
    """Return whether all that was found is the points of one curve over γ."""
    return len(curves) == 1 and len(curves[0][1]) == len(pooled)


def _write(output: Path, pooled: Pooled, curves: Pooled, *, force: bool) -> None:
    blocks = curves if _is_one_curve(pooled, curves) else pooled
    if len(blocks) != 1:
        raise ScenarioError(
            Fault(
                f"{len(pooled)} groups for one file",
                "one: choose it with --gamma, --model or --label",
                str(output),
            )
        )
    write_text(output, to_yaml(*blocks[0]), force=force)


def _json(whole: Evidence, group: Sequence[Evidence]) -> dict[str, Any]:
    return {
        **_json_of(whole),
        "speculation": speculation(whole),
        "block": to_yaml(whole, group),
        "evidence": [_json_of(one) for one in group] if len(group) > 1 else [],
        "provenance": provenance(group),
    }


def _json_of(one: Evidence) -> dict[str, Any]:
    """Return every quantity under its name, null where the file does not say."""
    value = asdict(one)
    value.pop("recorded")  # up to millions of rounds; the histogram says the same
    value["tokens_per_round"] = one.tokens_per_round
    value["draft_probability"] = one.draft_probability
    value["acceptance_rate"] = one.acceptance_rate
    value["conditional"] = _conditional(one.unconditional)
    return value


def _conditional(unconditional: Sequence[float]) -> list[float | None]:
    """Return a_i = A_i / A_{i−1}, None where nothing got that far (0/0 is unknown, not NaN)."""
    before = [1.0, *unconditional]
    return [
        after / previous if previous else None
        for previous, after in zip(before, unconditional, strict=False)
    ]


def _text(pooled: Pooled, curves: Pooled, silent: Sequence[Evidence]) -> RenderableType:
    parts: list[RenderableType] = []
    if len(pooled) == 1:
        parts.append(verbatim(to_yaml(*pooled[0]).rstrip()))
    elif pooled:
        parts.append(_table([whole for whole, _ in pooled]))
    if len(curves) == 1:
        parts += [Text(), verbatim(to_yaml(*curves[0]).rstrip())]
    if silent:
        alike = _common_start([PurePath(one.source.file).name for one in silent])
        of = f" (files {alike}…)" if alike else ""
        parts += [Text(f"Latencies only, no acceptance{of}:"), _silent_table(silent)]
        if not pooled:
            reasons = dict.fromkeys(
                text for one in silent for text in (*one.warnings, *one.dropped)
            )
            parts += [Text(f"  {reason}") for reason in reasons]
    return Group(*parts)


def _common_start(names: Sequence[str]) -> str:
    """Return what all names begin with, up to its last separator, where it is long enough to drop.

    >>> _common_start(["glm5_fp8_tp8_conc4.json", "glm5_fp8_tp8_conc16.json"])
    'glm5_fp8_tp8_'
    """
    shared = commonprefix(names) if len(set(names)) > 1 else ""  # noqa: RUF071 (names, no paths)
    end = max(shared.rfind(mark) for mark in "_-. ") + 1
    return shared[:end] if end >= SHORTEST_SHARED else ""


def _parted(name: str) -> str:
    """Break a long name into lines of a cell after separators, never within a word.

    >>> _parted("glm5_fp8_vllm_tp8_isl16384.json").splitlines()
    ['glm5_fp8_vllm_', 'tp8_', 'isl16384.json']
    """
    lines = [""]
    for part in re.split(r"(?<=[_\- ])", name):
        if lines[-1] and len(lines[-1] + part) > CELL:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _summary(whole: Evidence) -> str:
    tau = f"τ {number(whole.acceptance_length)} tokens per round with a draft"
    share = whole.draft_probability
    if share is not None and share < 1:
        tau += (
            f"; {percent(share)} of the rounds draft, so {number(whole.tokens_per_round)} tokens "
            "per round over all"
        )
    if whole.acceptance_rate is not None:
        tau += f"; accepted/drafted {percent(whole.acceptance_rate)}"
    return tau + "."


def _table(rows: Sequence[Evidence]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("model", "label", "kind"):
        table.add_column(name)
    for name in ("γ", "τ", "rounds", "drafting"):
        table.add_column(name, justify="right")
    for one in rows:
        table.add_row(
            Text(one.model),
            Text(one.label),
            one.source.kind,
            "?" if one.gamma is None else str(one.gamma),
            number(one.acceptance_length),
            "?" if one.drafting_rounds is None else f"{one.drafting_rounds:,.0f}",
            "?" if one.draft_probability is None else percent(one.draft_probability),
        )
    return table


def _silent_table(rows: Sequence[Evidence]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("file", "kind", "label", "where", "time per token", "TTFT"):
        table.add_column(column, overflow="fold")
    names = [PurePath(one.source.file).name for one in rows]
    alike = _common_start(names)
    for one, name in zip(rows, names, strict=True):
        latency = one.latency
        table.add_row(
            Text(_parted(name.removeprefix(alike))),
            one.source.kind,
            Text(one.label),
            Text(one.source.where),
            milliseconds(latency.token_s),
            milliseconds(latency.ttft_s),
        )
    return table
