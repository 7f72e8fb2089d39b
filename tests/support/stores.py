"""Which stores this run can test, and how each is opened, kept clean and looked into.

SQLite always. SQL Server when the environment variable CHOKAQ_TEST_SQLSERVER holds a URL
(`mssql://user:password@host:port/database?encrypt=no`): the database is created when missing, the schema applied once a
run, the tables emptied before every test, and sessions reused, because a first call costs a second there.
"""

import atexit
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from chokaq.store.errors import StoreError
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store

from . import mssql
from .lab import Lab
from .lab_sqlite import SqliteLab
from .lab_sqlserver import SqlServerLab, close_shared

VARIABLE = "CHOKAQ_TEST_SQLSERVER"
SQLITE = "sqlite"
SQLSERVER = "sqlserver"
SCHEMA = "chokaq"
SECOND_SCHEMA = "chokaq_two"


def live_url() -> str | None:
    """The T-SQL server of this run, or None."""
    return os.environ.get(VARIABLE) or None


def available() -> list[str]:
    """The kinds of store this run can test."""
    return [SQLITE, SQLSERVER] if live_url() else [SQLITE]


def options(kind: str, folder: Path, schema: str = SCHEMA) -> DatabaseSettings:
    """How to reach the store of a test: a fresh file in `folder`, or the server of this run."""
    if kind == SQLITE:
        return DatabaseSettings(url=f"sqlite:///{folder / f'{schema}.db'}")
    url = live_url()
    assert url is not None, f"{VARIABLE} is not set"
    # The first call of a procedure on a new connection may cost a second of CPU there; twenty processes share two cores.
    return DatabaseSettings(url=url, schema=schema, command_timeout=120.0)


def laboratory(settings: DatabaseSettings) -> Lab:
    """The back door of a store."""
    if settings.url.startswith("sqlite:"):
        return SqliteLab(Path(settings.url.removeprefix("sqlite:///")))
    return SqlServerLab(settings.url, settings.schema)


def prepare(settings: DatabaseSettings) -> Store:
    """A store with its schema applied and all tables empty."""
    if settings.url.startswith("mssql:"):
        store = _live(settings.url, settings.schema)
        lab = laboratory(settings)
        lab.clean()
        lab.close()
        return store
    path = Path(settings.url.removeprefix("sqlite:///"))
    shutil.copyfile(_template(), path)
    return open_store(settings)


@cache
def _template() -> Path:
    """A file with the schema applied, made once a run and copied for every test: a fresh one costs eight fsyncs."""
    folder = Path(tempfile.mkdtemp(prefix="chokaq-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "template.db"
    open_store(DatabaseSettings(url=f"sqlite:///{path}")).apply_schema()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@cache
def _live(url: str, schema: str) -> Store:
    mssql.create_database(url)
    store = open_store(DatabaseSettings(url=url, schema=schema))
    store.apply_schema()
    return store


_idle: dict[tuple[str, str], list[Session]] = {}


class Sessions:
    """Opens sessions for one test and takes them back at its end. Call it to get another one."""

    def __init__(self, store: Store, settings: DatabaseSettings) -> None:
        """Sessions of `store`."""
        self._store, self._settings = store, settings
        self._given: list[Session] = []

    def __call__(self) -> Session:
        """A session no one else uses."""
        session = self._reuse() or self._store.session()
        self._given.append(session)
        return session

    def many(self, count: int) -> list[Session]:
        """`count` sessions."""
        return [self() for _ in range(count)]

    def take_back(self) -> None:
        """Close what was given out, or keep it for the next test where opening is dear."""
        for session in self._given:
            if self._settings.url.startswith("sqlite:"):
                session.close()
            else:
                _idle.setdefault((self._settings.url, self._settings.schema), []).append(session)
        self._given.clear()

    def _reuse(self) -> Session | None:
        idle = _idle.get((self._settings.url, self._settings.schema), [])
        while idle:
            session = idle.pop()
            # A test may have closed it, or the server may have ended it.
            with suppress(StoreError):
                session.hot_queues()
                return session
            session.close()
        return None


def close_idle() -> None:
    """End of the run: close the sessions kept for reuse."""
    for sessions in _idle.values():
        for session in sessions:
            session.close()
    _idle.clear()
    close_shared()


def opened(store: Store, settings: DatabaseSettings) -> Iterator[Sessions]:
    """The body of the `sessions` fixture."""
    sessions = Sessions(store, settings)
    try:
        yield sessions
    finally:
        sessions.take_back()


OpenSession = Callable[[], Session]
