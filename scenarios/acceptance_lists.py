"""Acceptance by position from what people write of counters and of runs at several γ."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specplan.models.extrapolation import Curve, unconditional_from_curve
from specplan.models.statements import Figure
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.shares import (
    read_count,
    read_counts,
    read_number,
    read_share,
    read_whole,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specplan.models.counts import Warned

SWEEPS = ("lengths_by_gamma", "rates_by_gamma")


def from_counts_per_position(texts: Mapping[str, str]) -> dict[str, tuple[Figure, ...]]:
    """A_i = accepted at i / drafted at i (MLC-LLM) or / drafts (vLLM counters)."""
    if "accepted_per_position" not in texts:
        return {}
    accepted = read_counts(texts["accepted_per_position"], "accepted_per_position")
    if "drafted_per_position" in texts:
        drafted = read_counts(texts["drafted_per_position"], "drafted_per_position")
    elif "drafts" in texts:
        drafted = (read_count(texts["drafts"], "drafts"),) * len(accepted)
    else:
        right = "drafts, or drafted_per_position: what to divide by"
        raise ScenarioError(Fault("has no denominator", right, field="accepted_per_position"))
    if len(accepted) != len(drafted):
        wrong = f"{len(accepted)} positions accepted and {len(drafted)} drafted"
        raise ScenarioError(Fault(wrong, "one number each", field="accepted_per_position"))
    for position, (kept, made) in enumerate(zip(accepted, drafted, strict=True), start=1):
        if kept > made or not made:
            wrong = f"position {position} accepted {kept:g} of {made:g}"
            raise ScenarioError(
                Fault(wrong, "accepted is at most drafted: the inverse ratio?", field="positions")
            )
    rates = tuple(Figure(k / m) for k, m in zip(accepted, drafted, strict=True))
    return {"accepted_per_position": rates}


def from_sweeps(texts: Mapping[str, str], warnings: list[Warned]) -> dict[str, tuple[Figure, ...]]:
    """A_k = S_k − S_{k−1}, where S_k = τ_k − 1 = k·(accepted/drafted) is measured with k drafts."""
    found = {}
    for name in SWEEPS:
        if name not in texts:
            continue
        rows = [part.partition(":") for part in re.split(r"[,\s]+", texts[name].strip()) if part]
        gammas = [read_whole(gamma, name) for gamma, _, _ in rows]
        if name == "rates_by_gamma":
            shares = [read_share(text, name)[0] for _, _, text in rows]
            lengths = [
                Figure(1 + k * share.value, k * share.rounding)
                for k, share in zip(gammas, shares, strict=True)
            ]
        else:
            lengths = [read_number(text, name) for _, _, text in rows]
        try:
            curve = unconditional_from_curve(gammas, [length.value for length in lengths])
        except ValueError as error:
            raise ScenarioError(Fault(str(error), field=name)) from error
        slack = 2 * max(length.rounding for length in lengths)
        found[name] = tuple(Figure(float(rate), slack) for rate in curve.unconditional)
        warnings += _sweep_warnings(curve)
    return found


def _sweep_warnings(curve: Curve) -> list[Warned]:
    warnings: list[Warned] = [
        (
            "same_first_positions",
            "per-position rates from runs of different gamma assume that drafting more does not"
            " change the first positions",
        )
    ]
    if curve.remark:
        warnings.append(("not_monotone", curve.remark))
    return warnings
