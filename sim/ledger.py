"""The ledger of a sweep: every finished point in a SQLite file, safe against kill −9."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from specplan.scenarios.schema import Scenario

    Figures = dict[str, float]

# What SQLite calls a file of another kind, and tables that are not ours.
NO_LEDGER = {"SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR"}
FILE_FIELDS = ("trace", "lengths", "table", "model", "recorded_file")


def scenario_hash(scenario: Scenario) -> str:
    """Hash everything that is set in a scenario, defaults and files' contents too, 16 hex digits.

    >>> from specplan.scenarios.load import load
    >>> scenario_hash(load("toy-20ms")) == scenario_hash(load("toy-20ms", ["seed=1"]))
    True
    """
    resolved = scenario.resolved()
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode())
    for path in _files(resolved):
        stat = path.stat()
        digest.update(_content_digest(path, stat.st_mtime_ns, stat.st_size))
    return digest.hexdigest()[:16]


def _files(block: Mapping[str, Any]) -> Iterator[Path]:
    """Files a scenario names: a trace, lengths, cost tables, model configs, recorded rounds."""
    for key, value in block.items():
        if isinstance(value, dict):
            yield from _files(value)
        elif key in FILE_FIELDS and isinstance(value, str) and Path(value).is_file():
            yield Path(value)


@lru_cache(maxsize=64)
def _content_digest(path: Path, changed_ns: int, size: int) -> bytes:  # noqa: ARG001
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def point_key(scenario: Scenario, measure: str) -> str:
    """Name the result of one point: its scenario, the figures taken, the version of specplan."""
    return f"{scenario_hash(scenario)}/{measure}/{version('specplan')}"


def is_ledger(path: Path) -> bool:
    """Tell whether a file is the ledger of some sweep, without changing it."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("SELECT key, figures FROM points LIMIT 1")
            database.execute("SELECT key, value FROM about LIMIT 1")
    except sqlite3.Error:
        return False
    return True


class Ledger:
    """Figures of points by key; `add` is one transaction, so a kill loses only what is running.

    A ledger belongs to one scenario (that the points vary) and one version of specplan.
    """

    def __init__(self, path: Path, scenario: Scenario) -> None:
        """Open or create; raises ScenarioError for a ledger of something else, or no ledger."""
        self.path = path
        belongs = {
            "scenario": scenario.name,
            "hash": scenario_hash(scenario),
            "version": version("specplan"),
        }
        new = not path.exists()
        try:
            with self._told():
                self._database = sqlite3.connect(path, timeout=30, isolation_level=None)
                self._claim(belongs)
        except ScenarioError:
            if new and hasattr(self, "_database"):
                self.remove()
            raise

    def _claim(self, belongs: Mapping[str, str]) -> None:
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT)")
            database.execute(
                "CREATE TABLE IF NOT EXISTS points (key TEXT PRIMARY KEY, figures TEXT)"
            )
            found = dict(database.execute("SELECT key, value FROM about"))
            if not found:
                database.executemany("INSERT INTO about VALUES (?, ?)", belongs.items())
            database.execute("COMMIT")
        if found and found != dict(belongs):
            theirs, ours = (
                f"{b.get('scenario')} (hash {b.get('hash')}, specplan {b.get('version')})"
                for b in (found, belongs)
            )
            self.close()
            raise self._refused(f"holds results of {theirs}, not of {ours}", "another -o FOLDER")

    def known(self) -> dict[str, Figures]:
        """All finished points."""
        with self._told():
            rows = self._database.execute("SELECT key, figures FROM points")
            return {key: json.loads(figures) for key, figures in rows}

    def add(self, key: str, figures: Mapping[str, float]) -> None:
        """Write one finished point as a transaction; raises ScenarioError where it does not fit."""
        with self._told():
            self._database.execute(
                "INSERT OR REPLACE INTO points VALUES (?, ?)", (key, json.dumps(figures))
            )

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy as one file."""
        with self._told(), closing(sqlite3.connect(path)) as other:
            self._database.backup(other)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def remove(self) -> None:
        """Let go of the file and delete it."""
        self.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the database says in one sentence: it is none, or it cannot be written."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") in NO_LEDGER:
                wrong = f"is no ledger of a sweep: {error}"
                raise self._refused(wrong, "another -o FOLDER") from error
            right = "room and permission, or another -o FOLDER; --resume goes on"
            raise self._refused(f"cannot be written: {error}", right) from error

    def _refused(self, wrong: str, right: str) -> ScenarioError:
        return ScenarioError(Fault(wrong, right, file=str(self.path)))


def numbers_of(figures: Mapping[str, Any]) -> Figures:
    """Keep the figures that are numbers, None as NaN; the rest does not fit a column.

    >>> numbers_of({"a": 1, "b": None, "c": [0.0, 1.0], "d": True})
    {'a': 1.0, 'b': nan, 'd': 1.0}
    """
    plain = {key: float("nan") if value is None else value for key, value in figures.items()}
    return {key: float(value) for key, value in plain.items() if isinstance(value, int | float)}
