"""`specplan simulate`: the figures of a run in the layout of `vllm bench serve`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results import gap, metrics, store, timeline
from specplan.results.answer import Answer
from specplan.results.intervals import BATCHES, SMALLEST_BATCH
from specplan.results.progress import reporting
from specplan.results.runs import write_run
from specplan.results.tables import (
    columns,
    duration,
    facts,
    heading,
    milliseconds,
    number,
    percent,
)
from specplan.scenarios import extrapolated
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

ENOUGH = BATCHES * SMALLEST_BATCH  # requests from which on a mean has an interval
RULE = 50  # width of the vLLM console's rules
HIDDEN = 10  # times the p99 ITL: a longest gap beyond that is a stall which no percentile shows
TITLES = {
    "ttft": ("Time to First Token", "TTFT"),
    "tpot": ("Time per Output Token (excl. 1st token)", "TPOT"),
    "itl": ("Inter-token Latency", "ITL"),
    "e2el": ("End-to-end Latency", "E2EL"),
}


@dataclass(frozen=True)
class Leave:
    """What a run leaves besides its figures.

    `requests`: its rows, without which a run of any length takes the same memory; `timeline`: a
    file for the Chrome trace of its first engine steps from `timeline_from_s` on.
    """

    requests: bool = True
    timeline: Path | None = None
    timeline_from_s: float = 0.0


def leave(requests: bool, timeline: Path | None, timeline_from: str, replications: int) -> Leave:
    """Read the options of `simulate`. Raises ScenarioError for those that do not go together."""
    from specplan.scenarios.units import parse_duration

    faults = []
    try:
        from_s = parse_duration(timeline_from)
    except ValueError as error:
        from_s = 0.0
        faults.append(Fault(f"`--timeline-from {timeline_from}`: {error}", "a time: `60 s`"))
    if replications > 1 and (timeline is not None or not requests):
        wrong = "--timeline and --no-requests are about one run, --replications about several"
        faults.append(Fault(wrong, "one of them"))
    if timeline is not None and not timeline.absolute().parent.is_dir():
        wrong = f"`--timeline {timeline}`: there is no folder {timeline.absolute().parent}"
        faults.append(Fault(wrong, "a file in a folder that exists"))
    if faults:
        raise ScenarioError(faults)
    return Leave(requests, timeline, from_s)


def simulate_answer(
    scenario: Scenario, output: Path | None, *, force: bool, leave: Leave | None = None
) -> Answer:
    """Simulate `scenario`, and write its run folder when `output` is given.

    Raises ScenarioError for a folder or file that exists or cannot be written, before simulating.
    """
    from specplan.sim.simulate import simulate

    kept = leave or Leave()
    if output is not None:
        store.check_folder(output, force=force)
    if kept.timeline is not None:
        store.check_file(kept.timeline, force=force)
    with reporting(f"simulating {scenario.name}") as progress:
        run = simulate(
            scenario,
            progress,
            keep_requests=kept.requests,
            timeline_from_s=kept.timeline_from_s,
        )
    figures = metrics.summary(run)
    explained = gap.explain(run, figures)
    value = {
        **figures,
        "remarks": list(remarks(figures)),
        "closed_form": explained.json,
        "scenario": scenario.resolved(),
    }
    notes = extrapolated.remarks(scenario, scenario.deepest_gamma)
    if run.interrupted:
        notes.append(_interrupted(figures))
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            write_run(folder, run, value)
        notes.append(f"written to {output}")
    if kept.timeline is not None:
        trace = json.dumps(timeline.chrome_trace(run), separators=(",", ":"))
        store.write_text(kept.timeline, trace, force=force)
        notes.append(_timeline_note(run, kept.timeline))
    return Answer(value, _text(value, explained), notes, exit_code=130 if run.interrupted else 0)


def _interrupted(figures: Mapping[str, Any]) -> str:
    return (
        f"interrupted: the figures are of the {figures['completed']:,} requests that were complete "
        f"by then; {figures['unfinished']:,} were under way, the others had not arrived"
    )


def _timeline_note(run: Run, path: Path) -> str:
    spans = run.spans
    if not len(spans["start_s"]):
        return f"{path}: no engine step in the timeline; --timeline-from lies after the end"
    first_s, last_s = float(spans["start_s"].min()), float(spans["end_s"].max())
    return (
        f"timeline from {first_s:.6g} to {last_s:.6g} s written to {path}; open it in "
        "chrome://tracing or ui.perfetto.dev"
    )


def _text(figures: Mapping[str, Any], explained: gap.Gap) -> Group:
    parts: list[RenderableType] = [Text("\n".join(console_lines(figures)))]
    parts += [Text(sentence) for sentence in remarks(figures)]
    if figures["saturated"]:
        parts += [Text(), Text(f"Saturated: {figures['saturated_reason']}.", style="bold")]
    if figures["classes"]:
        parts += [heading("By class"), _classes(figures["classes"])]
    parts += [heading("GPU time by phase"), _phases(figures["utilisation"])]
    if figures["drafted_tokens"]:
        parts += [Text(), facts(_waste(figures))]
    parts += [heading("Against the closed form"), explained.table(), Text()]
    parts += [Text(sentence) for sentence in explained.sentences]
    return Group(*parts)


def remarks(figures: Mapping[str, Any]) -> Iterator[str]:
    """Say in a sentence each what the figures leave out, and how exact they are."""
    if figures["interrupted"]:
        yield _interrupted(figures).capitalize() + "."
    if figures["warmup"]:
        left_out = figures["warmup"]["requests"]
        yield (
            f"Warm-up: the first {left_out:,} requests are left out of throughput and latency "
            f"(workload.warmup: {figures['warmup']['rule']}); GPU time and acceptance are of all."
        )
    if _too_few(figures):
        yield (
            f"{figures['completed']:,} requests are too few for intervals: {ENOUGH} or more "
            "(--set workload.requests=1000), or --replications 10."
        )
    for failure in figures["failures"]:
        yield f"Requests: {failure}."
    if figures["prefix_cache_hit_rate"] is not None:
        yield f"Prefix cache: {percent(figures['prefix_cache_hit_rate'])} of prompt tokens found."
    error = figures["quantile_rank_error"]
    if error["p99"]:
        yield (
            "Quantiles are a t-digest's: P99 lies between the true "
            f"P{99 - 100 * error['p99']:.2f} and P{99 + 100 * error['p99']:.2f}."
        )


def _too_few(figures: Mapping[str, Any]) -> bool:
    """Tell whether a mean has no interval for want of requests."""
    means = [m for m in TITLES if figures[f"mean_{m}_ms"] is not None]
    return figures["completed"] < ENOUGH and any(
        figures[f"mean_{m}_ms_ci95"] is None for m in means
    )


def _classes(classes: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    return columns(
        ("class", "completed", "failed", "goodput/s", "mean TTFT", "P99", "mean TPOT", "P99"),
        [
            (
                name,
                f"{one['completed']:,}",
                f"{one['failed']:,}",
                number(one["request_goodput"]),
                *[
                    "none" if one[key] is None else milliseconds(one[key] / 1e3)
                    for key in ("mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms")
                ],
            )
            for name, one in classes.items()
        ],
    )


def console_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Lay the figures out as the console of `vllm bench serve` does, with intervals after means."""
    yield _rule("Serving Benchmark Result (simulated)", "=")
    for label, key in (
        ("Successful requests:", "completed"),
        ("Failed requests:", "failed"),
        ("Benchmark duration (s):", "duration"),
        ("Total input tokens:", "total_input_tokens"),
        ("Total generated tokens:", "total_output_tokens"),
        ("Request throughput (req/s):", "request_throughput"),
        ("Request goodput (req/s):", "request_goodput"),
        ("Output token throughput (tok/s):", "output_throughput"),
        ("Total token throughput (tok/s):", "total_token_throughput"),
        ("Output throughput per GPU (tok/s):", "output_throughput_per_gpu"),
        ("Cost per million output tokens:", "cost_per_million_tokens"),
    ):
        if figures[key] is not None:
            yield _line(label, figures[key])
    if not figures["saturated"]:
        for metric, (title, short) in TITLES.items():
            yield _rule(title, "-")
            yield from _latency_lines(figures, metric, short)
    if figures["spec_decode_num_drafts"]:
        yield _rule("Speculative Decoding", "-")
        for label, key in (
            ("Acceptance rate (%):", "spec_decode_acceptance_rate"),
            ("Acceptance length:", "spec_decode_acceptance_length"),
            ("Drafts:", "spec_decode_num_drafts"),
            ("Draft tokens:", "spec_decode_draft_tokens"),
            ("Accepted tokens:", "spec_decode_accepted_tokens"),
        ):
            yield _line(label, figures[key])
    yield "=" * RULE


