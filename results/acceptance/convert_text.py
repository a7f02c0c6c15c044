"""What `specplan acceptance convert` prints: a column of quantities for each reading that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specplan.models.statements import LENGTHS, LISTS, SHARES
from specplan.results.tables import folded, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

_SHOWN = (
    ("τ (with bonus)", "acceptance_length"),
    ("S (no bonus; TensorRT-LLM)", "accepted_per_round"),
    ("accepted/drafted", "acceptance_rate"),
    ("iid alpha of the same τ", "alpha"),
    ("conditional a_i", "conditional"),
    ("unconditional A_i", "unconditional"),
    ("variance of tokens per round", "tokens_per_round_variance"),
    ("τ/(γ+1) (old SGLang rate)", "efficiency"),
    ("share of output drafted", "share_of_output"),
    ("drafted per round", "drafted_per_round"),
    ("share of rounds that draft", "draft_probability"),
    ("tokens per round, all rounds", "tokens_per_round"),
    ("τ of a batch kept in step", "tokens_per_round_in_step"),
    ("τ of its fastest sequence", "most_tokens_in_step"),
    ("implied round cost R/T", "implied_round_cost_ratio"),
    ("speedup", "speedup"),
    ("round time (s)", "round_s"),
)

NAME = 11  # four readings, every known meaning of a rate, fit 80 columns with names of this width

_SAME_AS = {"drafted_per_round": "gamma", "tokens_per_round": "acceptance_length"}


def convert_text(rows: list[dict[str, Any]]) -> RenderableType:
    """Render the readings of `convert_answer`, one column each."""
    table = Table(box=None, pad_edge=False, padding=(0, 0, 0, 2), header_style="bold")
    table.add_column("quantity", no_wrap=True)
    for row in rows:
        heading = _heading(row["reading"])
        table.add_column(heading, justify="right", overflow="fold", min_width=NAME)
    for label, key in _SHOWN:
        if any(_says_more(row, key) for row in rows):
            table.add_row(label, *(_cell(row.get(key)) for row in rows))
    meanings = {**LENGTHS, **SHARES, **LISTS}
    read = {chosen for row in rows for chosen in row["reading"].values()}
    lines = [f"{name}: {meanings[name]}" for name in meanings if name in read]
    if any(row["positions_from"] == "iid" for row in rows):
        lines.append("per-position rates assume one iid alpha; measured ones rarely are")
    parts: list[RenderableType] = [Text(_title(rows)), table, Text("\n".join(lines))]
    if len(rows) == 1 and rows[0]["acceptance_block"]:
        parts.append(verbatim(f"--set 'speculation.acceptance={_block(rows[0])}'"))
        if (share := rows[0]["draft_probability"]) is not None and share < 1:
            parts.append(verbatim(f"--set speculation.draft_probability={_digits(share)}"))
    return Group(*parts)


def _block(row: Mapping[str, Any]) -> str:
    """Write the block as a setting of a scenario, to be copied."""
    [(kind, value), *rest] = row["acceptance_block"].items()
    shown = [f"{kind}: {_digits(value)}", *(f"{key}: {_digits(one)}" for key, one in rest)]
    return "{" + ", ".join(shown) + "}"


def _digits(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_digits(one) for one in value) + "]"
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _says_more(row: Mapping[str, Any], key: str) -> bool:
    """Whether a row of the table would repeat another, or say that nothing special happens."""
    value = row.get(key)
    usual = key == "draft_probability" and value == 1
    return value is not None and not usual and value != row.get(_SAME_AS.get(key, ""))


def _title(rows: list[dict[str, Any]]) -> str:
    gammas = {row["gamma"] for row in rows}
    at = f" at γ = {gammas.pop()}" if len(gammas) == 1 and None not in gammas else ""
    return f"acceptance{at}" + ("" if len(rows) == 1 else f": {len(rows)} readings fit")


def _heading(reading: Mapping[str, str]) -> str:
    return "\n".join(
        name if name in {chosen, "counts"} else f"{name} =\n{folded(chosen, NAME)}"
        for name, chosen in reading.items()
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        shown = ["–" if item is None else f"{item:.3f}" for item in value[:8]]
        return " ".join(shown) + (" …" if len(value) > 8 else "")
    return f"{value:.4g}"
