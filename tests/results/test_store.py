"""Folders: whole or not there, never overwritten by accident."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.results import store
from specplan.scenarios.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path


def _write(folder: Path, *, force: bool = False, text: str = "1") -> None:
    with store.new_folder(folder, force=force) as made:
        (made / store.MARK).write_text(f'{{"value": {text}}}')


def test_new_folder_takes_its_name_when_complete(tmp_path: Path) -> None:
    with store.new_folder(tmp_path / "a" / "run", force=False) as made:
        assert not (tmp_path / "a" / "run").exists()
        (made / store.MARK).write_text("{}")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_a_failure_inside_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), store.new_folder(tmp_path / "run", force=False):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_existing_folder_is_refused_without_force(tmp_path: Path) -> None:
    _write(tmp_path / "run")
    with pytest.raises(ScenarioError, match=r"run: exists already \(another folder, or --force"):
        store.check_folder(tmp_path / "run", force=False)


def test_force_replaces_our_own_results(tmp_path: Path) -> None:
    _write(tmp_path / "run", text="1")
    _write(tmp_path / "run", text="2", force=True)
    assert json.loads((tmp_path / "run" / store.MARK).read_text()) == {"value": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_force_leaves_other_peoples_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("dear")
    with pytest.raises(ScenarioError, match="not a result folder"):
        store.check_folder(tmp_path / "home", force=True)


def test_a_failed_replacement_keeps_the_old_one(tmp_path: Path) -> None:
    _write(tmp_path / "run", text="1")
    with pytest.raises(ZeroDivisionError), store.new_folder(tmp_path / "run", force=True):
        raise ZeroDivisionError
    assert store.read_summary(tmp_path / "run") == {"value": 1}


def test_a_folder_that_appeared_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with (
        pytest.raises(ScenarioError, match="appeared while"),
        store.new_folder(tmp_path / "run", force=False),
    ):
        (tmp_path / "run").mkdir()


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScenarioError, match="is not a folder"):
        store.check_folder(tmp_path / "file" / "run", force=False)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(ScenarioError, match="no permission to write"):
        store.check_folder(tmp_path / "run", force=False)


def test_foreign_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"it has no summary\.json"):
        store.read_summary(tmp_path)
    (tmp_path / store.MARK).write_text("[1]")
    with pytest.raises(ScenarioError, match="no JSON object"):
        store.read_summary(tmp_path)


def test_json_is_strict() -> None:
    text = store.dumps({"a": np.float64("inf"), "b": np.array([1.0, np.nan]), "c": (np.int64(3),)})
    assert json.loads(text) == {"a": None, "b": [1.0, None], "c": [3]}


def test_tables_come_back(tmp_path: Path) -> None:
    columns = {"a": np.array([1.5, np.nan]), "b": np.array([1, 2])}
    store.write_table(tmp_path / "t.parquet", columns)
    found = store.read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(found["a"], columns["a"])
    np.testing.assert_array_equal(found["b"], columns["b"])
