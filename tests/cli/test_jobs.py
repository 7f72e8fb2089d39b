"""`chokaq enqueue` and `chokaq jobs`."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from .conftest import Cli, enqueue


def test_a_job_is_enqueued_listed_shown_and_cancelled(cli: Cli) -> None:
    job = enqueue(cli, "--priority", "20", "--tags", "vip", "--header", "trace=a=b", "--actor", "anna")
    listed = cli("jobs", "list", "--json").json
    assert [entry["id"] for entry in listed["jobs"]] == [job]
    assert (listed["jobs"][0]["status"], listed["jobs"][0]["pillar"], listed["after"]) == ("Pending", "hot", None)
    shown = cli("jobs", "show", job.lower(), "--json").json["job"]
    assert (shown["payload"], shown["headers"], shown["created_by"]) == ({"to": "a@b"}, {"trace": "a=b"}, "anna")
    assert shown["created_at"].endswith("Z")
    assert cli("jobs", "cancel", job, "-r", "not wanted", "--actor", "bert", "--json").json == {
        "jobs": [{"id": job, "result": "cancelled"}]
    }
    after = cli("jobs", "show", job, "--json").json
    assert (after["job"]["status"], after["job"]["failure_reason"]) == ("Cancelled", "Cancelled")
    assert [(entry["actor"], entry["reason"]) for entry in after["audit"]] == [("bert", "not wanted")]
    assert cli("jobs", "list", "--status", "cancelled", "--json").json["jobs"][0]["id"] == job
    refused = cli("jobs", "cancel", job, code=1)
    assert "has already ended" in refused.err


def test_tables_fit_80_columns_with_whole_ids_and_show_more_at_120(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    job = enqueue(cli, "--tags", "a-tag", queue="a-queue-with-a-rather-long-name")
    for width, more in ((80, False), (120, True)):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (["jobs", "list"], ["queues", "list"], ["status"], ["jobs", "show", job]):
            out = cli(*command, code=None).out
            assert max(len(line) for line in out.splitlines()) <= width, command
        out = cli("jobs", "list").out
        assert job in out
        assert "Pending" in out
        assert ("prio" in out) == more


def test_a_table_that_is_piped_is_not_cut(cli: Cli) -> None:
    enqueue(cli, queue="a-queue-with-a-rather-long-name", *("--tags", "a-tag"))  # noqa: B026
    out = cli("jobs", "list").out
    assert "a-queue-with-a-rather-long-name" in out
    assert "a-tag" in out


def test_what_a_job_holds_is_shown_as_text_and_not_as_markup(cli: Cli) -> None:
    job = enqueue(cli, "--tags", "[red]\x1b[31m", "--key", "[/]")
    out = cli("jobs", "show", job).out
    assert "[red]\ufffd[31m" in out
    assert "[/] (active)" in out


def test_a_list_goes_on_behind_a_job(cli: Cli) -> None:
    jobs = [enqueue(cli) for _ in range(3)]
    out = cli("jobs", "list", "-n", "2").out
    after = cli("jobs", "list", "-n", "2", "--json").json["after"]
    assert f"More: --after {after}" in out
    assert [entry["id"] for entry in cli("jobs", "list", "--after", after, "--json").json["jobs"]] == [jobs[0]]
    assert "another filter" in cli("jobs", "list", "-q", "emails", "--after", after, code=1).err


def test_the_payload_may_come_from_a_file_or_from_stdin(cli: Cli, folder: Path) -> None:
    (folder / "job.json").write_text('{"n": 1}')
    first = cli("enqueue", "a.b", "@job.json", "-q", "q", "--json").json["answer"]["id"]
    second = cli("enqueue", "a.b", "-", "-q", "q", "--json", stdin='{"n": 2}\n').json["answer"]["id"]
    assert [cli("jobs", "show", job, "--json").json["job"]["payload"] for job in (first, second)] == [
        {"n": 1},
        {"n": 2},
    ]


def test_a_key_that_is_taken_enqueues_nothing(cli: Cli) -> None:
    first = enqueue(cli, "--key", "k", "--scope", "1h")
    ran = cli("enqueue", "email.send.v1", "{}", "-q", "emails", "--key", "k")
    assert ran.out == f"{first} already holds the key k (Pending, with another payload); nothing enqueued\n"


def test_a_delay_and_an_instant_set_the_due_time(cli: Cli) -> None:
    delayed = enqueue(cli, "--delay", "1h")
    job = cli("jobs", "show", delayed, "--json").json["job"]
    due, created = (datetime.fromisoformat(job[name]) for name in ("due_at", "created_at"))
    assert 3_599 <= (due - created).total_seconds() <= 3_601
    dated = enqueue(cli, "--at", "2030-01-31T09:00+01:00")
    assert cli("jobs", "show", dated, "--json").json["job"]["due_at"] == "2030-01-31T08:00:00.000Z"
    assert re.search(r"in 59m|in 1h", cli("jobs", "list").out)


def test_the_queue_comes_from_the_application_when_one_is_configured(cli: Cli, folder: Path) -> None:
    (folder / "shop_cli.py").write_text(
        "from chokaq import ChokaQ\napp = ChokaQ()\napp.job('email.send.v1', queue='emails')(dict)\n"
    )
    (folder / "chokaq.yaml").write_text("app: shop_cli:app\n")
    assert cli("enqueue", "Email.Send.v1", "{}", "--json").json["queue"] == "emails"
    refused = cli("enqueue", "email.sent.v1", "{}", code=1)
    assert "registers no job type 'email.sent.v1'; did you mean email.send.v1?" in refused.err
    assert cli("enqueue", "email.sent.v1", "{}", "-q", "other", "--json").json["queue"] == "other"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["enqueue", "a.b", "{}"], 2, "--queue"),
        (["enqueue", "a.b", "{", "-q", "q"], 1, "the payload is not JSON"),
        (["enqueue", "a.b", "@no.json", "-q", "q"], 2, "cannot read no.json"),
        (["enqueue", "a.b", "{}", "-q", "q", "--delay", "soon"], 2, "must be a duration"),
        (["enqueue", "a.b", "{}", "-q", "q", "--at", "soon"], 2, "must be an instant"),
        (["enqueue", "a.b", "{}", "-q", "q", "--header", "x"], 2, "must be NAME=VALUE"),
        (["enqueue", "a.b", "{}", "-q", "q", "--priority", "-1"], 1, "priority must be"),
        (["jobs", "show", "nope"], 1, "'nope' is not a job id"),
        (["jobs", "show", "0" * 26], 1, "there is no job 0000"),
        (["jobs", "cancel", "0" * 26], 1, "does not exist here"),
        (["jobs", "list", "-n", "0"], 1, "a page holds 1 to 500 jobs"),
        (["jobs", "list", "-s", "gone"], 1, "there is no status 'gone'"),
        (["jobs", "list", "-s", "failed", "-p", "hot"], 1, "Failed stands in the pillar dlq"),
        (["jobs", "cancel", "0" * 26, "--actor", "x" * 101], 1, "the actor is longer than 100 characters"),
        (["jobs"], 2, ""),
        (["jobs", "lost"], 2, "No such command"),
    ],
)
def test_a_wrong_request_is_one_clear_message(cli: Cli, arguments: list[str], code: int, message: str) -> None:
    cli("schema", "apply")
    ran = cli(*arguments, code=code)
    assert message in ran.err
    if arguments != ["jobs"]:
        assert ran.out == ""


def test_with_json_an_error_is_an_object_on_stdout_too(cli: Cli) -> None:
    ran = cli("jobs", "show", "nope", "--json", code=1)
    assert json.loads(ran.out)["error"]["kind"] == "problem"
    assert "is not a job id" in ran.json["error"]["message"]
    assert "is not a job id" in ran.err


def test_priority_and_scope_of_the_key_are_as_the_application_registers_them(cli: Cli, folder: Path) -> None:
    (folder / "shop_scoped.py").write_text(
        "from datetime import timedelta\nfrom chokaq import ChokaQ\napp = ChokaQ()\n"
        "app.job('mail.v1', queue='emails', priority=77, scope='retained')(dict)\n"
        "app.job('note.v1', dict, queue='notes', scope=timedelta(hours=1))\n"
    )
    (folder / "chokaq.yaml").write_text("app: shop_scoped:app\n")
    first = cli("enqueue", "Mail.v1", "{}", "--key", "k", "--json").json["answer"]["id"]
    assert cli("jobs", "show", first, "--json").json["job"]["priority"] == 77
    cli("jobs", "cancel", first)
    again = cli("enqueue", "mail.v1", "{}", "--key", "k", "--json").json["answer"]
    assert (again["id"], again["created"]) == (first, False)
    cli("enqueue", "note.v1", "{}", "--key", "k", "--json")
    other = cli("enqueue", "mail.v1", "{}", "--priority", "5", "--json").json["answer"]["id"]
    assert cli("jobs", "show", other, "--json").json["job"]["priority"] == 5
