"""`specplan report`: one self-contained page about a scenario or about runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.results import gap, prediction, store
from specplan.results.answer import Answer
from specplan.results.closed_curves import curves
from specplan.results.export import Section, page
from specplan.results.figures.images import check_images, write_images
from specplan.results.handoff import handoff
from specplan.results.progress import reporting
from specplan.results.recorded import Recorded, leaves, read_run, record, told_apart
from specplan.results.sections import (
    closed_sections,
    figures_table,
    load_sections,
    measured_sections,
    run_sections,
)
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


WRITTEN = "report.html"


def report_answer(
    targets: Sequence[str],
    sets: Sequence[str],
    output: Path | None,
    *,
    images: Sequence[str] = (),
    force: bool,
) -> Answer:
    """Write one page about run folders or scenarios; a scenario is simulated first.

    `images` (png, svg) puts each figure into a file of its own, in a folder beside the page.
    Raises ScenarioError for a folder that is no run, a scenario that is not valid, a file that
    exists already, and for images where none can be made.
    """
    file = output or Path(WRITTEN)
    store.check_file(file, force=force)
    beside = file.with_name(f"{file.stem}-figures")
    check_images(images)
    if images:
        store.check_folder(beside, force=force)
    runs = told_apart([_recorded(target, sets) for target in targets])
    folders = [target if Path(target).is_dir() else "" for target in targets]
    sections = [*report_sections(runs), *load_sections(runs, folders)]
    says_first = verdict(runs)
    text = page(" against ".join(run.name for run in runs), says_first, sections)
    store.write_text(file, text, force=force)
    drawn = write_images(sections, beside, images, force=force) if images else []
    value = {
        "report": str(file),
        "bytes": len(text.encode()),
        "runs": [run.name for run in runs],
        "verdict": says_first,
        "images": [str(beside / name) for name in drawn],
    }
    says = f"{says_first}\nwritten to {file}: open it in a browser"
    return Answer(value, f"{says}\n{len(drawn)} images in {beside}" if drawn else says)


def _recorded(target: str, sets: Sequence[str]) -> Recorded:
    folder = Path(target)
    if target and folder.is_dir():
        if sets:
            wrong = f"--set does not apply to {target}, a run that is over"
            raise ScenarioError(Fault(wrong, "the scenario of the run, with --set"))
        return read_run(folder)
    from specplan.sim.simulate import simulate

    scenario = load(target, sets)
    with reporting(f"simulating {scenario.name}") as progress:
        run = simulate(scenario, progress)
    recorded = record(run)
    explained = gap.explain(run, recorded.figures).json
    return replace(recorded, figures={**recorded.figures, "closed_form": explained})


def report_sections(runs: Sequence[Recorded]) -> list[Section]:
    """Build the parts of the page; the closed form is that of the first run that speculates."""
    shown = next((run for run in runs if run.scenario.gamma), runs[0])
    measured = {str(run.scenario.measured): run.scenario for run in runs}
    return [
        *[section for run in runs for section in _inputs(run)],
        *figures_table(runs),
        *_closed(shown, alone=len(runs) == 1),
        *run_sections(runs),
        *measured_sections(list(measured.values())),
    ]


def _closed(run: Recorded, *, alone: bool) -> Iterator[Section]:
    """Draw the closed form of one run, which the headings name where there are others."""
    for section in closed_sections(curves(run.scenario), run):
        yield section if alone else replace(section, title=f"{section.title}, {run.name}")


def verdict(runs: Sequence[Recorded]) -> str:
    """Say a line of each run, first of all how the runs compare."""
    says = [*_ranked(runs)]
    for run in runs:
        found = curves(run.scenario).found
        words = prediction.verdict(found)
        sentence = f"{run.name}: {words}"
        if run.scenario.gamma:
            sentence += f" in the closed form, as {prediction.reason(found)}"
        mean = run.figures["mean_tpot_ms"]
        simulated = "saturated at this load" if mean is None else f"{mean:.4g} ms per token"
        says.append(f"{sentence.rstrip('.')}. Simulated: {simulated}.")
    return "\n".join(says)


def _ranked(runs: Sequence[Recorded]) -> Iterator[str]:
    """Compare the later runs with the first, by the simulated mean time per output token.

    The intervals are those of two separate runs: where they overlap, `compare`, which pairs the
    requests, may still tell the runs apart.
    """
    first = runs[0].figures
    for run in runs[1:]:
        means = run.figures["mean_tpot_ms"], first["mean_tpot_ms"]
        own, other = run.figures.get("mean_tpot_ms_ci95"), first.get("mean_tpot_ms_ci95")
        if own is None or other is None:
            continue
        against = f"{means[0]:.4g} against {means[1]:.4g} ms"
        if own[0] <= other[1] and other[0] <= own[1]:
            words = f"not told apart from {runs[0].name} per token, {against}: intervals overlap"
        else:
            word = "faster" if means[0] < means[1] else "slower"
            words = f"{word} per token than {runs[0].name}, {against}"
        yield f"Simulated, {run.name} is {words}."


def _inputs(run: Recorded) -> Iterator[Section]:
    scenario = run.scenario
    stated = [("field", "value"), *leaves(scenario.resolved())]
    yield Section(f"Inputs of {run.name}", table=tuple(stated), folded=True)
    found = handoff(scenario, curves(scenario).found)
    rows = [("of", "stated or labelled"), *found.rows()]
    missing = f"Not stated, and needed to repeat this elsewhere: {'; '.join(found.gaps)}."
    sentences = (missing,) if found.gaps else ()
    yield Section(f"Handoff record of {run.name}", sentences, table=tuple(rows))
