"""Self-contained HTML: Plotly's script is inside the file, nothing is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from specplan.results.figures.layout import packed
from specplan.results.figures.palette import FONT, TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.results.figures.layout import Figure

STYLE = f"""
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 {FONT}; color: {TEXT}; background: #fff; margin: 0 auto; padding: 1rem;
       max-width: 1280px; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .25rem; }}
p {{ max-width: 75ch; margin: .4rem 0; }}
p, h1, h2, h3 {{ overflow-wrap: anywhere; }}
p.verdict {{ font-size: 1.2rem; }}
table {{ border-collapse: collapse; margin: .5rem 0; }}
th, td {{ text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top;
          border-bottom: 1px solid #ddd; overflow-wrap: break-word; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.scroll {{ overflow-x: auto; }}
figure {{ margin: 0; }}
@media print {{
  section {{ break-inside: avoid; }}
  section:has(details) {{ break-inside: auto; }}
  summary, .modebar {{ display: none !important; }}
  details::details-content {{ content-visibility: visible; display: block; height: auto; }}
}}
"""
CONFIG = {
    "displayModeBar": "hover",
    "displaylogo": False,
    "responsive": True,
    "showSendToCloud": False,  # its button would send the figure to another machine
    "modeBarButtonsToRemove": ["lasso2d", "select2d"],
}


NUMBER = ' class="number"'


@dataclass(frozen=True)
class Section:
    """One part of a page: a heading, sentences, then a table (header row first) or a figure.

    `folded` keeps a long table closed on the screen; on paper it is open.
    """

    title: str
    sentences: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    figure: Figure | None = None
    folded: bool = False


def page(title: str, verdict: str, sections: Sequence[Section]) -> str:
    """Build one HTML page; every text is escaped, so names with HTML in them are shown as text.

    The page carries a policy that forbids every request, so a figure that would need the network
    fails where it is tested and not where it is read.
    """
    from plotly.offline import get_plotlyjs

    body = "\n".join(_section(index, section) for index, section in enumerate(sections))
    drawn = any(section.figure is not None for section in sections)
    script = f"<script>{get_plotlyjs()}</script>" if drawn else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
 script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:; font-src data:; worker-src blob:">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
{script}
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_verdict(verdict)}
{body}
</main>
</body>
</html>
"""


def _verdict(verdict: str) -> str:
    return "\n".join(f'<p class="verdict">{escape(line)}</p>' for line in verdict.splitlines())


def _section(index: int, section: Section) -> str:
    parts = [
        f'<section aria-labelledby="s{index}">',
        f'<h2 id="s{index}">{escape(section.title)}</h2>',
    ]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
    if section.table:
        table = _table(section.title, section.table)
        fields = f"{len(section.table) - 1} rows"
        parts.append(
            f"<details><summary>{fields}</summary>{table}</details>" if section.folded else table
        )
    if section.figure is not None:
        parts.append(_figure(index, section))
    return "\n".join([*parts, "</section>"])


def _figure(index: int, section: Section) -> str:
    import plotly.io as pio

    assert section.figure is not None
    drawing: Any = pio.to_html(
        packed(section.figure),
        validate=False,
        include_plotlyjs=False,
        full_html=False,
        div_id=f"figure{index}",
        config=CONFIG,
    )
    return f'<figure aria-label="{escape(section.title)}">{drawing}</figure>'


def _table(title: str, rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    kinds = [all(map(_numeric, column)) for column in zip(*rows[1:], strict=True)]
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{NUMBER if numeric else ''}>{_breakable(cell)}</td>"
            for cell, numeric in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows[1:]
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {escape(title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _breakable(cell: str) -> str:
    """Escape a cell, and let it break where `pieces` says.

    >>> _breakable("a<b scheduler.max_num_seqs")
    'a&lt;b scheduler.<wbr>max_<wbr>num_<wbr>seqs'
    """
    return "<wbr>".join(map(escape, pieces(cell)))


def pieces(text: str) -> list[str]:
    """Cut a text behind the marks where a long word, such as the path of a field, may break.

    >>> pieces("see target.round=4.5"), pieces("1,234.5 ms")
    (['see target.', 'round=', '4.5'], ['1,234.5 ms'])
    """
    return re.split(r"(?<=[^\W\d][._=])(?=\S)", text)


def _numeric(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] in {"-", "−", "+"} or cell == "none"
