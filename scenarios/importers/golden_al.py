"""Golden acceptance lengths of InferenceX: `{model: {thinking_on: {K: τ}}}` in YAML.

τ is measured, with the bonus, to two decimals. Conditions stand in the comments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.evidence import Evidence, Source, checked

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "golden-al"
_METHOD = re.compile(r"^# key = num_speculative_tokens \((\w+) level\)", re.MULTILINE)


def matches(document: object) -> bool:
    """Return whether the document has the shape {model: {condition: {K: number}}}."""
    if not isinstance(document, dict) or not document:
        return False
    return all(
        isinstance(conditions, dict)
        and conditions
        and all(
            isinstance(lengths, dict) and lengths and all(type(k) is int for k in lengths)
            for lengths in conditions.values()
        )
        for conditions in document.values()
    )


def read(
    document: Mapping[str, Mapping[str, Mapping[int, object]]], file: str, text: str = ""
) -> list[Evidence]:
    """Return one piece of evidence for each model, condition and K; `text` names the method."""
    found = []
    named = _METHOD.search(text)
    for model, conditions in document.items():
        for condition, lengths in conditions.items():
            for gamma, tau in lengths.items():
                field = f"{model}.{condition}.{gamma}"
                line = _line_of(lengths, gamma)
                if isinstance(tau, bool) or not isinstance(tau, int | float):
                    raise ScenarioError(
                        Fault(f"{tau!r}", "an acceptance length", file, line, field=field)
                    )
                if not 1 <= gamma < 4096:
                    raise ScenarioError(Fault(f"K = {gamma}", "1 or more", file, line, field=field))
                found.append(
                    checked(
                        Evidence(
                            Source(file, KIND, field, line),
                            model=str(model),
                            method=named[1].lower() if named else "",
                            label=str(condition),
                            gamma=gamma,
                            acceptance_length=float(tau),
                            rounding=0.005,
                        )
                    )
                )
    return found


def _line_of(lengths: object, gamma: int) -> int | None:
    """Return the line of a key; ruamel counts from 0."""
    marks = getattr(lengths, "lc", None)
    position = getattr(marks, "data", None) or {}
    return position[gamma][0] + 1 if gamma in position else None
