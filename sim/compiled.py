"""How the inner loop is compiled, and where the compiled code is kept.

The cache folder's name carries a digest of every source that is compiled: numba itself only looks
at the file of the outermost function, and would go on running code whose callees have changed.
`NUMBA_DISABLE_JIT=1` runs the very same functions as plain Python.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numba

from specplan.models import cost

ROOMS = (Path(__file__).resolve().parent, Path(cost.__file__).resolve().parent)


def cache_folder() -> Path:
    """Name the folder of the compiled loop for exactly these sources and this numba.

    `$XDG_CACHE_HOME/specplan/…`, else `~/.cache/specplan/…`, else a temporary folder.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for room in ROOMS:
        for source in sorted(room.glob("*.py")):
            digest.update(source.read_bytes())
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = root / "specplan" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        folder = Path(tempfile.gettempdir()) / f"specplan-{digest.hexdigest()[:16]}"
    return folder


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_folder())

interpreted = bool(numba.config.DISABLE_JIT)


def entry(function: Any) -> Any:
    """Compile a function that Python calls, on first use, and keep the result on disk.

    The loop allocates nothing, so reference counting is off: it took two thirds of the time.
    """
    return numba.njit(function, cache=True, error_model="numpy", _nrt=False)


def inner(function: Any) -> Any:
    """Compile a function that only compiled functions call: no doors for Python, no file."""
    return numba.njit(
        function,
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )
