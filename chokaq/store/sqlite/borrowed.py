"""EnqueueJobs on the caller's own sqlite3 cursor, inside the caller's transaction."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chokaq.store.errors import KeyContention, StoreRefused
from chokaq.store.records import Enqueued, NewJob
from chokaq.store.sqlite import enqueue
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.sqlite.connection import lock_path
from chokaq.store.sqlite.errors import translating
from chokaq.store.sqlite.flock import FileLock

_STALE = (
    "the transaction began to read before another writer committed, so SQLite will not let it write: roll back and run it "
    "again, or begin it with BEGIN IMMEDIATE"
)


def enqueue_in(cursor: Any, jobs: Sequence[NewJob], path: Path, timeout: float) -> list[Enqueued]:
    """Insert the jobs on `cursor`'s connection, which must be inside a transaction on the file `path`; never commits.
    `timeout`: seconds to wait in the writers' queue.

    Raises StoreRefused for an autocommit cursor or another database, KeyContention for a transaction on a stale snapshot.
    """
    if not isinstance(cursor, sqlite3.Cursor):
        raise StoreRefused(f"enqueue_in needs a sqlite3 cursor for this store, not {type(cursor).__name__}")
    connection = cursor.connection
    _refuse_autocommit(connection)
    enqueue.validate(jobs)
    with translating(str(path)), _plain_rows(connection):
        _refuse_other_file(connection, path)
        if not jobs:
            return []
        _become_writer(connection, path, timeout)
        own = connection.cursor()
        own.execute("SAVEPOINT chokaq_enqueue")
        try:
            answers = enqueue.enqueue(connection, jobs, now_ms())
        except BaseException:
            own.execute("ROLLBACK TO chokaq_enqueue")
            own.execute("RELEASE chokaq_enqueue")
            raise
        own.execute("RELEASE chokaq_enqueue")
        return answers


def _refuse_autocommit(connection: sqlite3.Connection) -> None:
    # Python 3.12 adds `autocommit`; True means what isolation_level None means before.
    autocommit = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
    if autocommit and not connection.in_transaction:
        raise StoreRefused(
            "enqueue_in needs a transaction: this cursor's connection is in autocommit mode; execute BEGIN first"
        )


def _refuse_other_file(connection: sqlite3.Connection, path: Path) -> None:
    main = next((file for _, name, file in connection.execute("PRAGMA database_list") if name == "main"), "")
    if not main or Path(main).resolve() != path:
        raise StoreRefused(f"enqueue_in: the cursor's database is {main or 'in memory'}, not this store's {path}")


def _become_writer(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Make the caller's transaction a writing one, in the writers' queue when others are writing.

    Asks SQLite without patience first: a caller that writes already must not queue behind a writer that waits for the caller.
    """
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute(enqueue.BEGIN)
    except sqlite3.OperationalError as error:
        _refuse_stale(error)
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
    else:
        return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    lock = FileLock(lock_path(path), timeout)
    lock.acquire()
    try:
        connection.execute(enqueue.BEGIN)
    except sqlite3.OperationalError as error:
        _refuse_stale(error)
        raise
    finally:
        lock.close()


def _refuse_stale(error: sqlite3.OperationalError) -> None:
    if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT:
        raise KeyContention(_STALE) from error


@contextmanager
def _plain_rows(connection: sqlite3.Connection) -> Iterator[None]:
    """The caller may have set its own rows and texts; ours are tuples and str."""
    row_factory, text_factory = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = row_factory, text_factory
