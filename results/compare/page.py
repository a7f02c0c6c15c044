"""The page of a comparison: the ranking, and every difference with its interval."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from specplan.results.compare.answer import FIGURES, difference_words
from specplan.results.export import Section, page
from specplan.results.figures.layout import Figure, Trace, across, layout
from specplan.results.figures.palette import BREAK_EVEN, SCENARIOS
from specplan.results.tables import number

if TYPE_CHECKING:
    from specplan.results.compare.differences import Difference
    from specplan.results.compare.ranking import Compared


def comparison_page(made: Compared) -> str:
    """Build the page: verdicts, ranking, differences as a figure and as a table, more figures."""
    verdicts = tuple(made.verdict(place) for place in range(1, len(made.names)))
    base = made.names[0]
    return page(
        f"Comparison with {base}",
        made.summary(),
        [
            Section("Ranking", (*verdicts, _how(made)), _ranking(made)),
            Section(
                f"Differences from {base}",
                ("In percent of its figures; a bar that crosses the line is no difference.",),
                figure=differences_figure(made),
            ),
            Section("Differences in figures", table=_differences(made)),
            Section("More figures", table=_more(made)),
        ],
    )


def _how(made: Compared) -> str:
    return (
        f"By mean time per output token, from {made.seen}, all on the same luck; intervals are of "
        "95 % each. Who cannot be told from the one before shares its rank."
    )


def _ranking(made: Compared) -> tuple[tuple[str, ...], ...]:
    head = ("rank", "scenario", "mean TPOT (ms)", "output (tok/s)", "steady state")
    rows = (
        (
            str(one.rank),
            one.name,
            number(made.figures[one.place]["mean_tpot_ms"]),
            number(made.figures[one.place]["output_throughput"]),
            "no: saturated" if made.saturated(one.place) else "yes",
        )
        for one in made.ranking
    )
    return (head, *rows)


def _differences(made: Compared) -> tuple[tuple[str, ...], ...]:
    head = ("figure", "scenario", made.names[0], "scenario's", "difference", "± 95 %", "verdict")
    rows = (
        (
            f"{d.name} ({d.unit})",
            name,
            number(d.a),
            number(d.b),
            *difference_words(d),
            d.verdict,
        )
        for name, found in zip(made.names[1:], made.against_baseline, strict=True)
        for d in found
    )
    return (head, *rows)


def _more(made: Compared) -> tuple[tuple[str, ...], ...]:
    rows = ((label, *[number(one[key]) for one in made.figures]) for label, key in FIGURES)
    return (("figure", *made.names), *rows)


def differences_figure(made: Compared) -> Figure:
    """Draw each scenario's differences in percent of the baseline's figures, with intervals."""
    traces: list[Trace] = []
    drawn = zip(made.names[1:], made.against_baseline, strict=True)
    for place, (name, found) in enumerate(drawn):
        known = [d for d in found if d.difference.known and d.a > 0]
        spread = [100 * d.difference.half_width / d.a for d in known]
        traces.append(
            {
                "type": "scatter", "x": [100 * d.difference.mean / d.a for d in known],
                "y": [d.name for d in known], "error_x": {"type": "data", "array": spread},
                "mode": "markers", "name": escape(name), "text": [_hover(d) for d in known],
                "marker": {"size": 9, "color": SCENARIOS[place % len(SCENARIOS)]},
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
            }
        )  # fmt: skip
    height = 140 + 26 * sum(len(found) for found in made.against_baseline)
    look = layout(
        "difference (%)", "", height,
        yaxis={"autorange": "reversed"}, shapes=[across(x=0.0, colour=BREAK_EVEN)],
    )  # fmt: skip
    return {"data": traces, "layout": look}


def _hover(d: Difference) -> str:
    words, spread = difference_words(d)
    return f"{d.name}: {words} ± {spread} {d.unit}, {d.verdict}"
