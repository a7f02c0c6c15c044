"""Scenarios simulated on the same luck, and what differs between them: `specplan compare`."""

from __future__ import annotations

import json
from collections import Counter
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.compare.differences import Difference, differences, differences_over_seeds
from specplan.results.compare.ranking import Compared
from specplan.results.tables import columns, fitted, heading, number
from specplan.scenarios.batch import batch_notes
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from specplan.results.replications import Replications
    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

OFF = ("speculation.method=none",)
MOST = len(ascii_lowercase)  # scenarios of one comparison; each has a letter
PAGE = "compare.html"
FIGURES = (
    ("p99 TTFT (ms)", "p99_ttft_ms"),
    ("p99 TPOT (ms)", "p99_tpot_ms"),
    ("completed", "completed"),
    ("requests/s", "request_throughput"),
    ("acceptance length", "acceptance_length"),
    ("preemptions", "preemptions"),
)


def compare_answer(
    names: Sequence[str],
    sets: Sequence[str],
    *,
    without_speculation: bool,
    output: Path | None,
    force: bool,
    how: Replications | None = None,
) -> Answer:
    """Simulate scenarios on one seed; the first is the baseline.

    `without_speculation` compares one scenario with its own baseline. With `how` all run on several
    seeds, and each difference has its interval across them. `output` gets `compare.html` and, of
    one seed, the run folders `a`, `b`, … Raises ScenarioError unless there are two scenarios or
    more (one with `without_speculation`), or when they have different seeds or numbers of requests
    and so cannot share their luck.
    """
    from specplan.scenarios.load import load

    _check_count(names, without_speculation=without_speculation)
    if output is not None:
        store.check_folder(output, force=force)
    loaded = [load(name, sets) for name in names]
    scenarios = beside_plain(loaded[0]) if without_speculation else told_apart(loaded)
    return compared(scenarios, output, force=force, how=how)


def compared(
    scenarios: Mapping[str, Scenario],
    output: Path | None = None,
    *,
    force: bool = False,
    how: Replications | None = None,
) -> Answer:
    """Simulate scenarios by name, the baseline first, on one seed or several; see `compare_answer`.

    Raises ScenarioError when they have different seeds or numbers of requests.
    """
    _check_common_luck(list(scenarios.values()))
    if how is not None and how.count > 1:
        return _over_seeds(scenarios, how, output, force=force)
    return _on_one_seed(scenarios, output, force=force)


def _check_count(names: Sequence[str], *, without_speculation: bool) -> None:
    right = "`compare A B …`, or `compare A --without-speculation`"
    if without_speculation and len(names) > 1:
        raise ScenarioError(Fault("B and --without-speculation are both given", right))
    if not without_speculation and len(names) < 2:
        raise ScenarioError(Fault("no B to compare with", right))
    if len(names) > MOST:
        wrong = f"{len(names)} scenarios are more than a comparison holds"
        raise ScenarioError(Fault(wrong, f"at most {MOST}; `specplan sweep` varies fields"))


def beside_plain(scenario: Scenario) -> dict[str, Scenario]:
    """Give a scenario without speculation, the baseline, and as it is."""
    from specplan.scenarios.load import override

    named = f"name={json.dumps(f'{scenario.name}, plain')}"  # told apart in later reports
    return {"plain": override(scenario, [*OFF, named]), "speculative": scenario}


