"""One connection to the database file: opened after the fork, read without and written with the writers' lock."""

import ctypes
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.protocol import MAX_JOBS_PER_CALL
from chokaq.store.sqlite import schema
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.sqlite.errors import REFUSED_BY_DRIVER, translated, translating
from chokaq.store.sqlite.flock import FileLock

_CACHED_STATEMENTS = 256


def document(rows: Sequence[Any]) -> str:
    """A set as the JSON text that `json_each` reads. Raises StoreRefused for a text that is not valid Unicode."""
    try:
        return orjson.dumps(rows).decode()
    except TypeError as error:
        raise StoreRefused(f"a value of this call cannot be stored: {error}") from error


def bounded(rows: Sequence[Any]) -> None:
    """Raises StoreRefused for a set larger than a call may carry."""
    if len(rows) > MAX_JOBS_PER_CALL:
        raise StoreRefused(f"{len(rows)} jobs in one call; at most {MAX_JOBS_PER_CALL} are allowed")


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection set up for chokaq; call it under the writers' lock, since the first reader may have to recover the WAL."""
    connection = sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=_CACHED_STATEMENTS
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


class Connected:
    """The base of a session: holds the connection, begins and ends its transactions, notices a fork."""

    def __init__(self, path: Path, timeout: float) -> None:
        """`path`: the real path of the file; `timeout`: seconds SQLite itself waits for a lock others hold."""
        self._path = path
        self._timeout = timeout
        self._lock = FileLock(lock_path(path), timeout)
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._closed = False
        try:
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the connection; harmless when already closed or broken."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pid != os.getpid():
            _abandon(connection)
            return
        # The last connection to close writes the WAL back and deletes it: a writer's work, done in the writers' queue.
        with suppress(StoreRefused, StoreUnavailable, sqlite3.Error, OSError):
            self._lock.acquire()
        with suppress(sqlite3.Error):
            connection.close()
        self._lock.close()

    def _open(self) -> None:
        self._lock.acquire()
        try:
            with translating(str(self._path)):
                connection = connect(self._path, self._timeout)
                try:
                    schema.ensure(connection, self._path)
                except BaseException:
                    connection.close()
                    raise
        finally:
            self._lock.release()
        self._connection, self._pid = connection, os.getpid()

    def _live(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise StoreUnavailable(f"{self._path}: the session is closed")
            self._open()
        elif self._pid != os.getpid():
            _abandon(self._connection)
            self._connection = None
            self._open()
        assert self._connection is not None
        return self._connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """For single SELECTs: each sees one committed state, and nobody waits."""
        connection = self._live()
        try:
            yield connection
        except (sqlite3.Error, *REFUSED_BY_DRIVER) as error:
            raise translated(error, str(self._path)) from error

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        """One write transaction, and the clock as it stood once the transaction had begun."""
        connection = self._live()
        self._lock.acquire()
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection, now_ms()
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if isinstance(error, (sqlite3.Error, *REFUSED_BY_DRIVER)):
                raise translated(error, str(self._path)) from error
            raise
        finally:
            self._lock.release()

    def _select(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[Any]:
        with self._reading() as connection:
            return connection.execute(sql, parameters).fetchall()


def lock_path(path: Path) -> Path:
    """The writers' lock of a database file."""
    return path.with_name(path.name + ".lock")


def _abandon(connection: sqlite3.Connection) -> None:
    """Never close a connection inherited over a fork: SQLite would tidy up files that the parent is still using."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
