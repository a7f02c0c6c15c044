"""What every command hands back: one JSON object, one thing to print, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


@dataclass(frozen=True)
class Answer:
    """The outcome of one command.

    `json` is what `--json` prints on stdout; `text` is printed otherwise; `notes` go to stderr.
    `exit_code` is 0, or 1 where the command asks a question and the answer is "no".

    >>> Answer(json={"speedup": 1.25}, text="1.25x").exit_code
    0
    >>> print(Answer(json={"speedup": 1.25}, text="1.25x"))
    1.25x
    """

    json: dict[str, Any]
    text: RenderableType
    notes: list[str] = field(default_factory=list)
    exit_code: int = 0

    def _repr_html_(self) -> str:
        """Show in a notebook what the terminal shows."""
        printed = self._printed(100)
        return printed.export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def __str__(self) -> str:
        """Return what the terminal shows, 80 columns wide."""
        return self._printed(80).export_text().rstrip()

    def _printed(self, width: int) -> Console:
        import io

        from rich.console import Console

        console = Console(record=True, file=io.StringIO(), width=width, highlight=False)
        console.print(self.text)
        return console
