"""Whose database is a caller's cursor on?"""

from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.url import MSSQL, DatabaseUrl


def foreign(cursor: Any, options: DatabaseSettings) -> str | None:
    """Why a pyodbc cursor is on another database than these options name, as far as its driver tells; None: it may be the one.

    The name of the database is compared, without a round trip. That of the server is not: it has many (aliases, listeners). Any
    other cursor is left to the store, which refuses what is not its own.
    """
    url = DatabaseUrl.parse(options.url)
    if url.scheme != MSSQL or not type(cursor).__module__.startswith("pyodbc"):
        return None
    import pyodbc

    name = str(cursor.connection.getinfo(pyodbc.SQL_DATABASE_NAME))
    if not name or name.casefold() == url.database.casefold():
        return None
    return f"the cursor is on the database {name} of its server, not on {url.redacted}"
