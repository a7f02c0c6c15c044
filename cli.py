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
ALL_CORES = "as many as cores"  # in --help, which is the same on every machine

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

acceptance = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Acceptance figures: convert them, import what engines write, export engine flags.",
)
app.add_typer(acceptance, name="acceptance")

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
def simulate(  # noqa: PLR0917
    scenario: ScenarioName,
    replications: Annotated[
        int, typer.Option(min=1, help="Seeds to simulate; intervals are then across them.")
    ] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes for --replications.", show_default=ALL_CORES)
    ] = (os.cpu_count() or 1),
    no_requests: Annotated[
        bool,
        typer.Option(
            "--no-requests", help="Keep no row a request: any length in one memory, by sketches."
        ),
    ] = False,
    timeline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write who held which GPU when, as a Chrome trace."),
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
        int, typer.Option(min=1, help="Processes for --by simulate.", show_default=ALL_CORES)
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
    """Vary fields over a grid.

    Prints a table; -o also writes a Parquet file and a self-contained interactive HTML page.

    Example: specplan sweep toy-20ms --vary speculation.gamma=0..8 -o grid
    --vary draft.step=5ms..50ms:10
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
    workers: Annotated[
        int, typer.Option(min=1, help="Processes.", show_default=ALL_CORES)
    ] = os.cpu_count() or 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Simulate on a running Dask cluster, tcp://host:8786."
        ),
    ] = None,
    sets: Sets = None,
    as_json: AsJson = False,
    output: Folder = None,
    force: Force = False,
) -> None:
    """Plan capacity for service level objectives.

    Says the largest rate, the fewest GPUs, the best γ, a schedule by batch, where speculation stops
    to pay, where the draft should run, what it costs and which input to measure first.

    Example: specplan plan llama31-8b-eagle3-h100 --slo 'tpot p95 < 25 ms' --rate 40/s
    """

    def answer() -> Answer:
        from specplan.results.plan_answer import plan_answer
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
    replications: Annotated[
        int, typer.Option(min=1, help="Seeds to simulate both on; intervals are then across them.")
    ] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes for --replications.", show_default=ALL_CORES)
    ] = (os.cpu_count() or 1),
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
        from specplan.results.replications import Replications

        return compare_answer(
            a,
            b,
            sets or (),
            without_speculation=without_speculation,
            output=output,
            force=force,
            how=Replications(replications, workers),
        )

    _show(answer, as_json)


@app.command()
def report(  # noqa: PLR0917
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
    png: Annotated[bool, typer.Option("--png", help="Each figure as a PNG file, too.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Each figure as an SVG file, too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write one self-contained HTML page of figures.

    Everything is inside the file: no server, no network. A scenario is simulated first. --png and
    --svg need the extra `images` (Kaleido) and a browser.

    Example: specplan report runs/toy -o toy.html
    """

    def answer() -> Answer:
        from specplan.results.report import report_answer

        images = [kind for kind, wanted in (("png", png), ("svg", svg)) if wanted]
        return report_answer(targets, sets or (), output, images=images, force=force)

    _show(answer, as_json)


