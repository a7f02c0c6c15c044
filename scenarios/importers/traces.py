"""Request traces: arrivals and lengths from the public formats, told apart by their content."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.trace_rows import Reader, Trace, open_text

__all__ = ["Trace", "read_lengths", "read_trace"]


def read_trace(path: str | Path) -> Trace:
    """Read arrivals and lengths of a trace file (CSV or JSON lines, also gzipped).

    Knows Azure LLM 2023/2024/multimodal (times to 100 ns), BurstGPT (s), Mooncake and aiperf (ms),
    Bailian (s), vidur (s), splitwise-sim (s), LLMServingSim (ns), dsdSim (ms), and
    `arrival_s,prompt_tokens,output_tokens`. Raises ScenarioError with the line of what is wrong: no
    rows, rows out of order, requests without tokens, a file without arrivals.
    """
    return _read(str(path), *_stamp(Path(path)), arrivals=True)


def read_lengths(path: str | Path) -> Trace:
    """Read prompt and output lengths of a trace or of a file without arrivals (times are NaN)."""
    return _read(str(path), *_stamp(Path(path)), arrivals=False)


def _stamp(path: Path) -> tuple[int, int]:
    """Tell versions of a file apart, so that a changed file is read anew."""
    try:
        if path.is_dir():
            raise ScenarioError(Fault("is a folder", "a trace file", str(path)))
        stat = path.stat()
    except (OSError, ValueError) as error:
        wrong = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        right = "name the file: `--set workload.arrivals.trace=FILE`"
        raise ScenarioError(Fault(wrong, right, str(path))) from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=4)
def _read(path: str, mtime_ns: int, size: int, *, arrivals: bool) -> Trace:  # noqa: ARG001
    try:
        with open_text(path) as file:
            return Reader(path, arrivals).trace(file)
    except UnicodeDecodeError as error:
        wrong = f"is not text: {error.reason} at byte {error.start}"
        raise ScenarioError(Fault(wrong, "a CSV or JSON lines file", path)) from None
    except (OSError, EOFError) as error:
        wrong = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ScenarioError(Fault(wrong, "a trace file", path)) from None
