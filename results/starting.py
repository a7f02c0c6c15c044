"""`specplan init`: a commented scenario from a few answers and the files of an engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.starting_files import FromFiles
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.provenance import OTHERS
from specplan.scenarios.starter import QUESTIONS, starter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

# Answers that the record labels by their field; γ and method are choices.
_MEASURED = {
    "acceptance": "speculation.acceptance",
    "draft_probability": "speculation.draft_probability",
    "overhead": "speculation.overhead",
    "arrivals": "workload.arrivals",
    "prompt_tokens": "workload.prompt_tokens",
    "output_tokens": "workload.output_tokens",
}


def read_answers(texts: Sequence[str]) -> dict[str, str]:
    """Read `NAME=VALUE` answers; raises ScenarioError for anything else.

    >>> read_answers(["gamma=4", "acceptance={alpha: 0.7}"])
    {'gamma': '4', 'acceptance': '{alpha: 0.7}'}
    """
    answers = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip():
            names = ", ".join(question.key for question in QUESTIONS)
            raise ScenarioError(
                Fault("answers nothing", f"NAME=VALUE with one of {names}", f"-a {text}")
            )
        answers[name.strip()] = value.strip()
    return answers


def ask(given: Mapping[str, str], prompt: Callable[..., str]) -> dict[str, str]:
    """Put the questions that are not answered yet; an empty line takes the default."""
    return {
        question.key: given[question.key]
        if question.key in given
        else str(
            prompt(question.text, default=question.default, show_default=bool(question.default))
        )
        for question in QUESTIONS
    }


def init_answer(
    file: Path, answers: Mapping[str, str], told: FromFiles | None = None, *, force: bool
) -> Answer:
    """Write the scenario; raises ScenarioError for a file that exists or answers that make none.

    `told` is what of the answers stands in files: the record of the scenario says so, and what is
    neither told nor answered is named as assumed.
    """
    store.check_file(file, force=force)
    told = told or FromFiles()
    sources = {
        key: name for key, name in told.sources.items() if answers.get(key) == told.answers[key]
    }
    said = dict(answers)
    if sources:
        said.setdefault("evidence", evidence(sources, told.notes))
    store.write_text(file, starter(said, str(file)), force=force)
    asked = [question.key for question in QUESTIONS if question.key not in ("name", "round")]
    assumed = [key for key in asked if not answers.get(key)]
    notes = [f"{', '.join(keys)}: from {name}" for name, keys in by_file(sources).items()]
    notes += told.notes
    if assumed:
        notes.append(f"assumed: {', '.join(assumed)} (specplan init -a {assumed[0]}=… says)")
    value = {"file": str(file), "answers": said, "sources": sources, "assumed": assumed}
    return Answer(value, f"written to {file}; next: specplan predict {file}", notes)


def evidence(sources: Mapping[str, str], notes: Sequence[str] = ()) -> str:
    """Write the record of what was told by which files, as YAML; a cost has its own label.

    >>> evidence({"step": "plain.json", "gamma": "eagle.json", "acceptance": "eagle.json"})
    '{"speculation.acceptance": "measured: eagle.json", "all other inputs": "assumed"}'
    """
    told = {
        _MEASURED[key]: f"measured: {name}" for key, name in sources.items() if key in _MEASURED
    }
    told[OTHERS] = "; ".join(["assumed", *notes])
    return json.dumps(told, ensure_ascii=False)


def by_file(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Turn files by answer into answers by file."""
    found: dict[str, list[str]] = {}
    for key, name in sources.items():
        found.setdefault(name, []).append(key)
    return found
