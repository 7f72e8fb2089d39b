"""The embedded store: one SQLite file that many processes share."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from chokaq.store.errors import StoreMisconfigured
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Enqueued, NewJob
from chokaq.store.sqlite import schema
from chokaq.store.sqlite.borrowed import enqueue_in
from chokaq.store.sqlite.clock import from_ms, now_ms
from chokaq.store.sqlite.connection import connect, lock_path
from chokaq.store.sqlite.errors import translating
from chokaq.store.sqlite.flock import FileLock
from chokaq.store.sqlite.session import SqliteSession
from chokaq.store.url import SQLITE, DatabaseUrl


def database_path(url: str) -> Path:
    """The real path of the file a URL names. Raises StoreMisconfigured, naming the setting."""
    parsed = DatabaseUrl.parse(url)
    if parsed.scheme != SQLITE:
        raise StoreMisconfigured(
            f"database.url: {parsed.redacted} is not an SQLite URL: write sqlite:///path/to/file.db"
        )
    if parsed.options:
        raise StoreMisconfigured(
            f"database.url: an SQLite URL takes no options ({', '.join(parsed.options)}): write sqlite:///path/to/file.db"
        )
    if parsed.path.startswith(":") or "\0" in parsed.path:
        raise StoreMisconfigured(
            f"database.url: {parsed.path!r} is no file, and processes share their jobs through one: write "
            "sqlite:///path/to/file.db"
        )
    return Path(parsed.path).resolve()


class SqliteStore:
    """Implements `chokaq.store.protocol.Store`; see there for every method."""

    def __init__(self, options: DatabaseSettings) -> None:
        """Raises StoreMisconfigured for a URL that names no file."""
        self._options = options
        self._path = database_path(options.url)

    @property
    def url(self) -> str:
        """Where the file is; there is no secret in it."""
        return self._options.url

    @property
    def path(self) -> Path:
        """The real path of the file."""
        return self._path

    @property
    def identity(self) -> str:
        """The real path of the file."""
        return str(self._path)

    def session(self) -> SqliteSession:
        """Open a connection; an empty or missing file gets the schema."""
        self._check_place()
        return SqliteSession(self._path, self._options.command_timeout)

    def enqueue_in(self, cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue on the caller's own sqlite3 cursor, inside its transaction."""
        return enqueue_in(cursor, jobs, self._path, self._options.command_timeout)

    def now(self) -> datetime:
        """The host's clock."""
        return from_ms(now_ms())

    def apply_schema(self) -> list[str]:
        """Bring the file to this program's version, safe from many processes at once."""
        self._check_place()
        with self._opened() as connection:
            return schema.apply(connection, self._path)

    def check_schema(self) -> list[str]:
        """Differences between the file's schema and the package, one sentence each."""
        if not self._path.exists():
            return [f"There is no file {self._path}."]
        with self._opened() as connection:
            return schema.check(connection)

    def schema_version(self) -> int | None:
        """The version in the ledger; None when nothing is installed."""
        if not self._path.exists():
            return None
        with self._opened() as connection:
            return schema.version(connection)

    def schema_script(self) -> str:
        """Everything `apply_schema` would run, for the sqlite3 shell."""
        return schema.script()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for the schema's sake, in the writers' queue from its opening to its closing."""
        timeout = self._options.command_timeout
        lock = FileLock(lock_path(self._path), timeout)
        lock.acquire()
        try:
            with translating(str(self._path)), closing(connect(self._path, timeout)) as connection:
                yield connection
        finally:
            lock.close()

    def _check_place(self) -> None:
        folder = self._path.parent
        if not folder.is_dir():
            raise StoreMisconfigured(
                f"database.url: the folder {folder} of {self._path.name} does not exist: create it"
            )
        if self._path.is_dir():
            raise StoreMisconfigured(f"database.url: {self._path} is a folder: name a file in it")
