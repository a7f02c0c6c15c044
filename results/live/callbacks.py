"""What happens on the live page: sliders to pictures and URL, a simulation from start to end."""

from __future__ import annotations

import threading
from functools import lru_cache
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from dash import ALL, MATCH, Dash, Input, Output, State, ctx, no_update, set_props
from dash.exceptions import PreventUpdate

from specplan.results.closed_curves import curves
from specplan.results.figures.layout import packed
from specplan.results.live import page as live_page
from specplan.results.live.controls import deepest
from specplan.results.live.jobs import Job, Jobs
from specplan.results.live.state import State as Sliders
from specplan.results.live.state import named, query, read
from specplan.results.live.view import Base, View
from specplan.results.sections import (
    figures_table,
    measured_sections,
    round_sections,
    run_sections,
)
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specplan.results.recorded import Recorded

CHOSEN = {"pick": ALL, "is": "chosen"}
CONTROLS = (
    State({"control": ALL}, "id"), State({"control": ALL}, "value"),
    State(CHOSEN, "id"), State(CHOSEN, "data"), State("base", "data"),
)  # fmt: skip
# `dcc.Location` adds an entry to the history at each step of a slider; Back is to leave the page.
REPLACE = "search => history.replaceState(null, '', search)"
PREPARING = "Preparing; the first run of an installation compiles the simulator, about 15 s."
SHOWN = 6  # place of the sliders' texts among the outputs of a moved slider


