"""Turns what sqlite3 raises into the store's errors, sorted by what the caller should do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import SchemaMismatch, StoreError, StoreMisconfigured, StoreRefused, StoreUnavailable

_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_SCHEMA,
}
_SETTING = {
    sqlite3.SQLITE_READONLY: "is read-only: make the file and its folder writable for this user",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: its folder must exist and be writable for this user",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_AUTH: "may not be opened by this user",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database: name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a backup, or name another file",
}
REFUSED_BY_DRIVER = (OverflowError, UnicodeError, TypeError)
"""What sqlite3 raises, outside its own hierarchy, for a value it cannot bind."""


def translated(error: Exception, path: str) -> StoreError:
    """The store's error for one of sqlite3's. `path`: the database file, for the message."""
    if not isinstance(error, sqlite3.Error):
        return StoreRefused(f"SQLite cannot hold a value of this call: {error}")
    found = _translated(error, path)
    found.number = getattr(error, "sqlite_errorname", "")
    sql.failed(found.number)
    return found


def _translated(error: sqlite3.Error, path: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in _PASSING:
        return StoreUnavailable(f"{path}: {error}")
    if primary in _SETTING:
        return StoreMisconfigured(f"database.url: {path} {_SETTING[primary]} ({error})")
    text = str(error)
    if "no such table" in text or "no such column" in text or "has no column" in text:
        return SchemaMismatch(f"{path} lacks a part of chokaq's schema ({text}): run `chokaq schema apply`")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in text:
        return StoreUnavailable(f"{path}: the session is closed")
    return StoreRefused(f"{path}: {text}")


@contextmanager
def translating(path: str) -> Iterator[None]:
    """Raises the store's errors for what sqlite3 raises inside."""
    try:
        yield
    except (sqlite3.Error, *REFUSED_BY_DRIVER) as error:
        raise translated(error, path) from error
