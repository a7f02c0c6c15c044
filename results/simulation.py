"""`specplan simulate`: the figures of a run in the layout of `vllm bench serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results import gap, metrics, store
from specplan.results.answer import Answer
from specplan.results.progress import reporting
from specplan.results.runs import write_run
from specplan.results.tables import columns, duration, facts, heading, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from specplan.scenarios.schema import Scenario

RULE = 50  # width of the vLLM console's rules
TITLES = {
    "ttft": ("Time to First Token", "TTFT"),
    "tpot": ("Time per Output Token (excl. 1st token)", "TPOT"),
    "itl": ("Inter-token Latency", "ITL"),
    "e2el": ("End-to-end Latency", "E2EL"),
}


def simulate_answer(scenario: Scenario, output: Path | None, *, force: bool) -> Answer:
    """Simulate `scenario`, and write its run folder when `output` is given.

    Raises ScenarioError for a folder that exists or cannot be written, before simulating.
    """
    from specplan.sim.simulate import simulate

    if output is not None:
        store.check_folder(output, force=force)
    with reporting(f"simulating {scenario.name}") as progress:
        run = simulate(scenario, progress)
    figures = metrics.summary(run)
    explained = gap.explain(run, figures)
    value = {**figures, "closed_form": explained.json, "scenario": scenario.resolved()}
    notes = []
    if run.interrupted:
        notes.append("interrupted: the figures cover what was complete by then")
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            write_run(folder, run, value)
        notes.append(f"written to {output}")
    return Answer(value, _text(value, explained), notes, exit_code=130 if run.interrupted else 0)


def _text(figures: Mapping[str, Any], explained: gap.Gap) -> Group:
    parts: list[RenderableType] = [Text("\n".join(console_lines(figures)))]
    if figures["saturated"]:
        parts += [Text(), Text(f"Saturated: {figures['saturated_reason']}.", style="bold")]
    parts += [heading("GPU time by phase"), _phases(figures["utilisation"]), Text()]
    if figures["drafted_tokens"]:
        parts.append(facts(_waste(figures)))
    parts += [heading("Against the closed form"), explained.table(), Text()]
    parts += [Text(sentence) for sentence in explained.sentences]
    return Group(*parts)


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
            ("Draft tokens:", "spec_decode_num_draft_tokens"),
            ("Accepted tokens:", "spec_decode_num_accepted_tokens"),
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
    drafted, wasted = figures["drafted_tokens"], figures["wasted_draft_tokens"]
    return [
        ("Tokens per round", f"{number(figures['tokens_per_round'])} committed by the mean round"),
        (
            "Draft waste",
            f"{wasted:,} of {drafted:,} drafted tokens thrown away ({percent(wasted / drafted)}), "
            f"{duration(figures['wasted_draft_s'])} of draft time",
        ),
    ]
