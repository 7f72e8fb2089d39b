"""Logins of single roles on the live T-SQL server."""

import secrets
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from . import stores
from .lab import TABLES

LEDGERS = ("SchemaMigrations", "SchemaObjects")


class Login:
    """A login that is a member of the roles named, and of nothing else; `drop` it at the end."""

    def __init__(self, administrator: Any, name: str, *roles: str) -> None:
        """`administrator`: a connection of the database's owner. What an earlier run left behind is removed."""
        self.name = name
        self._password = secrets.token_urlsafe(16) + "-Aa1"
        self._run = administrator.cursor().execute
        self.drop()
        self._run(f"CREATE LOGIN {name} WITH PASSWORD = '{self._password}'")
        self._run(f"CREATE USER {name} FOR LOGIN {name}")
        for role in roles:
            self._run(f"ALTER ROLE {stores.SCHEMA}_{role} ADD MEMBER {name}")

    def allow_tables(self) -> None:
        """Where procedures do not run with their owner's rights, the login needs those of the tables, too."""
        if self._is_there("SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS varchar(50)) AS V"):
            for table in (*TABLES, *LEDGERS):
                self._run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {stores.SCHEMA}.{table} TO {self.name}")

    @property
    def url(self) -> str:
        """The server's URL with this login in it."""
        url = stores.live_url()
        assert url is not None
        parts = urlsplit(url)
        place = f"{self.name}:{quote(self._password, safe='')}@{parts.hostname}:{parts.port or 1433}"
        return urlunsplit(parts._replace(netloc=place))

    def drop(self) -> None:
        """Remove it, with what it was granted."""
        if self._is_there(f"SELECT name AS V FROM sys.database_principals WHERE name = '{self.name}'"):
            for table in (*TABLES, *LEDGERS):
                self._run(f"REVOKE SELECT, INSERT, UPDATE, DELETE ON {stores.SCHEMA}.{table} FROM {self.name}")
            self._run(f"DROP USER {self.name}")
        if self._is_there(f"SELECT name AS V FROM sys.server_principals WHERE name = '{self.name}'"):
            self._run(f"DROP LOGIN {self.name}")

    def _is_there(self, query: str) -> bool:
        row = self._run(query).fetchone()
        return row is not None and bool(row[0])
