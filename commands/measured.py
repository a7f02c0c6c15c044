"""Commands that hold measurements against the model: calibrate, validate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, ForceFile, new_path, old_path, show

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def calibrate(  # noqa: PLR0917
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            parser=old_path,
            help="Results of serving benchmarks, or tables of pass times.",
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
    stated: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="LINE",
            help="What a 'vllm bench latency' or 'throughput' run had: 'batch=8 input=1024 "
            "output=128 gamma=3 tau=2.9'. Once for all files, or once each.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG",
            parser=old_path,
            help="A model's config.json, for tables of operators and for --gpu.",
        ),
    ] = None,
    gpu: Annotated[
        str,
        typer.Option(metavar="GPU", help="Fit passes by the roofline of this GPU and the model."),
    ] = "",
    tensor_parallel: Annotated[
        int | None, typer.Option(metavar="GPUS", help="GPUs of a pass, for --gpu.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Type of the weights, for --gpu; absent: the config's."),
    ] = None,
    label: Annotated[str, typer.Option(help="Keep the system of this label.")] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", parser=new_path, help="Write the scenario."),
    ] = None,
    as_json: AsJson = False,
    force: ForceFile = False,
) -> None:
    """Fit costs to measurements, and say why speculation pays.

    Prints the implied round cost, what decides, what would have to change, and a scenario with
    residuals and provenance.

    A LINE holds a speed, `404 tok/s` of the whole batch, or times (round, tpot, itl with engine,
    ttft, draft, draft_round, verify, total), acceptance (gamma, tau, rate, alpha,
    accepted_per_round, or the counts drafted, accepted, tokens, rounds), the load (batch, context,
    offered, served), a stated speedup, and a label: `round=7ms`, `rate=70%`, `label=tp4`.

    Example: specplan calibrate --baseline 5ms --point 'gamma=3 400 tok/s tau=3'
    """

    def answer() -> Answer:
        from specplan.results.calibrate.answer import calibrate_answer

        return calibrate_answer(
            files or (),
            points=point or (),
            stated=stated or (),
            baseline=baseline,
            model=model,
            gpu=gpu,
            tensor_parallel=tensor_parallel,
            dtype=dtype,
            label=label,
            output=output,
            force=force,
        )

    show(answer, as_json)


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES", help="Scenarios with measurements; absent: all published ones."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            parser=new_path,
            help="Write a page with the plot and all rows.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            parser=new_path,
            help="Write the table as docs/accuracy.md is.",
        ),
    ] = None,
    as_json: AsJson = False,
    force: ForceFile = False,
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

    show(answer, as_json)
