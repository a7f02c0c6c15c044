"""`specplan law`: what accept/reject makes of p and q, exactly and by Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.models.law import Correction, Law, independent_matching, output_law
from specplan.models.readings import MOST_DRAFTS
from specplan.models.sampler import Rule, chi_square, sample_rounds
from specplan.models.sampling_rules import SamplingRules
from specplan.results.acceptance.law_text import law_text
from specplan.results.answer import Answer
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_P_VALUE = 1e-3
"""A smaller p-value refutes "the target law is preserved"."""

RULES: tuple[Rule, ...] = ("exact", "unchanged_target", "skip_rejected")


@dataclass(frozen=True)
class LawQuestion:
    """What to compare and how: laws by position, the request's sampling rules, the experiment.

    `p` and `q` hold one law a draft position, `bonus` the target law after them (None: the last
    p again). `draws` 0 leaves the Monte Carlo run out, which a wrong `rule` needs; `gamma` repeats
    a single position.
    """

    p: Sequence[Sequence[float]]
    q: Sequence[Sequence[float]]
    bonus: Sequence[float] | None = None
    sampling: SamplingRules = field(default_factory=SamplingRules)
    lenience: float = 1.0
    draws: int = 0
    seed: int = 1
    rule: str = "exact"
    gamma: int | None = None


def law_answer(question: LawQuestion) -> Answer:
    """Answer everything about p and q at each position (MODEL.md §2), with its proof in sums.

    `exit_code` is 1 when the target law is not preserved: by the sums, or by a Monte Carlo run.
    Raises ScenarioError when a position holds no law, or the experiment cannot be run.
    """
    laws = [_position_law(question, i) for i in range(_positions(question))]
    rows = [_position_json(question, i, law) for i, law in enumerate(laws)]
    betas = np.array([float(law.beta) for law in laws] * _repeats(question))
    json: dict[str, Any] = {
        "sampling": vars(question.sampling).copy(),
        "lenience": question.lenience,
        "positions": rows,
        "conditional": betas.tolist(),
        "unconditional": np.cumprod(betas).tolist(),
        "tokens_per_round": 1 + float(np.cumprod(betas).sum()),
    }
    if len(rows) == 1:
        json = {**rows[0], **json}
    preserved = all(row["proof"]["equals_target"] for row in rows)
    if question.draws:
        json["monte_carlo"] = _monte_carlo(question, laws)
        preserved = preserved and json["monte_carlo"]["target_law_preserved"]
    return Answer(json, law_text(json), _notes(question, laws), 0 if preserved else 1)


def _positions(question: LawQuestion) -> int:
    if not question.p or len(question.p) != len(question.q):
        wrong = f"laws of p: {len(question.p)}, laws of q: {len(question.q)}"
        raise ScenarioError(Fault(wrong, "one q for each p, at least one position"))
    if question.rule not in RULES:
        raise ScenarioError(Fault(question.rule, " | ".join(RULES), field="rule"))
    if question.rule != "exact" and not question.draws:
        wrong = f"{question.rule} is shown failing by a run, and no draws are asked for"
        raise ScenarioError(Fault(wrong, "`--draws 200000` with it", field="rule"))
    if question.seed < 0:
        raise ScenarioError(Fault(f"seed is {question.seed}", "a whole number of 0 or more"))
    if question.draws < 0:
        raise ScenarioError(Fault(f"draws is {question.draws}", "at least 0; 0 is exact only"))
    sizes = [len(law) for law in (*question.p, *question.q)]
    odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if odd is not None and len(question.p) > 1:
        wrong = f"position {odd % len(question.p) + 1} has {sizes[odd]} tokens, others {sizes[0]}"
        raise ScenarioError(Fault(wrong, "one vocabulary at every position"))
    if question.gamma is not None and not 1 <= question.gamma <= MOST_DRAFTS:
        right = f"1 to {MOST_DRAFTS} draft positions"
        raise ScenarioError(Fault(f"{question.gamma}", right, field="gamma"))
    if question.gamma is not None and len(question.p) not in {1, question.gamma}:
        wrong = f"{question.gamma} while {len(question.p)} positions are given"
        right = "leave it out: each position given is one draft"
        raise ScenarioError(Fault(wrong, right, field="gamma"))
    return len(question.p)


def _repeats(question: LawQuestion) -> int:
    """Return how often a single position stands in the block: γ times."""
    return question.gamma or 1 if len(question.p) == 1 else 1


def _position_law(question: LawQuestion, position: int) -> Law:
    try:
        p = question.sampling.apply(question.p[position], "p")
        q = question.sampling.apply(question.q[position], "q")
        return output_law(p, q, question.lenience)
    except (ValueError, TypeError) as error:
        raise ScenarioError(Fault(str(error), field=f"position {position + 1}")) from error


def _position_json(question: LawQuestion, position: int, law: Law) -> dict[str, Any]:
    shortcut = output_law(law.target, law.draft, question.lenience, "unchanged_target")
    target_token = int(np.argmax(question.p[position]))
    draft_token = int(np.argmax(question.q[position]))
    return {
        "p": law.target.tolist(),
        "q": law.draft.tolist(),
        "acceptance": _finite(law.acceptance),
        "accepted_mass": law.accepted_mass.tolist(),
        "beta": float(law.beta),
        "beta_exact": min(float(np.minimum(law.target, law.draft).sum()), 1.0),
        "rejected_mass": float(law.rejected_mass),
        "residual": None if np.isnan(law.residual).any() else law.residual.tolist(),
        "output": law.output.tolist(),
        "proof": {
            "accepted_mass_sum": float(law.accepted_mass.sum()),
            "output_sum": float(law.output.sum()),
            "largest_error": float(law.largest_error),
            "total_variation": float(law.total_variation),
            "equals_target": bool(law.largest_error < 1e-9),
        },
        "unchanged_target": {
            "output": shortcut.output.tolist(),
            "error": (shortcut.output - law.target).tolist(),
            "largest_error": float(shortcut.largest_error),
            "total_variation": float(shortcut.total_variation),
        },
        "independent_matching": float(independent_matching(law.target, law.draft)),
        "greedy": {
            "target_token": target_token,
            "draft_token": draft_token,
            "acceptance": float(target_token == draft_token),
        },
    }


def _finite(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _monte_carlo(question: LawQuestion, laws: Sequence[Law]) -> dict[str, Any]:
    try:
        block = [*laws] * _repeats(question)
        p, q = (np.stack([getattr(law, name) for law in block]) for name in _BOTH)
        bonus = _bonus(question, laws)
        sample = sample_rounds(
            p,
            q,
            bonus,
            rounds=question.draws,
            seed=question.seed,
            rule=next(rule for rule in RULES if rule == question.rule),
            lenience=question.lenience,
        )
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field="monte carlo")) from error
    due = np.vstack([p, bonus])
    whole = chi_square(sample.tokens, due)
    json: dict[str, Any] = {
        "draws": question.draws,
        "seed": question.seed,
        "rule": question.rule,
        "gamma": len(q),
        "tokens": sample.tokens.tolist(),
        "accepted_lengths": sample.accepted_lengths.tolist(),
        "tokens_per_round": sample.tokens_per_round,
        "chi_square": whole.statistic if np.isfinite(whole.statistic) else None,
        "degrees_of_freedom": whole.freedom,
        "p_value": whole.p_value,
        "position_p_values": [
            chi_square(seen, law).p_value for seen, law in zip(sample.tokens, due, strict=True)
        ],
        "target_law_preserved": whole.p_value > LEAST_P_VALUE,
    }
    if question.rule != "skip_rejected":
        correction: Correction = "residual" if question.rule == "exact" else "unchanged_target"
        own = output_law(p, q, question.lenience, correction)
        json["own_law_p_value"] = chi_square(sample.tokens, np.vstack([own.output, bonus])).p_value
        reached = np.concatenate([[1.0], np.cumprod(own.beta), [0.0]])
        json["tokens_per_round_exact"] = float(reached.sum())
        json["accepted_lengths_p_value"] = chi_square(
            sample.accepted_lengths, -np.diff(reached)
        ).p_value
    return json


_BOTH = ("target", "draft")


def _bonus(question: LawQuestion, laws: Sequence[Law]) -> Floats:
    if question.bonus is None:
        return laws[-1].target
    bonus = question.sampling.apply(question.bonus, "bonus")
    if bonus.size != laws[-1].target.size:
        raise ValueError(
            f"bonus has {bonus.size} tokens and p has {laws[-1].target.size} (one vocabulary)"
        )
    return bonus


def _notes(question: LawQuestion, laws: Sequence[Law]) -> list[str]:
    notes = []
    distance = max(float(law.total_variation) for law in laws)
    if distance > 1e-9:
        notes.append(
            f"lenience {question.lenience:g} trades the law for speed: the output is no longer the"
            f" target's law (total variation up to {distance:.4g})"
        )
    ties = [
        f"{name} at position {i + 1}"
        for i in range(len(laws))
        for name, law in (("p", question.p[i]), ("q", question.q[i]))
        if np.count_nonzero(np.asarray(law) == np.max(law)) > 1
    ]
    if ties:
        notes.append(f"the argmax is tied in {', '.join(ties)}: greedy takes the lowest index")
    if question.draws and question.bonus is None:
        notes.append("no law was given after the last draft: the bonus token is drawn from its p")
    return notes
