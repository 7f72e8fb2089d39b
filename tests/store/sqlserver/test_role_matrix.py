"""What each role may do, tried one by one against the table of docs/security.md. Live server only.

The logins here are members of one role and hold no other right. On an engine without ownership chaining a procedure that they may
execute then stops at the first table it touches; which of the two refused says whether EXECUTE was granted.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chokaq.store.sqlserver.calls import PROCEDURES, Type, calls
from tests.support import mssql, stores
from tests.support.lab import TABLES
from tests.support.logins import LEDGERS, Login
from tests.support.matrix import ROLES, documented
from tests.support.processes import ROOT
from tests.support.supervised import Program
from tests.upgrade.deployment import CHAOS_PROGRAMS, Client, is_complaint

_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_EXECUTE_DENIED = re.compile(r"permission denied for (procedure|function)|execute permission was denied", re.IGNORECASE)
_OBJECT_DENIED = re.compile(
    r"permission denied for (table|view|relation)|(select|insert|update|delete) permission was denied", re.IGNORECASE
)
_VALUES: dict[int, Any] = {1: "0" * 26, 12: "", -9: "[]", 4: 0, -5: 0, -7: 0, -3: b""}
"""By ODBC type: what every procedure takes without having anything to do."""
_PLAUSIBLE: dict[str, Any] = {
    "Queue": "nobody", "Pillar": "hot", "Cause": "shutdown", "Unit": "replica", "MaxReplicas": 1, "CatchUpMs": 1_000,
    "BusyPercent": 80, "IdlePercent": 50, "Steps": 1, "StepSeconds": 1, "Limit": 1, "Size": 1, "Look": 1,
    "Mapped": "".join(chr(0xE000 + place) for place in range(33)),
}  # fmt: skip
"""By parameter, where that would not do."""
_COLUMNS = {
    "JobKeys": "IdempotencyKey", "CancelRequests": "JobId", "JobNotes": "JobId", "JobAttempts": "JobId", "AuditLog": "Actor",
    "MetricBuckets": "Queue", "QueueTotals": "Queue", "RunClaims": "ClaimKey", "Workers": "WorkerId", "Queues": "Name",
    "Leadership": "Role", "Circuits": "TypeKey", "CircuitOrders": "TypeKey",
    "CircuitEvents": "TypeKey", "SignOuts": "SessionId", "SchemaMigrations": "Name", "SchemaObjects": "Name",
}  # fmt: skip
"""A column of text of each table; Id of the pillars."""


@pytest.fixture(scope="module")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A connection that owns the database, with the schema applied and empty."""
    settings = stores.options(stores.SQLSERVER, Path(tmp_path_factory.mktemp("unused")))
    stores.prepare(settings)
    connection = mssql.connect(settings.url)
    yield connection
    connection.close()


@pytest.fixture(scope="module", params=[*ROLES, None], ids=lambda role: role or "no role")
def member(request: pytest.FixtureRequest, administrator: Any) -> Iterator[tuple[str | None, Any]]:
    """A role, and a connection of a login that has it alone."""
    role: str | None = request.param
    login = Login(administrator, f"chokaq_test_{role or 'nobody'}", *([role] if role else []))
    connection = mssql.connect(login.url)
    yield role, connection
    connection.close()
    login.drop()


CONFIG = """
app: chaosapp:app
log_format: json
database: {{url: "{url}", command_timeout: 60s}}
queues:
  main: {{max_workers: 12, dlq_retention: 30d}}
  side: {{max_workers: 6}}
defaults: {{circuit: false, heartbeat: 1s, zombie_timeout: 90s, fetched_timeout: 90s, retry_base_delay: 30ms, max_attempts: 30}}
maintenance: {{rescue_interval: 1s, retention_interval: 1s}}
"""


def refusal(connection: Any, sql: str, *values: Any, types: list[Type] | None = None) -> str | None:
    """What the server said when it refused for want of a right; None: it did not."""
    import pyodbc

    cursor = connection.cursor()
    if types:
        cursor.setinputsizes(types)
    try:
        cursor.execute(sql, *values)
        while cursor.nextset():
            pass
    except pyodbc.Error as error:
        return str(error)
    finally:
        cursor.close()
    return None


def test_each_procedure_is_open_to_its_roles_and_to_no_other(member: tuple[str | None, Any]) -> None:
    role, connection = member
    wrong = []
    for name, call in calls(stores.SCHEMA).items():
        said = refusal(connection, call.sql, *_values(name), types=call.types)
        denied = said is not None and _EXECUTE_DENIED.search(said) is not None
        allowed = said is None or _OBJECT_DENIED.search(said) is not None or _is_ours(said)
        if denied == allowed:
            wrong.append(f"{name}: cannot tell from {said}")
        elif allowed != (role in documented()[name]):
            wrong.append(f"{name} is {'open' if allowed else 'closed'}")
    assert wrong == [], f"role {role}"


def test_no_table_is_open_to_anybody(member: tuple[str | None, Any]) -> None:
    role, connection = member
    wrong = []
    for table in (*TABLES, *LEDGERS):
        place = f"{stores.SCHEMA}.{table}"
        column = _COLUMNS.get(table, "Id")
        for sql in (
            f"SELECT TOP (1) {column} FROM {place}",
            f"INSERT INTO {place} ({column}) SELECT TOP (0) '0' AS V",
            f"UPDATE {place} SET {column} = {column} WHERE 1 = 0",
            f"DELETE FROM {place} WHERE 1 = 0",
        ):
            said = refusal(connection, sql)
            if said is None or not _OBJECT_DENIED.search(said):
                wrong.append(f"{sql}: {said}")
    assert wrong == [], f"role {role}"


