"""`specplan report`: one self-contained page about a scenario or about runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specplan.results import (
    figures_closed,
    figures_load,
    figures_memory,
    figures_request,
    figures_run,
    gap,
    prediction,
    store,
)
from specplan.results.answer import Answer
from specplan.results.attainment import attainment
from specplan.results.closed_curves import curves
from specplan.results.export import Section, page
from specplan.results.handoff import handoff
from specplan.results.images import check_images, write_images
from specplan.results.memory_parts import held
from specplan.results.progress import reporting
from specplan.results.recorded import Recorded, leaves, read_run, record, told_apart
from specplan.results.tables import milliseconds, number
from specplan.scenarios.closed_form import predict_at
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specplan.results.closed_curves import Curves
    from specplan.scenarios.schema import Scenario

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
    simulated = [run.scenario for target, run in zip(targets, runs, strict=True)
                 if not Path(target).is_dir()]  # fmt: skip
    sections = [*report_sections(runs), *_load_sections(simulated)]
    text = _page(runs, sections)
    store.write_text(file, text, force=force)
    drawn = write_images(sections, beside, images, force=force) if images else []
    value = {
        "report": str(file),
        "bytes": len(text.encode()),
        "runs": [run.name for run in runs],
        "verdict": _verdict(runs),
        "images": [str(beside / name) for name in drawn],
    }
    says = f"{_verdict(runs)}\nwritten to {file}: open it in a browser"
    return Answer(value, f"{says}\n{len(drawn)} images in {beside}" if drawn else says)


def _recorded(target: str, sets: Sequence[str]) -> Recorded:
    folder = Path(target)
    if folder.is_dir():
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


def report_page(runs: Sequence[Recorded]) -> str:
    """Build the page of runs that are over."""
    return _page(runs, report_sections(runs))


def _page(runs: Sequence[Recorded], sections: Sequence[Section]) -> str:
    return page(" against ".join(run.name for run in runs), _verdict(runs), sections)


def report_sections(runs: Sequence[Recorded]) -> list[Section]:
    """Build the parts of the page; the closed form is that of the first run that speculates."""
    shown = next((run for run in runs if run.scenario.gamma), runs[0])
    made = curves(shown.scenario)
    return [
        *[section for run in runs for section in _inputs(run)],
        *figures_table(runs),
        *closed_sections(made),
        *run_sections(runs),
    ]


def _verdict(runs: Sequence[Recorded]) -> str:
    says = []
    for run in runs:
        found = predict_at(run.scenario, curves(run.scenario).point)
        words = prediction.verdict(found)
        sentence = f"{run.name}: {words}"
        if run.scenario.gamma:
            sentence += f" in the closed form, as {prediction.reason(found)}"
        mean = run.figures["mean_tpot_ms"]
        simulated = "saturated at this load" if mean is None else f"{mean:.4g} ms per token"
        says.append(f"{sentence.rstrip('.')}. Simulated: {simulated}.")
    return " ".join(says)


def figures_table(runs: Sequence[Recorded]) -> Iterator[Section]:
    """Tabulate what was simulated, one column a run."""
    rows = [
        ("requests completed", "completed"), ("output tokens/s", "output_throughput"),
        ("goodput, requests/s", "request_goodput"),
        *((f"{s} {m.upper()} (ms)", f"{s}_{m}_ms") for m in ("ttft", "tpot", "itl", "e2el")
          for s in ("mean", "p99")),
        ("acceptance length", "acceptance_length"), ("acceptance rate", "acceptance_rate"),
        ("preemptions", "preemptions"),
    ]  # fmt: skip
    cells = []
    for label, key in rows:
        ends = [run.figures.get(f"{key}_ci95") for run in runs]
        values = [
            number(run.figures[key]) + (f" ± {(e[1] - e[0]) / 2:.2g}" if e else "")
            for run, e in zip(runs, ends, strict=True)
        ]
        cells.append((label, *values))
    sentences = tuple(
        f"{run.name} is saturated: {run.figures['saturated_reason']}."
        for run in runs
        if run.figures["saturated"]
    )
    header = ("simulated", *[run.name for run in runs])
    yield Section("Figures", sentences, table=(header, *cells))


def closed_sections(made: Curves) -> Iterator[Section]:
    """Draw the closed form of one scenario."""
    scenario, point = made.scenario, made.point
    found = predict_at(scenario, point)
    where = f"Batch {point.batch:.3g}, context {point.context_tokens:,.0f} tokens."
    if scenario.gamma:
        yield Section(
            "Where a token's time goes",
            (f"{milliseconds(float(found.tpot_s))} per token in the closed form. {where}",),
            figure=figures_closed.waterfall(found),
        )
        best = f"Best γ for these costs: {prediction.best_words(scenario, found)}."
        far = _extrapolated(made)
        yield Section("Which γ", (where, best, *far), figure=figures_closed.speedup_by_gamma(made))
        memory = held(scenario)
        if len(memory) > 1:
            yield Section(
                "What the draft leaves of the KV cache",
                ("Fewer tokens fit beside a draft, and so fewer requests run at once.",),
                figure=figures_memory.memory_bar(memory),
            )
        if float(made.costs(max(point.gamma, 1)).draft_step_s.mean()) > 0:
            yield Section(
                "How slow may the draft be",
                ("Blue is faster than plain decoding, orange slower; the black line is 1.0x.",),
                figure=figures_closed.speedup_by_draft_step(made),
            )
        if scenario.scheduler.max_num_seqs > 1:
            yield Section(
                "From which batch on does it hurt",
                ("Draft and verify at each batch, at the mean context.",),
                figure=figures_closed.speedup_by_batch(made),
            )
            yield Section(
                "Latency against throughput",
                ("One replica, batch from 1 to max_num_seqs along each curve.",),
                figure=figures_closed.latency_throughput(made),
            )
        yield Section(
            "Acceptance by draft position", figure=figures_closed.acceptance_by_position(made)
        )
        yield Section("Tokens per round", figure=figures_closed.tokens_per_round(made))
        yield Section(
            "Which input moves the answer most",
            ("Each input 20 % lower and higher, the others held.",),
            figure=figures_closed.tornado(made),
        )
    yield Section(
        "Claims kept apart",
        (
            f"Arithmetic: {number(float(found.operations_factor))} times the operations of plain "
            "decoding per token.",
            f"Memory traffic: {number(float(found.target_reads_per_token))} reads of the target's "
            "weights per token; plain decoding has 1.",
        ),
    )


def _extrapolated(made: Curves) -> tuple[str, ...]:
    """Say where acceptance is continued by a rule, how far off that may be, what is against it."""
    if made.band is None:
        return ()
    furthest = int(made.band.gamma[-1])
    where = f"Extrapolated {made.band.border}: at γ = {furthest} {made.band.words(furthest)}."
    return (where, *(f"{text[0].upper()}{text[1:]}." for text in made.band.warnings))


def run_sections(runs: Sequence[Recorded]) -> Iterator[Section]:
    """Draw simulated runs."""
    if not any(run.figures["saturated"] for run in runs):
        yield Section(
            "Where a request's time goes",
            ("Simulated, per output token; after admission split as the GPUs' busy time was.",),
            figure=figures_request.token_time(runs),
        )
    yield Section("GPU time by phase", figure=figures_run.gpu_phases(runs))
    for run in runs:
        if len(run.spans["start_s"]):
            label = f"Who holds the GPU, {run.name}" if len(runs) > 1 else "Who holds the GPU"
            yield Section(label, ("The first engine steps.",), figure=figures_run.gantt(run))
    saturated = any(run.figures["saturated"] for run in runs)
    for metric, words in figures_run.LATENCIES.items():
        note = ("A saturated run: this is how long it was, not a steady state.",)
        title = words.partition(" (")[0].capitalize()
        figure = figures_run.latency_ecdf(runs, metric)
        yield Section(title, note if saturated else (), figure=figure)
    for column, title in (("running", "Running requests"), ("waiting", "Waiting requests")):
        yield Section(title, figure=figures_run.over_time(runs, column, title.lower()))
    if any(run.scenario.kv_cache for run in runs):
        yield Section("KV cache", figure=figures_run.over_time(runs, "kv_blocks", "blocks in use"))
    for run in runs:
        steps = figures_run.gap_steps(run)
        if steps is not None:
            label = f", {run.name}" if len(runs) > 1 else ""
            yield Section(f"From the closed form to the simulation{label}", figure=steps)


def _load_sections(scenarios: Sequence[Scenario]) -> Iterator[Section]:
    """Simulate scenarios that state limits for single requests at several loads."""
    for scenario in scenarios:
        if not scenario.slo.request_limits() or not scenario.workload.arrivals.open:
            continue
        with reporting(f"loads of {scenario.name}"):
            found = attainment(scenario)
        limits = ", ".join(
            f"{metric.upper()} {milliseconds(seconds)}"
            for metric, seconds in scenario.slo.request_limits().items()
        )
        label = f", {scenario.name}" if len(scenarios) > 1 else ""
        yield Section(
            f"Requests within their limits over load{label}",
            (f"Limits: {limits}. The dashed line is 99 %; bars are 95 % intervals over seeds.",),
            figure=figures_load.slo_attainment(found),
        )


def _inputs(run: Recorded) -> Iterator[Section]:
    scenario = run.scenario
    stated = [("field", "value"), *leaves(scenario.resolved())]
    yield Section(f"Inputs of {run.name}", table=tuple(stated), folded=True)
    found = handoff(scenario, predict_at(scenario, curves(scenario).point))
    rows = [("of", "stated or labelled"), *found.rows()]
    missing = f"Not stated, and needed to repeat this elsewhere: {'; '.join(found.gaps)}."
    sentences = (missing,) if found.gaps else ()
    yield Section(f"Handoff record of {run.name}", sentences, table=tuple(rows))
