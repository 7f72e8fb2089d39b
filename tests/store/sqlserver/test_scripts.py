"""The SQL files: all parse, all are called as they are written, and fit another schema by three rewritings."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chokaq.store import sqlfiles
from chokaq.store.errors import StoreMisconfigured
from chokaq.store.sqlserver import inspection, schema, scripts, views
from chokaq.store.sqlserver.calls import (
    BIGINT,
    BIT,
    BYTES,
    DOCUMENT,
    ID,
    ID_OR_EMPTY,
    INT,
    NAME,
    PROCEDURES,
    calls,
    check_schema_name,
)
from chokaq.store.sqlserver.rewrite import batches, normalised, renamed, without_create_or_alter

FILES = [("schema", name) for name in sqlfiles.names("schema")] + [
    ("procedures", name) for name in sqlfiles.names("procedures")
]
READ = re.compile(
    r"(?<!DELETE )(?:FROM|JOIN)\s+chokaq\.(Jobs\w+)\s*"
    r"(?:(?!WITH\b|ON\b|WHERE\b)\w+)?\s*"
    r"(?:WITH\s*\(((?:[^()]|\([^)]*\))*)\))?"
)
"""A pillar that a statement reads, and its hints."""
TWINLESS = {"GetClock"}
"""The embedded store asks its host for the time."""
EMBEDDED_ONLY = {"Moves", "Repairs"} | {name for name in sqlfiles.names("embedded") if name[:3].isdigit()}


def test_every_file_parses_as_sql_server_2019() -> None:
    program = Path(sys.executable).with_name("maxdop")
    for kind, name in FILES:
        file = sqlfiles.folder() / kind / f"{name}.sql"
        found = subprocess.run([program, "--parser-version", "2019", file], capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{file.name}: {found.stderr or found.stdout[-500:]}"


def test_every_procedure_has_its_embedded_twin() -> None:
    assert set(sqlfiles.names("procedures")) - TWINLESS == set(sqlfiles.names("embedded")) - EMBEDDED_ONLY


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_a_procedure_begins_with_its_settings_and_tells_what_it_does(name: str) -> None:
    text = sqlfiles.read("procedures", name)
    assert text.startswith(f"SET QUOTED_IDENTIFIER ON;\nSET ANSI_NULLS ON;\nGO\n-- {name}: ")
    for word in ("-- Called by:", "-- Result", "-- Table order:", f"\nCREATE OR ALTER PROCEDURE chokaq.{name}\n"):
        assert word in text
    assert "SET NOCOUNT ON;" in text


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_a_procedure_is_called_with_the_parameters_it_declares(name: str) -> None:
    head = sqlfiles.read("procedures", name).split("CREATE OR ALTER", 1)[1].split("\nAS\n", 1)[0]
    assert re.findall(r"@(\w+)", head) == list(PROCEDURES[name])


def test_every_procedure_can_be_called() -> None:
    assert sorted(PROCEDURES) == sqlfiles.names("procedures")
    assert calls("jobs")["StartJobs"].sql == "EXEC jobs.StartJobs @WorkerId=?, @Jobs=?"
    assert calls("jobs")["RollUp"].sql == "EXEC jobs.RollUp"
    assert calls("jobs")["StartJobs"].sql is calls("jobs")["StartJobs"].sql, "a driver compares texts by identity"


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_a_set_of_rows_is_met_in_the_order_of_its_ids(name: str) -> None:
    """Sets that share rows then wait instead of deadlocking; without DISTINCT an engine that knows no hints hashes the list."""
    text = sqlfiles.read("procedures", name)
    for chosen in re.findall(r"IN \(SELECT ((?:DISTINCT )?TOP \((?:1000|@Count|@Chosen)\)[^;]*)", text):
        assert chosen.startswith("DISTINCT TOP"), chosen[:80]
        assert "ORDER BY" in chosen, chosen[:80]


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_a_hint_that_names_an_access_path_stands_in_a_from_clause(name: str) -> None:
    """SQL Server refuses INDEX and FORCESEEK on the target of an UPDATE or DELETE (error 1069)."""
    text = re.sub(r"--[^\n]*", "", sqlfiles.read("procedures", name))
    for target in re.findall(r"\b(?:UPDATE|DELETE FROM|INSERT INTO)\s+chokaq\.\w+\s+WITH\s*\(([^)]*)", text):
        assert "FORCESEEK" not in target
        assert "INDEX" not in target


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_every_readpast_locks_as_read_committed(name: str) -> None:
    """Without it READPAST fails, or means nothing, where READ_COMMITTED_SNAPSHOT is on."""
    for hints in re.findall(r"WITH \(([^)]*READPAST[^)]*)\)", sqlfiles.read("procedures", name)):
        assert "READCOMMITTEDLOCK" in hints


@pytest.mark.parametrize(
    "name", ["FetchJobs", "StartJobs", "KeepAlive", "ArchiveSucceeded", "ArchiveFailed", "ReadHealth"]
)
def test_what_is_called_for_every_job_reads_the_pillars_by_seeks_alone(name: str) -> None:
    """C32: a plan that walks the backlog is no plan SQL Server may choose under FORCESEEK; and no sort stands before a claim.

    Exempt: statements about cancellations, which begin at the few rows of CancelRequests.
    """
    text = re.sub(r"--[^\n]*", "", sqlfiles.read("procedures", name).split("\nAS\n", 1)[1])
    statements = [part for part in text.split(";") if "chokaq.CancelRequests" not in part]
    reads = [read for part in statements for read in READ.findall(part)]
    assert reads
    assert [table for table, hints in reads if "FORCESEEK" not in hints] == []
    for part in statements:
        if "IX_JobsHot_Ready" in part:
            assert "ORDER BY Priority DESC, DueAtUtc, Id" in part, "the claim is served in the order of its index"


@pytest.mark.parametrize(
    "name", ["PurgeArchive", "PurgeDLQ", "PurgeLeftovers", "RecoverAbandoned", "ArchiveZombies", "RollUp"]
)
def test_where_the_leaders_chores_meet_work_they_are_the_victims(name: str) -> None:
    """C33: low deadlock priority, and no statement of theirs takes more than a page of rows."""
    text = re.sub(r"--[^\n]*", "", sqlfiles.read("procedures", name))
    body = text.split("\nAS\n", 1)[1]
    assert body.index("SET DEADLOCK_PRIORITY LOW;") < body.index("chokaq.")
    if name.startswith("Purge"):
        assert re.search(r"TOP \(@\w+\)", body)


@pytest.mark.parametrize("name", [name for name in sqlfiles.names("procedures") if not name.startswith("Enqueue")])
def test_a_procedure_that_begins_a_transaction_ends_it_on_every_error(name: str) -> None:
    """C28: rolled back, and the error still reaches the caller. (Enqueue… may live inside its caller's: see the contract.)"""
    text = re.sub(r"--[^\n]*", "", sqlfiles.read("procedures", name))
    begun = len(re.findall(r"\bBEGIN TRANSACTION\b", text))
    catches = re.findall(r"\bBEGIN CATCH\b(.*?)\bEND CATCH\b", text, re.DOTALL)
    assert len(catches) >= min(begun, 1)
    for catch in catches:
        before, _, after = catch.partition("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        assert "THROW;" in after
        assert "chokaq." not in before, "nothing is read or written in a transaction that failed"
    if begun:
        assert "SET XACT_ABORT ON;" in text
        assert len(re.findall(r"\bCOMMIT TRANSACTION\b", text)) >= begun


def test_no_procedure_is_told_the_time() -> None:
    """C35: only the database's clock decides. Delays and ages go in as milliseconds; its own clock is asked in UTC."""
    known = {code for code, _, _ in (ID, ID_OR_EMPTY, NAME, INT, BIGINT, BIT, DOCUMENT, BYTES)}
    for name, parameters in PROCEDURES.items():
        assert {code for code, _, _ in parameters.values()} <= known, name
        text = re.sub(r"--[^\n]*", "", sqlfiles.read("procedures", name))
        assert not re.search(r"\b(GETDATE|GETUTCDATE|SYSDATETIME|SYSDATETIMEOFFSET|CURRENT_TIMESTAMP)\b", text), name
        head = text.split("CREATE OR ALTER", 1)[1].split("\nAS\n", 1)[0]
        assert not re.search(r"\b(date|time|datetime|datetime2|datetimeoffset|smalldatetime)\b", head), name


def test_the_store_of_the_server_never_asks_this_hosts_clock() -> None:
    """C35: also where answers are turned into records."""
    folder = Path(views.__file__).parent
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    assert "worker.py" in sources
    wrong = r"\btime\.time\(|datetime\.(now|utcnow|today)\("
    assert [name for name, text in sources.items() if re.search(wrong, text)] == []


def test_another_schema_changes_the_qualifier_and_the_roles_and_nothing_else() -> None:
    text = "-- chokaq: words\nGRANT EXECUTE ON chokaq.X TO chokaq_worker; SELECT 'chokaq', mychokaq.y FROM chokaq.Jobs"
    assert renamed(text, "chokaq_two") == (
        "-- chokaq: words\nGRANT EXECUTE ON chokaq_two.X TO chokaq_two_worker; SELECT 'chokaq', mychokaq.y FROM chokaq_two.Jobs"
    )
    assert renamed(text, "chokaq") == text


def test_batches_are_divided_at_go_lines_only() -> None:
    assert batches("a\nGO\nSELECT 'GO'\n  go  \n\nGO\nlast") == ["a", "SELECT 'GO'", "last"]


def test_create_or_alter_becomes_drop_and_create() -> None:
    batch = "-- head\nCREATE OR ALTER PROCEDURE s.P\nAS SELECT 1"
    assert without_create_or_alter(batch) == [
        "DROP PROCEDURE IF EXISTS s.P",
        "-- head\nCREATE PROCEDURE s.P\nAS SELECT 1",
    ]
    assert without_create_or_alter("SELECT 1") == ["SELECT 1"]
    live = "CREATE   PROCEDURE s.P\n  AS SELECT 1"
    assert normalised(live) == normalised(batch)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a;drop", "a.b", "ü", "[a]"])
def test_a_schema_name_that_needs_quotes_is_refused(name: str) -> None:
    with pytest.raises(StoreMisconfigured, match=r"database\.schema"):
        check_schema_name(name)


def test_the_script_is_complete_and_in_order() -> None:
    text = schema.script("jobs")
    words = ("CREATE SCHEMA jobs", "jobs.SchemaMigrations (", "TABLE jobs.JobsHot", "VIEW jobs.Jobs", "GRANT EXECUTE")
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    for name in sqlfiles.names("procedures"):
        assert f"CREATE OR ALTER PROCEDURE jobs.{name}\n" in text
    assert "chokaq." not in re.sub(r"--[^\n]*|'[^']*'", "", text)
    assert scripts.latest() == scripts.migrations()[-1].version


def test_the_expected_catalog_is_read_from_the_schema_files() -> None:
    tables = inspection.expected_tables()
    assert tables["JobsHot"]["DueAtUtc"] == "datetime2"
    assert tables["MetricBuckets"]["Lag11"] == "int"
    assert "CONSTRAINT" not in tables["JobsHot"]
    assert "UX_JobsHot_Key" in inspection.expected_indexes()["JobsHot"]


def test_grants_name_only_procedures_that_exist() -> None:
    granted = set(re.findall(r"GRANT EXECUTE ON chokaq\.(\w+)", sqlfiles.read("schema", "grants")))
    assert granted == set(sqlfiles.names("procedures"))


def test_tuning_alters_nothing_that_is_as_it_should_be() -> None:
    """An ALTER of a table waits for all who use it and keeps all others waiting: an upgrade must not do it for nothing."""
    for batch in batches(re.sub(r"--[^\n]*", "", sqlfiles.read("schema", "tuning"))):
        for statement in re.split(r"\n(?=IF )", batch):
            if "ALTER" in statement:
                assert statement.startswith("IF EXISTS (SELECT 1 FROM sys."), statement
    assert "BEGIN TRANSACTION" not in sqlfiles.read("schema", "tuning")
