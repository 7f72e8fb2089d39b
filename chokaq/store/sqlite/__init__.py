"""The embedded store: SQLite, one file, many processes, the behaviour of the SQL Server store."""

from chokaq.store.sqlite.session import SqliteSession
from chokaq.store.sqlite.store import SqliteStore

__all__ = ["SqliteSession", "SqliteStore"]
