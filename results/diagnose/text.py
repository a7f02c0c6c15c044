"""A diagnosis on the terminal: the points as a table, what decides, what would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from specplan.results.tables import columns, facts, heading, milliseconds, number, percent, times
from specplan.scenarios.importers.costs_groups import name, says_speculation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from specplan.results.diagnose.answer import Finding, Row
    from specplan.scenarios.importers.costs_points import Point

#: Baselines further apart than this are of different set-ups, not of different noise.
UNLIKE = 1.5
_STATE = "state gamma=0, or gamma and tau (--point)"
_NEEDED = {
    "baseline": "a measurement without speculation (--baseline): without it no speedup exists",
    "tokens_per_round": "tokens per round (tau=, or rate= with gamma=): without it no round cost "
    "is known",
}


def finding_text(found: Finding) -> list[RenderableType]:
    """Lay the finding out: a table of the points, what decides, what would change it, warnings."""
    value, group = found.value, found.group
    title = _title(found)
    header = ("", "τ", "round", "R/T", "per token", "tok/s", "speedup")
    base = group.baseline
    table = (
        [("plain", "1", "", "1", milliseconds(base.token_s), _speed(base), "1x")] if base else []
    )
    table += [
        (
            name(row.point),
            number(row.point.tokens_per_round),
            milliseconds(row.point.round_s),
            number(row.value["round_cost_ratio"]),
            milliseconds(row.point.token_s),
            _speed(row.point),
            times(row.value["speedup"]),
        )
        for row in found.rows
    ]
    parts: list[RenderableType] = [heading(title), columns(header, table)]
    lines = [*_fit_facts(value["fit"]), *_best_facts(value)]
    for row in found.rows:
        lines += _row_facts(row)
    lines += [
        ("unknown", f"{row.point.source} does not say whether it speculates: {_STATE}")
        for row in found.rows
        if not says_speculation(row.point)
    ]
    lines += [("Warning", one["says"]) for one in value["warnings"]]
    if lines:
        parts.append(facts(lines))
    return parts


def _speed(point: Point) -> str:
    return number(point.tokens_per_s)


def _fit_facts(fit: dict[str, Any]) -> list[tuple[str, str]]:
    if "undetermined" in fit:
        says = str(fit["undetermined"])
        return [("Verify and draft", says)] if says.startswith("undetermined") else []
    return [
        (
            "Fit R = V + γ·d",
            f"verify {milliseconds(fit['verify_s'])} (with fixed overhead), draft "
            f"{milliseconds(fit['draft_step_s'])} a token (with the growth of the verify pass)",
        ),
        ("Trust", fit["trust"]),
    ]


def _best_facts(value: dict[str, Any]) -> list[tuple[str, str]]:
    if value["best_gamma"] is None:
        return []
    says = f"{value['best_gamma']:g} of those measured"
    if len(value["plateau"]) > 1:
        tied = ", ".join(f"{gamma:g}" for gamma in value["plateau"])
        says += f"; within 5 % of it, so no single winner: {tied}"
    if value["best_gamma_at_most"] is not None:
        says += "; the shortest is fastest, so the best is this or shorter"
    lines = [("Best γ", says)]
    for step in value["needed_acceptance"]:
        if step["needed"] <= 0:  # the longer round is no longer: γ is not what bounds it
            continue
        pays = "" if step["measured"] >= step["needed"] else ", so they do not pay"
        says = (
            f"must be accepted {step['needed']:.3f} of the time each to pay, and are "
            f"{step['measured']:.3f}{pays}"
        )
        first, last = step["from_gamma"] + 1, step["to_gamma"]
        title = f"Draft {last:g}" if first == last else f"Drafts {first:g} to {last:g}"
        lines.append((title, says))
    return lines


def _row_facts(row: Row) -> list[tuple[str, str]]:
    found, value = row.diagnosis, row.value
    lines = []
    if found:
        verdict = "pays" if found.speedup > 1 else "does not pay"
        if found.never_pays:
            verdict = "cannot pay at this round cost"
        if found.impossible:
            verdict = "impossible, so it says nothing (see the warning)"
        says = f"{verdict}: breaks even at τ = {found.break_even_tokens:.4g}"
        if found.break_even_rate is not None:
            says += f", accepted/drafted {found.break_even_rate:.3f}"
        if found.ceiling_speedup is not None:
            says += f"; a perfect draft gives {times(found.ceiling_speedup)}"
        if found.cause not in {"none", "unknown"}:
            says += f"; what decides: {found.cause}"
        lines.append((name(row.point), says))
        rate, alpha = row.point.acceptance_rate, value["alpha"]
        if rate is not None and alpha is not None and row.point.gamma != 1:
            says = f"accepted/drafted {rate:.3f} is an iid α of {alpha:.3f}"
            lines.append(("  acceptance", says))
        if row.point.drafts_less:
            mean = row.point.drafted_per_round
            lines.append(("  drafted", f"{mean:.3g} of γ = {row.point.gamma:g} in a mean round"))
        lines += _phases(row)
        lines += [("  would pay with", text) for text in found.changes]
    elif row.point.round_s and (split := _phases(row)):
        lines += [(name(row.point), row.point.source), *split]
    if not found and value["round_cost_ratio"] and value["round_cost_ratio"] >= 1:
        says = f"breaks even at τ = {value['round_cost_ratio']:.4g}"
        if value["break_even_rate"] is not None:
            says += f", accepted/drafted {value['break_even_rate']:.3f}"
        if value["never_pays"]:
            says += ": cannot pay at this round cost"
        lines.append((name(row.point), says))
    least = value["least_tokens_per_round"]
    if least:
        says = f"at least {least:.4g}, for a round contains a pass of the target"
        if row.point.gamma:
            share = (least - 1) / row.point.gamma
            says += f": of at most {row.point.gamma + 1:g}, accepted/drafted {share:.3g} or more"
        lines.append((f"{name(row.point)}: τ", says))
    if value["draft_step_ratio"]:
        says = f"{value['draft_step_ratio']:.4g} of a plain step"
        lines.append(("  a draft step is", says))
    if value["inferred_gamma"]:
        lines.append(("γ", f"{value['inferred_gamma']} by τ and accepted/drafted"))
    if value["ttft_delta_s"] is not None:
        says = f"{1e3 * value['ttft_delta_s']:+.4g} ms ({100 * (value['ttft_ratio'] - 1):+.0f} %)"
        if value["break_even_output_tokens"]:
            says += f", made up for after {value['break_even_output_tokens']:.2g} output tokens"
        lines.append(("First token", says))
    return lines


def _phases(row: Row) -> list[tuple[str, str]]:
    """Name the phases of a round that the point itself states or leaves open."""
    point, value = row.point, row.value
    if point.draft_s is None and point.verify_s is None:
        return []
    says = f"draft {milliseconds(value['draft_s'])}, verify {milliseconds(value['verify_s'])}"
    overhead_s = value["overhead_s"]
    if overhead_s is not None and overhead_s < 0:
        share = -overhead_s / (point.round_s or 1.0)
        says += f": {milliseconds(-overhead_s)} ({percent(share)}) more than the round"
    elif overhead_s is not None:
        says += f", overhead {milliseconds(overhead_s)}"
    else:
        says += f" (with overhead: {'verify' if point.verify_s is None else 'draft'} is the rest)"
    lines = [("  a round is", says)]
    extra = value["extra_draft_steps"]
    if extra is not None and 0.5 < extra < 1.5:
        says = "one more after a fully accepted round, by the counts: extra_draft_step"
        lines.append(("  draft steps", says))
    return lines


def fastest_words(best: Mapping[str, Any]) -> str:
    """Name the fastest point of all, by what a user gets from it."""
    gamma = best["gamma"]
    how = "" if gamma is None else "plain decoding" if gamma == 0 else f"γ = {gamma:g}"
    got = f"{best['tokens_per_s']:.4g} tok/s" if "tokens_per_s" in best else ""
    got = got or f"{best['total_s']:.4g} s"
    says = ", ".join(filter(None, (best["label"] or best["source"], how, got)))
    if best["over_fastest_plain"]:
        says += f"; {times(best['over_fastest_plain'])} the fastest plain: {best['fastest_plain']}"
    return f"{says} (a tie: {', '.join(best['tie'])})" if best["tie"] else says


def bands_words(found: Sequence[Mapping[str, Any]]) -> str:
    """Tell for each γ between which labels its speedup lies; "" where none has several."""
    several = len({(one["batch"], one["context"]) for one in found}) > 1
    return "; ".join(
        (f"batch {one['batch']:g}, " if several else "")
        + f"γ = {one['gamma']:g}: {times(one['low'])} ({one['low_label']}) to "
        f"{times(one['high'])} ({one['high_label']})"
        for one in found
    )


def baselines_words(findings: Sequence[Finding]) -> str:
    """Ask which baseline counts, where those of several labels are far apart; "" where not."""
    times_s = {
        found.group.label: base.token_s
        for found in findings
        if (base := found.group.baseline) and base.token_s and found.group.label
    }
    if len(times_s) < 2 or max(times_s.values()) < UNLIKE * min(times_s.values()):
        return ""
    listed = ", ".join(f"{label} {milliseconds(time_s)}" for label, time_s in times_s.items())
    return f"{listed} a token: each speedup is against its own; count the one you would run"


def needed_text(findings: Sequence[Finding]) -> list[RenderableType]:
    """Say once what is missing, and of which groups where it is not missing of all."""
    lacking: dict[str, list[str]] = {}
    for found in findings:
        for one in found.value["need"]:
            lacking.setdefault(one, []).append(_title(found))
    lines = []
    for one, titles in lacking.items():
        of = "" if len(titles) == len(findings) else f" ({'; '.join(titles)})"
        lines.append(("Needed", f"{_NEEDED[one]}{of}"))
    return [Text(), facts(lines)] if lines else []


def _title(found: Finding) -> str:
    group = found.group
    context = f"context {group.context:,.0f}" if group.context is not None else ""
    return ", ".join(filter(None, (group.label, f"batch {group.batch:g}", context)))
