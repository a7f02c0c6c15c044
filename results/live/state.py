"""The state of the live page: what is moved, as settings of a scenario and as a URL.

The URL holds exactly what `--set` would: `?scenario=toy-20ms&speculation.gamma=3`. Only fields that
have a slider are read from it, as numbers, so a URL can name no file.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from specplan.results.live.controls import own_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specplan.results.live.controls import Control
    from specplan.scenarios.schema import Scenario

LONGEST = 4000  # characters of a query; the longest that the page makes is a third of this
ALIKE = 0.8  # share of letters in common from which a key is taken for a slip
POSITION = "speculation.acceptance.conditional"


@dataclass(frozen=True)
class State:
    """Where the sliders stand: a number by path, and the chosen alternative by group."""

    values: Mapping[str, float]
    groups: Mapping[str, str]
    ignored: tuple[str, ...] = field(default=())


def start(scenario: Scenario, controls: Sequence[Control]) -> State:
    """Give the state in which nothing is moved."""
    return State(
        {control.path: control.start for control in controls},
        {group: own_group(scenario, group) for group in ("acceptance", "load")},
    )


def settings(scenario: Scenario, controls: Sequence[Control], state: State) -> list[str]:
    """List what is moved, as `PATH=VALUE` of `--set`.

    >>> from specplan.results.live.controls import controls
    >>> from specplan.scenarios.load import load
    >>> toy = load("toy-20ms")
    >>> moved = State({**start(toy, controls(toy)).values, "speculation.gamma": 4.0},
    ...               start(toy, controls(toy)).groups)
    >>> settings(toy, controls(toy), moved)
    ['speculation.gamma=4']
    """
    made: list[str] = []
    replaced = _replaced(controls, state)
    for control in controls:
        value = state.values[control.path]
        group, _, choice = control.group.partition(":")
        if group and state.groups[group] != choice:
            continue
        foreign = bool(group) and own_group(scenario, group) != choice
        if control.path.startswith(f"{POSITION}."):
            continue
        if foreign or value != control.start or control.path in replaced:
            made.append(f"{control.path}={control.write(value)}")
            made += [extra for extra in control.also if extra not in made]
    if state.groups["acceptance"] == "positions":
        made.append(f"{POSITION}=[{_positions(controls, state)}]")
    return made


def _positions(controls: Sequence[Control], state: State) -> str:
    listed = [control for control in controls if control.path.startswith(f"{POSITION}.")]
    return ",".join(control.write(state.values[control.path]) for control in listed)


def _replaced(controls: Sequence[Control], state: State) -> set[str]:
    """Paths that have to be written together: a table goes away as soon as one term is moved."""
    base, growth = "target.round.base", "target.round.per_token"
    held = {c.path: c for c in controls if c.path in (base, growth)}
    moved = any(state.values[path] != control.start for path, control in held.items())
    return {base, growth} if moved and "replaces" in held[base].label else set()


def query(name: str, controls: Sequence[Control], state: State, scenario: Scenario) -> str:
    """Write the state as the query of a URL, `?…`."""
    pairs = [("scenario", name)]
    if state.groups["acceptance"] == "positions":
        pairs.append((POSITION, _positions(controls, state)))
    for control in controls:
        if control.path.startswith(f"{POSITION}."):
            continue
        group, _, choice = control.group.partition(":")
        if group and state.groups[group] != choice:
            continue
        foreign = bool(group) and own_group(scenario, group) != choice
        value = state.values[control.path]
        if foreign or value != control.start:
            pairs.append((control.path, control.write(value)))
    return "?" + urlencode(pairs)


def named(search: str | None) -> str | None:
    """Find which scenario a query asks for."""
    return dict(_pairs(search)).get("scenario")


def read(search: str | None, scenario: Scenario, controls: Sequence[Control]) -> State:
    """Read a query; what cannot be read stays as the scenario has it, and is named in `ignored`."""
    state = start(scenario, controls)
    values, groups, ignored = dict(state.values), dict(state.groups), []
    if search and len(search) > LONGEST:
        return State(values, groups, (f"the URL is longer than {LONGEST} characters",))
    known = {control.path: control for control in controls}
    for path, text in _spelled_out(_pairs(search)):
        if path == "scenario":
            continue
        control = known.get(path)
        if control is None:
            ignored.append(f"`{path[:60]}` has no slider here{_meant(path, known)}")
            continue
        try:
            value = control.read(text)
        except ValueError as error:
            ignored.append(f"{path}: {error}")
            continue
        if not math.isfinite(value) or not control.least <= value <= 1e3 * control.most:
            ignored.append(f"{path}: `{text[:60]}` is out of reach")
            continue
        values[path] = value
        if control.group:
            group, _, choice = control.group.partition(":")
            groups[group] = choice
    return State(values, groups, tuple(ignored))


def _meant(path: str, known: Iterable[str]) -> str:
    """Name the slider that a key may mean, by the last word of both.

    >>> _meant("gamma", ["draft.step", "speculation.gamma"])
    ' (did you mean `speculation.gamma`?)'
    """
    last = {one.rpartition(".")[2]: one for one in known}
    close = get_close_matches(path.rpartition(".")[2], last, n=1, cutoff=ALIKE)
    return f" (did you mean `{last[close[0]]}`?)" if close else ""


def command(target: str, sets: Sequence[str], verb: str = "predict") -> str:
    """Write the command line that gives what is seen.

    >>> command("toy-20ms", ["draft.step=30 ms"])
    "specplan predict toy-20ms --set 'draft.step=30 ms'"
    """
    words = ["specplan", verb, target]
    for setting in sets:
        words += ["--set", setting]
    return shlex.join(words)


def _spelled_out(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Give each draft position of a list its own number."""
    found = []
    for path, text in pairs:
        if path == POSITION:
            parts = text.strip("[] ").split(",")
            found += [(f"{POSITION}.{place}", part) for place, part in enumerate(parts, start=1)]
        else:
            found.append((path, text))
    return found


def _pairs(search: str | None) -> list[tuple[str, str]]:
    if not search or len(search) > LONGEST:
        return []
    try:
        return parse_qsl(
            search.lstrip("?"), keep_blank_values=True, errors="replace", max_num_fields=100
        )
    except ValueError:
        return []
