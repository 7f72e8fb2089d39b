"""A schema of the bench's own in a SQL Server database (or in an engine that speaks its protocol)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bench.application import QUEUE, TYPE
from bench.record import BODY
from bench.target import BenchError, Rows, Standing, Target
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver.connecting import DEFAULT_PORT, connect
from chokaq.store.url import DatabaseUrl

_CHUNK = 100_000
_TABLES = (
    "JobsHot", "JobsArchive", "JobsDLQ", "JobKeys", "CancelRequests", "JobNotes", "JobAttempts", "AuditLog", "Workers", "Queues",
    "Leadership", "MetricBuckets", "QueueTotals",
)  # fmt: skip
_DIGITS = (
    "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
    " UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
)
_NUMBERS = (
    "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + {first} AS x"
    f" FROM {_DIGITS} a CROSS JOIN {_DIGITS} b CROSS JOIN {_DIGITS} c CROSS JOIN {_DIGITS} e CROSS JOIN {_DIGITS} f) n"
)
_SHARED = {
    "Id": "'{prefix}' + RIGHT(REPLICATE('0', 25) + CAST(n.x AS varchar(10)), 25)",
    "Type": f"'{TYPE}'",
    "Priority": "{priority}",
    "AttemptCount": "0",
    "LeaseNumber": "0",
    "CrashCount": "0",
    "CreatedAtUtc": "SYSUTCDATETIME()",
    "DueAtUtc": "DATEADD(day, {days}, SYSUTCDATETIME())",
    "AgeFromUtc": "DATEADD(day, {days}, SYSUTCDATETIME())",
    "KeyScope": "0",
    "PayloadHash": "RIGHT(REPLICATE('0', 32) + CAST(n.x AS varchar(10)), 32)",
    "OwnerLogin": "'bench'",
    "Payload": f"""'{{{{"number":' + CAST(n.x AS varchar(10)) + ',"body":"{BODY}"}}}}'""",
}
_OWN = {
    "JobsHot": {"Status": "0", "IsReady": "{ready}"},
    "JobsArchive": {"FinishedAtUtc": "SYSUTCDATETIME()"},
    "JobsDLQ": {"Status": "4", "FailureReason": "1", "FailedAtUtc": "SYSUTCDATETIME()"},
}


class SqlServerTarget(Target):
    """See bench.target."""

    kind = "sqlserver"

    def __init__(self, settings: DatabaseSettings) -> None:
        super().__init__(settings)
        self._url = DatabaseUrl.parse(settings.url)
        self.port = self._url.port or DEFAULT_PORT
        self._connection: Any = None

    @property
    def connection(self) -> Any:
        """The bench's own connection, in autocommit mode."""
        if self._connection is None:
            self._connection = connect(msgspec.structs.replace(self.settings, command_timeout=600.0), self._url)
        return self._connection

    def create(self) -> None:
        """The database, when the server has none of that name and lets us."""
        master = connect(self.settings, msgspec.structs.replace(self._url, database="master"))
        try:
            known = {row[0].lower() for row in master.execute("SELECT name FROM sys.databases")}
            if self._url.database.lower() not in known:
                master.execute(f"CREATE DATABASE [{self._url.database}]")
        finally:
            master.close()

    def empty(self) -> None:
        """TRUNCATE leaves no dead rows behind that the next run would have to step over."""
        for table in _TABLES:
            self._run(f"TRUNCATE TABLE {{0}}.{table}")

    def drop(self) -> None:
        """Every procedure, view and table of the schema, then the schema."""
        schema = self.settings.schema
        if "bench" not in schema:
            raise BenchError(f"the schema {schema} is not one of the bench's: it is not dropped")
        for (name,) in self._rows("SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)", schema):
            self._run(f"DROP PROCEDURE {{0}}.{name}")
        sql = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ?"
        for name, kind in sorted(self._rows(sql, schema), key=lambda row: str(row[1]) != "VIEW"):
            self._run(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {{0}}.{name}")
        if self._rows("SELECT name FROM sys.schemas WHERE name = ?", schema):
            self._run("DROP SCHEMA {0}")
        self.close()

    def through(self, port: int) -> DatabaseSettings:
        """The same URL with the proxy's port."""
        parts = urlsplit(self.settings.url)
        login, at, _ = parts.netloc.rpartition("@")
        place = urlunsplit(parts._replace(netloc=f"{login}{at}127.0.0.1:{port}"))
        return msgspec.structs.replace(self.settings, url=place)

    def load(self, rows: Rows, prefix: str) -> None:
        """In chunks of 100,000, each made by one statement on the server."""
        columns = _SHARED | _OWN[rows.table] | {"Queue": _queue(rows.queues)}
        names, values = ", ".join(columns), ", ".join(columns.values())
        for first in range(0, rows.number, _CHUNK):
            fill = {
                "prefix": prefix,
                "priority": rows.priority,
                "days": rows.due_in_days,
                "ready": int(rows.due_in_days == 0),
                "first": first,
            }
            source = f"SELECT {values} FROM {_NUMBERS} WHERE n.x < {rows.number}".format(**fill)
            self.connection.execute(f"INSERT INTO {self.settings.schema}.{rows.table} ({names}) {source}")

    def update_statistics(self) -> str:
        """UPDATE STATISTICS where the engine knows it; elsewhere its own housekeeping decides."""
        import pyodbc

        try:
            for table in ("JobsHot", "JobsArchive", "JobsDLQ"):
                self._run(f"UPDATE STATISTICS {{0}}.{table}")
        except pyodbc.Error:
            return "not updated (this engine has no UPDATE STATISTICS)"
        return "updated (UPDATE STATISTICS)"

    def standing(self, queue: str = QUEUE) -> Standing:
        """Three counts."""
        tables = ("JobsHot", "JobsArchive", "JobsDLQ")
        return Standing(
            *(self._rows(f"SELECT COUNT(*) AS n FROM {{0}}.{t} WHERE Queue = ?", queue)[0][0] for t in tables)
        )

    def is_drained(self, queue: str = QUEUE) -> bool:
        """One look."""
        return not self._rows("SELECT TOP (1) Id FROM {0}.JobsHot WHERE Queue = ?", queue)

    def finished(self, queue: str = QUEUE) -> list[tuple[float, int]]:
        """By millisecond."""
        sql = (
            "SELECT DATEDIFF_BIG(millisecond, '2020-01-01', FinishedAtUtc) AS Ms, COUNT(*) AS N FROM {0}.JobsArchive"
            " WHERE Queue = ? GROUP BY FinishedAtUtc ORDER BY FinishedAtUtc"
        )
        return [(ms / 1000, count) for ms, count in self._rows(sql, queue)]

    def dead_letters(self, queue: str = QUEUE) -> dict[int, int]:
        """By failure reason."""
        sql = "SELECT FailureReason, COUNT(*) AS N FROM {0}.JobsDLQ WHERE Queue = ? GROUP BY FailureReason"
        return {row[0]: row[1] for row in self._rows(sql, queue)}

    def close(self) -> None:
        """Harmless when repeated."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, sql: str) -> None:
        self.connection.execute(sql.format(self.settings.schema))

    def _rows(self, sql: str, *values: object) -> list[Any]:
        rows: list[Any] = self.connection.execute(sql.format(self.settings.schema), *values).fetchall()
        return rows


def _queue(queues: Sequence[str]) -> str:
    cases = " ".join(f"WHEN {index} THEN '{name}'" for index, name in enumerate(queues))
    return f"CASE n.x % {len(queues)} {cases} END"
