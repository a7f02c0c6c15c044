"""`specplan acceptance import`: what the files say, and the block a scenario can hold."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specplan.results.answer import Answer
from specplan.results.store import write_text
from specplan.results.tables import milliseconds, number, percent, verbatim
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.block import provenance, speculation, to_yaml
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.pool import groups, pool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from specplan.scenarios.importers.evidence import Evidence


def import_answer(
    paths: Sequence[Path],
    *,
    model: str = "",
    gamma: int | None = None,
    label: str = "",
    delta: bool = False,
    separate: bool = False,
    output: Path | None = None,
) -> Answer:
    """Read the files, pool what belongs together, and write one block for each group.

    `output` gets the block as YAML; there must be one group then, and no such file yet. The exit
    code is 1 when the files can be read but say nothing about acceptance.

    Raises ScenarioError: a file that cannot be imported, or evidence that cannot be pooled.
    """
    found = read_evidence(paths, model=model, gamma=gamma, delta=delta, separate=separate)
    if label:
        found = _labelled(found, label)
    pooled = [(pool(group), group) for group in groups(found)]
    silent = [one for one in found if not one.says_acceptance]
    if output is not None:
        _write(output, pooled)
    value = {
        "groups": [_json(whole, group) for whole, group in pooled],
        "without_acceptance": [_json_of(one) for one in silent],
    }
    notes = [_summary(whole) for whole, _ in pooled] if len(pooled) == 1 else []
    if output is not None:
        notes.append(f"written to {output}")
    if len(pooled) > 1:
        notes.append(f"{len(pooled)} groups: --gamma, --model or --label choose one")
    return Answer(value, _text(pooled, silent), notes, exit_code=0 if pooled else 1)


def _labelled(found: Sequence[Evidence], label: str) -> list[Evidence]:
    kept = [one for one in found if one.label == label]
    if not kept:
        known = ", ".join(sorted({one.label for one in found if one.label})) or "none"
        raise ScenarioError(Fault(f"no evidence labelled {label!r}", f"labels: {known}"))
    return kept


def _write(output: Path, pooled: Sequence[tuple[Evidence, list[Evidence]]]) -> None:
    if len(pooled) != 1:
        raise ScenarioError(
            Fault(
                f"{len(pooled)} groups for one file",
                "one: choose it with --gamma, --model or --label",
                str(output),
            )
        )
    write_text(output, to_yaml(*pooled[0]), force=False)


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


def _text(
    pooled: Sequence[tuple[Evidence, list[Evidence]]], silent: Sequence[Evidence]
) -> RenderableType:
    parts: list[RenderableType] = []
    if len(pooled) == 1:
        parts.append(verbatim(to_yaml(*pooled[0]).rstrip()))
    elif pooled:
        parts.append(_table([whole for whole, _ in pooled]))
    if silent:
        parts += [Text("Latencies only, no acceptance:"), _silent_table(silent)]
        if not pooled:
            reasons = dict.fromkeys(
                text for one in silent for text in (*one.warnings, *one.dropped)
            )
            parts += [Text(f"  {reason}") for reason in reasons]
    return Group(*parts)


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
    for name in ("file", "kind", "label", "where", "time per token", "TTFT"):
        table.add_column(name, overflow="fold")
    for one in rows:
        latency = one.latency
        table.add_row(
            Text(PurePath(one.source.file).name),
            one.source.kind,
            Text(one.label),
            Text(one.source.where),
            milliseconds(latency.token_s),
            milliseconds(latency.ttft_s),
        )
    return table
