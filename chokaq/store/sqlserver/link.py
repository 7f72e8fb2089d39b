"""One connection with its cursors: runs procedures, drains every result set, and replaces itself when it broke."""

import random
import time
from collections.abc import Sequence
from typing import Any

from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import SchemaMismatch, StoreMisconfigured, StoreRefused, StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver.calls import Call, calls
from chokaq.store.sqlserver.connecting import connect
from chokaq.store.sqlserver.errors import breaks_connection, is_passing_race, name, translate
from chokaq.store.url import DatabaseUrl
from chokaq.store.versions import Installed, check_served

Rows = list[Any]

RACE_TRIES = 5
"""A deadlock victim, or the later of two writers of one row, is tried again this often before the caller hears of it."""
_RACE_DELAY = 0.02


def drain(cursor: Any, widths: tuple[int, ...] = ()) -> list[Rows]:
    """Every result set, cut to the columns that this program knows. An error raised after a result set appears only here."""
    sets: list[Rows] = []
    while True:
        if cursor.description is not None:
            rows = cursor.fetchall()
            if widths and len(cursor.description) > (width := widths[min(len(sets), len(widths) - 1)]):
                rows = [row[:width] for row in rows]
            sets.append(rows)
        if not cursor.nextset():
            return sets


class Link:
    """A connection for one thread at a time; it keeps one cursor per procedure, so that each stays prepared."""

    def __init__(self, options: DatabaseSettings, url: DatabaseUrl) -> None:
        """Holds nothing until `open`."""
        self._options = options
        self._url = url
        self._calls = calls(options.schema)
        self._connection: Any = None
        self._cursors: dict[str, Any] = {}
        self._closed = False

    def open(self, version: int) -> None:
        """Connect and compare the schema's version. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch."""
        self._connection = connect(self._options, self._url)
        try:
            self._check_version(version)
        except BaseException:
            self._drop()
            raise
        self._version = version

    def call(self, procedure: str, args: tuple[Any, ...]) -> list[Rows]:
        """Run a procedure; its result sets. A broken connection raises StoreUnavailable and is replaced by the next call."""
        if self._closed:
            raise StoreRefused("this session is closed")
        tries = 0
        while True:
            if self._connection is None:
                self.open(self._version)
            try:
                return self._run(procedure, args)
            except self._driver_error() as error:
                if breaks_connection(error):
                    self._drop()
                elif is_passing_race(error) and tries < RACE_TRIES:
                    tries += 1
                    sql.failed(name(error))
                    sql.repeated(name(error))
                    time.sleep(_RACE_DELAY * tries * random.random())
                    continue
                raise translate(error, self._url.redacted, self._url.secrets) from None

    def close(self) -> None:
        """Close the connection; harmless when it is closed or broken."""
        self._closed = True
        self._drop()

    def _run(self, procedure: str, args: tuple[Any, ...]) -> list[Rows]:
        call: Call = self._calls[procedure]
        cursor = self._cursors.get(procedure)
        if cursor is None:
            cursor = self._cursors[procedure] = self._connection.cursor()
            if call.types:
                cursor.setinputsizes(call.types)
        try:
            cursor.execute(call.sql, *args)
            return drain(cursor, call.widths)
        except BaseException:
            # A cursor that stopped in the middle may hold results that would block the next call.
            self._cursors.pop(procedure, None)
            self._close_quietly(cursor)
            raise

    def _check_version(self, version: int) -> None:
        try:
            [[row]] = self._run("GetClock", ())
        except self._driver_error() as error:
            found = translate(error, self._url.redacted, self._url.secrets)
            if isinstance(found, SchemaMismatch):
                raise SchemaMismatch(
                    f"{self._url.redacted}: schema {self._options.schema} is not installed here: run `chokaq schema apply`"
                ) from None
            if isinstance(found, StoreRefused):
                raise StoreMisconfigured(str(found)) from None
            raise found from None
        check_served(installed(row), version, f"{self._url.redacted}, schema {self._options.schema}")

    def _driver_error(self) -> type[BaseException]:
        from chokaq.store.sqlserver.driver import load_pyodbc

        error: type[BaseException] = load_pyodbc().Error
        return error

    def _drop(self) -> None:
        for cursor in self._cursors.values():
            self._close_quietly(cursor)
        self._cursors.clear()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._close_quietly(connection)

    def _close_quietly(self, handle: Any) -> None:
        try:
            handle.close()
        except self._driver_error():
            # Already broken or closed: there is nothing left to give back.
            return


def installed(row: Sequence[Any]) -> Installed | None:
    """A row of GetClock: NowUtc, Version; since version 5 also SchemaVersion, OldestProgram. None: no migration is recorded."""
    _, version, *served = row
    if served:
        return Installed(*served[:2])
    return None if version is None else Installed(version, version)


__all__ = ["Link", "Rows", "StoreUnavailable", "drain", "installed"]
