"""A SQLite file of the bench's own."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from bench.application import QUEUE, TYPE
from bench.record import BODY
from bench.target import Rows, Standing, Target
from chokaq.store.options import DatabaseSettings

_CHUNK = 50_000
_NUMBERS = "WITH RECURSIVE n (x) AS (SELECT :first UNION ALL SELECT x + 1 FROM n WHERE x + 1 < :end) "
_SHARED = {
    "Id": ":prefix || printf('%025d', x)",
    "Type": f"'{TYPE}'",
    "Priority": ":priority",
    "AttemptCount": "0",
    "LeaseNumber": "0",
    "CrashCount": "0",
    "CreatedAtUtc": ":now",
    "DueAtUtc": ":due",
    "AgeFromUtc": ":due",
    "KeyScope": "0",
    "PayloadHash": "printf('%032x', x)",
    "OwnerLogin": "'bench'",
    "Payload": f"""'{{"number":' || x || ',"body":"{BODY}"}}'""",
}
_OWN = {
    "JobsHot": {"Status": "0", "IsReady": ":ready"},
    "JobsArchive": {"FinishedAtUtc": ":now"},
    "JobsDLQ": {"Status": "4", "FailureReason": "1", "FailedAtUtc": ":now"},
}


class SqliteTarget(Target):
    """See bench.target."""

    kind = "sqlite"

    def __init__(self, settings: DatabaseSettings) -> None:
        super().__init__(settings)
        self.path = Path(settings.url.removeprefix("sqlite:///"))
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The bench's own connection, in autocommit mode."""
        if self._connection is None:
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        return self._connection

    def create(self) -> None:
        """Nothing: the file comes with its schema."""

    def empty(self) -> None:
        """A fresh file is emptier than one whose rows were deleted."""
        self.drop()
        self.store.apply_schema()

    def drop(self) -> None:
        """Delete the file and what stands beside it."""
        self.close()
        for path in self.path.parent.glob(self.path.name + "*"):
            path.unlink()

    def load(self, rows: Rows, prefix: str) -> None:
        """In chunks, without waiting for the disk."""
        now = self._one("SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000")
        columns = _SHARED | _OWN[rows.table] | {"Queue": _queue(rows.queues)}
        sql = f"{_NUMBERS}INSERT INTO {rows.table} ({', '.join(columns)}) SELECT {', '.join(columns.values())} FROM n"
        values = {
            "prefix": prefix,
            "priority": rows.priority,
            "now": now,
            "due": now + 86_400_000 * rows.due_in_days,
            "ready": int(rows.due_in_days == 0),
        }
        self.connection.execute("PRAGMA synchronous = OFF")
        for first in range(0, rows.number, _CHUNK):
            self.connection.execute(sql, values | {"first": first, "end": min(rows.number, first + _CHUNK)})
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def update_statistics(self) -> str:
        """ANALYZE: the store itself never runs it, its statements name their indexes."""
        self.connection.execute("ANALYZE")
        return "updated (ANALYZE)"

    def standing(self, queue: str = QUEUE) -> Standing:
        """Three counts."""
        tables = ("JobsHot", "JobsArchive", "JobsDLQ")
        return Standing(*(self._one(f"SELECT COUNT(*) FROM {table} WHERE Queue = ?", queue) for table in tables))

    def is_drained(self, queue: str = QUEUE) -> bool:
        """One look into an index."""
        sql = "SELECT NOT EXISTS (SELECT 1 FROM JobsHot WHERE Queue = ?)"
        return bool(self._one(sql, queue))

    def finished(self, queue: str = QUEUE) -> list[tuple[float, int]]:
        """By millisecond."""
        sql = "SELECT FinishedAtUtc, COUNT(*) FROM JobsArchive WHERE Queue = ? GROUP BY 1 ORDER BY 1"
        return [(at / 1000, count) for at, count in self.connection.execute(sql, (queue,))]

    def dead_letters(self, queue: str = QUEUE) -> dict[int, int]:
        """By failure reason."""
        sql = "SELECT FailureReason, COUNT(*) FROM JobsDLQ WHERE Queue = ? GROUP BY 1"
        return dict(self.connection.execute(sql, (queue,)))

    def close(self) -> None:
        """Harmless when repeated."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _one(self, sql: str, *values: object) -> int:
        return int(self.connection.execute(sql, values).fetchone()[0])


def _queue(queues: Sequence[str]) -> str:
    cases = " ".join(f"WHEN {index} THEN '{name}'" for index, name in enumerate(queues))
    return f"CASE x % {len(queues)} {cases} END"
