"""Result folders: complete under their name or not there at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specplan.scenarios.errors import Fault, ScenarioError, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

MARK = "summary.json"  # the figures: every result folder has them
MANIFEST = (
    ".specplan.json"  # all that specplan wrote into a folder, with digests: only that is ours
)
DATABASE = ".sqlite"


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that cannot be written, before any work is done for it.

    An empty folder is as good as none. Raises ScenarioError when `folder` holds something and
    `force` is not given, when it holds anything that specplan did not write (then even `force`
    leaves it alone), or when its parent cannot be written.
    """
    with _told(folder, "cannot be used"):
        if folder.exists() or folder.is_symlink():
            _check_existing(folder, force=force)
        parent = _existing_ancestor(folder.absolute().parent)
        if not parent.is_dir():
            raise _refused(
                folder, f"cannot be made: {parent} is not a folder", "a path inside a folder"
            )
        if not os.access(parent, os.W_OK | os.X_OK):
            wrong = f"no permission to write in {parent}"
            raise _refused(folder, wrong, "a folder you may write to")


def _check_existing(folder: Path, *, force: bool) -> None:
    if folder.is_dir() and folder.samefile(Path.cwd()):
        raise _refused(folder, "is the folder you are in", "a new folder")
    if _is_empty(folder):
        return
    ours = _manifest(folder)
    if ours is None:
        raise _refused(folder, "exists already and is not a result folder", "another folder")
    foreign = next((name for name in _inside(folder) if name not in ours), None)
    if foreign is not None:
        wrong = f"holds `{foreign}`, which specplan did not write"
        raise _refused(folder, wrong, "another folder, or move that away first")
    if not force:
        raise _refused(folder, "exists already", "another folder, or --force to replace it")


@contextmanager
def new_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary sibling to write into; it takes its final name only when all went well.

    A crash, an error or Ctrl-C inside the block leaves nothing under `folder`, and an old folder
    that `force` replaces stays whole until the new one is complete. Names and digests of all files
    go into `MANIFEST`; a database has no digest, as its pages lie in the order in which points were
    finished. Raises ScenarioError as `check_folder`.
    """
    check_folder(folder, force=force)
    folder = folder.absolute()
    with _told(folder, "cannot be made"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.", dir=folder.parent))
    try:
        with _told(folder, "cannot be written"):
            yield temporary
            names = _inside(temporary)
            told = [n for n in names if (temporary / n).is_file() and not n.endswith(DATABASE)]
            digests = {name: _sha256(temporary / name) for name in told}
            written = {"written_by": "specplan", "files": names, "sha256": digests}
            write_json(temporary / MANIFEST, written)
            empty_before = folder.is_dir()
            temporary.chmod(folder.stat().st_mode if empty_before else 0o777 & ~_umask())
            _take_name(temporary, folder, force=force)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_file(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before any work is done for it; see `check_folder`."""
    with _told(path, "cannot be used"):
        if path.is_dir():
            raise _refused(path, "is a folder", "the name of a file")
        if path.exists() and not path.is_file():
            raise _refused(path, "is a device, not a file", "the name of a file")
        if (path.exists() or path.is_symlink()) and not force:
            raise _refused(path, "exists already", "another name, or --force to replace it")
        parent = _existing_ancestor(path.absolute().parent)
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            wrong = f"no permission to write in {parent}"
            raise _refused(path, wrong, "a folder you may write to")


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all: a temporary sibling takes its name when complete."""
    check_file(path, force=force)
    temporary = path.absolute().with_name(f".{path.name[:100]}.{os.getpid()}")
    with _told(path, "cannot be written"):
        try:
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one JSON object, strict (NaN and infinities become null)."""
    path.write_text(dumps(value) + "\n", encoding="utf-8")


def dumps(value: Mapping[str, Any]) -> str:
    """Strict, readable JSON: no NaN, NumPy numbers as numbers.

    >>> print(dumps({"a": float("nan"), "b": 1.25}))
    {
      "a": null,
      "b": 1.25
    }
    """
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write equally long columns as one Parquet file, zstd-compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with path.open("wb") as stream:  # pyarrow takes no names that the locale cannot spell
        pq.write_table(table, stream, compression="zstd")


def read_table(path: Path) -> dict[str, NDArray[Any]]:
    """Read the columns of a Parquet file that `write_table` wrote."""
    import pyarrow.parquet as pq

    with path.open("rb") as stream:
        table = pq.read_table(stream)
    return {name: table[name].to_numpy() for name in table.column_names}


def read_summary(folder: Path) -> dict[str, Any]:
    """Read `summary.json` of a result folder; ScenarioError when there is none."""
    path = folder / MARK
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _refused(
            folder, f"is not a result folder: it has no {MARK}", "a folder written by -o"
        ) from None
    except (OSError, ValueError) as error:
        wrong = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise _refused(path, wrong, "a file written by specplan") from error
    if not isinstance(value, dict):
        raise _refused(path, "holds no JSON object", "a file written by specplan")
    return value


def _take_name(temporary: Path, folder: Path, *, force: bool) -> None:
    """Rename, after a second look: a long run leaves time for others to put something there."""
    if not folder.exists() or _is_empty(folder):
        if folder.exists():
            folder.rmdir()
        temporary.rename(folder)
        return
    if not force:  # somebody else finished first; never replace their result
        raise _refused(folder, "appeared while this run was going on", "another folder")
    _check_existing(folder, force=force)
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.old.", dir=folder.parent))
    folder.rename(old / folder.name)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def check_unchanged(folder: Path) -> None:
    """Refuse a result folder of which a file is not what specplan wrote; raises ScenarioError.

    A folder without digests (a part of another one, or of an older version) is taken as it is.
    """
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"]
        digests = {str(name): str(digest) for name, digest in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for name, digest in digests.items():
        file = folder / name
        if file.is_file() and _sha256(file) != digest:
            wrong = "is not what specplan wrote: its digest differs from that in " + MANIFEST
            raise _refused(file, wrong, "the folder as it was written, or a new run")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest(folder: Path) -> set[str] | None:
    """Return the names that specplan wrote into a folder; None where it is not ours."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {MANIFEST, *told["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _inside(folder: Path) -> list[str]:
    """Return everything in a folder by its relative name, folders too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    """Turn what the system refuses into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        wrong = f"{what}: {error.strerror or error}"
        raise ScenarioError(Fault(wrong, file=shortened(path, 120))) from error


def _refused(path: Path, wrong: str, right: str) -> ScenarioError:
    return ScenarioError(Fault(wrong, right, file=str(path)))


def _existing_ancestor(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