@app.command()
def serve(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]", help="A scenario file or a bundled name; toy-20ms if absent."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any free one.")
    ] = 8050,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Open a page with sliders on this machine.

    The closed form follows the sliders, the simulation runs on demand; the URL holds the state.
    Needs the extra `serve` (Dash).

    Example: specplan serve llama31-8b-eagle3-h100
    """

    def answer() -> Answer:
        from specplan.results.live import serve_answer

        def announce(says: str) -> None:
            typer.echo(says, err=True)

        return serve_answer(scenario, sets or (), port, announce)

    _show(answer, as_json)


@app.command()
def calibrate(  # noqa: PLR0917
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...", help="Results of serving benchmarks, or tables of pass times."
        ),
    ] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(
            "--point",
            metavar="LINE",
            help="Measured: 'gamma=3 404 tok/s tau=2.9'. Repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(metavar="STEP|SPEED|FILE", help="Plain decoding: '5.264 ms', '190 tok/s'."),
    ] = "",
    model: Annotated[
        Path | None,
        typer.Option(metavar="CONFIG", help="A model's config.json, for tables of operators."),
    ] = None,
    label: Annotated[str, typer.Option(help="Keep the system of this label.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the scenario.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit costs to measurements, and say why speculation pays or not.

    Prints the implied round cost, what decides, what would have to change, and a scenario with
    residuals and provenance.

    Example: specplan calibrate --baseline '5.264 ms' --point 'gamma=3 404.25 tok/s tau=2.8981'
    --point 'gamma=5 446.64 tok/s tau=3.5164'
    """

    def answer() -> Answer:
        from specplan.results.calibrate_answer import calibrate_answer

        return calibrate_answer(
            files or (),
            points=point or (),
            baseline=baseline,
            model=model,
            label=label,
            output=output,
        )

    _show(answer, as_json)


