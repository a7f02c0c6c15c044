"""What all commands share: the options they have in common, and how an answer is printed."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from specplan.results.answer import Answer

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader (`| head`) went away, which is no error of ours
# What the system refuses for reasons that lie outside of us: no mistake to report.
OUTSIDE = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENAMETOOLONG,
    errno.ENFILE,
    errno.ENOSPC,
    errno.EPERM,
    errno.EROFS,
}
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
CORES = os.cpu_count() or 1


def new_path(text: str) -> Path:
    """Read the name of something to write; `.`, `/` and nothing at all are no names."""
    path = Path(text)
    if not path.name:
        raise typer.BadParameter(f"`{text}` names nothing that could be made")
    return path


def old_path(text: str) -> Path:
    """Read the name of something to read; an empty one would be the current folder."""
    if not text:
        raise typer.BadParameter("the name is empty")
    return Path(text)


def scenario_names(incomplete: str) -> list[str]:
    """Complete the name of a bundled scenario in a shell, which completes files by itself."""
    from specplan.scenarios.load import bundled

    return [name for name in bundled() if name.startswith(incomplete)]


ScenarioName = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or a name from `specplan list`.",
        autocompletion=scenario_names,
    ),
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
        "--output",
        "-o",
        metavar="FOLDER",
        parser=new_path,
        help="Write the results into this new folder.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=1,
        help="Processes that simulate at once.",
        show_default="as many as cores",  # --help is the same on every machine
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Simulate on a running Dask cluster, tcp://host:8786."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FOLDER if specplan wrote it before.")]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]


def show(make: Callable[[], Answer], as_json: bool) -> None:
    """Print the answer of one command and leave with its exit code."""
    try:
        with _plain_warnings():
            answer = make()
        print_answer(answer, as_json)
    except (KeyboardInterrupt, typer.Abort):  # the latter: at a question, also by Ctrl-D
        leave("interrupted; nothing was written", INTERRUPTED)
    except UnwritableError as error:
        raise typer.Exit(unwritable(error.__cause__)) from None
    except Exception as error:
        from specplan.scenarios.errors import ScenarioError

        if isinstance(error, ScenarioError):
            leave(str(error), 2)
        if isinstance(error, OSError) and error.errno in OUTSIDE:
            where = f"{str(error.filename)[:120]}: " if error.filename else ""
            leave(f"{where}{error.strerror}", 2)
        if os.environ.get("SPECPLAN_TRACEBACK"):
            raise
        says = f"{type(error).__name__}: {error} (SPECPLAN_TRACEBACK=1 shows where)"
        leave(f"internal error, please report it: {says}", INTERNAL)
    raise typer.Exit(answer.exit_code)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say a warning of ours as a note: its place in the sources tells a user nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        shown = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                _say(f"warning: {message}")
            else:
                shown(message, category, *place, **more)

        warnings.showwarning = note
        yield


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer to stdout, its notes to stderr; raises UnwritableError."""
    try:
        if as_json:
            from specplan.results.store import dumps

            _write_out(dumps(answer.json) + "\n")
        elif answer.text != "":  # an answer may have notes alone
            _print_text(answer.text)
        for note in answer.notes:
            typer.echo(note, err=True)
    except OSError as error:
        raise UnwritableError from error


def _print_text(text: RenderableType) -> None:
    from rich.console import Console

    # `highlight` would colour every number.
    console = Console(highlight=False, emoji=False)
    if console.is_terminal:
        console.print(text, crop=False)
        return
    written = StringIO()
    plain = Console(file=written, width=console.width, highlight=False, emoji=False)
    plain.print(text, crop=False)  # what is to be copied may be wider
    lines = written.getvalue().split("\n")
    _write_out("\n".join(line.rstrip(" ") for line in lines))


def _write_out(text: str) -> None:
    if sys.stdout is None:  # `>&-`
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.write(text)
    sys.stdout.flush()


class UnwritableError(Exception):
    """Standard output or standard error cannot be written; its cause says why."""


def unwritable(cause: BaseException | None) -> int:
    """Say that stdout or stderr failed, unless only the reader went away; return the exit code."""
    _discard_output()
    if isinstance(cause, BrokenPipeError):
        return BROKEN_PIPE
    _say(f"the output cannot be written: {getattr(cause, 'strerror', cause)}")
    return 2


def _discard_output() -> None:
    """Let Python's own flush on exit succeed: it would complain again of what we have told."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, AttributeError):
            if stream is not None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave(message: str, code: int) -> NoReturn:
    """Say one thing on stderr and leave with this exit code."""
    _say(message)
    raise typer.Exit(code)


def _say(message: str) -> None:
    with suppress(OSError):  # nobody is left to tell
        typer.echo(message, err=True)
