"""The fields of a Hugging Face `config.json`, by names that vary; what is missing is collected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from pathlib import Path


def read_config_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises ScenarioError for a file that cannot be read, is not JSON or holds something else.
    """
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(
            Fault(f"cannot be read: {error.strerror}", "a model's config.json", file=str(path))
        ) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise ScenarioError(
            Fault(f"is not JSON: {error}", "a model's config.json", file=str(path), line=line)
        ) from error
    if not isinstance(whole, dict):
        raise ScenarioError(Fault("is not an object", "a model's config.json", file=str(path)))
    return whole


class ConfigFields:
    """The text part of a config, read by names that vary; what is missing is collected."""

    def __init__(self, whole: dict[str, Any], file: str) -> None:
        self.nested = isinstance(whole.get("text_config"), dict)
        self.fields: dict[str, Any] = whole["text_config"] if self.nested else whole
        self.whole, self.file = whole, file
        self.faults: list[Fault] = []

    def get(self, *names: str, default: Any = None) -> Any:
        """Read the first of `names` that is there and not null."""
        for place in (self.fields, self.whole):
            for name in names:
                if place.get(name) is not None:
                    return place[name]
        return default

    def count(self, *names: str) -> int:
        """Read a number of things, 1 or more; 1 stands in where it is missing or wrong."""
        where = "`text_config`" if self.nested else "the top level"
        value = self.get(*names)
        if value is None:
            also = f" (or `{'`, `'.join(names[1:])}`)" if names[1:] else ""
            self.fault(
                names[0], "is missing", f"an integer `{names[0]}`{also} at {where} of the file"
            )
            return 1
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fault(names[0], f"is {value!r}", "an integer, 1 or more")
            return 1
        return value

    def optional(self, *names: str, default: int = 0) -> int:
        """Read a number of things that may be absent: 0 or more; the default stands in."""
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            name = next(one for one in names if self.get(one) is not None)
            self.fault(name, f"is {value!r}", "an integer, 0 or more")
            return default
        return value

    def listed(self, *names: str) -> list[Any]:
        """Read a list that may be absent; empty where it is."""
        value = self.get(*names, default=[])
        if not isinstance(value, list):
            self.fault(names[0], f"is {value!r}", "a list")
            return []
        return value

    def fault(self, name: str, wrong: str, right: str) -> None:
        """Remember a fault, once: layers ask for the same fields."""
        found = Fault(wrong, right, file=self.file, field=name)
        if found not in self.faults:
            self.faults.append(found)
