"""Installing into a file and finding drift in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.store.errors import SchemaMismatch, StoreMisconfigured
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlite import SqliteStore, schema


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_the_first_session_installs_the_schema_in_wal_mode(path: Path, embedded: SqliteStore) -> None:
    assert embedded.schema_version() is None
    embedded.session().close()
    assert embedded.schema_version() == schema.latest()
    assert embedded.check_schema() == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("DROP INDEX IX_JobsHot_Due", "The index IX_JobsHot_Due is missing."),
        ("DROP TABLE JobNotes", "The table JobNotes is missing."),
        ("DROP VIEW Jobs", "The view Jobs is missing."),
        ("ALTER TABLE Queues ADD COLUMN Colour TEXT", "The table Queues differs from the package."),
        ("CREATE INDEX Mine ON JobsHot (Tags)", "The index Mine on JobsHot is not part of the package."),
        (
            "CREATE TRIGGER Watch AFTER DELETE ON JobsHot BEGIN SELECT 1; END",
            "The trigger Watch on JobsHot is not part of the package.",
        ),
        ("PRAGMA journal_mode = DELETE", "The journal mode is delete, not wal."),
    ],
)
def test_each_drift_is_named(path: Path, embedded: SqliteStore, damage: str, found: str) -> None:
    embedded.apply_schema()
    change(path, damage)
    assert found in embedded.check_schema()


def test_a_file_without_ledger_has_no_schema(path: Path, embedded: SqliteStore) -> None:
    change(path, "CREATE TABLE Orders (Id INTEGER PRIMARY KEY)")
    assert embedded.schema_version() is None
    assert embedded.check_schema() == ["No chokaq schema is installed."]


def test_an_applications_own_tables_are_no_drift(path: Path, embedded: SqliteStore) -> None:
    embedded.apply_schema()
    change(path, "CREATE TABLE Orders (Id INTEGER PRIMARY KEY)", "CREATE INDEX ByOrder ON Orders (Id)")
    assert embedded.check_schema() == []


def test_a_file_with_other_tables_waits_for_an_explicit_apply(path: Path, embedded: SqliteStore) -> None:
    change(path, "CREATE TABLE Orders (Id INTEGER PRIMARY KEY)")
    with pytest.raises(SchemaMismatch, match="chokaq schema apply"):
        embedded.session()
    embedded.apply_schema()
    embedded.session().close()


def test_a_newer_schema_is_refused_by_session_and_apply(path: Path, embedded: SqliteStore) -> None:
    embedded.apply_schema()
    change(path, "INSERT INTO SchemaMigrations VALUES (99, '099_future', 0)")
    with pytest.raises(SchemaMismatch, match="install a newer chokaq"):
        embedded.session()
    with pytest.raises(SchemaMismatch, match="install a newer chokaq"):
        embedded.apply_schema()


def test_the_script_builds_what_apply_builds(tmp_path: Path, embedded: SqliteStore) -> None:
    scripted = tmp_path / "scripted.db"
    with closing(sqlite3.connect(scripted, isolation_level=None)) as connection:
        connection.executescript(embedded.schema_script())
    store = SqliteStore(DatabaseSettings(url=f"sqlite:///{scripted}"))
    assert store.check_schema() == []
    assert store.schema_version() == schema.latest()


def test_a_missing_folder_and_a_folder_as_file_are_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreMisconfigured, match=r"database\.url: the folder .*gone.* does not exist"):
        SqliteStore(DatabaseSettings(url=f"sqlite:///{tmp_path}/gone/a.db")).session()
    with pytest.raises(StoreMisconfigured, match=r"database\.url: .* is a folder"):
        SqliteStore(DatabaseSettings(url=f"sqlite:///{tmp_path}")).session()


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///", "sqlite:///a.db?mode=ro", "sqlite://a.db"])
def test_a_url_that_names_no_shared_file_is_refused_with_the_form_to_write(url: str) -> None:
    with pytest.raises(StoreMisconfigured, match=r"database\.url.*sqlite:///"):
        SqliteStore(DatabaseSettings(url=url))


def test_a_store_is_known_by_the_real_path_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    names = {
        SqliteStore(DatabaseSettings(url=url)).identity
        for url in (f"sqlite:///{tmp_path}/real/a%20b.db", f"sqlite:///{tmp_path}/link/a b.db", "sqlite:///link/a b.db")
    }
    assert names == {str(tmp_path / "real" / "a b.db")}
