"""The command line: parse, call one function, print its answer. No formula, no simulation.

Imports stay inside the commands: `specplan --help` must not wait for NumPy or Plotly.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.results.answer import Answer

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader (`| head`) went away, which is no error of ours
INTERNAL = 70  # EX_SOFTWARE of sysexits.h

app = typer.Typer(
    name="specplan",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Plan speculative decoding before the hardware runs: exact closed forms and a simulation "
    "of GPU contention, side by side.",
    epilog="SCENARIO is a YAML file or a bundled name; `specplan list` shows the names.",
)

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or a name from `specplan list`.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Set a field: --set speculation.gamma=3. Repeatable."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="Write the results into this new folder."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FOLDER if specplan wrote it before.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"specplan {installed('specplan')}")
        raise typer.Exit


@app.command()
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

    _show(answer, as_json)


@app.command()
def simulate(
    scenario: ScenarioName,
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
        from specplan.results.simulation import simulate_answer
        from specplan.scenarios.load import load

        return simulate_answer(load(scenario, sets or ()), output, force=force)

    _show(answer, as_json)


@app.command()
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
    workers: Annotated[
        int, typer.Option(min=1, help="Processes for --by simulate.")
    ] = os.cpu_count() or 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Simulate on a running Dask cluster, tcp://host:8786."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was killed; needs its -o.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run a very large grid.")] = False,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    r"""Vary fields over a grid.

    Prints a table; -o also writes a Parquet file and a self-contained interactive HTML page.

    \b
    Example: specplan sweep toy-20ms --vary speculation.gamma=0..8 \
               --vary draft.step=5ms..50ms:10 -o grid
    """

    def answer() -> Answer:
        from specplan.results.sweeps import Means, sweep_answer
        from specplan.scenarios.load import load
        from specplan.sim.design import parse_design

        means = Means(by=by, workers=workers, cluster=cluster, yes=yes)
        design = parse_design(vary)
        base = load(scenario, sets or ())
        return sweep_answer(base, design, means, output, resume=resume, force=force)

    _show(answer, as_json)


@app.command()
def compare(  # noqa: PLR0917
    a: Annotated[str, typer.Argument(metavar="A", help="The scenario to compare with.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="The scenario that may be better.")
    ] = None,
    without_speculation: Annotated[
        bool,
        typer.Option(
            "--without-speculation", help="Compare A against itself with speculation off."
        ),
    ] = False,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Simulate two scenarios on the same luck.

    Says per metric which is faster, with the interval of the difference.

    Example: specplan compare azure-conversation --without-speculation
    """

    def answer() -> Answer:
        from specplan.results.comparison import compare_answer

        return compare_answer(
            a, b, sets or (), without_speculation=without_speculation, output=output, force=force
        )

    _show(answer, as_json)


@app.command()
def report(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="RUN_FOLDER|SCENARIO...", help="Runs written by -o, or scenarios."),
    ],
    sets: Sets = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; report.html if absent."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write one self-contained HTML page of figures.

    Everything is inside the file: no server, no network. A scenario is simulated first.

    Example: specplan report runs/toy -o toy.html
    """

    def answer() -> Answer:
        from specplan.results.report import report_answer

        return report_answer(targets, sets or (), output, force=force)

    _show(answer, as_json)


@app.command(name="list")
def list_scenarios(as_json: AsJson = False) -> None:
    """Show the bundled scenarios.

    Their names stand wherever a file does.

    Example: specplan list
    """

    def answer() -> Answer:
        from specplan.results.catalogue import list_answer

        return list_answer()

    _show(answer, as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the scenario file, for editors.

    Example: specplan schema > scenario.schema.json
    """

    def answer() -> Answer:
        from specplan.results.catalogue import schema_answer

        return schema_answer()

    _show(answer, as_json=True)


def main() -> None:
    """Run the command line; each way out is a clear line and an exit code, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(
            stream, "reconfigure"
        ):  # a terminal without Unicode shows `?`, and does not fail
            stream.reconfigure(errors="replace")
    app()


def _show(make: Callable[[], Answer], as_json: bool) -> None:
    """Print the answer of one command and leave with its exit code."""
    try:
        answer = make()
        _print(answer, as_json)
    except KeyboardInterrupt:
        _leave("interrupted; nothing was written", INTERRUPTED)
    except BrokenPipeError:
        # Python would complain again when it flushes stdout on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None
    except Exception as error:
        from specplan.scenarios.errors import ScenarioError

        if isinstance(error, ScenarioError):
            _leave(str(error), 2)
        if os.environ.get("SPECPLAN_TRACEBACK"):
            raise
        says = f"{type(error).__name__}: {error} (SPECPLAN_TRACEBACK=1 shows where)"
        _leave(f"internal error, please report it: {says}", INTERNAL)
    raise typer.Exit(answer.exit_code)


def _print(answer: Answer, as_json: bool) -> None:
    if as_json:
        from specplan.results.store import dumps

        print(dumps(answer.json), flush=True)  # noqa: T201
    else:
        from rich.console import Console

        # `highlight` would colour every number.
        Console(highlight=False, emoji=False).print(answer.text)
        sys.stdout.flush()
    for note in answer.notes:
        typer.echo(note, err=True)


def _leave(message: str, code: int) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