def test_the_view_is_open_to_operators_and_readers(member: tuple[str | None, Any]) -> None:
    role, connection = member
    said = refusal(connection, f"SELECT TOP (1) Id FROM {stores.SCHEMA}.Jobs")
    if role in ("operator", "reader"):
        # Of the tables below it, which the view reads with its owner's rights.
        assert said is None or _is_chaining_unknown(connection), said
    else:
        assert said is not None
        assert _OBJECT_DENIED.search(said)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE {schema}.JobNotes",
        "DROP PROCEDURE {schema}.GetClock",
        "ALTER TABLE {schema}.JobsHot ADD Mine int NULL",
        "TRUNCATE TABLE {schema}.AuditLog",
        "CREATE TABLE {schema}.Mine (Id int NOT NULL)",
        "ALTER ROLE {schema}_operator ADD MEMBER chokaq_test_client",
    ],
)
def test_nobody_changes_the_schema_or_the_rights(member: tuple[str | None, Any], sql: str) -> None:
    _, connection = member
    assert refusal(connection, sql.format(schema=stores.SCHEMA)) is not None


def test_nobody_passes_a_right_on(member: tuple[str | None, Any], administrator: Any) -> None:
    """An engine may answer with a warning; what counts is what the other one can do then."""
    role, connection = member
    friend = Login(administrator, "chokaq_test_friend")
    theirs = mssql.connect(friend.url)
    try:
        for name in sorted(name for name, roles in documented().items() if role in roles) or ["PurgeJobs"]:
            refusal(connection, f"GRANT EXECUTE ON {stores.SCHEMA}.{name} TO {friend.name}")
            said = refusal(
                theirs, calls(stores.SCHEMA)[name].sql, *_values(name), types=calls(stores.SCHEMA)[name].types
            )
            assert said is not None, name
            assert _EXECUTE_DENIED.search(said), said
    finally:
        theirs.close()
        friend.drop()


def test_an_autoscaler_gets_one_number_in_one_row(administrator: Any) -> None:
    """As KEDA's mssql scaler asks: a batch of text without parameters, the first row of the first result, one column."""
    login = Login(administrator, "chokaq_test_keda", "reader")
    login.allow_tables()
    connection = mssql.connect(login.url)
    try:
        cursor = connection.cursor()
        cursor.execute(
            f"EXEC {stores.SCHEMA}.GetScaleRecommendation @Queue = 'emails', @MinReplicas = 2, @MaxReplicas = 20"
        )
        assert [column[0] for column in cursor.description] == ["Replicas"]
        assert [tuple(row) for row in cursor.fetchall()] == [(2,)]
        assert not cursor.nextset()
    finally:
        connection.close()
        login.drop()


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_worker_and_an_application_need_no_more_than_their_roles(administrator: Any, tmp_path: Path) -> None:
    """A real worker runs jobs and goes through all of its chores under chokaq_worker, for an application under chokaq_client."""
    worker, client = (
        Login(administrator, "chokaq_test_works", "worker"),
        Login(administrator, "chokaq_test_asks", "client"),
    )
    try:
        for login in (worker, client):
            login.allow_tables()
        assert complaints(tmp_path, worker.url, client.url) == []
    finally:
        worker.drop()
        client.drop()


def complaints(folder: Path, worker_url: str, client_url: str) -> list[Any]:
    """Warnings and errors of a worker that did jobs for an application, and led the maintenance for three passes."""
    lab = stores.laboratory(stores.options(stores.SQLSERVER, folder))
    for name, url in (("worker", worker_url), ("client", client_url)):
        (folder / f"{name}.yaml").write_text(CONFIG.format(url=url))
    path, ledger = os.pathsep.join([str(CHAOS_PROGRAMS), str(ROOT)]), folder / "ledger"
    worker = Program(
        ["-m", "chokaq", "worker", "--config", str(folder / "worker.yaml")],
        folder,
        {"PYTHONPATH": path, "CHAOS_LEDGER": str(ledger)},
    )
    client = None
    try:
        worker.wait("supervisor_ready", timeout=90)
        worker.wait("maintenance_ready", timeout=90)
        client = Client(folder, path, folder / "client.yaml", 1)
        passes: set[int] = set()

        def done() -> bool:
            client.answers()
            passes.update(row["LastPassUtc"] for row in lab.rows("Leadership"))
            return len(passes) >= 3 and ledger.exists() and ledger.read_bytes().count(b"\ne ") > 40

        worker.until(done, "forty jobs and three passes of the leader", 120)
        client.stop()
        worker.until(lambda: lab.count("JobsHot") == 0, "the end of every job", 90)
        assert worker.end(timeout=60) == 0
        return [event for event in worker.events() if is_complaint(event)]
    finally:
        worker.destroy()
        if client is not None:
            client.destroy()


def _values(procedure: str) -> list[Any]:
    return [_PLAUSIBLE.get(name, _VALUES[kind[0]]) for name, kind in PROCEDURES[procedure].items()]


def _is_ours(said: str) -> bool:
    found = _NUMBER.findall(said)
    return "chokaq:" in said or any(50_000 <= int(number) < 51_000 for number in found)


def _is_chaining_unknown(connection: Any) -> bool:
    row = connection.execute("SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS varchar(50)) AS V").fetchone()
    return bool(row[0])
