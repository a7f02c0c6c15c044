"""The handoff of a scenario: what was stated, what each input rests on, what is missing.

Whether sampling is correct and whether speculation is worthwhile are two lines, never one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specplan.results.inputs import KINDS, evidence
from specplan.results.prediction import verdict
from specplan.scenarios.provenance import OTHERS

if TYPE_CHECKING:
    from specplan.models.speedup import Prediction
    from specplan.scenarios.schema import Scenario

UNLABELLED = "unlabelled"
ALL = "all inputs"  # what one text for everything is about
# A rule of one of these kinds accepts tokens that the target's law would not have given.
_LOSSY = re.compile(r"lossy|typical|threshold|lenien|relax|top-?k match|approximat", re.I)
_EXACT = re.compile(r"exact|lossless|rejection sampling|greedy|speculative sampling", re.I)
_NEGATED = re.compile(r"\b(?:no|not|without|never)\s+(?:a\s+)?\w*\s*", re.I)
_UNSTATED = re.compile(r"not stated|unknown|as in |as each", re.I)
_ASKED = {
    "target": "the target's model and revision, and its sampling rules",
    "proposal": "the draft mechanism and its revision",
    "acceptance_rule": "the acceptance rule",
    "evidence": "where each input is from",
}
_OF_DRAFTS = {"proposal", "acceptance_rule"}


@dataclass(frozen=True)
class Handoff:
    """What a reader needs to repeat a claim.

    - stated: fields of the record, as written
    - inputs: input → kind (measured, fitted, datasheet, assumed, analytical, or unlabelled), source
    - gaps: what is missing, in words
    - sampling: whether the acceptance rule preserves the target's law; "" for plain decoding
    - worthwhile: whether speculation pays here
    - preserves_law: True, False, or None where the rule does not say
    """

    stated: dict[str, str]
    inputs: dict[str, tuple[str, str]]
    gaps: tuple[str, ...]
    sampling: str
    worthwhile: str
    preserves_law: bool | None

    def value(self) -> dict[str, Any]:
        """Give everything as plain JSON."""
        return {
            "stated": self.stated,
            "inputs": {
                name: {"evidence": kind, "source": source}
                for name, (kind, source) in self.inputs.items()
            },
            "missing": list(self.gaps),
            "preserves_target_law": self.preserves_law,
            "sampling": self.sampling,
            "worthwhile": self.worthwhile,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Give the lines of a report: two claims, what was stated, each input."""
        rows = [("Sampling", self.sampling)] if self.sampling else []
        rows += [("Worthwhile", self.worthwhile)]
        rows += [(name.replace("_", " "), says) for name, says in self.stated.items()]
        rows += [
            (name, f"{kind}{': ' if source else ''}{source}")
            for name, (kind, source) in self.inputs.items()
        ]
        return rows


def handoff(scenario: Scenario, prediction: Prediction) -> Handoff:
    """Put together the handoff of a scenario and what its closed form says.

    >>> from specplan.scenarios.closed_form import predict
    >>> from specplan.scenarios.load import load
    >>> toy = load("toy-20ms")
    >>> handoff(toy, predict(toy)).worthwhile
    'faster than plain decoding, 1.25x'
    """
    record = scenario.record
    texts = {"target": record.target, "proposal": record.proposal}
    texts |= {"acceptance_rule": record.acceptance_rule, "notes": record.notes}
    drafts = scenario.gamma > 0  # plain decoding accepts and rejects nothing
    preserves, sampling = acceptance_law(record.acceptance_rule) if drafts else (None, "")
    inputs = _inputs(scenario)
    gaps = [_ASKED[name] for name in record.gaps() if drafts or name not in _OF_DRAFTS]
    if drafts and record.acceptance_rule and preserves is None:
        gaps.append("whether the acceptance rule is exact")
    told = ALL in inputs or OTHERS in inputs
    for name, (kind, source) in inputs.items():
        if kind == UNLABELLED and name not in (ALL, OTHERS):
            gaps.append(f"a label for {name}: {', '.join(KINDS)}")
        elif not source and not told:
            gaps.append(f"the source of {name}")
    return Handoff(
        stated={name: says for name, says in texts.items() if says},
        inputs=inputs,
        gaps=tuple(gaps),
        sampling=sampling,
        worthwhile=verdict(prediction),
        preserves_law=preserves,
    )


def acceptance_law(rule: str | None) -> tuple[bool | None, str]:
    """Say whether a stated acceptance rule preserves the target's law: True, False, None unknown.

    >>> [acceptance_law(rule)[0] for rule in ("typical acceptance", "greedy match", None)]
    [False, True, None]
    """
    if not rule:
        return None, "the acceptance rule is not stated: nothing is said about the output's law"
    lossy = _LOSSY.search(_NEGATED.sub("", rule))
    if lossy:
        says = f"LOSSY: the rule ({rule}) does not preserve the target's law; the output changes"
        return False, says
    if _EXACT.search(rule) and not _UNSTATED.search(rule):
        return True, f"the rule ({rule}) preserves the target's law, if implemented as stated"
    return None, f"the rule ({rule}) does not say that it is exact: not known to preserve the law"


def _inputs(scenario: Scenario) -> dict[str, tuple[str, str]]:
    """Label each input: the costs by their own evidence, the others by the record's."""
    found: dict[str, tuple[str, str]] = {}
    for name, says in evidence(scenario).items():
        kind, _, source = says.partition(" (")
        found[name] = (kind, source.removesuffix(")"))
    written = scenario.record.evidence
    if isinstance(written, dict):
        for name, says in written.items():
            found[name] = _label(says)
    elif written:
        found[ALL] = _label(written)
    if scenario.gamma and "speculation.acceptance" not in found:
        # One label for everything labels it too; several kinds in one text do not say which.
        kind, source = found.get(ALL) or found.get(OTHERS) or (UNLABELLED, "")
        found["speculation.acceptance"] = (kind, source) if kind in KINDS else (UNLABELLED, "")
    return found


def _label(says: str) -> tuple[str, str]:
    kind, colon, rest = says.partition(":")
    if colon and kind.strip().lower() in KINDS and not any(f"{k}:" in rest for k in KINDS):
        return kind.strip().lower(), rest.strip()
    named = [kind for kind in KINDS if re.search(rf"\b{kind}\b", says)]
    return " and ".join(named) or UNLABELLED, says
