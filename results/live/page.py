"""The live page's parts as Dash components: no logic, no hand-written JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from dash import dcc, html

from specplan.results.export import CONFIG, STYLE, pieces
from specplan.results.figures.layout import packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specplan.results.export import Section
    from specplan.results.figures.layout import Figure
    from specplan.results.live.controls import Control
    from specplan.results.live.state import State
    from specplan.results.live.view import Base

_CONFIG: Any = CONFIG
SLOTS = 12  # sections of the closed form that the page has room for
POLL_MS = 400
EMPTY: Figure = {"data": [], "layout": {}}
LIVE_STYLE = """
body { max-width: 1600px; }
.sides { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem 2rem; }
@media (min-width: 900px) {
  .sides { grid-template-columns: 21rem minmax(0, 1fr); }
  .controls { position: sticky; top: 0; max-height: 100vh; overflow-y: auto;
              align-self: start; }
}
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr));
           gap: 0 2rem; }
.figures section { min-width: 0; }
label.slider { display: block; margin: .5rem 0 .1rem; }
label.slider span.value { float: right; font-variant-numeric: tabular-nums; }
.slider input[type=range], .dash-input-container:has(input[type=range]) {
  width: 100%; box-sizing: border-box; border: 0; box-shadow: none; outline-offset: 2px;
  background: transparent; padding: 0; margin: 0; min-height: 1.5rem; }
