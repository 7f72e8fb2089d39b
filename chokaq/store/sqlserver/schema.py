"""Installs and upgrades the schema: under one lock, each numbered file in a transaction with its ledger row.

When the ledger already shows this program's files no lock is taken and no DDL runs. The text that ships is the text that runs;
`chokaq.store.sqlserver.rewrite` holds the three rewritings.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import structlog

from chokaq.observe.levels import is_heard
from chokaq.store.errors import StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver import inspection
from chokaq.store.sqlserver.connecting import connect
from chokaq.store.sqlserver.driver import load_pyodbc
from chokaq.store.sqlserver.errors import is_passing_race, translate
from chokaq.store.sqlserver.link import RACE_TRIES, installed
from chokaq.store.sqlserver.scripts import TUNING, Script, latest, ledger, migrations, rerunnable
from chokaq.store.url import DatabaseUrl
from chokaq.store.versions import Installed, check_served, is_newer

_log = structlog.get_logger("chokaq")
_LOCK_WAIT_MS = 180_000
"""How long one process waits while another applies."""
_DDL_TIMEOUT = 300


class Ledger(NamedTuple):
    """What a database says was applied."""

    versions: dict[int, str]
    """Version → hash."""
    objects: dict[str, str]
    """Procedure, grants, tuning → hash."""

    @property
    def version(self) -> int:
        """The highest applied."""
        return max(self.versions, default=0)


class Target:
    """A schema of a database, over one connection."""

    def __init__(self, connection: Any, schema: str) -> None:
        """`connection`: in autocommit mode."""
        self.connection = connection
        self.schema = schema
        self.is_babelfish = inspection.is_babelfish(connection)

    def ledger(self) -> Ledger | None:
        """What was applied; None when nothing is installed."""
        if not inspection.has_table(self.connection, self.schema, "SchemaMigrations"):
            return None
        versions = self.rows(f"SELECT Version, Sha256 FROM {self.schema}.SchemaMigrations")
        objects = self.rows(f"SELECT Name, Sha256 FROM {self.schema}.SchemaObjects")
        return Ledger({int(row[0]): row[1] for row in versions}, {row[0]: row[1] for row in objects})

    def installed(self, found: Ledger) -> Installed:
        """Which programs a newer schema serves, by its own word."""
        served = installed(self.rows(f"EXEC {self.schema}.GetClock")[0])
        # What the ledger has and the procedures do not is being applied at this moment, or was given up halfway.
        return Installed(found.version, found.version) if served is None else served._replace(version=found.version)

    def rows(self, sql: str, *args: Any) -> list[Any]:
        """The rows of a query."""
        with closing(self.connection.cursor()) as cursor:
            found: list[Any] = cursor.execute(sql, *args).fetchall()
            return found

    def run(self, sql: str, *args: Any) -> None:
        """Run one batch."""
        with closing(self.connection.cursor()) as cursor:
            # The texts hold braces in comments and literals: they are no ODBC escapes.
            cursor.noscan = True
            cursor.execute(sql, *args)
            while cursor.nextset():
                pass

    def script(self, script: Script) -> None:
        """Run a file."""
        for number, batch in enumerate(script.batches(self.schema, create_or_alter=not self.is_babelfish), 1):
            try:
                self.run(batch)
            except Exception as error:
                if is_heard():
                    _log.error("schema_script_failed", script=script.name, batch=number, error=str(error))
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.connection.autocommit = False
        try:
            yield
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        finally:
            self.connection.autocommit = True


@contextmanager
def opened(options: DatabaseSettings, url: DatabaseUrl) -> Iterator[Target]:
    """A connection for schema work; the driver's errors come out as the store's."""
    connection = connect(options, url)
    try:
        connection.timeout = _DDL_TIMEOUT
        yield Target(connection, options.schema)
    except load_pyodbc().Error as error:
        raise translate(error, url.redacted, url.secrets) from None
    finally:
        connection.close()


def version(options: DatabaseSettings, url: DatabaseUrl) -> int | None:
    """The version in the ledger; None when nothing is installed."""
    with opened(options, url) as target:
        found = target.ledger()
        return None if found is None or not found.versions else found.version


def apply(options: DatabaseSettings, url: DatabaseUrl) -> list[str]:
    """Bring schema and procedures to this program's version; the names of what was applied, in order."""
    with opened(options, url) as target:
        if _is_current(target, url):
            return []
        with _only_one(target):
            return [] if _is_current(target, url) else _apply(target)


def check(options: DatabaseSettings, url: DatabaseUrl) -> list[str]:
    """Differences between the live schema and the package, one sentence each; none on a newer schema that serves this program."""
    with opened(options, url) as target:
        found = target.ledger()
        if found is None:
            return [f"Nothing is installed in schema {target.schema}: run `chokaq schema apply`."]
        if found.version > latest() and is_newer(target.installed(found), latest()):
            return []
        return [
            *_ledger_drift(found, tuned=not target.is_babelfish),
            *inspection.drift(target.connection, target.schema),
        ]


