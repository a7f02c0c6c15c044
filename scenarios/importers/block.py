"""Evidence as the `speculation:` part of a scenario, with its provenance in comments."""

from __future__ import annotations

import re
from itertools import accumulate
from textwrap import fill
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.evidence import Evidence

DIGITS = 6
WIDTH = 79
SCATTER = 0.05  # runs of one condition agree in τ within this
_METHODS = (
    (re.compile(r"n-?gram|suffix|lookup", re.IGNORECASE), "ngram"),
    (re.compile(r"dflash|dspark|medusa|pard", re.IGNORECASE), "one_pass"),
    (re.compile(r"eagle|mtp|nextn|draft|standalone|^sd$", re.IGNORECASE), "draft_model"),
)


def speculation(pooled: Evidence) -> dict[str, Any]:
    """Return the fields of `speculation` that the evidence settles (MODEL.md §7).

    The most detailed reading is taken: a histogram of counts, rates per position, then τ.
    `draft_probability` stands beside the acceptance, never inside τ.

    Raises ScenarioError: no round drafted, so nothing is known about acceptance.
    """
    source = pooled.source
    if pooled.acceptance_length is None and not pooled.unconditional:
        draftless = f"{pooled.draftless_rounds or 0:,.0f}"
        raise ScenarioError(
            Fault(
                f"no round drafted (0 of {draftless}): acceptance is unknown, not 0",
                "a run in which the draft proposed something",
                source.file,
                source.line,
            )
        )
    found: dict[str, Any] = {"method": scenario_method(pooled.method) or "draft_model"}
    if pooled.gamma:
        found["gamma"] = pooled.gamma
    share = pooled.draft_probability
    if share is not None and share < 1:
        found["draft_probability"] = round(share, DIGITS)
    found["acceptance"] = _acceptance(pooled)
    if pooled.tree and pooled.tree_nodes and pooled.gamma:
        nodes = [list(path) for path in spread_nodes(pooled.tree_nodes, pooled.gamma)]
        return {"method": "tree", "tree": {"nodes": nodes}, "acceptance": found["acceptance"]}
    return found


