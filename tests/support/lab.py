"""The back door of a store under test: raw SQL to age rows, look at tables and break a step of an operation.

Times come out and go in as milliseconds since 1970 UTC, bits as 0 and 1, whatever the engine; so tests never see a dialect.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from chokaq.lifecycle.states import Pillar

Row = dict[str, Any]
Verb = Literal["INSERT", "UPDATE", "DELETE"]

PILLARS = {Pillar.HOT: "JobsHot", Pillar.ARCHIVE: "JobsArchive", Pillar.DLQ: "JobsDLQ"}
SIDE_TABLES = ("JobKeys", "CancelRequests", "JobNotes", "JobAttempts", "MetricBuckets", "QueueTotals", "AuditLog")
TABLES = (
    *PILLARS.values(), *SIDE_TABLES, "RunClaims", "Workers", "Queues", "Leadership", "Circuits", "CircuitOrders", "CircuitEvents",
    "SignOuts",
)  # fmt: skip
_STATES = {Pillar.HOT: {0, 1, 2}, Pillar.DLQ: {4, 5, 6, 7}}


class Lab(ABC):
    """Raw access to the tables of one store."""

    kind: str

    # ── the dialects fill these in ────────────────────────────────────────────────────────────────────────────────────
    @abstractmethod
    def query(self, sql: str, *values: Any) -> list[Row]:
        """Run a SELECT; `{Table}` in the text becomes the qualified name, `?` takes the values."""

    @abstractmethod
    def execute(self, sql: str, *values: Any) -> int:
        """Run and commit a statement; the number of rows touched."""

    @abstractmethod
    def table(self, name: str) -> str:
        """The qualified name of a table, for a caller's own SQL."""

    @abstractmethod
    def age(self, job_id: str, column: str, ms: int, table: str = "JobsHot") -> None:
        """Move a time column of a job back (a negative `ms`: forward). Fails when there is no such row or no time in it."""

    @abstractmethod
    def age_all(self, table: str, column: str, ms: int, where: str = "1 = 1") -> int:
        """Move a time column of all rows that match back; how many."""

    @abstractmethod
    def set_time(self, job_id: str, column: str, at_ms: int, table: str = "JobsHot") -> None:
        """Set a time column of a job to an instant."""

    @abstractmethod
    def caller(self, *, autocommit: bool = False) -> Any:
        """A DB-API connection as an application would hold it (sqlite3 or pyodbc). The caller closes it."""

    @abstractmethod
    def clean(self) -> None:
        """Empty every table."""

    @abstractmethod
    def drop_schema(self) -> None:
        """Remove everything that was installed."""

    @abstractmethod
    def _break(self, table: str, verb: Verb) -> None:
        """Make `verb` on `table` fail."""

    @abstractmethod
    def _mend(self, table: str, verb: Verb) -> None:
        """Undo `_break`."""

    @abstractmethod
    def refuse_key(self, key: str) -> None:
        """Make the insert of this one key into JobKeys fail as a violated constraint: a transaction survives that."""

    @abstractmethod
    def allow_keys(self) -> None:
        """Undo `refuse_key`."""

    @abstractmethod
    def close(self) -> None:
        """Close the lab's own connection."""

    @abstractmethod
    def reconnect(self) -> None:
        """Give up the connection: the next use opens another, as a restarted server demands."""

    # ── what tests use ────────────────────────────────────────────────────────────────────────────────────────────────
    def age_worker(self, worker_id: str, ms: int) -> None:
        """Move the last heartbeat of a worker back."""
        touched = self.age_all("Workers", "HeartbeatUtc", ms, f"WorkerId = '{worker_id}'")
        assert touched == 1, f"no worker {worker_id}"

    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""
        return self.query(f"SELECT * FROM {{{table}}}")

    def row(self, job_id: str, table: str = "JobsHot") -> Row:
        """The row of one job."""
        found = self.query(f"SELECT * FROM {{{table}}} WHERE Id = ?", job_id)
        assert len(found) == 1, f"{len(found)} rows of job {job_id} in {table}"
        return found[0]

    def put(self, job_id: str, table: str = "JobsHot", **columns: Any) -> None:
        """Set plain columns of a job (not times)."""
        names = ", ".join(f"{name} = ?" for name in columns)
        assert self.execute(f"UPDATE {{{table}}} SET {names} WHERE Id = ?", *columns.values(), job_id) == 1

    def count(self, table: str, where: str = "1 = 1") -> int:
        """How many rows match."""
        return int(self.query(f"SELECT COUNT(*) AS N FROM {{{table}}} WHERE {where}")[0]["N"])

    def where(self, job_id: str) -> list[Pillar]:
        """The pillars a job stands in; a healthy store answers exactly one, or none for an unknown job."""
        return [pillar for pillar, table in PILLARS.items() if self.count(table, f"Id = '{job_id}'")]

    def snapshot(self, *tables: str) -> dict[str, list[Row]]:
        """Every row of some tables (all but Workers and Leadership when none is named), to compare two moments."""
        chosen = tables or (*PILLARS.values(), *SIDE_TABLES, "Queues")
        return {table: sorted(self.rows(table), key=repr) for table in chosen}

    def leases(self, queue: str) -> int:
        """Leases held in a queue at this moment."""
        return self.count("JobsHot", f"Queue = '{queue}' AND Status IN (1, 2)")

    @contextmanager
    def broken(self, table: str, verb: Verb = "INSERT") -> Iterator[None]:
        """While inside, `verb` on `table` fails: the step of an operation that needs it cannot be taken."""
        self._break(table, verb)
        try:
            yield
        finally:
            self._mend(table, verb)

    @contextmanager
    def refusing(self, key: str) -> Iterator[None]:
        """While inside, no retained or windowed entry of `key` can be written."""
        self.refuse_key(key)
        try:
            yield
        finally:
            self.allow_keys()

    def check_invariants(self) -> None:
        """What must hold in every committed state (design §3.1): one pillar per job, side rows that belong to someone."""
        stands: Counter[str] = Counter()
        for pillar, table in PILLARS.items():
            for row in self.rows(table):
                stands[row["Id"]] += 1
                allowed = _STATES.get(pillar)
                assert allowed is None or row["Status"] in allowed, f"{row['Id']} has status {row['Status']} in {table}"
                if pillar is Pillar.HOT:
                    _check_hot(row)
        twice = [job for job, times in stands.items() if times > 1]
        assert not twice, f"jobs in more than one pillar: {twice}"
        running = {row["Id"] for row in self.rows("JobsHot") if row["Status"] == 2}
        told = {row["JobId"] for row in self.rows("CancelRequests")}
        assert told <= running, f"cancel requests of jobs that do not run: {told - running}"
        for table in ("JobKeys", "JobNotes", "JobAttempts"):
            orphans = {row["JobId"] for row in self.rows(table)} - set(stands)
            assert not orphans, f"rows in {table} without a job: {orphans}"


def _check_hot(row: Mapping[str, Any]) -> None:
    if row["Status"] in (1, 2):
        assert row["WorkerId"] is not None, f"{row['Id']} is held by nobody"
        assert row["HeartbeatUtc"] is not None, f"{row['Id']} is held without a heartbeat: no rescue would find it"
        assert row["LeaseNumber"] >= 1, f"{row['Id']} is held under lease {row['LeaseNumber']}"
    if row["Status"] == 2:
        assert row["StartedAtUtc"] is not None, f"{row['Id']} runs without a start"
        assert row["AttemptCount"] >= 1, f"{row['Id']} runs and was never started"
