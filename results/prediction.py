"""`specplan predict`: the closed form as one JSON object and as an answer in words."""

from __future__ import annotations

import dataclasses
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.inputs import doubts, evidence
from specplan.results.searched import search_note
from specplan.results.tables import bars, facts, heading, milliseconds, number, percent, times
from specplan.results.tree_words import fastest_json, nodes, tree_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from specplan.models.speedup import Prediction
    from specplan.scenarios.adaptive import Adapted
    from specplan.scenarios.closed_form import OperatingPoint
    from specplan.scenarios.extrapolated import Band
    from specplan.scenarios.schema import Scenario

SAME = 5e-4  # speedups closer to 1 than this are called "as fast as"


def predict_answer(scenario: Scenario, output: Path | None, *, force: bool) -> Answer:
    """Compute the closed form of `scenario`; `output` gets `prediction.json` and the scenario."""
    from specplan.results.handoff import handoff
    from specplan.scenarios.adaptive import long_run
    from specplan.scenarios.closed_form import operating_point, predict_at
    from specplan.scenarios.extrapolated import band
    from specplan.scenarios.fastest_tree import fastest_for

    if output is not None:
        store.check_folder(output, force=force)
    point = operating_point(scenario)
    prediction = predict_at(scenario, point)
    record = handoff(scenario, prediction)
    fastest, moving = fastest_for(scenario, point), long_run(scenario, point)
    beyond = band(scenario, point, (int(prediction.gamma), int(prediction.best_gamma)))
    value = {
        "scenario_name": scenario.name,
        **prediction_json(prediction),
        "best_gamma_note": best_gamma_note(scenario, prediction),
        "adaptive_gamma": dataclasses.asdict(moving) if moving else None,
        "extrapolation": beyond.value() if beyond else None,
        "verdict": verdict(prediction),
        "tree": nodes(scenario),
        "fastest_tree": fastest_json(fastest, prediction),
        "batch": point.batch,
        "context_tokens": point.context_tokens,
        "prefill_share": point.prefill_share,
        "requests_per_s": point.requests_per_s,
        "load": point.load,
        "saturated": point.saturated,
        "left_out": list(point.notes),
        "warnings": [{"code": one.code, "says": one.says} for one in doubts(prediction)],
        "evidence": evidence(scenario),
        "handoff": record.value(),
    }
    notes = []
    if output is not None:
        from specplan.scenarios.load import to_yaml

        with store.new_folder(output, force=force) as folder:
            (folder / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
            store.write_json(folder / store.MARK, value)
        notes.append(f"written to {output}")
    if record.preserves_law is False:
        notes.append(record.sampling)
    notes += [f"warning: {text}" for text in beyond.warnings] if beyond else []
    tree = tree_rows(scenario, prediction, fastest)
    return Answer(
        value,
        _text(scenario, prediction, point, beyond, [*tree, *_moving(scenario, moving)]),
        notes,
    )


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """Give the fields of a prediction as plain numbers, None where one does not exist.

    The keys are those of MODEL.md § 5, times in seconds.
    """
    plain = {f.name: getattr(prediction, f.name).item() for f in dataclasses.fields(prediction)}
    return {k: v if isinstance(v, int) or isfinite(v) else None for k, v in plain.items()}


def verdict(prediction: Prediction) -> str:
    """Say in a few words whether speculation pays."""
    speedup = float(prediction.speedup)
    if int(prediction.gamma) == 0:
        return "plain decoding: nothing is proposed"
    if abs(speedup - 1) < SAME:
        return f"as fast as plain decoding, {times(speedup)}"
    return f"{'faster' if speedup > 1 else 'slower'} than plain decoding, {times(speedup)}"


def reason(prediction: Prediction) -> str:
    """Explain the verdict by what decides it: the round's cost against its tokens."""
    ratio, tokens = float(prediction.round_cost_ratio), float(prediction.tokens_per_round)
    says = (
        f"a round costs R/T = {ratio:.4g} plain steps (the implied round cost) and yields "
        f"{tokens:.4g} tokens"
    )
    if abs(float(prediction.speedup) - 1) < SAME:
        return f"{says}: both are equal."
    if prediction.speedup > 1:
        return f"{says}: more than it costs."
    possible = 1 + float(prediction.drafted_per_round)
    if ratio > possible:
        return f"{says}; even a perfect draft yields only {possible:.4g}: no acceptance can pay."
    return f"{says}: fewer than it costs."


def now(scenario: Scenario, p: Prediction, point: OperatingPoint) -> tuple[float, float]:
    """Give what a break-even is compared with: the equivalent iid α, and the draft step in s.

    The step is that of the batch and context of the break-even, hidden behind a verify pass or not.
    """
    from specplan.models.acceptance import alpha_from_tokens_per_round
    from specplan.scenarios.priced import Priced

    alpha = alpha_from_tokens_per_round(float(p.tokens_per_round), int(p.gamma))
    priced = Priced(scenario, point.context_tokens)
    if scenario.draft.placement == "parallel":
        drafted = int(p.gamma) if scenario.speculation.method == "one_pass" else 1
        return float(alpha), float(priced.draft.seconds(point.batch, drafted, priced.context))
    return float(alpha), float(np.mean(priced.costs(point.batch, int(p.gamma)).draft_step_s))


def _text(
    scenario: Scenario,
    p: Prediction,
    point: OperatingPoint,
    beyond: Band | None,
    more: Sequence[tuple[str, str]],
) -> Group:
    title = Text.assemble((scenario.name, "bold"), ": ", (verdict(p), "bold"))
    parts: list[RenderableType] = [title, Text(), facts([*_decision(scenario, p, point), *more])]
    if beyond is not None:
        ends = [f"γ = {gamma}: {beyond.words(int(gamma))}" for gamma in beyond.gamma]
        parts += [Text(), facts([("Extrapolated", "; ".join([beyond.border, *ends]))])]
    if int(p.gamma):
        parts += [heading(f"Where a token's {milliseconds(float(p.tpot_s))} go"), _waterfall(p)]
    parts += [Text(), facts(_separate_claims(p))]
    if isfinite(float(p.generation_s)):
        parts += [Text(), facts(_finite(p))]
    fields: dict[str, list[str]] = {}
    for field, says in evidence(scenario).items():
        fields.setdefault(says, []).append(field)
    sources = "; ".join(f"{', '.join(names)}: {says}" for says, names in fields.items())
    parts += [Text(), facts([("Evaluated at", _place(point)), ("Costs are", sources)])]
    if point.notes:
        parts.append(facts([("Left out", "; ".join(point.notes))]))
    return Group(*parts)


def _place(point: OperatingPoint) -> str:
    says = f"batch {point.batch:.3g}, context {point.context_tokens:,.0f} tokens"
    if point.load is not None:
        says += f", load {percent(point.load)} of what a replica can serve"
    return says


def _decision(scenario: Scenario, p: Prediction, point: OperatingPoint) -> list[tuple[str, str]]:
    gamma = int(p.gamma)
    plain = milliseconds(float(p.baseline_tpot_s))
    rows = [
        (
            "Time per token",
            f"{milliseconds(float(p.tpot_s))} against {plain} plain: {times(float(p.speedup))}",
        )
    ]
    if gamma == 0:
        return [*rows, ("Best γ for these costs", best_words(scenario, p))]
    sentence = reason(p)
    rows += [
        ("Why", sentence[0].upper() + sentence[1:]),
        *(("Warning", one.says) for one in doubts(p)),
        (
            "Round",
            f"{milliseconds(float(p.round_s))} for {number(float(p.tokens_per_round))} of at most "
            f"{gamma + 1} tokens (γ = {gamma}, standard deviation "
            f"{float(p.tokens_per_round_variance) ** 0.5:.3g})",
        ),
        ("Break-even", _break_even(p, *now(scenario, p, point))),
        ("Best γ for these costs", best_words(scenario, p)),
        (
            "Ceilings",
            f"perfect draft {times(float(p.speedup_perfect_draft))}, "
            f"free draft {times(float(p.speedup_free_draft))}",
        ),
    ]
    return rows


def _moving(scenario: Scenario, found: Adapted | None) -> list[tuple[str, str]]:
    """Tell what γ becomes where the policy moves it by request."""
    if found is None:
        return []
    says = (
        f"γ is {found.mean_gamma:.4g} on average in the long run, {found.tokens_per_round:.4g} "
        f"tokens a round: {milliseconds(found.tpot_s)} per token, {times(found.speedup)}"
    )
    return [(f"Policy {scenario.speculation.policy.kind}", says)]


def _break_even(p: Prediction, alpha_now: float, draft_now_s: float) -> str:
    alpha, draft_s = float(p.break_even_alpha), float(p.break_even_draft_step_s)
    needed = (
        f"α {alpha:.4g} (now {alpha_now:.4g})"
        if isfinite(alpha)
        else "no α (a perfect draft is too slow, too)"
    )
    if isfinite(draft_s):
        present = milliseconds(draft_now_s)
        return f"{needed}, or a draft step of {milliseconds(draft_s)} (now {present})"
    if float(p.draft_s_per_token) == 0 and draft_now_s == 0:
        return f"{needed}; the draft costs nothing already"
    return f"{needed}, and no draft step (a free draft is too slow, too)"


def best_gamma_note(scenario: Scenario, p: Prediction) -> str | None:
    """Say where the best γ is only the end of what was searched, and how to look further."""
    return search_note(scenario, int(p.best_gamma), int(p.best_gamma_searched_to))


def best_words(scenario: Scenario, p: Prediction) -> str:
    """Name the best γ and its speedup, and the end of the search where that is all it is."""
    best, note = int(p.best_gamma), best_gamma_note(scenario, p)
    if not scenario.gamma and note:
        return note
    if best == 0:
        return "γ = 0: no speculation, plain decoding is fastest"
    here = " (as set)" if best == int(p.gamma) else ""
    says = f"γ = {best}{here}: {times(float(p.best_gamma_speedup))}"
    # The setting stays in one piece, to be copied.
    return f"{says}, {note}".replace(": --set", ":\n--set") if note else says


def _waterfall(p: Prediction) -> RenderableType:
    total = float(p.tpot_s)
    rows = [
        (name, value, milliseconds(value), f"{100 * value / total:.0f} %")
        for name, value in (
            ("draft, kept", float(p.draft_s_per_token - p.wasted_draft_s_per_token)),
            ("draft, thrown away", float(p.wasted_draft_s_per_token)),
            ("verify", float(p.verify_s_per_token)),
            ("overhead", float(p.overhead_s_per_token)),
            ("plain decoding", float(p.baseline_tpot_s)),
        )
    ]
    return bars(rows)


def _separate_claims(p: Prediction) -> list[tuple[str, str]]:
    reads = float(p.target_reads_per_token)
    return [
        (
            "Arithmetic",
            f"operations factor {number(float(p.operations_factor))} (operations per token against "
            "plain decoding)",
        ),
        (
            "Memory traffic",
            f"{number(reads)} reads of the target's weights per token (plain: 1; "
            f"{percent(1 - reads)} fewer)"
            if int(p.gamma)
            else "1 read of the target's weights per token: this is plain decoding",
        ),
    ]


def _finite(p: Prediction) -> list[tuple[str, str]]:
    generation, plain = float(p.generation_s), float(p.baseline_generation_s)
    if not generation:
        return [("A whole answer", "no rounds: the pass over the prompt makes the one token")]
    return [
        (
            "A whole answer",
            f"{generation:.5g} s in {float(p.rounds):.5g} rounds and {float(p.draft_steps):.5g} "
            f"draft steps; plain {plain:.5g} s: {times(plain / generation)}",
        )
    ]
