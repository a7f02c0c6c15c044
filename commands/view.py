"""Commands that draw: report, serve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, ForceFile, Sets, new_path, scenario_names, show

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def report(  # noqa: PLR0917
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_FOLDER|SCENARIO...",
            help="Runs written by -o, or scenarios.",
            autocompletion=scenario_names,
        ),
    ],
    sets: Sets = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            parser=new_path,
            help="The page; report.html if absent.",
        ),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Each figure as a PNG file, too.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Each figure as an SVG file, too.")] = False,
    force: ForceFile = False,
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

    show(answer, as_json)


def serve(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A scenario file or a bundled name; toy-20ms if absent.",
            autocompletion=scenario_names,
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
        from specplan.results.live.app import serve_answer

        def announce(says: str) -> None:
            typer.echo(says, err=True)

        return serve_answer(scenario, sets or (), port, announce)

    show(answer, as_json)
