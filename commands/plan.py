"""Commands that look for the best of many: sweep, plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import (
    CORES,
    AsJson,
    Cluster,
    Folder,
    Force,
    ScenarioName,
    Sets,
    Workers,
    show,
)

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def sweep(  # noqa: PLR0917
    scenario: ScenarioName,
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="PATH=VALUES",
            help="A field and its values: 0..8 | 1,2,4 | 5ms..50ms:10 | 1ms..1s:log7. "
            "Repeat to cross; `A=1,2; B=3,4` moves fields together; @FILE.csv lists points.",
        ),
    ],
    by: Annotated[
        str, typer.Option(metavar="closed-form|simulate", help="What computes a point.")
    ] = "closed-form",
    workers: Workers = CORES,
    cluster: Cluster = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was killed; needs its -o.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run a very large grid.")] = False,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Vary fields over a grid.

    Prints a table; -o also writes a Parquet file and a self-contained interactive HTML page.

    Example: specplan sweep toy-20ms --vary speculation.gamma=0..8 -o grid
    """

    def answer() -> Answer:
        from specplan.results.sweep.answer import Means, sweep_answer, swept_base
        from specplan.sim.design import parse_design

        means = Means(by=by, workers=workers, cluster=cluster, yes=yes)
        design = parse_design(vary)
        base = swept_base(scenario, sets or (), design)
        return sweep_answer(base, design, means, output, resume=resume, force=force)

    show(answer, as_json)


def plan(  # noqa: PLR0917
    scenario: ScenarioName,
    slo: Annotated[
        list[str] | None,
        typer.Option(
            "--slo",
            metavar="LIMIT",
            help="'ttft p99 < 500 ms', 'tpot p95 < 40 ms', 'goodput >= 99 %'. Repeatable; "
            "else the scenario's own.",
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Requests to carry, 40/s; else as it says.")
    ] = None,
    requests: Annotated[
        int, typer.Option(min=200, help="Requests of one simulated run, for each replica.")
    ] = 2000,
    tolerance: Annotated[
        float, typer.Option(min=0.005, max=1.0, help="How close the largest rate is searched.")
    ] = 0.1,
    workers: Workers = CORES,
    cluster: Cluster = None,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Plan capacity for service level objectives.

    Says the largest rate, the fewest GPUs, the best γ, a schedule by batch, where speculation stops
    to pay, where the draft should run, what it costs and which input to measure first.

    Example: specplan plan llama31-8b-eagle3-h100 --slo 'tpot p95 < 25 ms'
    """

    def answer() -> Answer:
        from specplan.results.planning.answer import plan_answer
        from specplan.results.planning.objectives import parse_rate_option
        from specplan.scenarios.load import load

        return plan_answer(
            load(scenario, sets or ()),
            slo or (),
            rate=parse_rate_option(rate),
            requests=requests,
            tolerance=tolerance,
            workers=workers,
            address=cluster,
            output=output,
            force=force,
        )

    show(answer, as_json)
