"""Installs and checks the embedded schema: numbered files of `sql/embedded/`, and a ledger of those that were applied.

Two ledgers. The highest number in SchemaMigrations is the oldest program that is served: release 0.1.0 looks at it alone, and wants
its own number there. SchemaAdditions holds the files that older programs can live with.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import structlog

from chokaq.observe.levels import is_heard
from chokaq.store import sqlfiles, versions
from chokaq.store.errors import SchemaMismatch
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.versions import Installed, check_served, is_newer

_log = structlog.get_logger("chokaq")
_LEDGER = """CREATE TABLE SchemaMigrations (
    Version      INTEGER NOT NULL PRIMARY KEY,
    Name         TEXT    NOT NULL,
    AppliedAtUtc INTEGER NOT NULL
)"""
_ADDITIONS = """CREATE TABLE IF NOT EXISTS SchemaAdditions (
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
    """The highest file applied; None when nothing is installed."""
    found = installed(connection)
    return None if found is None else found.version


def installed(connection: sqlite3.Connection) -> Installed | None:
    """What the ledgers say; None when nothing is installed."""
    if not _has_table(connection, "SchemaMigrations"):
        return None
    oldest = connection.execute("SELECT MAX(Version) FROM SchemaMigrations").fetchone()[0]
    if oldest is None:
        return None
    added = None
    if _has_table(connection, "SchemaAdditions"):
        added = connection.execute("SELECT MAX(Version) FROM SchemaAdditions").fetchone()[0]
    return Installed(max(oldest, added or 0), oldest)


def ensure(connection: sqlite3.Connection, path: Path) -> None:
    """Make a first run just work: install into an empty file. Call it under the writers' lock.

    Raises SchemaMismatch for a file that holds other tables only, or a version that does not serve this program.
    """
    found = installed(connection)
    if found is None:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise SchemaMismatch(f"{path} holds other tables and no chokaq schema yet: run `chokaq schema apply`")
        heard = is_heard()
        if heard:
            _log.info("schema_apply_started", store=str(path))
        applied = apply(connection)
        if heard:
            _log.info("schema_applied", store=str(path), applied=applied)
        return
    check_served(found, latest(), str(path))


def apply(connection: sqlite3.Connection, path: Path | str = "the database") -> list[str]:
    """Apply what is missing, in one transaction; the names of what was applied. Call it under the writers' lock.

    A newer schema that serves this program is left as it is.
    """
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = installed(connection)
        if found is None:
            connection.execute(_LEDGER)
        elif found.version > latest():
            check_served(found, latest(), str(path))
        connection.execute(_ADDITIONS)
        missing = {number: name for number, name in migrations().items() if found is None or number > found.version}
        for number, name in missing.items():
            for statement in _statements(sqlfiles.read("embedded", name)):
                connection.execute(statement)
            for table, told in _recorded(number, name):
                connection.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", (told, name, now_ms()))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return list(missing.values())


def _recorded(number: int, name: str) -> list[tuple[str, int]]:
    """What the ledgers get for a file: (table, number)."""
    oldest = versions.serves(sqlfiles.read("embedded", name), number)
    if oldest == number:
        return [("SchemaMigrations", number)]
    return [("SchemaAdditions", number), ("SchemaMigrations", oldest)]


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def check(connection: sqlite3.Connection) -> list[str]:
    """Each difference between the live schema and a freshly built one, as a sentence. Other people's tables are not ours.

    A newer schema that serves this program has none.
    """
    there = installed(connection)
    if there is None:
        return ["No chokaq schema is installed."]
    if is_newer(there, latest()):
        return []
    found = []
    if there.version != latest():
        found.append(f"The schema has version {there.version}; this program needs {latest()}.")
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
    parts = ["PRAGMA journal_mode = WAL;", "BEGIN IMMEDIATE;", f"{_LEDGER};", f"{_ADDITIONS};"]
    for number, name in migrations().items():
        parts.append(sqlfiles.read("embedded", name).strip())
        parts += [
            f"INSERT OR IGNORE INTO {table} VALUES ({told}, '{name}', CAST(strftime('%s', 'now') AS INTEGER) * 1000);"
            for table, told in _recorded(number, name)
        ]
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
