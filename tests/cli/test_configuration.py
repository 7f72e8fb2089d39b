"""`chokaq check`, `config`, `schema`, and the bad input they have to explain."""

import sqlite3
from pathlib import Path

import pytest

from chokaq.cli.program import build
from chokaq.config import load_settings

from .conftest import Cli

SHOP = """
from chokaq import ChokaQ, JobContext
app = ChokaQ()
app.job("email.send.v1", queue="emails")(dict)
app.job("lost.v1", queue="reports")(dict)

@app.handler("email.send.v1")
async def send(job: dict, ctx: JobContext) -> None: ...
"""


def test_check_imports_the_application_and_warns(cli: Cli, folder: Path) -> None:
    (folder / "shop_checked.py").write_text(SHOP)
    (folder / "chokaq.yaml").write_text("app: shop_checked:app\nqueues: {emails: {zombie_timeout: 20s}, idle: {}}\n")
    cli("schema", "apply")
    found = cli("check", "--json").json
    assert (found["source"], found["queues"], found["errors"]) == (str(folder / "chokaq.yaml"), ["emails", "idle"], [])
    assert [warning["path"] for warning in found["warnings"]] == [
        "queues.emails.zombie_timeout",
        "maintenance.rescue_interval",
        "queues.idle",
        "queues",
        "app",
    ]
    ran = cli("check")
    assert "under three heartbeats" in ran.out
    assert "the job type lost.v1 has no handler" in ran.out
    cli("check", "--strict", code=1)


def test_check_says_that_all_is_good(cli: Cli, folder: Path) -> None:
    (folder / "shop_good.py").write_text(SHOP.replace('app.job("lost.v1", queue="reports")(dict)', ""))
    (folder / "chokaq.yaml").write_text("app: shop_good:app\n")
    cli("schema", "apply")
    assert cli("check", "--strict").out.endswith("Queues: emails.\nAll good.\n")


def test_check_tells_of_a_schema_that_is_not_there_or_differs(cli: Cli, folder: Path) -> None:
    assert "holds no schema yet: the first start installs it" in cli("check").out
    assert [warning["path"] for warning in cli("check", "--offline", "--json").json["warnings"]] == ["app"]
    cli("schema", "apply")
    connection = sqlite3.connect(folder / "chokaq.db")
    connection.execute("DROP INDEX IX_JobsHot_Ready")
    connection.close()
    assert "IX_JobsHot_Ready" in cli("check", code=5).out


def test_check_tells_of_a_handler_that_cannot_be_imported(cli: Cli, folder: Path) -> None:
    (folder / "shop_broken.py").write_text("from shop_handlers import send\n")
    (folder / "chokaq.yaml").write_text("app: shop_broken:app\n")
    cli("schema", "apply")
    ran = cli("check", code=3)
    assert "app: importing shop_broken failed: ModuleNotFoundError: No module named 'shop_handlers'" in ran.out
    assert cli("check", "--json", code=3).json["errors"][0]["path"] == "app"


def test_the_example_is_printed_and_loads(cli: Cli, folder: Path) -> None:
    (folder / "example.yaml").write_text(cli("config", "--example").out)
    load_settings(folder / "example.yaml", {})


def test_the_settings_in_force_are_shown_with_origin_and_without_password(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "chokaq.yaml").write_text("queues: {emails: {max_workers: 20}}\n")
    monkeypatch.setenv("CHOKAQ_LOG_LEVEL", "debug")
    ran = cli("config", "--show", "--database", "mssql://sa:hunter2@h/d")
    assert "hunter2" not in ran.out
    assert "mssql://sa:***@h/d" in ran.out
    found = cli("--database", "mssql://sa:hunter2@h/d", "config", "--json").json
    assert found["origins"] == {
        "database.url": "--database",
        "log_level": "$CHOKAQ_LOG_LEVEL",
        "queues.emails.max_workers": "chokaq.yaml:1",
    }
    assert found["settings"]["database"]["url"] == "mssql://sa:***@h/d"


def test_the_schema_is_applied_once_compared_and_scripted(cli: Cli) -> None:
    assert cli("schema", "version", code=1).out == "nothing is installed\n"
    assert cli("schema", "apply", "--json").json["applied"]
    assert cli("schema", "apply", "--json").json["applied"] == []
    assert int(cli("schema", "version").out) == cli("schema", "version", "--json").json["version"]
    assert cli("schema", "check", "--json").json["drift"] == []
    assert "CREATE TABLE JobsHot" in cli("schema", "script").out
    assert "CREATE TABLE JobsHot" in cli("schema", "script", "--json").json["script"]


def test_drift_of_the_schema_is_named(cli: Cli, folder: Path) -> None:
    cli("schema", "apply")
    connection = sqlite3.connect(folder / "chokaq.db")
    connection.execute("DROP INDEX IX_JobsHot_Ready")
    connection.close()
    assert "IX_JobsHot_Ready" in cli("schema", "check", code=1).out


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_option_of_a_queue_is_named_with_the_nearest_one(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("queues: {emails: {max_wokers: 2}}\n")
    for command in (["status"], ["check"], ["worker"], ["config"], ["schema", "apply"]):
        ran = cli(*command, code=3)
        assert "queues.emails.max_wokers: unknown option; did you mean max_workers? (line 1)" in ran.err
    assert cli("status", "--json", code=3).json["error"]["kind"] == "configuration"


def test_a_missing_variable_and_a_missing_file_are_named(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("database: mssql://sa:${SA_PASSWORD}@h/d\n")
    assert "database: the environment variable SA_PASSWORD is not set" in cli("status", code=3).err
    assert "no.yaml does not exist" in cli("status", "-c", "no.yaml", code=3).err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///no/such/q.db", "no/such of q.db does not exist"),
        ("sqlite:////proc/q.db", "must exist and be writable for this user"),
    ],
)
def test_an_sqlite_folder_that_is_missing_or_cannot_be_written_is_named(cli: Cli, url: str, message: str) -> None:
    for command in (["schema", "apply"], ["status"], ["enqueue", "a.b", "{}", "-q", "q"]):
        ran = cli(*command, "--database", url, code=3)
        assert message in ran.err
        assert "database.url is sqlite:///" in ran.err
        assert "(from --database)" in ran.err


def test_a_schema_newer_than_the_program_is_refused(cli: Cli, folder: Path) -> None:
    cli("schema", "apply")
    connection = sqlite3.connect(folder / "chokaq.db")
    ledger = next(
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if "schema" in name.lower() or "ledger" in name.lower()
    )
    columns = [column[1] for column in connection.execute(f"PRAGMA table_info({ledger})")]
    values = ", ".join("999" if column == "Version" else column for column in columns)
    connection.execute(f"INSERT INTO {ledger} SELECT {values} FROM {ledger} LIMIT 1")
    connection.commit()
    connection.close()
    ran = cli("status", code=5)
    assert "newer" in ran.err
    assert ran.out == ""


def test_a_production_configuration_refuses_sqlite(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("production: true\n")
    assert "database.url: production: true refuses SQLite" in cli("status", code=3).err


def test_a_worker_without_an_application_does_not_start(cli: Cli) -> None:
    assert "app: is not set; a worker needs it" in cli("worker", code=3).err
    assert "there is no module no_shop" in cli("worker", "--app", "no_shop:app", code=78).err


def test_every_command_explains_itself_with_exit_codes(cli: Cli) -> None:
    out = cli("--help").out
    assert "Exit codes" in out
    for command in build().registered_commands:
        assert command.name is not None
        assert f" {command.name} " in out
        cli(command.name, "--help")
