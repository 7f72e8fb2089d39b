"""Installs and checks the embedded schema: numbered files of `sql/embedded/`, and a ledger of those that were applied."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import structlog

from chokaq.observe.levels import is_heard
from chokaq.store import sqlfiles
from chokaq.store.errors import SchemaMismatch
from chokaq.store.sqlite.clock import now_ms

_log = structlog.get_logger("chokaq")
_LEDGER = """CREATE TABLE SchemaMigrations (
    Version      INTEGER NOT NULL PRIMARY KEY,
    Name         TEXT    NOT NULL,
    AppliedAtUtc INTEGER NOT NULL
)"""
_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type DESC, name"


def migrations() -> dict[int, str]:
    """Version → file name (without `.sql`) of every numbered file, ascending."""
    numbered = (name for name in sqlfiles.names("embedded") if name[:3].isdigit())
    return {int(name[:3]): name for name in numbered}


def latest() -> int:
    """The version this program needs."""
    return max(migrations())


def version(connection: sqlite3.Connection) -> int | None:
    """The version in the ledger; None when nothing is installed."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'SchemaMigrations'").fetchone():
        return None
    found: int | None = connection.execute("SELECT MAX(Version) FROM SchemaMigrations").fetchone()[0]
    return found


def fits(installed: int | None) -> bool:
    """Whether this program opens a session on that version."""
    return installed == latest()


def ensure(connection: sqlite3.Connection, path: Path) -> None:
    """Make a first run just work: install into an empty file. Call it under the writers' lock.

    Raises SchemaMismatch for a file that holds other tables only, or a version this program does not know.
    """
    installed = version(connection)
    if installed is None and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        heard = is_heard()
        if heard:
            _log.info("schema_apply_started", store=str(path))
        applied = apply(connection)
        if heard:
            _log.info("schema_applied", store=str(path), applied=applied)
        return
    if installed is None:
        raise SchemaMismatch(f"{path} holds other tables and no chokaq schema yet: run `chokaq schema apply`")
    if installed < latest():
        raise SchemaMismatch(
            f"the schema of {path} has version {installed}, this program needs {latest()}: run `chokaq schema apply`"
        )
    _refuse_newer(installed, path)


def _refuse_newer(installed: int, path: Path | str) -> None:
    if installed > latest():
        raise SchemaMismatch(
            f"the schema of {path} has version {installed}, this program knows only {latest()}: install a newer chokaq"
        )


def apply(connection: sqlite3.Connection, path: Path | str = "the database") -> list[str]:
    """Apply what is missing, in one transaction; the names of what was applied. Call it under the writers' lock."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        installed = version(connection)
        if installed is None:
            connection.execute(_LEDGER)
        else:
            _refuse_newer(installed, path)
        missing = {number: name for number, name in migrations().items() if number > (installed or 0)}
        for number, name in missing.items():
            for statement in _statements(sqlfiles.read("embedded", name)):
                connection.execute(statement)
            connection.execute("INSERT INTO SchemaMigrations VALUES (?, ?, ?)", (number, name, now_ms()))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return list(missing.values())


def check(connection: sqlite3.Connection) -> list[str]:
    """Each difference between the live schema and a freshly built one, as a sentence. Other people's tables are not ours."""
    installed = version(connection)
    if installed is None:
        return ["No chokaq schema is installed."]
    found = []
    if installed != latest():
        found.append(f"The schema has version {installed}; this program needs {latest()}.")
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        found.append(f"The journal mode is {mode}, not wal.")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        apply(fresh)
        wanted = {(kind, name): sql for kind, name, sql in fresh.execute(_OBJECTS)}
    live = {(kind, name): sql for kind, name, sql in connection.execute(_OBJECTS)}
    ours = {name for kind, name in wanted if kind in ("table", "view")}
    for (kind, name), sql in wanted.items():
        if (kind, name) not in live:
            found.append(f"The {kind} {name} is missing.")
        elif _normal(live[kind, name]) != _normal(sql):
            found.append(f"The {kind} {name} differs from the package.")
    for (kind, name), table in _extras(connection, set(live) - set(wanted)):
        if table in ours:
            found.append(f"The {kind} {name} on {table} is not part of the package.")
    return found


def script() -> str:
    """Everything `apply` would run on an empty file, for the sqlite3 shell."""
    parts = ["PRAGMA journal_mode = WAL;", "BEGIN IMMEDIATE;", f"{_LEDGER};"]
    for number, name in migrations().items():
        parts.append(sqlfiles.read("embedded", name).strip())
        parts.append(
            f"INSERT INTO SchemaMigrations VALUES ({number}, '{name}', CAST(strftime('%s', 'now') AS INTEGER) * 1000);"
        )
    return "\n\n".join([*parts, "COMMIT;", ""])


def _extras(connection: sqlite3.Connection, objects: set[tuple[str, str]]) -> list[tuple[tuple[str, str], str]]:
    tables = {
        (kind, name): table
        for kind, name, table in connection.execute("SELECT type, name, tbl_name FROM sqlite_master")
    }
    return sorted((key, tables[key]) for key in objects if key[0] in ("index", "trigger"))


def _statements(text: str) -> list[str]:
    """The statements of a script, one by one: executescript would commit first."""
    found, pending = [], ""
    for line in text.splitlines(keepends=True):
        if not pending and (not line.strip() or line.lstrip().startswith("--")):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending.strip())
            pending = ""
    if pending.strip():
        raise ValueError(f"an unfinished statement: {pending[:60]!r}")
    return found


def _normal(sql: str | None) -> str:
    return re.sub(r"\s+", " ", sql or "").strip().rstrip(";").strip()
