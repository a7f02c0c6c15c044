"""The command line: the app, its commands, and every way out.

Imports stay inside the commands: `specplan --help` must not wait for NumPy or Plotly.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specplan.commands import evidence, files, measured, memory, plan, run, view
from specplan.commands.shared import unwritable

app = typer.Typer(
    name="specplan",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Plan speculative decoding before the hardware runs: exact closed forms and a simulation "
    "of GPU contention, side by side.",
    epilog="SCENARIO is a YAML file or a bundled name; `specplan list` shows the names.\n\n"
    "Example: specplan predict toy-20ms",
)

acceptance = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Convert acceptance figures, import and export them.",
    epilog="Example: specplan acceptance convert gamma=4 acceptance_length=3.3",
)
app.add_typer(acceptance, name="acceptance")


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


app.command()(run.predict)
app.command()(run.simulate)
app.command()(plan.sweep)
app.command()(plan.plan)
app.command()(run.compare)
app.command()(memory.memory)
app.command()(view.report)
app.command()(view.serve)
app.command()(measured.calibrate)
app.command()(measured.validate)
app.command()(evidence.law)
app.command()(files.init)
app.command(name="list")(files.list_scenarios)
app.command()(files.schema)
acceptance.command(name="import")(evidence.acceptance_import)
acceptance.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)(evidence.convert)
acceptance.command()(evidence.export)


def main() -> None:
    """Run the command line; each way out is a clear line and an exit code, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(
            stream, "reconfigure"
        ):  # a terminal without Unicode shows `?`, and does not fail
            stream.reconfigure(errors="replace")
    try:
        app()
    except OSError as error:  # --help and --version print without us
        sys.exit(unwritable(error))


if __name__ == "__main__":
    main()
