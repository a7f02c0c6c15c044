"""The diagnosis of measured points: what a round costs, what decides, what would have to change."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from specplan.models.acceptance import alpha_from_tokens_per_round
from specplan.models.break_even import (
    break_even_output_tokens,
    inferred_gamma,
    needed_acceptance,
    pays_from_gamma,
    plateau,
)
from specplan.models.diagnosis import SLACK, Diagnosis, Warned, diagnose
from specplan.models.shorter_draft import shorter_draft
from specplan.results.tables import times
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_groups import name, phases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.models.calibration import RoundFit
    from specplan.scenarios.importers.costs_groups import Group
    from specplan.scenarios.importers.costs_points import Point


@dataclass(frozen=True)
class Row:
    """One point with everything that follows from it."""

    point: Point
    diagnosis: Diagnosis | None
    value: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """What the points of one group say."""

    group: Group
    fit: RoundFit | str
    rows: tuple[Row, ...]
    value: dict[str, Any]


def finding(group: Group) -> Finding:
    """Diagnose every point of a group, fit its rounds, and look at the points together.

    Raises ScenarioError: points that scatter too far, or figures that cannot be.
    """
    fit = group.round_fit()
    rows = tuple(_row(group, point, fit) for point in group.points)
    warnings = group.warnings()
    for row in rows:
        if row.diagnosis:
            warnings += (
                Warned(one.code, f"{name(row.point)}: {one.says}") for one in row.diagnosis.warnings
            )
        warnings += [*_too_long(row), *_impossible(row)]
    base = group.baseline
    value: dict[str, Any] = {
        "label": group.label,
        "batch": group.batch,
        "context": group.context,
        "baseline": None if base is None else _baseline(base),
        "points": [row.value for row in rows],
        "fit": _fit(fit, base),
        **_best(group),
        "needed_acceptance": _marginal(group.points),
        "need": _needs(group),
        "warnings": [{"code": one.code, "says": one.says} for one in dict.fromkeys(warnings)],
    }
    return Finding(group, fit, rows, value)


def _baseline(base: Point) -> dict[str, Any]:
    return {
        "source": base.source,
        "step_s": base.token_s,
        "tokens_per_s": base.tokens_per_s,
        "ttft_s": base.ttft_s,
        "total_s": base.total_s,
    }


def _row(group: Group, point: Point, fit: RoundFit | str) -> Row:
    try:
        measured = group.measured(point, fit)
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field=point.source)) from error
    found = diagnose(measured) if measured else None
    base = group.baseline
    step_s = base.token_s if base else None
    ratio = point.round_s / step_s if point.round_s and step_s else None
    tau, speedup = point.tokens_per_round, group.speedup(point) or point.stated_speedup
    if ratio is None and tau and speedup:  # whole jobs, or a ratio alone
        ratio = tau / speedup
    gamma = point.gamma
    draft_s, verify_s = phases(point, fit)
    value: dict[str, Any] = {
        "source": point.source,
        "gamma": gamma,
        "inferred_gamma": None,
        "tokens_per_round": tau,
        "alpha": None,
        "round_s": point.round_s,
        "tpot_s": point.token_s,
        "tokens_per_s": point.tokens_per_s,
        "total_s": point.total_s,
        "speedup": speedup,
        "round_cost_ratio": ratio,
        "break_even_tokens_per_round": ratio,
        "break_even_rate": found.break_even_rate if found else _rate(ratio, gamma),
        "break_even_alpha": found.break_even_alpha if found else None,
        "ceiling_speedup": found.ceiling_speedup if found else None,
        "least_tokens_per_round": speedup if tau is None and speedup and speedup > 1 else None,
        "never_pays": found.never_pays if found else _never(ratio, gamma),
        "draft_step_ratio": _over(point.draft_step_s, step_s),
        "draft_s": draft_s,
        "verify_s": verify_s,
        "overhead_s": _overhead(point),
        "cause": found.cause if found else None,
        "changes": list(found.changes) if found else [],
        "extra_draft_steps": point.extra_draft_steps,
        **_first_token(point, base),
    }
    if tau and gamma and 1 <= tau <= gamma + 1 and not point.drafts_less:
        value["alpha"] = float(alpha_from_tokens_per_round(tau, round(gamma)))
    if gamma is None and tau and tau > 1 and point.acceptance_rate:
        value["inferred_gamma"] = inferred_gamma(tau, point.acceptance_rate)
    return Row(point, found, value)


def _never(ratio: float | None, gamma: float | None) -> bool | None:
    return None if ratio is None or gamma is None else ratio > gamma + 1


def _rate(ratio: float | None, gamma: float | None) -> float | None:
    """Turn R/T into the accepted/drafted that breaks even; None where none does."""
    if ratio is None or not gamma or not 1 <= ratio <= gamma + 1:
        return None
    return (ratio - 1) / gamma


def _over(seconds: float | None, step_s: float | None) -> float | None:
    return seconds / step_s if seconds is not None and step_s else None


def _overhead(point: Point) -> float | None:
    if point.round_s is None or point.draft_s is None or point.verify_s is None:
        return None
    return point.round_s - point.draft_s - point.verify_s


def _first_token(point: Point, base: Point | None) -> dict[str, float | None]:
    """Compare the first tokens, and find the output length that makes up for a later one."""
    if not (base and base.ttft_s and point.ttft_s):
        return {"ttft_delta_s": None, "ttft_ratio": None, "break_even_output_tokens": None}
    length = None
    if base.token_s and point.token_s:
        length = break_even_output_tokens(base.ttft_s, point.ttft_s, base.token_s, point.token_s)
    return {
        "ttft_delta_s": point.ttft_s - base.ttft_s,
        "ttft_ratio": point.ttft_s / base.ttft_s,
        "break_even_output_tokens": length,
    }


def _too_long(row: Row) -> list[Warned]:
    """Say when a shorter draft would be faster, from the row's own phases."""
    found = row.diagnosis
    own = row.point.draft_s is not None or row.point.verify_s is not None
    best = shorter_draft(found.measured) if found and own else None
    if best is None or found is None or best[1] < 1.05 * found.speedup:
        return []
    says = (
        f"γ = {row.point.gamma:g} is too long: if the verify pass grows evenly with width, "
        f"γ = {best[0]} is best with {times(best[1])} instead of {times(found.speedup)}; measure "
        f"the verify pass at widths {best[0] + 1} and {2 * best[0] + 1}"
    )
    return [Warned("gamma_too_long", says)]