.slider input[type=range] { accent-color: #0072B2; }
.slider input[type=range]:focus-visible, button:focus-visible, a:focus-visible,
summary:focus-visible { outline: 3px solid #0072B2; outline-offset: 2px; }
fieldset { border: 1px solid #ccc; border-radius: 4px; margin: .75rem 0; padding: .25rem .75rem; }
legend { padding: 0 .3rem; }
button { font: inherit; padding: .35rem .8rem; margin: .25rem .5rem .25rem 0; cursor: pointer;
         color: #fff; background: #0B5A8A; border: 1px solid #0B5A8A; border-radius: 4px; }
button.choice { background: #fff; color: #0B5A8A; padding: .15rem .5rem; }
button.choice[aria-pressed=true] { background: #0B5A8A; color: #fff; }
button:disabled { background: #fff; color: #595959; border-color: #8a8a8a; cursor: default; }
a { color: #0B5A8A; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .5rem;
      border-radius: 4px; margin: .5rem 0; }
.alert { border-left: 4px solid #B3261E; padding: .25rem .75rem; background: #FBEAE9;
         overflow-wrap: anywhere; }
.alert:empty { display: none; }
.stale { opacity: .3; }
progress { width: 100%; accent-color: #0072B2; }
p.verdict::first-letter { text-transform: uppercase; }
"""
INDEX = (
    """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="data:,">
{%css%}
<style>"""
    + STYLE
    + LIVE_STYLE
    + """</style>
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""
)


def shell() -> Any:
    """Make the frame of every page: the URL, and room for what it asks for."""
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="written"),
            html.Main(id="page"),
        ]
    )


def refused(says: str, names: Sequence[str]) -> list[Any]:
    """Say why a scenario cannot be shown, and name the others."""
    return [html.H1("specplan"), html.Div(says, className="alert", role="alert"), others(names)]


def page(base: Base, state: State, names: Sequence[str], token: str) -> list[Any]:
    """Lay out the page of one scenario, its sliders where the state has them."""
    scenario = base.scenario
    return [
        dcc.Store(id="token", data=token),
        dcc.Store(id="base", data=base.target),
        dcc.Store(id="job"),
        dcc.Interval(id="poll", interval=POLL_MS, disabled=True),
        dcc.Download(id="file"),
        html.H1(scenario.name),
        html.P(scenario.description) if scenario.description else None,
        html.P(id="verdict", className="verdict", **_aria(live="polite")),
        html.Div(id="alert", className="alert", role="alert"),
        html.Div(
            [
                html.Section(
                    [
                        html.H2("Settings"),
                        *_sliders(base, state),
                        _simulation(),
                        html.H2("Take it along"),
                        _ways_out(),
                        others(names),
                    ],
                    className="controls", **_aria(label="Settings"), tabIndex=0,
                ),
                html.Div(
                    [
                        html.Section([html.H2("Closed form"), html.Div(id="facts")]),
                        html.Div(
                            [_slot(index) for index in range(SLOTS)],
                            id="closed", className="figures",
                        ),
                        html.Div(id="measured"),
                        html.H2("Simulation", id="simulation"),
                        html.Div("Not simulated yet.", id="simulated", className="figures"),
                    ]
                ),
            ],
            className="sides",
        ),
    ]  # fmt: skip


def others(names: Sequence[str]) -> Any:
    """Link the other scenarios."""
    links = [html.Li(html.A(name, href="/?" + urlencode({"scenario": name}))) for name in names]
    return html.Details([html.Summary("Other scenarios"), html.Ul(links)])


def facts(rows: Iterable[Sequence[str]], caption: str) -> Any:
    """Lay names and their values out as a table."""
    body = [
        html.Tr(
            [
                html.Th(name, scope="row"),
                *[html.Td(_breakable(text), className="number") for text in values],
            ]
        )
        for name, *values in rows
    ]
    return html.Div(
        html.Table([html.Caption(caption, hidden=True), html.Tbody(body)]), className="scroll",
        tabIndex=0, role="region", **_aria(label=caption),
    )  # fmt: skip


def _breakable(text: str) -> list[Any]:
    """Let a long word break where `pieces` says, so that a narrow screen shows all of it."""
    parts = pieces(text)
    return [parts[0], *(part for more in parts[1:] for part in (html.Wbr(), more))]


def drawn(section: Section, name: int | str) -> Any:
    """Lay out one section with its figure, or else its table; `name` is the figure's own."""
    shown = []
    if section.figure is not None:
        shown = [_figure({"run": name}, section.title, section.figure)]
    elif section.table:
        shown = [facts(section.table[1:], section.title)]
    return html.Section([html.H3(section.title), *sentences(section.sentences), *shown])


def sentences(lines: Iterable[str]) -> list[Any]:
    """Turn lines into paragraphs."""
    return [html.P(line) for line in lines]


def _aria(**words: str) -> dict[str, Any]:
    """Describe a part to readers that do not see it."""
    return {f"aria-{name}": text for name, text in words.items() if text}


def _slot(index: int) -> Any:
    return html.Section(
        [
            html.H3(id={"part": "title", "slot": index}),
            html.Div(id={"part": "text", "slot": index}),
            _figure({"part": "figure", "slot": index}, "", None),
        ],
        id={"part": "section", "slot": index},
        hidden=True,
    )


def _figure(identity: Any, title: str, figure: Figure | None) -> Any:
    # "auto": as wide as there is room, and as tall as the figure asks.
    graph = dcc.Graph(
        id=identity, figure=packed(figure or EMPTY), config=_CONFIG, responsive="auto",
    )  # fmt: skip
    return html.Figure(graph, **_aria(label=title))


def _sliders(base: Base, state: State) -> list[Any]:
    """Single sliders first, then each group of alternatives under its choice."""
    made: list[Any] = [_slider(c, state) for c in base.controls if not c.group]
    for group, legend, words in (
        ("acceptance", "Acceptance", {"file": "as in the scenario", "alpha": "one α",
                                      "positions": "per position"}),
        ("load", "Load", {"file": "as in the scenario", "streams": "closed loop, streams",
                          "rate": "open, arrivals a second"}),
    ):  # fmt: skip
        inside = [c for c in base.controls if c.group.startswith(f"{group}:")]
        choices = [c for c in words if c != "file" or _has_file(base, group)]
        made.append(
            html.Fieldset(
                [
                    html.Legend(legend),
                    dcc.Store(id={"pick": group, "is": "chosen"}, data=state.groups[group]),
                    *[_choice(group, c, words[c], c == state.groups[group]) for c in choices],
                    *[
                        html.Div(
                            [_slider(c, state) for c in inside if c.group == f"{group}:{choice}"],
                            id={"group": f"{group}:{choice}"},
                            hidden=choice != state.groups[group],
                        )
                        for choice in choices
                    ],
                ],
                hidden=not inside,
            )
        )  # fmt: skip
    return made


def _choice(group: str, choice: str, words: str, chosen: bool) -> Any:
    """Make one of several buttons of which one is pressed."""
    return html.Button(
        words, id={"pick": group, "choice": choice}, className="choice", disabled=False,
        **_aria(pressed=str(chosen).lower()),
    )  # fmt: skip


def _has_file(base: Base, group: str) -> bool:
    from specplan.results.live.controls import own_group

    return own_group(base.scenario, group) == "file"


def _slider(control: Control, state: State) -> Any:
    return html.Label(
        [
            control.label,
            html.Span(id={"shown": control.path}, className="value"),
            dcc.Input(
                id={"control": control.path}, type="range", debounce=False,
                min=control.least, max=max(control.most, state.values[control.path]),
                step=control.step, value=state.values[control.path],
            ),
        ],
        className="slider",
    )  # fmt: skip


def _ways_out() -> Any:
    return html.Div(
        [
            html.Pre(id="command", tabIndex=0, **_aria(label="Command line")),
            html.Button("Copy command", id="copy"),
            dcc.Clipboard(id="clipboard", style={"display": "none"}),
            html.Button("Download scenario", id="download"),
        ]
    )


def _simulation() -> Any:
    return html.Div(
        [
            html.Button("Simulate", id="simulate"),
            html.Button("Cancel", id="cancel", disabled=True),
            html.P(id="status", role="status"),
            html.Progress(
                id="bar", value="0", max="1", hidden=True, **_aria(label="Simulated requests")
            ),
        ]
    )
