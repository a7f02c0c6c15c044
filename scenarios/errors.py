"""What is wrong with something a person brought, where it is, and what would be right."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CLOSE = 0.6  # similarity of difflib from which a name may be a slip of another


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: printed as `file:line:column: field: wrong (right)`.

    `line` and `column` count from 1; parts that are not known are left out of the text.

    >>> print(Fault("negative", "0 or more", file="a.yaml", line=3, column=9, field="draft.step"))
    a.yaml:3:9: draft.step: negative (0 or more)
    """

    wrong: str
    right: str = ""
    file: str = ""
    line: int | None = None
    column: int | None = None
    field: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        says = f"{self.wrong} ({self.right})" if self.right else self.wrong
        return ": ".join(part for part in (place, self.field, says) if part)


class ScenarioError(Exception):
    """Bad input: every fault that was found, all at once; the command line exits with 2."""

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults = [faults] if isinstance(faults, Fault) else list(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[list[Fault]]]:
        """Travel between processes with the faults, not with the text alone."""
        return (type(self), (self.faults,))


def shortened(value: object, longest: int = 60) -> str:
    r"""Show a value within one line, however long it is.

    >>> shortened("a\nb"), shortened("9" * 100, longest=5)
    ('a\\nb', '9999…')
    """
    text = "".join(
        one if one.isprintable() else ascii(one)[1:-1] for one in str(value)[: longest + 1]
    )
    return text if len(text) <= longest else text[: longest - 1] + "…"


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name closest to `name`, or None when nothing is close.

    >>> nearest("gama", ["gamma", "method"]), nearest("h10", ["a100-sxm", "h100-sxm", "h100-pcie"])
    ('gamma', 'h100-sxm')
    """
    names = list(valid)
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in names}
    wanted = name.lower().replace("-", "_")
    close = get_close_matches(wanted, folded, n=1, cutoff=CLOSE)
    if close:
        return folded[close[0]]
    first = {candidate.partition("_")[0]: known for candidate, known in reversed(folded.items())}
    close = get_close_matches(wanted, first, n=1, cutoff=CLOSE)  # `h10` and `h100-sxm`
    return first[close[0]] if close else None


def by_nearness(name: str, valid: Iterable[str]) -> list[str]:
    """Return the valid names, the most similar first.

    >>> by_nearness("rats", ["gamma", "length", "rate"])[0]
    'rate'
    """
    wanted = name.lower().replace("-", "_")
    return sorted(valid, key=lambda known: -SequenceMatcher(None, wanted, known.lower()).ratio())
