"""Which files are tables of pass times, by their content, and the passes that they hold."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers import (
    costs_llamabench,
    costs_operators,
    costs_profiles,
    costs_sglang,
    costs_totals,
    costs_vllm,
)
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked
from specplan.scenarios.importers.documents import Record, read_documents
from specplan.scenarios.importers.files import read_head, whole_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from specplan.models.hardware import Model

Rows = list[dict[str, Any]]
_NEEDS_MODEL = "--model config.json: the table holds single operators, not passes"


def read_pass_times(
    files: Sequence[Path], model: Model | None = None, step_s: float | None = None
) -> tuple[list[PassTimes], list[Path]]:
    """Return the pass times that the files hold, and the files that are none of these tables.

    Tables of one system's operators (GEMMs and attention; LLMServingSim's three) are put together
    to passes of `model`; a table of ratios counts plain steps of `step_s`. A folder stands for the
    tables in it.

    Raises ScenarioError: every table that cannot be used, with its reason.
    """
    found: list[PassTimes] = []
    others: list[Path] = []
    operators: dict[str, Rows] = {"gemm": [], "attention": [], "profile": []}
    named: dict[str, str] = {}
    for file in _expanded(files):
        rows = _rows(file)
        kind = _operator_kind(rows)
        if kind:
            operators[kind] += rows
            named[kind] = ", ".join(filter(None, (named.get(kind), str(file))))
        elif rows:
            found += _of_rows(rows, file, step_s)
        elif not rows and (times := _of_json(file)):
            found += times
        else:
            others.append(file)
    if named and model is None:
        raise ScenarioError(
            Fault("operators of an unknown model", _NEEDS_MODEL, next(iter(named.values())))
        )
    if model is not None:
        found += _put_together(operators, named, model)
    return found, others


def read_totals(
    files: Sequence[Path], stated: Sequence[str]
) -> tuple[list[costs_totals.Total], list[Path]]:
    """Return the results of `vllm bench latency` and `throughput` among the files, and the others.

    `stated` says what such a run had, once for all of them or once for each, in their order.
    Raises ScenarioError: what is not stated, or is stated of no such file.
    """
    records = [(file, _records(file)) for file in files if file.suffix != ".parquet"]
    totals = {file: found[0] for file, found in records if found and costs_totals.kind_of(found[0])}
    if stated and len(stated) not in {1, len(totals)}:
        wrong = f"{len(stated)} of it, and {len(totals)} results that hold a total"
        raise ScenarioError(Fault(wrong, "one for all of them, or one for each", field="--with"))
    if stated and not totals:
        wrong = "no file is a result of vllm bench latency or throughput"
        raise ScenarioError(Fault(wrong, "such a file beside it", field="--with"))
    texts = stated if len(stated) == len(totals) else [*stated, ""][:1] * len(totals)
    read = [
        costs_totals.read_total(record, text)
        for record, text in zip(totals.values(), texts, strict=True)
    ]
    return read, [file for file in files if file not in totals]


def _put_together(
    operators: dict[str, Rows], named: dict[str, str], model: Model
) -> list[PassTimes]:
    """Return passes of the model from whichever operators are there."""
    found = []
    try:
        if "profile" in named:
            rows = operators["profile"]
            found.append(costs_profiles.read_profile(rows, model, named["profile"]))
        if {"gemm", "attention"} & named.keys():
            gemm, attention = operators["gemm"], operators["attention"]
            file = ", ".join(named[kind] for kind in ("gemm", "attention") if kind in named)
            found.append(costs_operators.read_operators(gemm, attention, model, file))
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"a row cannot be used: {error}"
        file = ", ".join(named.values())
        raise ScenarioError(Fault(wrong, "numbers in every row", file)) from error
    return found


def _expanded(files: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for file in files:
        inside = sorted(file.glob("*.csv")) if file.is_dir() else [file]
        if not inside:
            right = "a folder of *.csv tables, or the files themselves"
            raise ScenarioError(Fault("a folder without tables", right, str(file)))
        found += inside
    return found


def _rows(file: Path) -> Rows:
    """Return the rows of a CSV or Parquet file, none of any other."""
    if file.suffix == ".parquet":
        import pyarrow as arrow
        from pyarrow import parquet

        try:
            rows: Rows = parquet.read_table(file).to_pylist()
        except (OSError, arrow.ArrowException) as error:
            raise ScenarioError(Fault("is not Parquet", "a Parquet table", str(file))) from error
        return rows
    if file.suffix != ".csv":
        return []
    read_head(file)
    try:
        return list(csv.DictReader(whole_text(file).splitlines()))
    except csv.Error as error:
        raise ScenarioError(Fault(str(error), "comma-separated rows", str(file))) from error


def _operator_kind(rows: Rows) -> str:
    if not rows:
        return ""
    first = rows[0]
    if costs_operators.is_gemm(first):
        return "gemm"
    if costs_operators.is_attention(first):
        return "attention"
    return "profile" if costs_profiles.is_profile(first) else ""


def _of_rows(rows: Rows, file: Path, step_s: float | None) -> list[PassTimes]:
    name = str(file)
    if costs_llamabench.is_row(rows[0]):
        return costs_llamabench.read_rows(rows, name)
    try:
        if costs_profiles.is_splitwise(rows[0]):
            return costs_profiles.read_splitwise(rows, name)
    except (KeyError, TypeError, ValueError) as error:
        raise ScenarioError(
            Fault(f"a row cannot be used: {error}", "numbers in every row", name)
        ) from error
    from specplan.scenarios.cost_tables import counts_steps, read_rows

    # A table of our own: batch, width, maybe context, a time. A fit needs no whole grid.
    passes = tuple(Pass(x.batch, x.width, x.context, x.seconds) for x in read_rows(file, step_s))
    notes: tuple[str, ...] = ()
    if step_s is not None and counts_steps(key for key in rows[0] if key):
        notes = (f"ratios, counted in plain steps of {1e3 * step_s:.4g} ms",)
    return [checked(PassTimes(name, "table", passes, notes), name)]


def _records(file: Path) -> list[Record]:
    """Return the objects of a JSON file, none of any other."""
    if file.is_dir():
        return []
    head = read_head(file)
    if not head.lstrip().startswith((b"{", b"[")):
        return []
    try:
        documents, _ = read_documents(whole_text(file), str(file))
    except ScenarioError:
        return []  # a log may begin with a bracket; its own reader says what is wrong
    records: list[Record] = []
    for document in documents:
        members = document.value if isinstance(document.value, list) else [document.value]
        records += [
            Record(member, str(file), document.line)
            for member in members
            if isinstance(member, dict)
        ]
    return records


def _of_json(file: Path) -> list[PassTimes]:
    records = _records(file)
    if not records:
        return []
    first = records[0]
    if costs_vllm.is_case(first):
        return [costs_vllm.read_forward([one for one in records if costs_vllm.is_case(one)])]
    if costs_sglang.is_floor_table(first):
        return [costs_sglang.read_floor_table(one) for one in records]
    if costs_sglang.is_additive_table(first):
        return [costs_sglang.read_additive_table(one) for one in records]
    if costs_llamabench.is_row(first.value):
        return costs_llamabench.read_rows([one.value for one in records], str(file))
    return []
