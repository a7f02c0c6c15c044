"""Terminal building blocks: facts, tables and bars; 80 columns, plain when piped."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 80
LABEL_WIDTH = 22
BAR_WIDTH = 30
# One colour a phase, the same in the terminal and in the figures (results/figures/palette.py).
PHASE_STYLES = {
    "draft": "color(172)",
    "verify": "color(25)",
    "overhead": "color(102)",
    "prefill": "color(36)",
    "idle": "color(250)",
}
_EIGHTHS = " ▏▎▍▌▋▊▉"


def milliseconds(seconds: float | None) -> str:
    """Write a duration in ms with the digits that matter.

    >>> milliseconds(0.08), milliseconds(0.8 / 7), milliseconds(None)
    ('80 ms', '114.29 ms', 'none')
    """
    if seconds is None or not isfinite(seconds):
        return "none"
    value = seconds * 1e3
    digits = 2 if value >= 1 else 4
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".") + " ms"


def duration(seconds: float) -> str:
    """Write a duration in ms below ten seconds, in s above.

    >>> duration(0.08), duration(1811.96)
    ('80 ms', '1,812 s')
    """
    return milliseconds(seconds) if seconds < 10 else f"{number(seconds)} s"


def times(factor: float | None) -> str:
    """Write a speedup.

    >>> times(1.25), times(0.875)
    ('1.25x', '0.875x')
    """
    return "none" if factor is None or not isfinite(factor) else f"{factor:.4g}x"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with thousands separators and `digits` significant digits.

    >>> number(1234567.0), number(0.123456), number(None)
    ('1,234,567', '0.1235', 'none')
    """
    if value is None or not isfinite(value):
        return "none"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float | None) -> str:
    """Write a share as a percentage.

    >>> percent(0.4567)
    '45.7 %'
    """
    return "none" if share is None or not isfinite(share) else f"{100 * share:.1f} %"


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Lay out labels and sentences in two columns; the sentences fold under themselves."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=LABEL_WIDTH, no_wrap=True, style="bold")
    grid.add_column(ratio=1)
    for label, text in rows:
        grid.add_row(Text(label), Text(text))
    return grid


def bar(value: float, largest: float, width: int = BAR_WIDTH) -> str:
    """Draw a horizontal bar of `width` cells for `largest`, to an eighth of a cell.

    >>> bar(1.0, 2.0, 4), bar(0.0, 2.0, 4), bar(0.25, 2.0, 4)
    ('██', '', '▌')
    """
    if largest <= 0 or value <= 0 or not isfinite(value / largest):
        return ""
    eighths = round(8 * width * min(value / largest, 1.0))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def bars(rows: Sequence[tuple[str, float, str, str]]) -> Table:
    """Draw one bar a row: (name, value, two texts about it); names of phases take their colour."""
    top = max((value for _, value, _, _ in rows), default=0.0)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=LABEL_WIDTH - 2, no_wrap=True)
    grid.add_column(justify="right", no_wrap=True, min_width=9)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for name, value, text, share in rows:
        style = PHASE_STYLES.get(name.split()[0], "")
        drawn = Text(bar(value, top), style=style)
        grid.add_row(Text("  " + name), Text(text), Text(share), drawn)
    return grid


def verbatim(text: str) -> Text:
    """Show what people copy (YAML, flags, a command) line by line as it is, however wide it is.

    >>> verbatim("a: 1").no_wrap
    True
    """
    return Text(text, no_wrap=True, overflow="ignore")


def heading(text: str) -> Text:
    """Set a line apart as the heading of what follows."""
    return Text("\n" + text, style="bold")


def columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Lay out a plain table: the first column to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, name in enumerate(header):
        table.add_column(Text(name), justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])
    return table


def fitted(header: Sequence[str], rows: Sequence[Sequence[str]], keep: int) -> Table:
    """Lay out a table of at most 80 columns that cuts no name and no number.

    Where it is too wide, headers fold at dots and underscores; then columns beyond the first `keep`
    are left out from the right, and a line below names them.
    """
    names, shown = list(header), len(header)
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(shown)]
    if _wide([max(w, len(n)) for w, n in zip(widths, names, strict=True)]) > WIDTH:
        names = [folded(name, max(width, 10)) for name, width in zip(names, widths, strict=True)]
    for i, name in enumerate(names):
        widths[i] = max(widths[i], *(len(line) for line in name.split("\n")))
    while shown > keep and _wide(widths[:shown]) > WIDTH:
        shown -= 1
    table = columns(names[:shown], [row[:shown] for row in rows])
    for column in table.columns:
        column.vertical = "bottom"
        column.no_wrap, column.overflow = _wide(widths[:shown]) <= WIDTH, "fold"
    if shown < len(header):
        table.caption = Text(f"not shown: {', '.join(header[shown:])} (--json has all)")
        table.caption_justify = "left"
    return table


def _wide(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * len(widths) - 2


def folded(name: str, width: int) -> str:
    """Fold a name before words that follow a dot, an underscore or a blank; no number is parted.

    >>> folded("speculation.acceptance.alpha", 12).splitlines()
    ['speculation.', 'acceptance.', 'alpha']
    """
    lines = [""]
    for part in re.split(r"(?<=[._ ])(?=[A-Za-z(])", name):
        if lines[-1] and len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)