def script(schema: str) -> str:
    """A fresh installation as a sqlcmd script."""
    parts = [
        f"-- chokaq: schema {schema}, version {latest()}. A fresh installation, for sqlcmd. To upgrade an older one, run the parts",
        f"-- after the version that SELECT MAX(Version) FROM {schema}.SchemaMigrations shows, and everything from `Procedures` on.",
        ":ON ERROR EXIT",
        "SET XACT_ABORT ON;",
        "GO",
        f"IF SCHEMA_ID('{schema}') IS NULL EXEC ('CREATE SCHEMA {schema}');",
        "GO",
        *_printed(ledger(), schema),
    ]
    for migration in migrations():
        parts += [f"-- Version {migration.version}: {migration.name}", "BEGIN TRANSACTION;", "GO"]
        parts += _printed(migration, schema)
        parts += [_migrated(migration, schema), "COMMIT TRANSACTION;", "GO"]
    parts += ["-- Procedures, grants and tuning: may be run again at any time."]
    for found in rerunnable(tuned=True):
        parts += [*_printed(found, schema), _remembered(found, schema), "GO"]
    return "\n".join(parts) + "\n"


def _is_current(target: Target, url: DatabaseUrl) -> bool:
    """True when there is nothing to do: also on a newer schema that serves this program, as after a rollback."""
    found = target.ledger()
    if found is None:
        return False
    if found.version > latest():
        check_served(target.installed(found), latest(), f"{url.redacted}, schema {target.schema}")
        return True
    return not _ledger_drift(found, tuned=not target.is_babelfish, numbered_texts=False)


def _apply(target: Target) -> list[str]:
    applied: list[str] = []
    schema = target.schema
    if target.rows("SELECT SCHEMA_ID(?)", schema)[0][0] is None:
        target.run(f"CREATE SCHEMA {schema}")
    if target.ledger() is None:
        with target.transaction():
            target.script(ledger())
    found = target.ledger() or Ledger({}, {})
    for migration in migrations():
        if migration.version not in found.versions:
            with target.transaction():
                target.script(migration)
                target.run(_migrated(migration, schema))
            applied.append(migration.name)
    changed = [
        piece for piece in rerunnable(tuned=not target.is_babelfish) if found.objects.get(piece.name) != piece.sha256
    ]
    if not changed:
        return applied
    if target.is_babelfish and changed[-1] != rerunnable(tuned=False)[-1]:
        # There a changed procedure was dropped and made anew, and has lost its grants.
        changed.append(rerunnable(tuned=False)[-1])
    if changed[0].name == TUNING:
        # By itself: what it may have to wait for, and who waits for it, must not be held until all procedures are there.
        target.script(changed[0])
        target.run(_remembered(changed[0], schema))
        applied.append(changed.pop(0).name)
    _replace(target, changed)
    return [*applied, *(piece.name for piece in changed)]


def _replace(target: Target, pieces: list[Script]) -> None:
    """All procedures at once: whoever calls one meanwhile waits for a moment. A victim of a deadlock with them tries again."""
    tries = 0
    while True:
        try:
            with target.transaction():
                for piece in pieces:
                    target.script(piece)
                    target.run(_remembered(piece, target.schema))
            return
        except load_pyodbc().Error as error:
            tries += 1
            if not is_passing_race(error) or tries >= RACE_TRIES:
                raise


@contextmanager
def _only_one(target: Target) -> Iterator[None]:
    """One process applies; the others wait, then find everything done. The lock belongs to the connection."""
    resource = f"chokaq.schema.{target.schema}"
    taken = target.rows(
        "SET NOCOUNT ON; DECLARE @Taken int; EXEC @Taken = sp_getapplock @Resource = ?, @LockMode = 'Exclusive', "
        "@LockOwner = 'Session', @LockTimeout = ?; SELECT @Taken AS Taken",
        resource,
        _LOCK_WAIT_MS,
    )[0][0]
    if taken < 0:
        raise StoreUnavailable(
            f"another process has been applying schema {target.schema} for {_LOCK_WAIT_MS // 1000} s"
        )
    try:
        yield
    finally:
        target.run("EXEC sp_releaseapplock @Resource = ?, @LockOwner = 'Session'", resource)


def _ledger_drift(found: Ledger, *, tuned: bool, numbered_texts: bool = True) -> list[str]:
    """What the ledger shows to differ from the package."""
    problems = []
    for migration in migrations():
        known = found.versions.get(migration.version)
        if known is None:
            problems.append(f"Version {migration.version} ({migration.name}) has not been applied.")
        elif known != migration.sha256 and numbered_texts:
            problems.append(f"Version {migration.version} ({migration.name}) was applied from another text.")
    problems += [
        f"Version {number} is newer than this program knows ({latest()})."
        for number in sorted(found.versions)
        if number > latest()
    ]
    for piece in rerunnable(tuned=tuned):
        known = found.objects.get(piece.name)
        if known is None:
            problems.append(f"{piece.name} has not been applied.")
        elif known != piece.sha256:
            problems.append(f"{piece.name} was applied from another text.")
    return problems


def _migrated(migration: Script, schema: str) -> str:
    return (
        f"INSERT INTO {schema}.SchemaMigrations (Version, Name, Sha256, AppliedAtUtc) "
        f"VALUES ({migration.version}, '{migration.name}', '{migration.sha256}', SYSUTCDATETIME());"
    )


def _remembered(piece: Script, schema: str) -> str:
    return (
        f"DELETE FROM {schema}.SchemaObjects WHERE Name = '{piece.name}'; "
        f"INSERT INTO {schema}.SchemaObjects (Name, Sha256) VALUES ('{piece.name}', '{piece.sha256}');"
    )


def _printed(piece: Script, schema: str) -> list[str]:
    return [line for batch in piece.batches(schema, create_or_alter=True) for line in (batch, "GO")]