def spread_nodes(nodes: int, depth: int) -> list[tuple[int, ...]]:
    """Return a tree of so many nodes and levels, level by level as equal as can be.

    What a round costs depends on both numbers, and on the shape only by how a level's draft step
    grows with its nodes; files state the numbers alone.

    >>> spread_nodes(5, 2)
    [(0,), (1,), (2,), (0, 0), (0, 1)]
    """
    sizes = [nodes // depth + (level < nodes % depth) for level in range(depth)]
    return [(*[0] * level, rank) for level, size in enumerate(sizes) for rank in range(size)]


def scenario_method(engine_method: str) -> str | None:
    """Return the scenario's word for an engine's drafting method, None where it is not known.

    >>> [scenario_method(name) for name in ("eagle3", "deepseek_mtp", "ngram-mod", "DFLASH", "")]
    ['draft_model', 'draft_model', 'ngram', 'one_pass', None]
    """
    for pattern, method in _METHODS:
        if pattern.search(engine_method):
            return method
    return None


def _acceptance(pooled: Evidence) -> dict[str, object]:
    if pooled.histogram and all(count == int(count) for count in pooled.histogram):
        return {"histogram": [int(count) for count in pooled.histogram]}
    if pooled.unconditional:
        # Rates printed to three digits may rise by a digit; the scenario wants none to.
        falling = accumulate(pooled.unconditional, min)
        return {"unconditional": [min(1.0, round(rate, DIGITS)) for rate in falling]}
    tau: dict[str, object] = {"acceptance_length": round(pooled.acceptance_length or 1.0, DIGITS)}
    if pooled.gamma:
        tau["at_gamma"] = pooled.gamma
    return tau


def provenance(group: Sequence[Evidence]) -> list[str]:
    """Return one line for each piece of evidence: file, kind, place, rounds."""
    lines = []
    for one in group:
        parts = [one.source.kind, one.source.engine, one.source.where]
        said = ", ".join(part for part in parts if part)
        counts = []
        if one.drafting_rounds is not None:
            counts.append(f"{one.drafting_rounds:,.0f} rounds with a draft")
        if one.draftless_rounds is not None:
            counts.append(f"{one.draftless_rounds:,.0f} without")
        if len(group) > 1 and one.acceptance_length is not None:
            counts.append(f"τ {one.acceptance_length:.4g}")
        if one.drafted_tokens is not None and one.accepted_tokens is not None:
            counts.append(f"{one.accepted_tokens:,.0f} of {one.drafted_tokens:,.0f} accepted")
        lines.append(
            _one_line(f"{one.source.file} ({said})" + ": " * bool(counts) + ", ".join(counts))
        )
    return lines


def scatter(group: Sequence[Evidence]) -> str:
    """Say how far the τ of pooled runs of one γ lie apart where it is more than 5 %; else ""."""
    if len({one.gamma for one in group}) > 1:
        return ""
    lengths = [one.acceptance_length for one in group if one.acceptance_length is not None]
    if len(lengths) < 2 or max(lengths) <= (1 + SCATTER) * min(lengths):
        return ""
    conditions = {text for one in group for text in (one.label, one.source.where) if text}
    how = "--label NAME keeps one condition" if len(conditions) > 1 else "import them one by one"
    return (
        f"τ of the {len(lengths)} runs lies between {min(lengths):.4g} and {max(lengths):.4g}; "
        f"their mean is of none of them ({how})"
    )


def to_yaml(pooled: Evidence, group: Sequence[Evidence]) -> str:
    """Return the block as YAML text that a scenario can hold as it is."""
    fields = speculation(pooled)
    comments = ["acceptance imported from", *(f"  {line}" for line in provenance(group))]
    if pooled.model or pooled.label:
        comments.append(" ".join(filter(None, ("model", pooled.model, pooled.label))))
    comments += [f"dropped: {text}" for text in pooled.dropped]
    comments += [f"note: {text}" for text in (*pooled.warnings, scatter(group)) if text]
    if "tree" in fields:
        comments.append(
            f"tree: the file states {pooled.tree_nodes} nodes and {pooled.gamma} levels, not which "
            "nodes; they are spread over the levels, so that widths and depth are right"
        )
    elif "gamma" not in fields:
        comments.append("gamma: not in the file; --gamma states it")
    body = ["speculation:"]
    for name, value in fields.items():
        if isinstance(value, dict):
            body.append(f"  {name}:")
            body += [_field(f"    {key}", inner) for key, inner in value.items()]
        else:
            body.append(_field(f"  {name}", value) + _remark(name, pooled))
    return "\n".join([*(_comment(text) for text in comments), *body]) + "\n"


def _comment(text: str) -> str:
    """Return a comment, folded so that a terminal does not fold it into something else."""
    indent = "#   " if text.startswith(" ") else "# "
    return fill(_one_line(text.strip()), WIDTH, initial_indent=indent, subsequent_indent="#     ")


def _field(name: str, value: object) -> str:
    text = f"{name}: {_plain(value)}"
    return fill(text, WIDTH, subsequent_indent="      ", break_on_hyphens=False)


def _plain(value: object) -> str:
    """Return the value without an exponent, which older YAML readers take for text."""
    if isinstance(value, list):
        return "[" + ", ".join(_plain(one) for one in value) + "]"
    if isinstance(value, float):
        return f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
    return str(value)


def _remark(name: str, pooled: Evidence) -> str:
    if name == "method" and scenario_method(pooled.method) is None:
        share = pooled.draft_probability
        if share is not None and share < 1:  # a draft model always proposes something
            return "  # the file does not say; rounds without a draft are a sign of ngram"
        return "  # the file does not say: or one_pass, ngram, tree"
    if name != "draft_probability":
        return ""
    drafting, draftless = pooled.drafting_rounds or 0.0, pooled.draftless_rounds or 0.0
    return f"  # {drafting:,.0f} of {drafting + draftless:,.0f} rounds proposed anything"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
