"""Names of inference engines, in the spellings that people use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORT = {"trtllm": "tensorrt-llm", "trt": "tensorrt-llm", "tensorrt": "tensorrt-llm"}


def engine_name(text: str, known: Iterable[str]) -> str:
    """Return the engine that a person means; case, `-`, `_`, `.` and blanks do not matter.

    Raises ScenarioError for an unknown one, with the nearest and the list.

    >>> [engine_name(text, ["tensorrt-llm", "llama.cpp"]) for text in ("TRT-LLM", "llamacpp")]
    ['tensorrt-llm', 'llama.cpp']
    """
    names = list(known)
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    plain = re.sub(r"[^a-z0-9]", "", _SHORT.get(plain, plain))
    for name in names:
        if re.sub(r"[^a-z0-9]", "", name) == plain:
            return name
    close = nearest(text, names)
    hint = f"did you mean {close}? " if close else ""
    wrong = f"{' '.join(text.split())[:60]} is no known engine"
    raise ScenarioError(Fault(wrong, hint + " | ".join(names), field="engine"))
