"""`specplan calibrate`: costs from what people measured, and why speculation pays or does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from specplan.results.answer import Answer
from specplan.results.calibrate.block import passes_block, round_block, table_block
from specplan.results.calibrate.passes import passes_json, passes_text
from specplan.results.calibrate.roofline import Bent, Stack, bent, bent_text
from specplan.results.calibrate.rows import why_none
from specplan.results.diagnose.answer import finding
from specplan.results.diagnose.batch import batch_text, by_batch
from specplan.results.diagnose.context import by_context, context_text
from specplan.results.diagnose.labels import bands, fastest
from specplan.results.diagnose.text import (
    bands_words,
    baselines_words,
    fastest_words,
    finding_text,
    needed_text,
)
from specplan.results.store import check_file, write_text
from specplan.results.tables import facts, heading, verbatim
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.gpus import find_gpu
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.costs_evidence import point_of
from specplan.scenarios.importers.costs_files import read_pass_times, read_totals
from specplan.scenarios.importers.costs_groups import groups
from specplan.scenarios.importers.costs_lines import parse_baseline, parse_point
from specplan.scenarios.importers.costs_together import with_passes
from specplan.scenarios.importers.costs_totals import passes as passes_of_totals
from specplan.scenarios.importers.costs_totals import points as points_of_totals
from specplan.scenarios.importers.refusals import KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from specplan.models.calibration import LinearFit
    from specplan.results.diagnose.answer import Finding
    from specplan.scenarios.importers.costs_passes import PassTimes
    from specplan.scenarios.importers.costs_points import Point
    from specplan.scenarios.importers.evidence import Evidence

_TABLES = (
    "tables: batch, width, ms; vllm bench forward, latency, throughput; llama-bench; SGLang's "
    "steps per second; operators of aiconfigurator and LLMServingSim. A config.json is for --model"
)
TABLE_FROM = 0.10
"""A linear cost this far off at any pass does not stand for a table of them."""


def calibrate_answer(
    files: Sequence[Path] = (),
    *,
    points: Sequence[str] = (),
    stated: Sequence[str] = (),
    baseline: str = "",
    model: Path | None = None,
    gpu: str = "",
    tensor_parallel: int | None = None,
    dtype: str | None = None,
    label: str = "",
    output: Path | None = None,
    force: bool = False,
) -> Answer:
    """Read points and tables, diagnose and fit them, and write one scenario for each result.

    `files` are results of serving benchmarks or tables of pass times; `stated` what the runs of
    `vllm bench latency` and `throughput` among them had, `batch=8 input=1024 output=128`; `points`
    lines such as `gamma=3 404 tok/s tau=2.9`; `baseline` a plain step, a speed, or a file; `model`
    a config.json for tables of operators. With a `gpu`, passes bend the roofline of that GPU and
    model instead of a linear cost. `label` keeps one system. `output` gets the scenario, that of
    the points where there are tables, too; there must be one then. The exit code is 1 when no cost
    could be told from the evidence.

    Raises ScenarioError: everything that cannot be read or cannot be true.
    """
    if not files and not points and not baseline:
        wrong = "nothing was measured"
        raise ScenarioError(Fault(wrong, 'files, or --point "gamma=3 404 tok/s tau=2.9"'))
    stack = _stack(gpu, model, tensor_parallel, dtype)
    totals, others = read_totals(files, stated)
    base = _baseline(baseline)
    step_s = base.token_s if base else None
    passes, others = read_pass_times(others, stack.model if stack else _model(model), step_s)
    measured, silent = _points(others, points)
    measured += points_of_totals(totals)
    passes += passes_of_totals(totals)
    passes = [one for one in passes if not label or one.label == label]
    kept = [one for one in measured if not label or one.label == label]
    if label and not passes and not kept:
        raise ScenarioError(Fault(f"nothing is labelled {label!r}", "a label of the evidence"))
    if label:  # a plain point without a label is everybody's baseline
        kept += [one for one in measured if one.is_baseline and not one.label]
    measured = with_passes(kept, passes, add_plain=not base) or ([base] if base else [])
    findings = [finding(group) for group in groups(measured, base)]
    table = output.with_suffix(".csv") if output else None
    rooflines = bent(passes, stack) if stack else []
    fits, tables = _fits([] if stack else passes, keep_tables=table is not None)
    own = [block for found in findings if (block := round_block(found))]
    blocks = [*own, *(one.block() for one in rooflines)]
    blocks += [passes_block(one, fit) for one, fit in fits if one not in tables or table is None]
    blocks += [table_block(one, dict(fits).get(one), table.name) for one in tables if table]
    notes = [f"{_place(one)}: no time of a token or a round in it" for one in silent]
    notes += [_timed(silent)] if silent else []
    if not blocks:
        notes.append(why_none(findings))
    if tables and table is None:
        notes.append("no linear cost comes near every pass: -o FILE keeps the table of the times")
    if output is not None and table is not None:
        beside = [] if own else [(table, one.table_csv()) for one in tables]
        _write(output, own or blocks, beside, files, force=force)
        notes.append(f"written to {output}{f' and {table}' if beside else ''}")
    shown = [*measured, *([base] if base and base not in measured else [])]
    best = fastest(shown)
    value = {
        "groups": [found.value for found in findings],
        "passes": [passes_json(one, fit) for one, fit in fits],
        "rooflines": [one.value() for one in rooflines],
        "contexts": [one.value() for one in by_context(findings)],
        "batches": [one.value() for one in by_batch(findings)],
        "best_absolute": best,
        "bands": bands(findings),
        "scenarios": blocks,
    }
    return Answer(value, _text(findings, fits, rooflines, best, blocks), notes, 0 if blocks else 1)


def _model(path: Path | None) -> Any:
    if path is None:
        return None
    from specplan.scenarios.model_config import read_model

    return read_model(path)


def _stack(
    gpu: str, model: Path | None, tensor_parallel: int | None, dtype: str | None
) -> Stack | None:
    """Gather what a roofline is bent for; None without a GPU. Raises ScenarioError."""
    if not gpu:
        if tensor_parallel or dtype:
            field = "--tensor-parallel" if tensor_parallel else "--dtype"
            raise ScenarioError(Fault("is of a roofline", "`--gpu h100-sxm` too", field=field))
        return None
    if model is None:
        wrong = "a roofline needs the model, too"
        raise ScenarioError(Fault(wrong, "`--model config.json`", field="--gpu"))
    return Stack(find_gpu(gpu).name, model, _model(model), tensor_parallel, dtype)


def _points(files: Sequence[Path], lines: Sequence[str]) -> tuple[list[Point], list[Evidence]]:
    """Return the points of files and lines, and what in the files held no time."""
    faults: list[Fault] = []
    found: list[Point] = []
    silent: list[Evidence] = []
    evidence = _read(files) if files else []
    _check_one_model(evidence)
    for one in evidence:
        point = point_of(one)
        if point is None:
            silent.append(one)
        else:
            found.append(point)
    for line in lines:
        try:
            found.append(parse_point(line))
        except ScenarioError as error:
            faults += error.faults
    if faults:
        raise ScenarioError(faults)
    return found, silent


def _read(files: Sequence[Path]) -> list[Evidence]:
    """Read results of benchmarks; what is no such file may be one of the tables read here, too."""
    try:
        return read_evidence(files)
    except ScenarioError as error:
        named = [
            replace(one, right=f"{one.right}; {_TABLES}") if one.right == KNOWN else one
            for one in error.faults
        ]
        raise ScenarioError(named) from None


def _check_one_model(evidence: Sequence[Evidence]) -> None:
    """Refuse files of several models within one label: one would be the baseline of another."""
    by_label: dict[str, dict[str, str]] = {}
    for one in evidence:
        if one.model:
            short = one.model.rstrip("/").rpartition("/")[2].lower()
            by_label.setdefault(one.label, {})[short] = one.model
    for label, models in by_label.items():
        together = {**by_label.get("", {}), **models}
        if len(together) > 1:
            wrong = f"files of {len(together)} models: {', '.join(sorted(together.values()))}"
            right = "calibrate each model alone: none is the baseline of another"
            raise ScenarioError(Fault(wrong, right, field=label))


def _place(one: Evidence) -> str:
    return " ".join(filter(None, (one.source.file, one.source.where)))


def _timed(silent: Sequence[Evidence]) -> str:
    """Say how a measured speed is put beside the acceptance that the files state."""
    known = [one for one in silent if one.gamma and one.tokens_per_round]
    said = "gamma=… tau=…"
    if len({(one.gamma, one.tokens_per_round) for one in known}) == 1:
        said = f"gamma={known[0].gamma} tau={known[0].tokens_per_round:.4g}"
    return (
        f"put your measured speeds beside them: --point '{said} … tok/s' --baseline '… tok/s', "
        "or a time per token in ms"
    )


def _baseline(text: str) -> Point | None:
    """Read the baseline from a file where one has this name, else from the text."""
    if not text:
        return None
    if "=" in text or not Path(text).is_file():
        return parse_baseline(text)
    found = [point for one in read_evidence([text]) if (point := point_of(one, baseline=True))]
    if len(found) != 1:
        wrong = f"{len(found)} measurements of plain decoding"
        raise ScenarioError(Fault(wrong, "one, as the baseline", file=text))
    return found[0]


def _fits(
    passes: Sequence[PassTimes], *, keep_tables: bool
) -> tuple[list[tuple[PassTimes, LinearFit]], list[PassTimes]]:
    """Fit linear costs, and name the whole tables that none of them stands for.

    Raises ScenarioError where nothing fits and no table is kept.
    """
    fits, tables = [], []
    for one in passes:
        try:
            fit = one.fit()
        except ScenarioError:
            if not (keep_tables and one.is_table):
                raise
            tables.append(one)
            continue
        fits.append((one, fit))
        if one.is_table and fit.worst > TABLE_FROM:
            tables.append(one)
    return fits, tables


def _write(
    output: Path,
    blocks: Sequence[str],
    beside: Sequence[tuple[Path, str]],
    read: Sequence[Path],
    *,
    force: bool,
) -> None:
    """Write the scenario and the table beside it; never over a file that was read."""
    if len(blocks) != 1:
        wrong = f"{len(blocks)} scenarios for one file"
        raise ScenarioError(Fault(wrong, "one: --label chooses it", str(output)))
    texts = {**dict(beside), output: blocks[0]}
    for path in texts:
        if any(path.resolve() == one.resolve() for one in read):
            wrong = f"-o {output} would write {path}, which was read"
            raise ScenarioError(Fault(wrong, "another name for the scenario"))
        check_file(path, force=force)
    for path, text in texts.items():
        write_text(path, text, force=force)


def _text(
    findings: Sequence[Finding],
    fits: Sequence[tuple[PassTimes, LinearFit]],
    rooflines: Sequence[Bent],
    best: dict[str, Any],
    blocks: Sequence[str],
) -> RenderableType:
    parts: list[RenderableType] = []
    for found in findings:
        parts += finding_text(found)
    parts += context_text(by_context(findings))
    parts += batch_text(by_batch(findings))
    parts += needed_text(findings)
    if len(findings) > 1:
        lines = [
            ("Fastest of all", fastest_words(best) if best else ""),
            ("Speedup by label", bands_words(bands(findings))),
            ("Baselines", baselines_words(findings) if best else ""),
        ]
        told = [line for line in lines if line[1]]
        parts += [Text(), facts(told)] if told else []
    if fits:
        parts += passes_text(fits)
    if rooflines:
        parts += bent_text(rooflines)
    for block in blocks if len(blocks) < 4 else ():
        parts += [heading("Scenario"), verbatim(block.rstrip())]
    if len(blocks) >= 4:
        parts += [Text(), Text(f"{len(blocks)} scenarios: --label shows one, --json all.")]
    return Group(*parts)
