"""Enqueueing on the caller's own sqlite3 cursor: what SQLite alone makes possible or impossible."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.store.errors import KeyContention, StoreRefused
from chokaq.store.sqlite import SqliteSession, SqliteStore
from tests.support.jobs import new_job
from tests.support.polling import wait_until

from .conftest import lock_is_held


@pytest.fixture
def mine(path: Path, open_session: SqliteSession) -> Iterator[sqlite3.Connection]:
    """The application's own connection, its transactions written out."""
    del open_session
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20, check_same_thread=False)) as connection:
        yield connection


def test_a_stale_snapshot_is_told_with_the_way_out(
    embedded: SqliteStore, open_session: SqliteSession, mine: sqlite3.Connection
) -> None:
    mine.execute("BEGIN")
    mine.execute("SELECT COUNT(*) FROM JobsHot").fetchone()
    open_session.enqueue_jobs([new_job()])
    with pytest.raises(KeyContention, match="roll back and run it again, or begin it with BEGIN IMMEDIATE"):
        embedded.enqueue_in(mine.cursor(), [new_job()])
    mine.execute("ROLLBACK")
    mine.execute("BEGIN")
    assert embedded.enqueue_in(mine.cursor(), [new_job()])[0].created
    mine.execute("COMMIT")


def test_the_callers_rows_texts_and_patience_stay_as_they_were(embedded: SqliteStore, mine: sqlite3.Connection) -> None:
    mine.row_factory, mine.text_factory = sqlite3.Row, bytes
    mine.execute("PRAGMA busy_timeout = 1234")
    mine.execute("BEGIN")
    job = new_job(idempotency_key="k")
    first = embedded.enqueue_in(mine.cursor(), [job])
    again = embedded.enqueue_in(mine.cursor(), [new_job(idempotency_key="k")])
    assert again[0].id == first[0].id == job.id
    assert mine.execute("PRAGMA busy_timeout").fetchone()[0] == 1234
    assert isinstance(mine.execute("SELECT Id FROM JobsHot").fetchone(), sqlite3.Row)
    assert mine.execute("SELECT Id FROM JobsHot").fetchone()[0] == job.id.encode()
    mine.execute("ROLLBACK")


def test_the_callers_cursor_keeps_its_unread_rows(embedded: SqliteStore, mine: sqlite3.Connection) -> None:
    mine.execute("BEGIN IMMEDIATE")
    cursor = mine.execute("SELECT value FROM json_each('[1, 2, 3]')")
    assert cursor.fetchone() == (1,)
    embedded.enqueue_in(cursor, [new_job()])
    assert cursor.fetchall() == [(2,), (3,)]
    mine.execute("COMMIT")


def test_a_cursor_of_another_file_or_another_driver_is_refused(
    tmp_path: Path, embedded: SqliteStore, open_session: SqliteSession
) -> None:
    del open_session
    for place in (tmp_path / "other.db", ":memory:"):
        with closing(sqlite3.connect(place)) as other, pytest.raises(StoreRefused, match="not this store's"):
            embedded.enqueue_in(other.cursor(), [new_job()])
    with pytest.raises(StoreRefused, match="needs a sqlite3 cursor"):
        embedded.enqueue_in(object(), [new_job()])


def test_a_caller_that_writes_already_does_not_queue_behind_a_writer_that_waits_for_it(
    path: Path, embedded: SqliteStore, open_session: SqliteSession, mine: sqlite3.Connection
) -> None:
    """The session holds the writers' lock and waits for the caller's transaction; the caller must not wait for the lock."""
    mine.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=lambda: open_session.enqueue_jobs([new_job()]))
    waiting.start()
    wait_until(lambda: lock_is_held(path), "the session at the head of the queue")
    assert embedded.enqueue_in(mine.cursor(), [new_job()])[0].created
    assert waiting.is_alive()
    mine.execute("COMMIT")
    waiting.join(20)
    assert open_session.list_queues()[0].pending == 2


def test_a_caller_that_does_not_write_yet_waits_its_turn(
    path: Path, embedded: SqliteStore, mine: sqlite3.Connection
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        mine.execute("BEGIN")
        calling = threading.Thread(target=lambda: embedded.enqueue_in(mine.cursor(), [new_job()]))
        calling.start()
        wait_until(lambda: lock_is_held(path), "the caller in the writers' queue")
        foreign.execute("COMMIT")
        calling.join(20)
    mine.execute("COMMIT")
    assert mine.execute("SELECT COUNT(*) FROM JobsHot").fetchone() == (1,)


def test_a_refused_call_leaves_the_callers_transaction_as_it_was(
    embedded: SqliteStore, mine: sqlite3.Connection
) -> None:
    mine.execute("BEGIN")
    embedded.enqueue_in(mine.cursor(), [new_job()])
    with pytest.raises(StoreRefused):
        embedded.enqueue_in(mine.cursor(), [new_job(), new_job(priority=2**70)])
    mine.execute("COMMIT")
    assert mine.execute("SELECT COUNT(*) FROM JobsHot").fetchone() == (1,)
