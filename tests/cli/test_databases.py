"""The commands where queues live in two databases: `emails` in main, `reports` in archive."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.config import Loaded
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Failure
from tests.support.holder import Holder

from .conftest import Cli, enqueue

CONFIG = """
databases:
  main: sqlite:///main.db
  archive: {url: sqlite:///archive.db, command_timeout: 1s, retries: 0}
queues:
  emails: {}
  reports: {database: archive}
"""
UNKNOWN = "7" + "Z" * 25


@pytest.fixture(autouse=True)
def _configured(folder: Path) -> None:
    (folder / "chokaq.yaml").write_text(CONFIG)


@pytest.fixture
def sessions(folder: Path, cli: Cli) -> Iterator[dict[str, Session]]:
    """A session of each."""
    cli("schema", "apply")
    opened = {
        name: open_store(DatabaseSettings(url=f"sqlite:///{folder / name}.db")).session()
        for name in ("main", "archive")
    }
    yield opened
    for session in opened.values():
        session.close()


@pytest.fixture
def away(folder: Path, cli: Cli) -> None:
    """The archive does not answer: something else stands where its file was."""
    cli("schema", "apply")
    for path in folder.glob("archive.db*"):
        path.unlink()
    (folder / "archive.db").mkdir()


def stop(session: Session, queue: str) -> None:
    """Claim what waits in a queue, and let it end in the DLQ."""
    holder = Holder(session, queue)
    for held in holder.take():
        error = AttemptError("ValueError", "broken", None)
        session.archive_failed(
            holder.worker, [Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)]
        )


# ── schema and configuration ──────────────────────────────────────────────────────────────────────────────────────────
def test_the_schema_of_each_is_applied_and_checked(cli: Cli, folder: Path) -> None:
    assert "archive: nothing is installed" in cli("schema", "version", code=1).out
    assert "sqlite:" in cli("schema", "apply", "--database", "archive").out
    assert not (folder / "main.db").exists()
    out = cli("schema", "apply").out
    assert "main: applied" in out
    assert "archive: applied" not in out
    assert cli("schema", "check", "--json").json["databases"].keys() == {"main", "archive"}
    with closing(sqlite3.connect(folder / "archive.db")) as connection:
        connection.execute("DROP TABLE JobNotes")
    found = cli("schema", "check", code=1).out
    assert "archive: " in found
    assert "JobNotes" in found
    assert "main: sqlite" in found
    cli("schema", "check", "--database", "main")
    assert "a script is for one database" in cli("schema", "script", code=2).err
    assert "CREATE TABLE" in cli("schema", "script", "--database", "main").out


def test_one_that_cannot_be_reached_does_not_keep_the_others_from_their_schema(cli: Cli, folder: Path) -> None:
    (folder / "main.db").mkdir()
    ran = cli("schema", "apply", code=3)
    assert "main: " in ran.err
    assert "databases.main.url is sqlite:///" in ran.err
    assert "archive: applied" in ran.out


def test_check_looks_at_each(cli: Cli, sessions: dict[str, Session], folder: Path) -> None:
    with closing(sqlite3.connect(folder / "archive.db")) as connection:
        connection.execute("DROP TABLE JobNotes")
    found = cli("check", "--json", code=5).json
    assert {problem["path"] for problem in found["errors"]} == {"databases.archive"}
    assert "databases.archive" in cli("check", code=5).out


@pytest.mark.parametrize("command", [["status"], ["schema", "check"], ["jobs", "list"], ["deck"]])
def test_a_name_that_no_database_has_is_told(cli: Cli, command: list[str]) -> None:
    told = cli(*command, "--database", "archiv", code=1).err
    assert "'archiv' is neither a URL" in told
    assert "those of the configuration are main, archive" in told


def test_without_databases_there_is_no_name_to_give(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("database: sqlite:///one.db\n")
    assert "the configuration has one, without a name" in cli("status", "--database", "main", code=1).err


def test_a_url_stands_for_all_of_them(cli: Cli, folder: Path) -> None:
    cli("schema", "apply", "--database", "sqlite:///own.db")
    assert (folder / "own.db").exists()
    assert not (folder / "main.db").exists()
    enqueue(cli, "--database", "sqlite:///own.db", queue="reports")
    assert len(cli("queues", "list", "--json", "--database", "sqlite:///own.db").json["queues"]) == 1


@pytest.mark.parametrize("database", ["main", "sqlite:///own.db"])
def test_a_worker_serves_its_queues_where_they_live(cli: Cli, database: str) -> None:
    told = cli("worker", "--app", "no.such:app", "--database", database, code=2).err
    assert "names several databases" in " ".join(told.replace("│", " ").split())


def test_the_deck_shows_the_one_that_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Loaded] = []
    monkeypatch.setattr("chokaq.deck.program.run_deck", served.append)
    cli("deck", "--database", "archive")
    cli("deck")
    cli("deck", "--database", "sqlite:///own.db")
    assert [loaded.settings.deck.database for loaded in served] == ["archive", None, None]
    assert served[0].origins["deck.database"] == "--database"
    assert not served[2].settings.several


def test_the_settings_of_each_are_shown(cli: Cli) -> None:
    out = cli("config").out
    assert "databases.archive.command_timeout" in out
    assert "queues.reports.database" in out


# ── what is merged ────────────────────────────────────────────────────────────────────────────────────────────────────
def test_queues_workers_and_status_show_all_with_their_database(cli: Cli, sessions: dict[str, Session]) -> None:
    enqueue(cli, queue="emails")
    enqueue(cli, queue="reports")
    Holder(sessions["archive"], "reports")
    found = cli("queues", "list", "--json").json["queues"]
    assert [(queue["database"], queue["name"]) for queue in found] == [("main", "emails"), ("archive", "reports")]
    assert "archive" in cli("queues", "list").out
    [worker] = cli("workers", "list", "--json").json["workers"]
    assert (worker["database"], worker["queue"]) == ("archive", "reports")
    status = cli("status", "--json", code=1).json
    assert status["databases"].keys() == {"main", "archive"}
    assert any(
        problem.startswith("main: The queue emails holds 1 job but has no live worker")
        for problem in status["problems"]
    )
    shown = cli("status", code=1).out
    assert "1 worker on 1 host" in shown
    assert "database" in shown
    only = cli("status", "--json", "--database", "archive", code=None).json
    assert [entry["queue"]["name"] for entry in only["queues"]] == ["reports"]


def test_the_figures_of_one_database_look_as_ever(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("database: sqlite:///one.db\n")
    enqueue(cli)
    assert "database" not in cli("queues", "list").out
    assert "database" not in cli("queues", "list", "--json").json["queues"][0]
    assert cli("jobs", "list", "--json").json.keys() == {"jobs", "after"}
    assert "queues" in cli("status", "--json", code=1).json


def test_lists_go_on_over_both_newest_first(cli: Cli, sessions: dict[str, Session]) -> None:
    wanted = [enqueue(cli, queue=queue) for queue in ("emails", "reports", "emails", "reports", "reports")]
    wanted.reverse()
    for command in (["jobs", "list"], ["dlq", "list"]):
        if command[0] == "dlq":
            for name, queue in (("main", "emails"), ("archive", "reports")):
                stop(sessions[name], queue)
        seen, after = [], []
        while True:
            page = cli(*command, "--limit", "2", "--json", *after).json
            seen += [(job["id"], job["database"], job["queue"]) for job in page["jobs"]]
            if page["after"] is None:
                break
            after = ["--after", page["after"]]
        assert [job_id for job_id, _, _ in seen] == wanted
        assert {(database, queue) for _, database, queue in seen} == {("main", "emails"), ("archive", "reports")}
        assert "database" in cli(*command).out
        assert [job["queue"] for job in cli(*command, "--queue", "reports", "--json").json["jobs"]] == ["reports"] * 3
        assert len(cli(*command, "--database", "main", "--json").json["jobs"]) == 2


def test_the_audit_logs_are_read_as_one(cli: Cli, sessions: dict[str, Session]) -> None:
    enqueue(cli, queue="emails")
    enqueue(cli, queue="reports")
    for verb in ("pause", "resume"):
        for queue in ("emails", "reports"):
            cli("queues", verb, queue, "--reason", f"{verb} {queue}")
    seen, after = [], []
    while True:
        page = cli("audit", "--limit", "3", "--json", *after).json
        seen += [(entry["database"], entry["reason"]) for entry in page["entries"]]
        if page["after"] is None:
            break
        after = ["--after", page["after"]]
    assert seen == [
        ("archive", "resume reports"),
        ("main", "resume emails"),
        ("archive", "pause reports"),
        ("main", "pause emails"),
    ]
    assert [entry["reason"] for entry in cli("audit", "reports", "--json").json["entries"]] == [
        "resume reports",
        "pause reports",
    ]
    assert "cursor belongs to another list" in cli("audit", "--database", "main", *after, code=1).err
    assert "database" in cli("audit").out


def test_a_circuit_is_forced_in_each(cli: Cli, sessions: dict[str, Session]) -> None:
    found = cli("circuits", "force", "a.b", "open", "--json").json["circuits"]
    assert [circuit["database"] for circuit in found] == ["main", "archive"]
    cli("circuits", "force", "a.b", "clear", "--database", "main")
    [left] = cli("circuits", "--json").json["circuits"]
    assert left["database"] == "archive"
    assert "archive" in cli("circuits").out


# ── what one of them holds ────────────────────────────────────────────────────────────────────────────────────────────
def test_a_queue_is_acted_on_where_it_lives(cli: Cli, sessions: dict[str, Session]) -> None:
    enqueue(cli, queue="reports")
    cli("queues", "pause", "reports")
    cli("queues", "set", "reports", "--max-workers", "3")
    [queue] = sessions["archive"].list_queues()
    assert (queue.live.paused, queue.live.max_workers) == (True, 3)
    assert sessions["main"].list_queues() == []
    assert cli("queues", "show", "reports", "--json").json["queue"]["name"] == "reports"
    assert "there is no queue 'reports'" in cli("queues", "show", "reports", "--database", "main", code=1).err
    cli("queues", "deactivate", "reports", "--yes")
    assert not sessions["archive"].list_queues()[0].live.active


def test_jobs_are_found_by_their_ids(cli: Cli, sessions: dict[str, Session]) -> None:
    mail, report = enqueue(cli, queue="emails"), enqueue(cli, queue="reports")
    assert cli("jobs", "show", report, "--json").json["database"] == "archive"
    assert "archive" in cli("jobs", "show", report).out
    cli("jobs", "edit", report, "--priority", "99")
    job = sessions["archive"].get_job(report)
    assert job is not None
    assert job.priority == 99
    ran = cli("jobs", "cancel", report, UNKNOWN, mail, code=1)
    assert ran.out.splitlines() == [f"{report} cancelled", f"{mail} cancelled"]
    assert ran.err == f"{UNKNOWN} does not exist here\n"
    assert cli("dlq", "show", mail, "--json").json["database"] == "main"
    answer = cli("dlq", "resurrect", report, mail, "--json").json
    assert [job["id"] for job in answer["jobs"]] == [report, mail]
    assert answer["counts"]["accepted"] == 2
    assert "there is no job" in cli("jobs", "show", UNKNOWN, code=1).err
    assert "there is no job" in cli("jobs", "show", report, "--database", "main", code=1).err


def test_a_worker_is_drained_wherever_it_is_registered(cli: Cli, sessions: dict[str, Session]) -> None:
    one, two = Holder(sessions["main"], "emails"), Holder(sessions["archive"], "reports")
    assert f"{two.id} told to drain" in cli("workers", "drain", two.id, one.id).out
    assert "does not exist here" in cli("workers", "drain", UNKNOWN, code=1).err


def test_an_action_by_filter_is_for_one_database(cli: Cli, sessions: dict[str, Session]) -> None:
    for name, queue in (("main", "emails"), ("archive", "reports")):
        enqueue(cli, queue=queue)
        stop(sessions[name], queue)
    for command in (
        ["dlq", "preview"],
        ["dlq", "purge", "--all", "--yes"],
        ["dlq", "resurrect", "--failure", "FatalError"],
    ):
        told = cli(*command, code=1).err
        assert "there are several (main, archive): name one with --database, or a queue with --queue" in told
    assert "1 job matches" in cli("dlq", "preview", "--queue", "reports").out
    assert cli("dlq", "resurrect", "--queue", "reports", "--yes", "--json").json["counts"]["accepted"] == 1
    assert cli("dlq", "purge", "--all", "--database", "main", "--yes", "--json").json["counts"]["accepted"] == 1
    assert cli("dlq", "list", "--json").json["jobs"] == []


# ── never half of the truth ───────────────────────────────────────────────────────────────────────────────────────────
def test_what_lacks_one_of_them_says_so_and_ends_with_an_error(cli: Cli, away: None) -> None:
    enqueue(cli, queue="emails")
    for command in (["queues", "list"], ["workers", "list"], ["circuits", "list"]):
        ran = cli(*command, code=3)
        assert "the database archive does not answer, and what is shown lacks it" in ran.err
        assert "databases.archive.url is sqlite:///" in ran.err
    found = cli("queues", "list", "--json", code=3).json
    assert [queue["name"] for queue in found["queues"]] == ["emails"]
    assert found["unreachable"].keys() == {"archive"}
    status = cli("status", "--json", code=1).json
    assert status["problems"][0].startswith("The database archive does not answer: ")
    assert status["databases"]["archive"].keys() == {"unreachable"}
    assert "The database archive does not answer" in cli("status", code=1).out
    # A page that misses some jobs would look like a whole one.
    assert "databases.archive.url" in cli("jobs", "list", code=3).err
    assert "databases.archive.url" in cli("audit", code=3).err
    assert cli("jobs", "list", "--database", "main", "--json").json["jobs"] != []
    ran = cli("circuits", "force", "a.b", "open", code=3)
    assert "the order was not given there" in ran.err


def test_a_job_that_was_not_found_may_be_in_the_one_that_is_away(cli: Cli, away: None) -> None:
    mail = enqueue(cli, queue="emails")
    assert cli("jobs", "show", mail, "--json").json["database"] == "main"
    assert "databases.archive.url" in cli("jobs", "show", UNKNOWN, code=3).err
    assert "databases.archive.url" in cli("jobs", "cancel", mail, UNKNOWN, code=3).err
    assert cli("jobs", "show", mail, "--json").json["job"]["status"] == "Pending"
    assert "databases.archive.url" in cli("workers", "drain", UNKNOWN, code=3).err


def test_jobs_that_a_moved_queue_left_behind_are_told_of(cli: Cli, sessions: dict[str, Session], folder: Path) -> None:
    enqueue(cli, queue="reports")
    (folder / "chokaq.yaml").write_text(CONFIG.replace("{database: archive}", "{}"))
    problems = cli("status", "--json", code=1).json["problems"]
    assert any(
        told.startswith("The queue reports lives in the database main, but archive holds 1 job of it")
        for told in problems
    )