def told_apart(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    """Give scenarios by name; those of one name get the letter of their place."""
    often = Counter(scenario.name for scenario in scenarios)
    return {
        one.name if often[one.name] == 1 else f"{one.name} ({letter})": one
        for letter, one in zip(ascii_uppercase, scenarios, strict=False)
    }


def _check_common_luck(scenarios: Sequence[Scenario]) -> None:
    first = scenarios[0]
    faults = [
        Fault(f"{ours} in A and {theirs} in {letter}", "the same in all", field=name)
        for letter, other in zip(ascii_uppercase[1:], scenarios[1:], strict=False)
        for name, ours, theirs in (
            ("seed", first.seed, other.seed),
            ("workload.requests", first.workload.requests, other.workload.requests),
        )
        if ours != theirs
    ]
    if faults:
        raise ScenarioError(faults)


def _on_one_seed(scenarios: Mapping[str, Scenario], output: Path | None, *, force: bool) -> Answer:
    from specplan.results.progress import reporting
    from specplan.sim.simulate import simulate

    runs: list[Run] = []
    for name, scenario in scenarios.items():
        with reporting(f"simulating {name}") as progress:
            runs.append(simulate(scenario, progress))
        if runs[-1].interrupted:  # half a run has no luck in common with the others
            raise KeyboardInterrupt
    made = Compared(
        tuple(scenarios),
        tuple(metrics.summary(run) for run in runs),
        (runs[0].scenario.seed,),
        f"one run of {len(runs[0].requests['status']):,} requests",
        lambda a, b: differences(runs[a], runs[b]),
    )
    return _answer(made, _batch_notes(scenarios), output, runs, force=force)


def _over_seeds(
    scenarios: Mapping[str, Scenario], how: Replications, output: Path | None, *, force: bool
) -> Answer:
    from specplan.results.replications import aggregated, replicated

    found = replicated(list(scenarios.values()), how)
    made = Compared(
        tuple(scenarios),
        tuple(aggregated(found, which) for which in range(len(scenarios))),
        found.seeds,
        f"{len(found.seeds)} replications",
        lambda a, b: differences_over_seeds(found, a, b),
    )
    notes = [f"{len(found.seeds)} seeds; intervals are Student's t across them"]
    notes += _batch_notes(scenarios)
    if found.interrupted:
        notes.append(f"interrupted: {len(found.seeds)} of {how.count} seeds were complete by then")
    code = 130 if found.interrupted else 0
    return _answer(made, notes, output, (), force=force, exit_code=code)


def _answer(
    made: Compared,
    notes: list[str],
    output: Path | None,
    runs: Sequence[Run],
    *,
    force: bool,
    exit_code: int = 0,
) -> Answer:
    """Lay a comparison out, and write its folder: the page, and the runs where they were kept."""
    value = made.json()
    if output is not None:
        from specplan.results.compare.page import comparison_page
        from specplan.results.runs import write_run

        with store.new_folder(output, force=force) as folder:
            store.write_json(folder / store.MARK, value)
            (folder / PAGE).write_text(comparison_page(made), encoding="utf-8")
            for letter, run, figures in zip(ascii_lowercase, runs, made.figures, strict=False):
                (folder / letter).mkdir()
                write_run(folder / letter, run, figures)
        notes.append(f"written to {output}: {PAGE} (open it in a browser)")
    return Answer(value, _text(made), notes, exit_code=exit_code)


def _batch_notes(scenarios: Mapping[str, Scenario]) -> list[str]:
    """Say what keeps the load from mattering, in all or in those it is about."""
    said: dict[str, list[str]] = {}
    for name, scenario in scenarios.items():
        for note in batch_notes(scenario):
            said.setdefault(note, []).append(name)
    every = len(scenarios)
    return [note if len(of) == every else f"{', '.join(of)}: {note}" for note, of in said.items()]


def _text(made: Compared) -> Group:
    parts: list[RenderableType] = [Text(made.summary(), style="bold"), Text()]
    parts += _two(made) if len(made.names) == 2 else _several(made)
    return Group(*parts)


def _two(made: Compared) -> Iterator[RenderableType]:
    yield columns(
        ("", *made.names, "difference", "± 95 %", "verdict"),
        [
            (_labelled(d), number(d.a), number(d.b), *difference_words(d), d.verdict)
            for d in made.against_baseline[0]
        ],
    )
    yield Text()
    yield columns(
        ("", *made.names),
        [(label, *[number(one[key]) for one in made.figures]) for label, key in FIGURES],
    )


def _several(made: Compared) -> Iterator[RenderableType]:
    """Rank more than two, and show each figure of each beside the baseline's."""
    yield columns(
        ("rank", "mean TPOT (ms)", "output (tok/s)", ""),
        [
            (
                f"{one.rank}  {one.name}",
                number(made.figures[one.place]["mean_tpot_ms"]),
                number(made.figures[one.place]["output_throughput"]),
                "saturated" if made.saturated(one.place) else "baseline" * (one.place == 0),
            )
            for one in made.ranking
        ],
    )
    yield heading(f"Against {made.names[0]}")
    rows: list[tuple[str, ...]] = []
    for figure in zip(*made.against_baseline, strict=True):
        rows.append((_labelled(figure[0]), number(figure[0].a), "", "", ""))
        rows += [
            (f"  {name}", number(d.b), *difference_words(d), d.verdict)
            for name, d in zip(made.names[1:], figure, strict=True)
        ]
    yield columns(("", "value", "difference", "± 95 %", "verdict"), rows)
    yield Text()
    yield fitted(
        ("", *[label for label, _ in FIGURES]),
        [
            (name, *[number(one[key]) for _, key in FIGURES])
            for name, one in zip(made.names, made.figures, strict=True)
        ],
        keep=2,
    )


def _labelled(d: Difference) -> str:
    return f"{d.name} ({d.unit})"


def difference_words(d: Difference) -> tuple[str, str]:
    """Write a difference and the half width of its interval, 0 where that is only rounding."""
    half_width = d.difference.half_width
    spread = half_width if half_width > 1e-9 * max(abs(d.a), abs(d.b)) else 0.0
    sign = "−" if d.difference.mean < 0 else "+"
    words = sign + number(abs(d.difference.mean))
    return words, number(spread, 2) if d.difference.known else "—"
