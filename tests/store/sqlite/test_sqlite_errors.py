"""What sqlite3 raises becomes an error that says what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.store.errors import SchemaMismatch, StoreError, StoreMisconfigured, StoreRefused, StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlite import SqliteSession, SqliteStore
from chokaq.store.sqlite.errors import translated, translating
from tests.support.jobs import new_job


def raised(connection: sqlite3.Connection, sql: str, *values: object) -> StoreError:
    with pytest.raises(StoreError) as caught, translating("/place/jobs.db"):
        connection.execute(sql, values)
    return caught.value


def test_a_duplicate_and_a_missing_value_are_refused() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE T (A INTEGER PRIMARY KEY, B TEXT NOT NULL)")
        assert isinstance(raised(connection, "INSERT INTO T VALUES (1, NULL)"), StoreRefused)


@pytest.mark.parametrize("value", [2**70, "\ud800", object()])
def test_a_value_that_cannot_be_bound_is_refused(value: object) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert isinstance(raised(connection, "SELECT ?", value), StoreRefused)


def test_a_missing_table_or_column_points_to_the_schema() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        error = raised(connection, "SELECT * FROM JobsHot")
    assert isinstance(error, SchemaMismatch)
    assert "chokaq schema apply" in str(error)


def test_a_full_disk_is_passing(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA max_page_count = 2")
        connection.execute("CREATE TABLE T (A BLOB)")
        assert isinstance(raised(connection, "INSERT INTO T VALUES (zeroblob(100000))"), StoreUnavailable)


def test_a_lock_is_passing(path: Path) -> None:
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as holder,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other,
    ):
        holder.execute("BEGIN IMMEDIATE")
        assert isinstance(raised(other, "BEGIN IMMEDIATE"), StoreUnavailable)


def test_a_read_only_file_is_a_setting(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE T (A)").connection.close()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        error = raised(connection, "INSERT INTO T VALUES (1)")
    assert isinstance(error, StoreMisconfigured)
    assert "database.url: /place/jobs.db is read-only" in str(error)


def test_a_file_that_is_no_database_is_named(path: Path) -> None:
    path.write_text("this is a letter, not a database" * 100)
    with pytest.raises(StoreMisconfigured, match=r"database\.url: .*jobs\.db is not an SQLite database"):
        SqliteStore(DatabaseSettings(url=f"sqlite:///{path}")).session()


def test_an_io_error_is_passing() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert isinstance(translated(error, "/place/jobs.db"), StoreUnavailable)


def test_a_table_that_vanished_under_a_session_points_to_the_schema(path: Path, open_session: SqliteSession) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE JobsDLQ")
    with pytest.raises(SchemaMismatch, match="chokaq schema apply"):
        open_session.enqueue_jobs([new_job()])
