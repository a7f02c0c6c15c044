"""`specplan init`: a commented scenario from a few answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.results import store
from specplan.results.answer import Answer
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.starter import QUESTIONS, starter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


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


def init_answer(file: Path, answers: Mapping[str, str], *, force: bool) -> Answer:
    """Write the scenario; raises ScenarioError for a file that exists or answers that make none."""
    store.check_file(file, force=force)
    store.write_text(file, starter(answers, str(file)), force=force)
    return Answer(
        {"file": str(file), "answers": dict(answers)},
        f"written to {file}; next: specplan predict {file}",
    )
