"""What a report and the live page show: each part a heading, sentences, a table or a figure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from specplan.results import prediction
from specplan.results.attainment import attainment
from specplan.results.closed_curves import crossover
from specplan.results.export import Section
from specplan.results.figures import acceptance as figures_acceptance
from specplan.results.figures import closed as figures_closed
from specplan.results.figures import load as figures_load
from specplan.results.figures import memory as figures_memory
from specplan.results.figures import request as figures_request
from specplan.results.figures import run as figures_run
from specplan.results.memory.parts import held
from specplan.results.progress import reporting
from specplan.results.tables import milliseconds, number, percent
from specplan.results.validation.figure import predicted_against_measured
from specplan.results.validation.points import points_of
from specplan.results.validation.shown import HEADER, point_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specplan.results.closed_curves import Curves
    from specplan.results.recorded import Recorded
    from specplan.scenarios.schema import Scenario

MEASURED = (
    "Each row is predicted from the scenario with the row's own conditions; rows marked fit "
    "determine what is fitted, and are not drawn."
)
BLUE = "Blue is faster than plain decoding, orange slower."
SMALLEST = 1e-6  # an interval narrower than this, relative, is rounding


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
        values = [_with_interval(run.figures[key], e) for run, e in zip(runs, ends, strict=True)]
        cells.append((label, *values))
    sentences = tuple(
        f"{run.name} is saturated: {run.figures['saturated_reason']}."
        for run in runs
        if run.figures["saturated"]
    )
    header = ("simulated", *[run.name for run in runs])
    yield Section("Figures", sentences, table=(header, *cells))


def _with_interval(value: float | None, ends: tuple[float, float] | None) -> str:
    """Write a figure with half its interval, where that is more than rounding.

    >>> _with_interval(42.2, (41.2, 43.2)), _with_interval(140.0, (140.0, 140.0 + 1e-12))
    ('42.2 ± 1', '140')
    """
    if value is None or not ends or ends[1] - ends[0] < SMALLEST * abs(value):
        return number(value)
    return f"{number(value)} ± {number((ends[1] - ends[0]) / 2, 2)}"


def closed_sections(made: Curves, run: Recorded | None = None) -> Iterator[Section]:
    """Draw the closed form of one scenario, and what a run of it counted beside it."""
    scenario, point, found = made.scenario, made.point, made.found
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
        if made.draft_step_s > 0:
            yield Section(
                "How slow may the draft be",
                (_draft_words(made), BLUE),
                figure=figures_closed.speedup_by_draft_step(made),
            )
        if scenario.scheduler.max_num_seqs > 1:
            yield Section(
                "From which batch on does it hurt",
                (_batch_words(made), f"At the mean context. {BLUE}"),
                figure=figures_closed.speedup_by_batch(made),
            )
            yield Section(
                "Latency against throughput",
                ("One replica, batch from 1 to max_num_seqs along each curve.",),
                figure=figures_closed.latency_throughput(made),
            )
        yield from round_sections(made, run)
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


def round_sections(made: Curves, run: Recorded | None = None) -> Iterator[Section]:
    """Draw what becomes of the drafts of a round, in the closed form and as a run counted it."""
    yield Section(
        "Acceptance by draft position",
        figure=figures_acceptance.acceptance_by_position(made, run),
    )
    yield Section("Tokens per round", figure=figures_acceptance.tokens_per_round(made, run))


def _extrapolated(made: Curves) -> tuple[str, ...]:
    """Say where acceptance is continued by a rule, how far off that may be, what is against it."""
    if made.band is None:
        return ()
    furthest = int(made.band.gamma[-1])
    where = f"Extrapolated {made.band.border}: at γ = {furthest}: {made.band.words(furthest)}."
    return (where, *(f"{text[0].upper()}{text[1:]}." for text in made.band.warnings))


def _draft_words(made: Curves) -> str:
    """Say how slow the draft may be at the γ that is set."""
    now, at = made.draft_step_s, float(made.found.break_even_draft_step_s)
    gamma = made.point.gamma
    if not at >= 0:
        return f"At γ = {gamma} even a free draft is slower than plain decoding."
    return (
        f"At γ = {gamma} a draft step of {milliseconds(at)} breaks even; it is {milliseconds(now)}."
    )


def _batch_words(made: Curves) -> str:
    """Say from which batch on the γ that is set is slower than plain decoding."""
    batches, gamma = made.batches(), made.scenario.gamma
    tpot, plain = made.by_batch(batches, gamma)
    ratio, most = plain / tpot, f"{batches[-1]:.0f}"
    at = crossover(batches, ratio)
    if at is not None:
        return f"At γ = {gamma} speculation is slower from a batch of {at:.0f} on."
    if (ratio > 1).all():
        return f"At γ = {gamma} speculation is faster at every batch up to {most}."
    if (ratio < 1).all():
        return f"At γ = {gamma} speculation is slower at every batch up to {most}."
    return f"At γ = {gamma} speculation is at times faster and at times slower up to {most}."


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
        note = ["A saturated run: this is how long it was, not a steady state."] * saturated
        title = words.partition(" (")[0].capitalize()
        marks = figures_run.marked(runs, metric) if len(runs) > 1 else []
        figure = figures_run.latency_ecdf(runs, metric)
        yield Section(title, (*note, *marks), figure=figure)
    yield Section("Running requests", figure=figures_run.over_time(runs, "running", "requests"))
    if any(run.samples["waiting"].any() for run in runs):
        waiting = figures_run.over_time(runs, "waiting", "requests")
        yield Section("Waiting requests", figure=waiting)
    else:
        yield Section("Waiting requests", tuple(map(_admitted, runs)))
    if any(run.scenario.kv_cache for run in runs):
        yield Section("KV cache", figure=figures_run.over_time(runs, "kv_blocks", "blocks in use"))
    for run in runs:
        steps = figures_run.gap_steps(run)
        if steps is not None:
            label = f", {run.name}" if len(runs) > 1 else ""
            yield Section(f"From the closed form to the simulation{label}", figure=steps)


def _admitted(run: Recorded) -> str:
    """Say how long nobody waited: between two samples, the rest of an engine step."""
    mean = run.figures["mean_queue_ms"]
    waited = f"; the mean wait for admission is {number(mean)} ms" if mean else ""
    return f"{run.name}: nobody was waiting at any sample{waited}."


def load_sections(runs: Sequence[Recorded], folders: Sequence[str]) -> Iterator[Section]:
    """Say which share of a run kept the limits for single requests, and draw it over load.

    folders: where each run was read from; empty for one that was simulated just now. Only those are
    simulated at more loads: a page of a run that is over takes no longer than to read it.
    """
    for run, folder in zip(runs, folders, strict=True):
        scenario, limits = run.scenario, run.scenario.slo.request_limits()
        if not limits:
            continue
        told = ", ".join(f"{m.upper()} {milliseconds(seconds)}" for m, seconds in limits.items())
        title, label = "Requests within their limits", f", {run.name}" if len(runs) > 1 else ""
        kept = f"Limits: {told}. {_kept(run)}"
        if folder:
            again = f"Over other loads: specplan report {shlex.quote(folder + '/scenario.yaml')}"
            yield Section(f"{title}{label}", (kept, again))
        elif not scenario.workload.arrivals.open:
            why = "A closed loop has no rate of arrivals to draw it over."
            yield Section(f"{title}{label}", (kept, why))
        else:
            with reporting(f"loads of {run.name}"):
                found = attainment(scenario)
            lines = "The dashed line is 99 %; bars are 95 % intervals over seeds."
            figure = figures_load.slo_attainment(found)
            yield Section(f"{title} over load{label}", (kept, lines), figure=figure)


def _kept(run: Recorded) -> str:
    """Say which share of the completed requests met every limit."""
    met, completed = run.figures["request_goodput"], run.figures["request_throughput"]
    if met is None or not completed:
        return "No request of the run can be judged by them."
    return f"In the run {percent(met / completed)} of the completed requests kept them all."


def measured_sections(scenarios: Sequence[Scenario]) -> Iterator[Section]:
    """Predict what was measured on a system, for scenarios that carry a `measured` block."""
    for scenario in scenarios:
        if scenario.measured is None:
            continue
        points = points_of(scenario)
        label = f", {scenario.name}" if len(scenarios) > 1 else ""
        rows = tuple((point.series.name, *point_row(point)) for point in points)
        yield Section(
            f"Predicted against measured{label}",
            (f"{scenario.measured.source}.", MEASURED),
            table=(("series", *HEADER[:-1], "outside"), *rows),
            figure=predicted_against_measured(points) if any(p.tested for p in points) else None,
            folded=True,
        )