def _latency_lines(figures: Mapping[str, Any], metric: str, short: str) -> Iterator[str]:
    if figures[f"mean_{metric}_ms"] is None:
        yield _line(f"{short} (ms):", "none")
        return
    ends = figures[f"mean_{metric}_ms_ci95"]
    sure = f"± {(ends[1] - ends[0]) / 2:.2f}" if ends else "(too few for an interval)"
    yield f"{_line(f'Mean {short} (ms):', figures[f'mean_{metric}_ms'])}  {sure}"
    for statistic in ("median", "p90", "p95", "p99"):
        name = statistic.title() if statistic == "median" else statistic.upper()
        yield _line(f"{name} {short} (ms):", figures[f"{statistic}_{metric}_ms"])
    if metric == "itl" and figures["max_itl_ms"] > HIDDEN * figures["p99_itl_ms"]:
        yield _line("Longest ITL (ms):", figures["max_itl_ms"])
    if metric == "ttft":
        yield _line("Mean wait for admission (ms):", figures["mean_queue_ms"])


def _line(label: str, value: float | str) -> str:
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{label:<40} {text:<10}".rstrip()


def _rule(title: str, fill: str) -> str:
    return f" {title} ".center(RULE, fill) if fill == "=" else title.center(RULE, fill)


def _phases(utilisation: Mapping[str, Mapping[str, float]]) -> RenderableType:
    return columns(
        ("GPU", *metrics.PHASES),
        [
            (gpu, *[percent(shares[p]) for p in metrics.PHASES])
            for gpu, shares in utilisation.items()
        ],
    )


def _waste(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    wasted = figures["wasted_draft_tokens"]
    drafted = figures["accepted_tokens"] + wasted  # with what was drafted ahead and never verified
    return [
        ("Tokens per round", f"{number(figures['tokens_per_round'])} committed by the mean round"),
        (
            "Draft waste",
            f"{wasted:,} of {drafted:,} drafted tokens thrown away ({percent(wasted / drafted)}), "
            f"{duration(figures['wasted_draft_s'])} of draft time",
        ),
    ]
