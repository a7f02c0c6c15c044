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
    files: Sequence[Path], model: Model | None = None
) -> tuple[list[PassTimes], list[Path]]:
    """Return the pass times that the files hold, and the files that are none of these tables.

    Tables of one system's operators (GEMMs and attention; LLMServingSim's three) are put together
    to passes of `model`. A folder stands for the tables in it.

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
            named[kind] = str(file)
        elif rows:
            found += _of_rows(rows, file)
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
            file = named.get("gemm", named.get("attention", ""))
            found.append(costs_operators.read_operators(gemm, attention, model, file))
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"a row cannot be used: {error}"
        file = ", ".join(named.values())
        raise ScenarioError(Fault(wrong, "numbers in every row", file)) from error
    return found


def _expanded(files: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for file in files:
        found += sorted(file.glob("*.csv")) if file.is_dir() else [file]
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


def _of_rows(rows: Rows, file: Path) -> list[PassTimes]:
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
    from specplan.scenarios.cost_tables import read_cost_table

    cost = read_cost_table(file)  # a table of our own: batch, width, maybe context, a time
    passes = tuple(
        Pass(float(batch), float(width), float(context), float(cost.values[i, j, k]))
        for i, batch in enumerate(cost.batch_axis)
        for j, width in enumerate(cost.width_axis)
        for k, context in enumerate(cost.context_axis)
    )
    return [checked(PassTimes(name, "table", passes), name)]


def _of_json(file: Path) -> list[PassTimes]:
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
    if not records:
        return []
    first = records[0]
    costs_vllm.refuse_totals(first)
    if costs_vllm.is_case(first):
        return [costs_vllm.read_forward([one for one in records if costs_vllm.is_case(one)])]
    if costs_sglang.is_floor_table(first):
        return [costs_sglang.read_floor_table(one) for one in records]
    if costs_sglang.is_additive_table(first):
        return [costs_sglang.read_additive_table(one) for one in records]
    if costs_llamabench.is_row(first.value):
        return costs_llamabench.read_rows([one.value for one in records], str(file))
    return []
