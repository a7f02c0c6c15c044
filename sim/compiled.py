"""How the inner loop is compiled, and where the compiled code is kept.

The cache folder's name carries a digest of every source that is compiled: numba itself only looks
at the file of the outermost function, and would go on running code whose callees have changed.
`NUMBA_DISABLE_JIT=1` runs the very same functions as plain Python.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba

from specplan.models import cost

ABOUT_S = 15
KEPT_FOLDERS = 4  # of other versions: several may be installed side by side
RECENT_S = 3600.0  # a process may still be using what was used so lately


def digest() -> str:
    """Hash the sources that are compiled, and numba's version."""
    here = Path(__file__).resolve().parent
    compiled = [path.read_bytes() for path in sorted(here.glob("*.py"))]
    compiled = [source for source in compiled if b"specplan.sim.compiled" in source]
    priced = {*cost.FORMULAS, cost.seconds}
    files = sorted({formula.__code__.co_filename for formula in priced})
    formulas = [Path(file).read_bytes() for file in files]
    made = hashlib.sha256(numba.__version__.encode())
    for source in [Path(__file__).read_bytes(), *compiled, *formulas]:
        made.update(source)
    return made.hexdigest()[:16]


def cache_folder() -> Path | None:
    """Make the folder of the compiled loop for exactly these sources and this numba.

    `$XDG_CACHE_HOME/specplan/…`, else `~/.cache/specplan/…`, else a private temporary folder; None
    where none of them can be written, and every process compiles anew.
    """
    name = digest()
    homes = []
    with contextlib.suppress(RuntimeError):  # nobody's home
        homes = [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specplan"]
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    for home in [*homes, Path(tempfile.gettempdir()) / f"specplan-{user}"]:
        folder = home / name
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Code is loaded from here: nobody else may have put it there.
            if hasattr(os, "getuid") and home.stat().st_uid != os.getuid():
                continue
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)
            prune(home, folder)
            return folder
    return None


def prune(home: Path, used: Path) -> None:
    """Remove the folders of other sources, but for the newest few and those in use lately."""
    others = [folder for folder in home.iterdir() if folder.is_dir() and folder != used]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[KEPT_FOLDERS:]:
        if time.time() - folder.stat().st_mtime > RECENT_S:
            shutil.rmtree(folder, ignore_errors=True)


interpreted = bool(numba.config.DISABLE_JIT)
folder = None
if os.environ.get("NUMBA_CACHE_DIR"):
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
elif not interpreted:
    folder = cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)


def announce(function: Any) -> None:
    """Say on stderr that a function will be compiled, where no compiled one is kept."""
    if interpreted or function.signatures:
        return
    name = f"{function.py_func.__module__.rpartition('.')[2]}.{function.py_func.__name__}"
    if folder is not None:
        if any(folder.glob(f"*/{name}-*.nbi")):
            return
        said = folder / f"{name}.announced"  # workers start together: one of them says it
        with contextlib.suppress(OSError):
            if said.exists() and time.time() - said.stat().st_mtime < 4 * ABOUT_S:
                return
            said.touch()
    again = "" if folder is not None else " (no folder to keep it in can be written)"
    sys.stderr.write(f"compiling the simulator, once, about {ABOUT_S} s{again}\n")
    sys.stderr.flush()


# No doors for Python, no file of their own.
_INSIDE: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def entry(function: Any) -> Any:
    """Compile a function that Python calls, on first use, and keep the result on disk.

    The loop allocates nothing, so reference counting is off: it took two thirds of the time.
    """
    return numba.njit(function, cache=folder is not None, error_model="numpy", _nrt=False)


def inner(function: Any) -> Any:
    """Compile a function into its callers: it costs no call, which would copy every array's head.

    That doubles the speed of the loop. Functions of many callers, or off the common path, are
    `outlined` instead.
    """
    return numba.njit(function, forceinline=True, **_INSIDE)


def outlined(function: Any) -> Any:
    """Compile a function that compiled functions call."""
    return numba.njit(function, **_INSIDE)
