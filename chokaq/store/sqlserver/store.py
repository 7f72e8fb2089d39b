"""The store on SQL Server: a URL, a schema name, and no connection."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from chokaq.store.errors import StoreMisconfigured, StoreRefused
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Enqueued, NewJob
from chokaq.store.sqlserver import documents, schema, views
from chokaq.store.sqlserver.calls import calls, check_schema_name
from chokaq.store.sqlserver.client import enqueue
from chokaq.store.sqlserver.connecting import DEFAULT_PORT
from chokaq.store.sqlserver.driver import load_pyodbc
from chokaq.store.sqlserver.errors import reported, translate
from chokaq.store.sqlserver.link import Link, Rows, drain
from chokaq.store.sqlserver.scripts import latest
from chokaq.store.sqlserver.session import SqlServerSession
from chokaq.store.url import MSSQL, DatabaseUrl

_ERROR_COLUMNS = 2
"""Inside a caller's transaction EnqueueJobs and EnqueueKeyedJobs report an error as a row (number, text)."""


class SqlServerStore:
    """Implements `chokaq.store.protocol.Store`; see there for every method."""

    def __init__(self, options: DatabaseSettings) -> None:
        """Raises StoreMisconfigured for a URL or schema name that cannot be meant."""
        self._options = options
        self._url = DatabaseUrl.parse(options.url)
        if self._url.scheme != MSSQL:
            raise StoreMisconfigured(
                f"database.url: {self._url.redacted} is no SQL Server URL: write mssql://user:password@host/database"
            )
        check_schema_name(options.schema)

    @property
    def url(self) -> str:
        """Where it is, passwords redacted."""
        return self._url.redacted

    @property
    def identity(self) -> str:
        """Server, database and schema."""
        place = self._url.options.get("instance") or str(self._url.port or DEFAULT_PORT)
        return f"mssql://{self._url.host}:{place}/{self._url.database}#{self._options.schema}".lower()

    def session(self) -> SqlServerSession:
        """Open a connection. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch."""
        link = Link(self._options, self._url)
        link.open(latest())
        return SqlServerSession(link)

    def enqueue_in(self, cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue inside the transaction of the caller's pyodbc cursor; an autocommit one is refused."""
        pyodbc = load_pyodbc()
        if not isinstance(cursor, pyodbc.Cursor):
            raise StoreRefused(
                f"enqueue_in needs a pyodbc cursor on this store, not {type(cursor).__module__}.{type(cursor).__qualname__}"
            )
        connection = cursor.connection
        if connection.autocommit:
            raise StoreRefused("enqueue_in needs a cursor with a transaction: connect with autocommit=False")
        procedures = calls(self._options.schema)

        def run(given: documents.Enqueue) -> Rows:
            call = procedures[given.procedure]
            try:
                # A cursor of its own on the same connection: the caller's keeps its parameter types.
                own = connection.cursor()
                try:
                    own.setinputsizes(call.types)
                    own.execute(call.sql, *given.parameters, True)
                    rows = [row for found in drain(own, call.widths) for row in found]
                    if rows and len(rows[0]) == _ERROR_COLUMNS:
                        raise translate(reported(*rows[0]), self._url.redacted, self._url.secrets)
                    return rows
                finally:
                    own.close()
            except pyodbc.Error as error:
                raise translate(error, self._url.redacted, self._url.secrets) from None

        return enqueue(run, jobs)

    def now(self) -> datetime:
        """The database's clock."""
        link = Link(self._options, self._url)
        link.open(latest())
        try:
            [[row]] = link.call("GetClock", ())
            return views.aware(row[0])
        finally:
            link.close()

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def apply_schema(self) -> list[str]:
        """Bring schema and procedures to this program's version, safe from many processes at once."""
        return schema.apply(self._options, self._url)

    def check_schema(self) -> list[str]:
        """Differences between the live schema and the package, one sentence each."""
        return schema.check(self._options, self._url)

    def schema_version(self) -> int | None:
        """The version in the ledger; None when nothing is installed."""
        return schema.version(self._options, self._url)

    def schema_script(self) -> str:
        """Everything `apply_schema` would run, for sqlcmd."""
        return schema.script(self._options.schema)
