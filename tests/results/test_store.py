"""Folders: whole or not there, never overwritten by accident."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specplan.results import store
from specplan.scenarios.errors import ScenarioError


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
        _write(tmp_path / "run", text="2")
    assert store.read_summary(tmp_path / "run") == {"value": 2}


@pytest.mark.parametrize("name", ["summary.json", "thesis.tex", "deeper/thesis.tex"])
def test_a_folder_that_only_looks_like_ours_is_left_alone(tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    (own / "deeper").mkdir(parents=True)
    (own / store.MARK).write_text("{}")
    (own / name).write_text("{}")
    with pytest.raises(ScenarioError, match="not a result folder"):
        _write(own, force=True)
    assert (own / name).exists()


@pytest.mark.parametrize("name", ["thesis.tex", "deeper/thesis.tex", "deeper"])
def test_a_foreign_file_among_results_is_named_and_kept(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "run")
    foreign = tmp_path / "run" / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.mkdir() if name == "deeper" else foreign.write_text("x")
    named = name.split("/", maxsplit=1)[0]
    with pytest.raises(ScenarioError, match=f"holds `{named}`, which specplan did not write"):
        _write(tmp_path / "run", force=True)
    assert foreign.exists()


def test_a_foreign_file_that_came_during_a_long_run_is_kept(tmp_path: Path) -> None:
    _write(tmp_path / "run")
    with (
        pytest.raises(ScenarioError, match=r"holds `notes\.txt`"),
        store.new_folder(tmp_path / "run", force=True),
    ):
        (tmp_path / "run" / "notes.txt").write_text("x")
    assert (tmp_path / "run" / "notes.txt").read_text() == "x"


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"files": 3}', "\x00"])
def test_a_damaged_manifest_makes_no_folder_ours(tmp_path: Path, text: str) -> None:
    _write(tmp_path / "run")
    (tmp_path / "run" / store.MANIFEST).write_text(text)
    with pytest.raises(ScenarioError, match="not a result folder"):
        store.check_folder(tmp_path / "run", force=True)


def test_an_empty_folder_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)  # as `mktemp -d` makes it
    _write(tmp_path / "run")
    assert store.read_summary(tmp_path / "run") == {"value": 1}
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_the_folder_one_is_in_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match="is the folder you are in"):
        store.check_folder(tmp_path, force=True)


@pytest.mark.parametrize("length", [250, 300, 5000])
def test_a_name_too_long_is_one_sentence(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("n" * length)
    if length > 255:  # what a file system allows
        with pytest.raises(ScenarioError, match="File name too long"):
            store.check_folder(path, force=False)
        with pytest.raises(ScenarioError, match="File name too long"):
            store.check_file(path, force=False)
    else:
        store.write_text(path, "", force=False)
        _write(tmp_path / ("m" * length))


def test_a_link_to_nothing_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(ScenarioError, match="exists already"):
        store.check_file(tmp_path / "link", force=False)
    with pytest.raises(ScenarioError, match="not a result folder"):
        store.check_folder(tmp_path / "link", force=True)


def test_a_device_is_no_file_to_replace() -> None:
    with pytest.raises(ScenarioError, match="is a device"):
        store.check_file(Path("/dev/null"), force=True)


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


def test_a_file_changed_after_it_was_written_is_seen(tmp_path: Path) -> None:
    with store.new_folder(tmp_path / "run", force=False) as folder:
        store.write_json(folder / store.MARK, {"a": 1})
        (folder / "part").mkdir()
        (folder / "part" / "rows.csv").write_text("1\n")
    store.check_unchanged(tmp_path / "run")
    (tmp_path / "run" / "part" / "rows.csv").write_text("2\n")
    with pytest.raises(ScenarioError, match=r"rows\.csv: is not what specplan wrote"):
        store.check_unchanged(tmp_path / "run")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sha256": 3}', '{"files": ["a"]}'])
def test_a_folder_without_digests_is_taken_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / store.MANIFEST).write_text(text)
    store.check_unchanged(tmp_path)