def _impossible(row: Row) -> list[Warned]:
    """Say that a ratio alone (a stated speedup, whole jobs) implies a round below a plain step."""
    ratio, tau = row.value["round_cost_ratio"], row.point.tokens_per_round
    if row.diagnosis or ratio is None or ratio >= 1 - SLACK:
        return []
    says = (
        f"{name(row.point)}: a speedup of {row.value['speedup']:.4g} at τ = {tau:.4g} would be a "
        f"round of {ratio:.4g} plain steps: a round contains a pass of the target, so the baseline "
        "was measured under other conditions, or τ is of another run"
    )
    return [Warned("impossible_round", says)]


def _fit(fit: RoundFit | str, base: Point | None) -> dict[str, Any]:
    if isinstance(fit, str):
        return {"undetermined": fit}
    step_s = base.token_s if base else None
    pays = pays_from_gamma(step_s, fit.verify_s, fit.draft_s) if step_s else None
    return {
        "verify_s": fit.verify_s,
        "draft_step_s": fit.draft_s,
        "verify_error_s": fit.verify_error_s,
        "draft_step_error_s": fit.draft_error_s,
        "points": fit.points,
        "residuals": list(fit.residuals),
        "verify_ratio": _over(fit.verify_s, step_s),
        "perfect_draft_pays_from_gamma": pays,
        "trust": fit.trust(),
    }


def _best(group: Group) -> dict[str, Any]:
    """Find the fastest γ that was measured, all that tie with it, and what a sweep leaves open."""
    measured = [
        (one.gamma, 1 / (one.token_s or one.total_s or 1.0))
        for one in (*([group.baseline] if group.baseline else []), *group.points)
        if one.gamma is not None and (one.token_s or one.total_s)
    ]
    value: dict[str, Any] = {"best_gamma": None, "plateau": [], "best_gamma_at_most": None}
    if len({gamma for gamma, _ in measured}) < 2:
        return value
    speeds = [speed for _, speed in measured]
    best = measured[speeds.index(max(speeds))][0]
    value["best_gamma"] = best
    value["plateau"] = sorted({measured[i][0] for i in plateau(speeds)})
    if group.baseline is None and best == min(gamma for gamma, _ in measured):
        value["best_gamma_at_most"] = best
    return value


def _marginal(points: Sequence[Point]) -> list[dict[str, float]]:
    """Compare what further positions must accept with what they do: A_i > τ·ΔR/R."""
    known = sorted(
        (one.gamma, one.tokens_per_round, one.round_s)
        for one in points
        if one.gamma and one.tokens_per_round and one.round_s
    )
    return [
        {
            "from_gamma": low[0],
            "to_gamma": high[0],
            "needed": needed_acceptance(low[1], low[2], high[2], high[0] - low[0]),
            "measured": (high[1] - low[1]) / (high[0] - low[0]),
        }
        for low, high in pairwise(known)
        if high[0] > low[0]
    ]


def _needs(group: Group) -> list[str]:
    """Name what is missing for a speedup, a round cost, and the split of a round."""
    found = []
    timed = any(one.token_s or one.total_s for one in group.points)
    if group.points and timed and group.baseline is None:
        found.append("baseline")
    if group.points and not all(one.tokens_per_round for one in group.points):
        found.append("tokens_per_round")
    return found
