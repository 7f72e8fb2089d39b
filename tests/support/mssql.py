"""A plain pyodbc connection to the T-SQL server of the tests: independent of the code under test."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


def connect(url: str, *, database: str | None = None, autocommit: bool = True) -> Any:
    """Connect to `mssql://user:password@host[:port]/database?encrypt=no`, or to another database of that server."""
    import pyodbc

    pyodbc.pooling = False
    parts = urlsplit(url)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    words = {
        "DRIVER": f"{{{_driver()}}}",
        "SERVER": f"{parts.hostname},{parts.port or 1433}",
        "DATABASE": database or database_name(url),
        "UID": unquote(parts.username or ""),
        "PWD": "{" + unquote(parts.password or "").replace("}", "}}") + "}",
        "Encrypt": options.get("encrypt", "yes"),
        "TrustServerCertificate": options.get("trust_server_certificate", "yes"),
        "APP": "chokaq-tests",
    }
    return pyodbc.connect(";".join(f"{key}={value}" for key, value in words.items()), autocommit=autocommit, timeout=15)


def database_name(url: str) -> str:
    """The database a URL names."""
    return unquote(urlsplit(url).path.lstrip("/"))


def create_database(url: str) -> None:
    """Create the URL's database when the server has none of that name."""
    name = database_name(url)
    connection = connect(url, database="master")
    try:
        known = {row[0] for row in connection.execute("SELECT name FROM sys.databases")}
        if name not in known:
            connection.execute(f"CREATE DATABASE [{name}]")
    finally:
        connection.close()


def engine_version(url: str) -> str:
    """One line that names the engine."""
    connection = connect(url)
    try:
        row = connection.execute(
            "SELECT @@VERSION AS V, CAST(SERVERPROPERTY('BabelfishVersion') AS varchar(50)) AS B"
        ).fetchone()
        first = " ".join(str(row[0]).split())
        return f"Babelfish {row[1]}: {first}" if row[1] else first
    finally:
        connection.close()


def _driver() -> str:
    import pyodbc

    registered = [name for name in pyodbc.drivers() if name.startswith("ODBC Driver ")]
    if registered:
        return str(max(registered))
    try:
        import mssql_python_odbc  # type: ignore[import-untyped]
    except ImportError:
        raise AssertionError("no ODBC driver: install msodbcsql18, or the extra chokaq[odbc]") from None
    libraries = Path(next(iter(mssql_python_odbc.__path__))) / "libs" / "linux"
    system = "debian_ubuntu" if Path("/etc/debian_version").exists() else "rhel"
    return str(next((libraries / system).glob("x86_64/lib/libmsodbcsql-*.so*")))
