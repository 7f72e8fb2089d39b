"""How to reach a store; the `database:` section of chokaq.yaml."""

import msgspec


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the jobs live."""

    url: str = "sqlite:///chokaq.db"
    """`sqlite:///path` or `mssql://user:password@host[:port]/database?option=value`. Holds secrets: never printed as it is."""
    schema: str = "chokaq"
    """SQL Server schema name."""
    connect_timeout: float = 15.0
    """Opening a connection may take this long."""
    command_timeout: float = 30.0
    """One call of a procedure may take this long."""
    lock_timeout: float = 10.0
    """A call waits this long for a lock before it is tried again."""
    retries: int = 3
    """Passing errors are retried this often inside a client call, with jittered backoff; a worker retries until it knows."""
    retry_base_delay: float = 0.2
    """Delay before the first of these retries; it doubles."""
    odbc_driver: str | None = None
    """Name or file of the ODBC driver; None: discovered."""
