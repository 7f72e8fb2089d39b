"""The laboratory over a T-SQL server: one more connection, autocommit, no procedure of ours."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from . import mssql
from .lab import TABLES, Lab, Row, Verb

_NAME = re.compile(r"\{(\w+)\}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_shared: dict[str, Any] = {}


class SqlServerLab(Lab):
    """Raw access to one schema of a database."""

    kind = "sqlserver"

    def __init__(self, url: str, schema: str) -> None:
        """`url` as the store gets it."""
        self.url, self.schema = url, schema

    @property
    def connection(self) -> Any:
        """In autocommit mode, shared by all laboratories of a run: a connection's first statements cost a second there."""
        if self.url not in _shared:
            _shared[self.url] = mssql.connect(self.url)
        return _shared[self.url]

    def query(self, sql: str, *values: Any) -> list[Row]:
        cursor = self.connection.execute(self._named(sql), *values)
        names = [column[0] for column in cursor.description]
        return [{name: _plain(value) for name, value in zip(names, row, strict=True)} for row in cursor.fetchall()]

    def execute(self, sql: str, *values: Any) -> int:
        return int(self.connection.execute(self._named(sql), *values).rowcount)

    def table(self, name: str) -> str:
        return f"{self.schema}.{name}"

    def age(self, job_id: str, column: str, ms: int, table: str = "JobsHot") -> None:
        assert self.age_all(table, column, ms, f"Id = '{job_id}' AND {column} IS NOT NULL") == 1

    def age_all(self, table: str, column: str, ms: int, where: str = "1 = 1") -> int:
        # DATEADD takes an int: seconds and milliseconds apart, or 25 days overflow it.
        seconds, rest = divmod(ms, 1000)
        moved = f"DATEADD(millisecond, {-rest}, DATEADD(second, {-seconds}, {column}))"
        return self.execute(f"UPDATE {{{table}}} SET {column} = {moved} WHERE {where}")

    def set_time(self, job_id: str, column: str, at_ms: int, table: str = "JobsHot") -> None:
        literal = (_EPOCH + at_ms * _MILLISECOND).replace(tzinfo=None).isoformat(timespec="milliseconds")
        sql = f"UPDATE {{{table}}} SET {column} = CAST('{literal}' AS datetime2(3)) WHERE Id = '{job_id}'"
        assert self.execute(sql) == 1

    def caller(self, *, autocommit: bool = False) -> Any:
        return mssql.connect(self.url, autocommit=autocommit)

    def clean(self) -> None:
        self.execute("; ".join(f"DELETE FROM {{{table}}}" for table in TABLES))

    def drop_schema(self) -> None:
        for row in self.query("SELECT name AS Name FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)", self.schema):
            self.execute(f"DROP PROCEDURE {self.schema}.{row['Name']}")
        objects = self.query(
            "SELECT table_name AS Name, table_type AS Kind FROM information_schema.tables WHERE table_schema = ?",
            self.schema,
        )
        for row in sorted(objects, key=lambda found: found["Kind"] != "VIEW"):
            self.execute(f"DROP {'VIEW' if row['Kind'] == 'VIEW' else 'TABLE'} {self.schema}.{row['Name']}")
        if self.query("SELECT name AS Name FROM sys.schemas WHERE name = ?", self.schema):
            self.execute(f"DROP SCHEMA {self.schema}")

    def _break(self, table: str, verb: Verb) -> None:
        self.execute(
            f"CREATE TRIGGER {self.schema}.Broken{table}{verb.title()} ON {self.schema}.{table} AFTER {verb}"
            f" AS BEGIN THROW 50000, 'this step is broken on purpose', 1; END"
        )

    def _mend(self, table: str, verb: Verb) -> None:
        self.execute(f"DROP TRIGGER {self.schema}.Broken{table}{verb.title()}")

    def refuse_key(self, key: str) -> None:
        self.execute(
            f"ALTER TABLE {self.schema}.JobKeys ADD CONSTRAINT CK_RefusedKey CHECK (IdempotencyKey <> N'{key}')"
        )

    def allow_keys(self) -> None:
        self.execute(f"ALTER TABLE {self.schema}.JobKeys DROP CONSTRAINT CK_RefusedKey")

    def close(self) -> None:
        """Nothing: see `close_shared`."""

    def reconnect(self) -> None:
        broken = _shared.pop(self.url, None)
        if broken is not None:
            # Whatever the driver thinks of closing a connection whose server has gone.
            with suppress(Exception):
                broken.close()

    def _named(self, sql: str) -> str:
        return _NAME.sub(rf"{self.schema}.\1", sql)


def close_shared() -> None:
    """End of the run: close what the laboratories shared."""
    for connection in _shared.values():
        connection.close()
    _shared.clear()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
    return int(value) if isinstance(value, bool) else value
