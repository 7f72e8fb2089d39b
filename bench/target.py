"""The database a bench works on: one of its own, emptied at will, looked into behind the store's back."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.application import QUEUE
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store

SCHEMA = "chokaq_bench"
"""Never the schema an application would use: benches empty tables."""
URL_VARIABLE = "CHOKAQ_TEST_SQLSERVER"


class BenchError(Exception):
    """The bench cannot go on; the text says why and what to do."""


class Standing(NamedTuple):
    """How many jobs of the bench's queue stand in each pillar."""

    hot: int
    archived: int
    dead: int


class Rows(NamedTuple):
    """Rows to load in bulk, past the store."""

    table: str
    """JobsHot, JobsArchive or JobsDLQ."""
    number: int
    queues: Sequence[str]
    """Row n goes to queue n modulo their number."""
    priority: int = 10
    due_in_days: int = 0
    """0: due long ago and ready."""


class Target(ABC):
    """A database with the bench's schema."""

    kind: str
    port: int | None = None
    """Where its server listens; None for a file."""

    def __init__(self, settings: DatabaseSettings) -> None:
        """`settings`: as the store and the worker get them."""
        self.settings = settings
        self.store: Store = open_store(settings)

    def prepare(self) -> Store:
        """Schema applied, all tables empty."""
        self.create()
        self.store.apply_schema()
        self.empty()
        return self.store

    def through(self, port: int) -> DatabaseSettings:
        """The same place by way of a proxy on loopback."""
        raise BenchError(f"{self.store.url} is no server: there is no wire to look at (port {port})")

    @abstractmethod
    def create(self) -> None:
        """Make the database, unless there is one."""

    @abstractmethod
    def empty(self) -> None:
        """Delete every row."""

    @abstractmethod
    def drop(self) -> None:
        """Remove what the bench made."""

    @abstractmethod
    def load(self, rows: Rows, prefix: str) -> None:
        """Make rows inside the database; ids begin with `prefix` (one digit or capital letter), so that they are unique."""

    @abstractmethod
    def update_statistics(self) -> str:
        """Tell the planner of what was loaded; answers how it went."""

    @abstractmethod
    def standing(self, queue: str = QUEUE) -> Standing:
        """Counts of a queue. Reads whole tables: not while something is timed."""

    @abstractmethod
    def is_drained(self, queue: str = QUEUE) -> bool:
        """True when nothing of the queue is left in Hot; cheap."""

    @abstractmethod
    def finished(self, queue: str = QUEUE) -> list[tuple[float, int]]:
        """Completions as the store wrote them: (second of its clock, how many), ascending."""

    @abstractmethod
    def dead_letters(self, queue: str = QUEUE) -> dict[int, int]:
        """DLQ rows by failure reason."""

    @abstractmethod
    def close(self) -> None:
        """Close what looking opened."""


def open_target(kind: str, database: str | None, folder: Path, *, name: str = SCHEMA) -> Target:
    """The target of a bench. `folder`: where a file may be made. `name`: of the schema, and of the file.

    Raises BenchError when SQL Server is asked for and no URL is given.
    """
    if kind == "sqlite":
        from bench.target_sqlite import SqliteTarget

        return SqliteTarget(DatabaseSettings(url=f"sqlite:///{folder / name}.db"))
    if not database:
        raise BenchError(
            f"--store sqlserver needs --database mssql://user:password@host/database, or a URL in {URL_VARIABLE}"
        )
    from bench.target_sqlserver import SqlServerTarget

    return SqlServerTarget(msgspec.structs.replace(DatabaseSettings(url=database), schema=name))
