"""The laboratory over an embedded store: one more connection to its file."""

import re
import sqlite3
from pathlib import Path
from typing import Any

from .lab import TABLES, Lab, Row, Verb

_NAME = re.compile(r"\{(\w+)\}")


class SqliteLab(Lab):
    """Raw access to a SQLite file."""

    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        """Opens lazily: the file need not exist yet."""
        self.path = path
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The lab's own connection, in autocommit mode."""
        if self._connection is None:
            self._connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
        return self._connection

    def query(self, sql: str, *values: Any) -> list[Row]:
        return [dict(row) for row in self.connection.execute(_NAME.sub(r"\1", sql), values)]

    def execute(self, sql: str, *values: Any) -> int:
        return self.connection.execute(_NAME.sub(r"\1", sql), values).rowcount

    def table(self, name: str) -> str:
        return name

    def age(self, job_id: str, column: str, ms: int, table: str = "JobsHot") -> None:
        assert self.age_all(table, column, ms, f"Id = '{job_id}' AND {column} IS NOT NULL") == 1

    def age_all(self, table: str, column: str, ms: int, where: str = "1 = 1") -> int:
        return self.execute(f"UPDATE {{{table}}} SET {column} = {column} - ? WHERE {where}", ms)

    def set_time(self, job_id: str, column: str, at_ms: int, table: str = "JobsHot") -> None:
        self.put(job_id, table, **{column: at_ms})

    def caller(self, *, autocommit: bool = False) -> sqlite3.Connection:
        if autocommit:
            return sqlite3.connect(self.path, timeout=20, isolation_level=None, check_same_thread=False)
        return sqlite3.connect(self.path, timeout=20, check_same_thread=False)

    def clean(self) -> None:
        self.execute("BEGIN IMMEDIATE")
        for table in TABLES:
            self.execute(f"DELETE FROM {{{table}}}")
        self.execute("COMMIT")

    def drop_schema(self) -> None:
        self.close()
        for path in self.path.parent.glob(self.path.name + "*"):
            path.unlink()

    def _break(self, table: str, verb: Verb) -> None:
        self.execute(
            f"CREATE TRIGGER Broken{table}{verb.title()} BEFORE {verb} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, 'this step is broken on purpose'); END"
        )

    def _mend(self, table: str, verb: Verb) -> None:
        self.execute(f"DROP TRIGGER Broken{table}{verb.title()}")

    def refuse_key(self, key: str) -> None:
        self.execute(
            f"CREATE TRIGGER RefusedKey BEFORE INSERT ON JobKeys WHEN NEW.IdempotencyKey = '{key}'"
            f" BEGIN SELECT RAISE(ABORT, 'this key is refused on purpose'); END"
        )

    def allow_keys(self) -> None:
        self.execute("DROP TRIGGER RefusedKey")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reconnect(self) -> None:
        self.close()
