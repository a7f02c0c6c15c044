"""What the files of an engine answer of the questions of `specplan init`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from specplan.results.calibrate.block import round_block
from specplan.results.diagnose.answer import finding
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers import costs_groups, pool
from specplan.scenarios.importers.block import speculation
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.costs_evidence import point_of
from specplan.scenarios.importers.traces import read_trace
from specplan.scenarios.source import parse_source
from specplan.scenarios.starter import QUESTIONS
from specplan.scenarios.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from specplan.scenarios.importers.costs_points import Point
    from specplan.scenarios.importers.evidence import Evidence

_DIGITS = 6
_PLACES = int(next(one.default for one in QUESTIONS if one.key == "max_num_seqs"))


@dataclass(frozen=True)
class FromFiles:
    """Answers by question, for each the files that gave it, and what they leave open."""

    answers: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, answers: dict[str, str], files: Iterable[str]) -> None:
        """Take answers that stand in these files."""
        named = ", ".join(dict.fromkeys(PurePath(file).name for file in files))
        self.answers.update(answers)
        self.sources.update(dict.fromkeys(answers, named))


def answers_from(files: Sequence[Path]) -> FromFiles:
    """Read logs, scrapes, benchmark results and a trace; answer what they settle.

    Acceptance, γ and method come from any file that states them; the costs from runs with and
    without speculation, as `calibrate` finds them; lengths and load from the runs or a trace.

    Raises ScenarioError: a file of no known kind, two traces, or files of several systems.
    """
    found = FromFiles()
    evidence, traces = _read(files)
    _costs(found, evidence)
    _acceptance(
        found, [one for one in evidence if "round" not in found.answers or not point_of(one)]
    )
    _load(found, evidence)
    if len(traces) > 1:
        raise ScenarioError(Fault(f"{len(traces)} traces", "one, as the load", str(traces[1])))
    for trace in traces:
        rows = {"arrivals": f"{{trace: {json.dumps(str(trace), ensure_ascii=False)}}}"}
        found.add({**rows, "prompt_tokens": "trace", "output_tokens": "trace"}, [str(trace)])
    return found


def _read(files: Sequence[Path]) -> tuple[list[Evidence], list[Path]]:
    """Tell traces from files of engines, which some tools write as much alike."""
    engines, traces = [], []
    for file in files:
        try:
            read_evidence([file])
        except ScenarioError:
            try:
                read_trace(file)
            except ScenarioError:
                engines.append(file)  # refused below, together with all others
            else:
                traces.append(file)
        else:
            engines.append(file)
    return (read_evidence(engines) if engines else []), traces


def _costs(found: FromFiles, evidence: Sequence[Evidence]) -> None:
    """Answer the costs, and with them γ and the acceptance at which they were measured."""
    pairs = [(one, point) for one in evidence if (point := point_of(one))]
    points = [point for _, point in pairs]
    blocks = [
        block for group in costs_groups.groups(points) if (block := round_block(finding(group)))
    ]
    if len(blocks) > 1:
        wrong = f"the files hold {len(blocks)} systems or loads"
        raise ScenarioError(Fault(wrong, "those of one; `specplan calibrate` shows them all"))
    plain = [point for point in points if point.is_baseline and point.token_s]
    names = [one.source.file for one, _ in pairs]
    if blocks:
        data = parse_source(blocks[0], "calibrate").data
        spoken = data["speculation"]
        costs = {"round": data["target"]["round"], "step": data["target"]["step"]}
        told = ("gamma", "overhead", "extra_draft_step", "acceptance", "method")
        known = {name: spoken[name] for name in told if name in spoken}
        answers = {**costs, "draft_step": data["draft"]["step"], **known}
        found.add({name: _flow(value) for name, value in answers.items()}, names)
        if "drafting included" in blocks[0]:
            gamma = known["gamma"]
            found.notes.append(
                f"the round includes drafting and holds at γ = {gamma} only; a run at another γ "
                "tells the two apart"
            )
    elif len(plain) == 1:
        found.add({"step": _measured(plain[0])}, names)
    if not blocks:
        found.notes.extend(_unused(point) for point in points if point not in plain[:1])


def _unused(point: Point) -> str:
    """Name the times of a run from which no cost follows: they may contradict what is assumed."""
    times = [
        f"{format_duration(float(f'{time_s:.4g}'))} a {what}"
        for time_s, what in ((point.token_s, "token"), (point.round_s, "round"))
        if time_s
    ]
    return (
        f"not used: {', '.join(times)} of {point.source}; costs follow from a run without "
        "speculation and one of a known γ (`specplan calibrate` says what is missing)"
    )


def _measured(plain: Point) -> str:
    step = format_duration(float(f"{plain.token_s:.{_DIGITS}g}"))
    return _flow({"constant": step, "evidence": "measured", "source": plain.source})


def _acceptance(found: FromFiles, evidence: Sequence[Evidence]) -> None:
    grouped = pool.groups(evidence)
    stated = [_shown(pool.pool(group)) for group in grouped]
    if "acceptance" in found.answers:
        stated.insert(0, f"γ {found.answers['gamma']} of {found.sources['acceptance']}")
    if grouped and len(stated) > 1:
        wrong = f"the files state {len(stated)} acceptances: {'; '.join(stated)}"
        raise ScenarioError(Fault(wrong, "leave out the files of all but one"))
    for group in grouped:
        fields = speculation(pool.pool(group))
        found.add({name: _flow(one) for name, one in fields.items()},
                  [one.source.file for one in group])  # fmt: skip


def _shown(one: Evidence) -> str:
    gamma = "unknown γ" if one.gamma is None else f"γ {one.gamma}"
    tau = f", τ {one.tokens_per_round:.4g}" if one.tokens_per_round else ""
    label = f" {one.label}" if one.label else ""
    return f"{gamma}{tau} of {PurePath(one.source.file).name}{label}"


def _load(found: FromFiles, evidence: Sequence[Evidence]) -> None:
    """Answer lengths and load where every run had the same."""
    for name, key in (
        ("prompt_tokens", "prompt_tokens"),
        ("output_tokens", "output_tokens"),
        ("concurrency", "arrivals"),
    ):
        stated = [(value, one.source.file) for one in evidence
                  if (value := getattr(one.latency, name))]  # fmt: skip
        values = {round(value) for value, _ in stated}
        if len(values) == 1 and min(values) >= 1:
            (value,) = values
            shown = f"{{streams: {value}}}" if key == "arrivals" else str(value)
            wide = {"max_num_seqs": str(value)} if key == "arrivals" and value > _PLACES else {}
            found.add({key: shown, **wide}, [file for _, file in stated])
        elif len(values) > 1:
            listed = ", ".join(map(str, sorted(values)))
            found.notes.append(f"{key}: the files differ ({listed}), so it is assumed")


def _flow(value: Any) -> str:
    """Write a value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        plain = value.replace(" ", "").replace(".", "").replace("_", "").isalnum()
        return value if plain and value.isascii() else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