@app.command()
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES", help="Scenarios with measurements; absent: all published ones."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with the plot and all rows."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the table as docs/accuracy.md is."),
    ] = None,
    as_json: AsJson = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Predict published measurements, and say how far off.

    Costs are fitted on the rows a file names for it, the other rows are predicted. Prints every
    point, the totals, and each miss with its likely cause. The exit code is 1 when a point is
    outside its stated tolerance and its file names no cause.

    Example: specplan validate eagle1-llama3-8b-vllm
    """

    def answer() -> Answer:
        from specplan.results.validation.answer import validate_answer

        return validate_answer(names or (), html=html, markdown_file=markdown, force=force)

    _show(answer, as_json)


@acceptance.command(name="import")
def acceptance_import(  # noqa: PLR0917
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="Metrics, logs, benchmark results, of any kind."),
    ],
    model: Annotated[str, typer.Option(help="Keep one model of several.")] = "",
    gamma: Annotated[
        int | None,
        typer.Option(min=1, help="Keep one draft length; state it where a file lacks it."),
    ] = None,
    label: Annotated[str, typer.Option(help="Keep one condition or run of several.")] = "",
    delta: Annotated[
        bool, typer.Option("--delta", help="Two scrapes of one server, the earlier first.")
    ] = False,
    separate: Annotated[
        bool, typer.Option("--separate", help="Scrapes of several servers, added up.")
    ] = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the block into this new file."),
    ] = None,
) -> None:
    """Read what engines and benchmarks write and print a block for a scenario.

    The kind of a file is seen from its content. What was dropped, and why, stands in comments.
    The exit code is 1 when the files say nothing about acceptance.

    Example: specplan acceptance import before.prom after.prom --delta
    """

    def answer() -> Answer:
        from specplan.results.import_answer import import_answer

        return import_answer(
            files,
            model=model,
            gamma=gamma,
            label=label,
            delta=delta,
            separate=separate,
            output=output,
        )

    _show(answer, as_json)


@app.command()
def law(  # noqa: PLR0917
    source: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="p and q by position: YAML, JSON or a scenario."),
    ] = None,
    p: Annotated[
        list[str] | None,
        typer.Option("--p", metavar="P,P,…", help="Target law. Repeat for positions."),
    ] = None,
    q: Annotated[
        list[str] | None,
        typer.Option("--q", metavar="Q,Q,…", help="Draft law. Repeat for positions."),
    ] = None,
    bonus: Annotated[
        str | None,
        typer.Option(metavar="P,P,…", help="Target law after the last draft; absent: its p."),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Applied to both laws; 0 is greedy.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="0 keeps all tokens.")] = 0,
    top_p: Annotated[float, typer.Option(help="1 keeps all tokens.")] = 1.0,
    min_p: Annotated[float, typer.Option(help="0 keeps all tokens.")] = 0.0,
    lenience: Annotated[
        float, typer.Option(help="l of min(1, p/(l q)); below 1 changes the output law.")
    ] = 1.0,
    gamma: Annotated[int | None, typer.Option(help="Repeat a single position so often.")] = None,
    draws: Annotated[int, typer.Option(help="Rounds of a Monte Carlo run; 0: exact only.")] = 0,
    seed: Annotated[int, typer.Option(help="Start of the Monte Carlo run.")] = 1,
    rule: Annotated[
        str,
        typer.Option(help="exact, or a wrong one to see it fail: unchanged_target, skip_rejected."),
    ] = "exact",
    as_json: AsJson = False,
) -> None:
    """Show what accept and reject make of p and q.

    Acceptance, residual and output law at each position, exactly and by Monte Carlo. The exit code
    is 1 when the run refutes that the target law is preserved.

    Example: specplan law --p .6,.3,.1 --q .5,.25,.25 --draws 100000
    """

    def answer() -> Answer:
        from specplan.results.law_answer import law_answer
        from specplan.results.law_question import law_question, stated_laws

        question = law_question(
            stated_laws(source, p or (), q or (), bonus),
            (temperature, top_k, top_p, min_p),
            lenience=lenience,
            gamma=gamma,
            draws=draws,
            seed=seed,
            rule=rule,
        )
        return law_answer(question)

    _show(answer, as_json)


@acceptance.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def convert(context: typer.Context, sets: Sets = None, as_json: AsJson = False) -> None:
    """Turn any acceptance figure into all others.

    Figures are written NAME=VALUE (or --NAME VALUE); a scenario may stand in their place. What can
    be read in several ways is shown in each, with what would settle it.

    Named by what they are: alpha, acceptance_length (with the bonus), accepted_per_round (without:
    TensorRT-LLM), acceptance_rate (accepted/drafted), efficiency (also the old SGLang rate),
    share_of_output, conditional, unconditional, histogram. Unknown meaning: length, rate,
    positions. Counters: accepted, drafted, drafts, emitted, requests, accepted_per_position,
    drafted_per_position. Sweeps: lengths_by_gamma, rates_by_gamma (1:1.8,2:2.4). Clocks: itl, tpot,
    speedup, round_cost, tokens_per_s. Beside them: gamma or block_size, engine, fill, dataset. By
    themselves: speedups and token_shares of several kinds of text.

    Example: specplan acceptance convert gamma=4 acceptance_length=3.3
    """

    def answer() -> Answer:
        from specplan.results.convert_answer import convert_words_answer

        return convert_words_answer(context.args, sets or ())

    _show(answer, as_json)


@acceptance.command()
def export(
    scenario: ScenarioName,
    engine: Annotated[
        str | None, typer.Option(help="vllm, sglang, tensorrt-llm or llama.cpp; absent: all.")
    ] = None,
    draft: Annotated[str | None, typer.Option(help="Draft model named in the settings.")] = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Give engine settings that reproduce an acceptance.

    Example: specplan acceptance export toy-20ms --engine vllm
    """

    def answer() -> Answer:
        from specplan.results.export_answer import export_answer
        from specplan.scenarios.load import load

        return export_answer(load(scenario, sets or ()), engine, draft)

    _show(answer, as_json)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]")] = Path("scenario.yaml"),
    answers: Annotated[
        list[str] | None,
        typer.Option("--answer", "-a", metavar="NAME=VALUE", help="Answer a question beforehand."),
    ] = None,
    as_json: AsJson = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a commented scenario that runs.

    Asks a few questions at a terminal; elsewhere what is not answered with -a has its default.

    Example: specplan init mine.yaml -a step='12 ms' -a draft_step='1 ms' -a gamma=4
    """

    def answer() -> Answer:
        from specplan.results.starting import ask, init_answer, read_answers

        given = read_answers(answers or ())
        asked = ask(given, typer.prompt) if sys.stdin.isatty() and not as_json else given
        return init_answer(file, asked, force=force)

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
