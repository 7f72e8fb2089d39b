"""Every embedded statement fits the schema, and none walks a pillar row by row where an index was meant."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from chokaq.store import sqlfiles
from chokaq.store.sqlite import schema
from chokaq.store.sqlite.statements import load

OPERATIONS = [name for name in sqlfiles.names("embedded") if not name[:3].isdigit()]
WALKS = {("ListJobs", "hot"), ("ListJobs", "archive"), ("ListJobs", "dlq")}
"""Pages by id; a filter may have to skip rows."""
SHARED = "Moves"


class _Anything(dict[str, object]):
    """A value for whatever parameter a statement names."""

    def __missing__(self, name: str) -> object:
        return "[]" if name in ("jobs", "ids", "keys", "beats", "rows", "queues") else 1


@pytest.fixture(scope="module")
def built() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.apply(connection)
        yield connection


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    numbered = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    values: object = tuple([1] * max(numbered)) if numbered else _Anything()
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]  # type: ignore[arg-type]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_statement_walks_a_pillar(built: sqlite3.Connection, operation: str) -> None:
    for name, sql in load(operation).items():
        for step in plan(built, sql):
            walks = re.search(r"SCAN (Jobs(Hot|Archive|DLQ)|JobKeys|JobAttempts|JobNotes|h|d|a)\b(?! USING)", step)
            assert walks is None or (operation, name) in WALKS, f"{operation}.{name}: {step}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_file_says_what_it_is_for(operation: str) -> None:
    head = sqlfiles.read("embedded", operation).split("-- name:")[0]
    text = " ".join(line.removeprefix("-- ") for line in head.splitlines())
    assert head.startswith(f"-- {operation}: ")
    assert "Table order:" in head
    if operation != SHARED:
        assert "Called by" in text
        assert "Result" in text


@pytest.mark.parametrize(
    ("name", "index"),
    [("ready", "IX_JobsHot_Ready"), ("leases", "COVERING INDEX IX_JobsHot_Lease"), ("promote", "IX_JobsHot_Due")],
)
def test_the_claim_reads_its_rows_in_the_order_of_the_index(built: sqlite3.Connection, name: str, index: str) -> None:
    steps = plan(built, load("FetchJobs")[name])
    assert any(index in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)


def test_a_statement_outside_a_heading_or_a_name_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, message in (("SELECT 1;", "before the first"), ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "two")):
        monkeypatch.setattr(sqlfiles, "read", lambda kind, name, text=text: text)
        with pytest.raises(ValueError, match=message):
            load("Wrong")


@pytest.mark.parametrize(
    ("operation", "name", "index"),
    [
        ("ListAudit", "target", "IX_AuditLog_Target (Target=? AND AuditId<?)"),
        ("ListAudit", "actor", "IX_AuditLog_Actor (Actor=? AND AuditId<?)"),
        ("ListAudit", "action", "IX_AuditLog_Action (Action=? AND AuditId<?)"),
        ("ListAudit", "all", "INTEGER PRIMARY KEY (rowid<?)"),
        ("ListCircuitEvents", "list", "IX_CircuitEvents_Type (TypeKey=? AND AtUtc>? AND AtUtc<?)"),
        ("ReadChanges", "signed_out", "IX_SignOuts_Ended (EndedAtUtc>?)"),
    ],
)
def test_a_page_is_a_walk_down_its_index(built: sqlite3.Connection, operation: str, name: str, index: str) -> None:
    steps = plan(built, load(operation)[name])
    assert any(index in step for step in steps), steps
    assert not any("TEMP B-TREE" in step for step in steps)
