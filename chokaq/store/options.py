"""How to reach a store; the `database:` section of chokaq.yaml."""

import msgspec


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the jobs live."""

    url: str = "sqlite:///chokaq.db"
    """`sqlite:///path` or `mssql://user:password@host[:port]/database?option=value`. Holds secrets: print `redacted` only."""
    schema: str = "chokaq"
    """SQL Server schema name."""
    connect_timeout: float = 15.0
    command_timeout: float = 30.0
    lock_timeout: float = 10.0
    retries: int = 3
    """Passing errors are retried this often inside a client call, with jittered backoff; a worker retries until it knows."""
    retry_base_delay: float = 0.2
    odbc_driver: str | None = None
    """Name or file of the ODBC driver; None: discovered."""
