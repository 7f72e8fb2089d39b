"""The store on Microsoft SQL Server, spoken to through stored procedures."""

from chokaq.store.sqlserver.session import SqlServerSession
from chokaq.store.sqlserver.store import SqlServerStore

__all__ = ["SqlServerSession", "SqlServerStore"]
