"""Commands that answer about one scenario: predict, simulate, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import (
    CORES,
    AsJson,
    Folder,
    Force,
    ScenarioName,
    Sets,
    Workers,
    new_path,
    scenario_names,
    show,
)

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def predict(
    scenario: ScenarioName,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Compute the closed form: speedup, break-evens, best γ.

    Prints the time per token against plain decoding, why it is faster or slower, what would change
    that, and where a token's time goes.

    Example: specplan predict toy-50ms --set draft.step='30 ms'
    """

    def answer() -> Answer:
        from specplan.results.prediction import predict_answer
        from specplan.scenarios.load import load

        return predict_answer(load(scenario, sets or ()), output, force=force)

    show(answer, as_json)


def simulate(  # noqa: PLR0917
    scenario: ScenarioName,
    replications: Annotated[
        int, typer.Option(min=1, help="Seeds to simulate; intervals are then across them.")
    ] = 1,
    workers: Workers = CORES,
    no_requests: Annotated[
        bool,
        typer.Option(
            "--no-requests", help="Keep no row a request: any length in one memory, by sketches."
        ),
    ] = False,
    timeline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=new_path,
            help="Write who held which GPU when, as a Chrome trace.",
        ),
    ] = None,
    timeline_from: Annotated[
        str, typer.Option(metavar="TIME", help="Where the timeline begins: '60 s'.")
    ] = "0 s",
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Simulate GPUs that serve a workload.

    Prints the figures of `vllm bench serve`, what each GPU did, acceptance and waste, and next to
    them the closed form with the gap explained.

    Example: specplan simulate toy-20ms --set workload.requests=5000 -o runs/toy
    """

    def answer() -> Answer:
        from specplan.results.replications import Replications, replicate_answer
        from specplan.results.simulation import leave, simulate_answer
        from specplan.scenarios.load import load

        kept = leave(not no_requests, timeline, timeline_from, replications)
        loaded = load(scenario, sets or ())
        if replications > 1:
            how = Replications(replications, workers)
            return replicate_answer(loaded, how, output, force=force)
        return simulate_answer(loaded, output, force=force, leave=kept)

    show(answer, as_json)


def compare(  # noqa: PLR0917
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="A [B] ...",
            help="The scenario to compare with, then those that may be better.",
            autocompletion=scenario_names,
        ),
    ],
    without_speculation: Annotated[
        bool,
        typer.Option(
            "--without-speculation", help="Compare A against itself with speculation off."
        ),
    ] = False,
    replications: Annotated[
        int, typer.Option(min=1, help="Seeds to simulate all on; intervals are then across them.")
    ] = 1,
    workers: Workers = CORES,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of all. Repeatable."),
    ] = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Simulate scenarios on the same luck.

    Says which is faster, with the interval of each difference from the first; ranks more than two.
    -o also writes a page, and the run of each.

    Example: specplan compare azure-conversation-trace --without-speculation
    """

    def answer() -> Answer:
        from specplan.results.compare.answer import compare_answer
        from specplan.results.replications import Replications

        return compare_answer(
            scenarios,
            sets or (),
            without_speculation=without_speculation,
            output=output,
            force=force,
            how=Replications(replications, workers),
        )

    show(answer, as_json)