class Latest:
    """Lets only the newest request of a page be computed: a dragged slider sends many."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()
        self.turn = threading.Lock()

    def ticket(self, page: str) -> int:
        """Take the next number of a page; only the 100 newest pages are remembered."""
        with self._lock:
            number = self._newest.pop(page, 0) + 1
            self._newest[page] = number
            while len(self._newest) > 100:
                del self._newest[next(iter(self._newest))]
            return number

    def overtaken(self, page: str, ticket: int) -> bool:
        """Tell whether a newer request of the page has come in."""
        return self._newest.get(page, ticket) != ticket


def explain(error: Exception) -> None:
    """Say on the page what a callback could not do, where the console alone would know."""
    set_props("alert", {"children": live_page.sentences(str(error).splitlines())})


def register(app: Dash, bases: Callable[[str], Base], names: Sequence[str], first: str) -> None:
    """Give the page its behaviour; `bases` reads a scenario by one of `names`."""
    _register_page(app, bases, names, first)
    _register_sliders(app, bases)
    _register_ways_out(app, bases)
    _register_simulation(app, bases, Jobs())


def _register_page(
    app: Dash, bases: Callable[[str], Base], names: Sequence[str], first: str
) -> None:
    @app.callback(
        Output("page", "children"), Input("url", "search"), State("written", "data"),
    )  # fmt: skip
    def show(search: str | None, written: str | None) -> Any:
        if written is not None and search == written:
            return no_update  # the page itself wrote this URL; a part of it (#…) has changed
        name = named(search) or first
        if name not in names:
            return live_page.refused(f"`{name[:80]}` is no scenario of this page.", names)
        try:
            base = bases(name)
        except ScenarioError as error:
            return live_page.refused(str(error), names)
        state = read(search, base.scenario, base.controls)
        return live_page.page(base, state, names, token_hex(8))

    untyped: Any = app
    untyped.clientside_callback(REPLACE, Input("written", "data"), prevent_initial_call=True)

    @app.callback(Output("measured", "children"), Input("base", "data"))
    @lru_cache(maxsize=16)  # fitted and predicted once, whatever the sliders say
    def measure(target: str) -> Any:
        sections = measured_sections([bases(target).scenario])
        return [live_page.drawn(section, "measured") for section in sections]


def _register_sliders(app: Dash, bases: Callable[[str], Base]) -> None:
    latest = Latest()

    @app.callback(
        Output({"pick": MATCH, "is": "chosen"}, "data"),
        Output({"pick": MATCH, "choice": ALL}, "aria-pressed"),
        Input({"pick": MATCH, "choice": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    def pick(clicks: list[int | None]) -> Any:
        if not any(clicks):
            raise PreventUpdate
        chosen = ctx.triggered_id["choice"]
        places = ctx.outputs_list[1]
        return chosen, [str(place["id"]["choice"] == chosen).lower() for place in places]

    slot = {part: {"part": part, "slot": ALL} for part in ("section", "title", "text", "figure")}

    @app.callback(
        Output("written", "data"), Output("verdict", "children"),
        Output("alert", "children"), Output("facts", "children"), Output("command", "children"),
        Output("closed", "className"),
        Output({"shown": ALL}, "children"), Output({"group": ALL}, "hidden"),
        Output({"control": ALL}, "max"),
        Output(slot["section"], "hidden"), Output(slot["title"], "children"),
        Output(slot["text"], "children"), Output(slot["figure"], "figure"),
        Input({"control": ALL}, "value"), Input(CHOSEN, "data"),
        State({"control": ALL}, "id"), State(CHOSEN, "id"),
        State("base", "data"), State("token", "data"), State("url", "search"),
        State("written", "data"),
    )  # fmt: skip
    def moved(  # noqa: PLR0917
        values: list[Any], choices: list[str], ids: list[dict[str, str]],
        groups: list[dict[str, str]], target: str, token: str, search: str | None,
        written: str | None,
    ) -> Any:  # fmt: skip
        ticket = latest.ticket(token)
        with latest.turn:
            if latest.overtaken(token, ticket):
                raise PreventUpdate
            base = bases(target)
            state = _state(base, ids, values, groups, choices)
            ignored = read(written or search, base.scenario, base.controls).ignored
            return _update(base, state, ignored)


def _update(base: Base, state: Sliders, ignored: Sequence[str]) -> list[Any]:
    """Compute every output of a moved slider, in the order of its callback."""
    search = query(base.target, base.controls, state, base.scenario)
    written = {control.path: control.write(state.values[control.path]) for control in base.controls}
    shown = [written[item["id"]["shown"]] for item in ctx.outputs_list[SHOWN]]
    chosen = [f"{group}:{choice}" for group, choice in state.groups.items()]
    hidden = [item["id"]["group"] not in chosen for item in ctx.outputs_list[SHOWN + 1]]
    gamma_most = deepest(base.scenario, state.groups["acceptance"])
    limits = [
        gamma_most if item["id"]["control"] == "speculation.gamma" else no_update
        for item in ctx.outputs_list[SHOWN + 2]
    ]
    complaints = [f"Left out of the URL: {says}." for says in ignored]
    try:
        view = View(base, state)
        sections = view.sections
    except ScenarioError as error:
        faults = live_page.sentences([*complaints, *map(str, error.faults)])
        slots = [[no_update] * live_page.SLOTS] * 4
        verdict = "There is no answer to these settings; figures are those of before."
        return [search, verdict, faults, no_update, no_update, "figures stale",
                shown, hidden, limits, *slots]  # fmt: skip
    figures = [section for section in sections if section.figure is not None]
    words = [sentence for s in sections if s.figure is None for sentence in s.sentences]
    left_out = [f"Left out here: {'; '.join(view.notes)}."] if view.notes else []
    empty = live_page.SLOTS - len(figures)
    return [
        search, view.verdict, live_page.sentences(complaints),
        [
            live_page.facts(view.facts, "Closed form"),
            *live_page.sentences([*words, *left_out]),
        ],
        view.command(), "figures", shown, hidden, limits,
        [False] * len(figures) + [True] * empty,
        [s.title for s in figures] + [no_update] * empty,
        [live_page.sentences(s.sentences) for s in figures] + [no_update] * empty,
        [packed(s.figure) for s in figures] + [no_update] * empty,
    ]  # fmt: skip


def _register_ways_out(app: Dash, bases: Callable[[str], Base]) -> None:
    @app.callback(
        Output("file", "data"), Input("download", "n_clicks"), *CONTROLS, prevent_initial_call=True
    )
    def download(_: int, *moved: Any) -> Any:
        if not _:
            raise PreventUpdate
        view = View(*_base_and_state(bases, *moved))
        kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in view.scenario.name)
        return {"content": view.yaml, "filename": f"{kept.strip('.') or 'scenario'}.yaml"}

    @app.callback(
        Output("clipboard", "content"), Output("clipboard", "n_clicks"),
        Output("copy", "children"),
        Input("copy", "n_clicks"), State("command", "children"), prevent_initial_call=True,
    )  # fmt: skip
    def copy(clicks: int | None, command: str) -> Any:
        if not clicks:
            raise PreventUpdate
        return command, clicks, "Copied"


def _register_simulation(app: Dash, bases: Callable[[str], Base], jobs: Jobs) -> None:
    @app.callback(
        Output("job", "data"), Output("poll", "disabled"),
        Input("simulate", "n_clicks"), *CONTROLS, prevent_initial_call=True,
    )  # fmt: skip
    def begin(clicks: int | None, *moved: Any) -> Any:
        if not clicks:
            raise PreventUpdate
        view = View(*_base_and_state(bases, *moved))
        return jobs.start(view.scenario, tuple(view.sets)).number, False

    @app.callback(
        Output("cancel", "disabled", allow_duplicate=True), Input("cancel", "n_clicks"),
        State("job", "data"), prevent_initial_call=True,
    )  # fmt: skip
    def cancel(clicks: int | None, number: int | None) -> Any:
        job = jobs.find(number)
        if not clicks or job is None:
            raise PreventUpdate
        job.cancel()
        return True

    @app.callback(
        Output("status", "children"), Output("bar", "value"), Output("bar", "max"),
        Output("bar", "hidden"), Output("cancel", "disabled"), Output("simulate", "disabled"),
        Output("poll", "disabled", allow_duplicate=True), Output("simulated", "children"),
        Input("poll", "n_intervals"), Input("job", "data"), prevent_initial_call=True,
    )  # fmt: skip
    def follow(_: int, number: int | None) -> Any:
        if number is None:
            raise PreventUpdate
        job = jobs.find(number)
        if job is None:
            says = "Another simulation took the place of this one."
            return says, "0", "1", True, True, False, True, no_update
        return _progress(job)


def _progress(job: Job) -> list[Any]:
    """Compute the outputs that follow a simulation, in the order of their callback."""
    if job.state == "running":
        total = max(job.total, 1)
        says = f"Simulating: {job.done:,} of {job.total:,} requests." if job.total else PREPARING
        return [says, str(job.done), str(total), False, False, True, False, no_update]
    drawn: Any = no_update
    says = f"The simulation failed: {job.says}"
    if job.state == "cancelled":
        says = "Cancelled."
    elif job.result is not None:
        moved = f" with {', '.join(s for s in job.sets)}" if job.sets else " as in the scenario"
        says = f"Finished: {job.scenario.workload.requests or job.total:,} requests{moved}."
        drawn = run_parts(job.result)
    return [says, "0", "1", True, True, False, True, drawn]


def run_parts(run: Recorded) -> list[Any]:
    """Draw a finished simulation: its figures as a table, then pictures."""
    rounds = round_sections(curves(run.scenario), run) if run.scenario.gamma else ()
    sections = [*figures_table([run]), *rounds, *run_sections([run])]
    return [live_page.drawn(section, index) for index, section in enumerate(sections)]


def _base_and_state(  # noqa: PLR0917
    bases: Callable[[str], Base], ids: list[dict[str, str]], values: list[Any],
    groups: list[dict[str, str]], choices: list[str], target: str,
) -> tuple[Base, Sliders]:  # fmt: skip
    base = bases(target)
    return base, _state(base, ids, values, groups, choices)


def _state(
    base: Base,
    ids: list[dict[str, str]],
    values: list[Any],
    groups: list[dict[str, str]],
    choices: list[str],
) -> Sliders:
    """Read the sliders; the browser sends numbers as text once they are moved."""
    numbers = {item["control"]: float(value) for item, value in zip(ids, values, strict=True)}
    start = {control.path: control.start for control in base.controls}
    chosen = {item["pick"]: choice for item, choice in zip(groups, choices, strict=True)}
    return Sliders(start | numbers, chosen)
