"""`chokaq dlq resurrect | edit | drop | purge`, `jobs edit` and `workers drain`: what they do, ask, refuse and answer."""

from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.repairs import Edits
from tests.support.fake_repairs import NOW, FakeRepairs
from tests.support.ids import new_id, new_ids

from .conftest import Cli

SHOP = """
import msgspec
from chokaq import ChokaQ
app = ChokaQ()

@app.job("email.send.v1", queue="mail")
class Mail(msgspec.Struct):
    to: str
"""


def test_named_jobs_are_resurrected_and_one_that_could_not_be_ends_with_1(cli: Cli, fake: FakeRepairs) -> None:
    stopped, waiting, nobody = fake.stopped(), fake.add(), new_id()
    ran = cli("dlq", "resurrect", stopped, "-r", "mended", "--actor", "anna")
    assert ran.out == f"{stopped} resurrected\n"
    assert [(call.action, call.ids, call.actor, call.reason) for call in fake.calls] == [
        ("resurrect", [stopped], "anna", "mended")
    ]
    ran = cli("dlq", "resurrect", waiting, nobody, code=1)
    assert ran.err == f"{waiting} is Pending; unchanged\n{nobody} does not exist here\n"
    assert ran.out == "0 resurrected, 1 wrong state, 1 unknown\n"
    answer = cli("dlq", "resurrect", waiting, "--json", code=1).json
    assert answer == {
        "counts": {"accepted": 0, "wrong_state": 1, "unknown": 0, "key_conflict": 0},
        "jobs": [{"id": waiting, "result": "wrong_state", "status": "Pending", "holder": None, "queue": None}],
    }


def test_a_key_conflict_names_its_holder_and_the_way_out(cli: Cli, fake: FakeRepairs) -> None:
    holder, stopped = fake.add(idempotency_key="k"), fake.stopped(idempotency_key="k")
    ran = cli("dlq", "resurrect", stopped, code=1)
    assert f"the live job {holder} holds its key; --without-key" in ran.err
    cli("dlq", "resurrect", stopped, "--without-key")
    assert fake.jobs[stopped].status == JobStatus.PENDING


def test_a_resurrection_edits_on_the_way(cli: Cli, fake: FakeRepairs, folder: Path) -> None:
    job = fake.stopped(tags="old")
    (folder / "job.json").write_text('{"to": "ü"}')
    cli("dlq", "resurrect", job, "--payload", "@job.json", "--clear-tags", "--priority", "7")
    assert fake.calls[0].more["edits"] == Edits(payload='{"to": "\\u00fc"}', tags=None, priority=7)


def test_jobs_are_dropped_with_a_reason_only(cli: Cli, fake: FakeRepairs) -> None:
    """C48."""
    job = fake.stopped()
    assert "give the reason (--reason)" in cli("dlq", "drop", job, "--yes", code=1).err
    assert cli("dlq", "drop", job, "--yes", "-r", "obsolete").out == f"{job} dropped\n"
    assert fake.jobs[job].status == JobStatus.DROPPED
    assert fake.calls[0].reason == "obsolete"


def test_a_stopped_job_is_edited_in_the_dlq_and_a_waiting_one_with_jobs_edit(cli: Cli, fake: FakeRepairs) -> None:
    stopped, waiting = fake.stopped(), fake.add()
    assert cli("dlq", "edit", stopped, "--tags", "vip", "--actor", "anna").out == f"{stopped} edited\n"
    assert f"{waiting} is Pending; unchanged" in cli("dlq", "edit", waiting, "--priority", "7", code=1).err
    assert cli("jobs", "edit", waiting, "--priority", "7", "--json").json["jobs"][0]["result"] == "accepted"
    assert cli("jobs", "edit", waiting, "--payload", "-", stdin='{"n": 3}\n').code == 0
    assert (fake.jobs[stopped].tags, fake.jobs[waiting].priority, fake.jobs[waiting].payload) == ("vip", 7, '{"n": 3}')


def test_a_payload_has_to_fit_the_applications_contract_unless_unchecked(
    cli: Cli, fake: FakeRepairs, folder: Path
) -> None:
    (folder / "shop_edited.py").write_text(SHOP)
    (folder / "chokaq.yaml").write_text("app: shop_edited:app\n")
    stopped, waiting = fake.stopped(), fake.add()
    ran = cli("jobs", "edit", waiting, "--payload", '{"two": 1}', code=1)
    assert "the payload of email.send.v1 does not fit Mail" in ran.err
    assert "does not fit Mail" in cli("dlq", "resurrect", stopped, "--payload", "{}", code=1).err
    assert fake.calls == []
    cli("dlq", "edit", stopped, "--payload", '{"to": "a@b"}')
    cli("jobs", "edit", waiting, "--payload", "{}", "--unchecked")
    (folder / "chokaq.yaml").write_text("app: shop_gone:app\n")
    assert "there is no module shop_gone" in cli("jobs", "edit", waiting, "--payload", "{}", code=3).err


def test_the_limit_of_a_payload_is_that_of_the_settings(cli: Cli, fake: FakeRepairs, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("envelope: {max_payload_bytes: 1024}\n")
    ran = cli("dlq", "edit", fake.stopped(), "--payload", f'"{"x" * 1_030}"', code=1)
    assert "at most 1,024 are allowed" in ran.err


def test_workers_are_drained(cli: Cli, fake: FakeRepairs) -> None:
    live, ended = new_ids(2)
    fake.workers = {live: True, ended: False}
    assert cli("workers", "drain", live, "-r", "reboot").out == f"{live} told to drain\n"
    ran = cli("workers", "drain", ended, new_id(), "--json", code=1)
    assert [worker["result"] for worker in ran.json["workers"]] == ["wrong_state", "unknown"]
    assert f"{ended} has ended, or is a maintenance process; unchanged" in cli("workers", "drain", ended, code=1).err
    assert "'x' is not a worker id" in cli("workers", "drain", "x", code=1).err


# ── by filter ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_jobs_are_purged_by_age(cli: Cli, fake: FakeRepairs) -> None:
    old, young = fake.stopped(finished_at=NOW.replace(month=1, day=1)), fake.stopped()
    answer = cli("dlq", "purge", "--older-than", "7d", "--yes", "--json").json
    assert ([job["id"] for job in answer["jobs"]], answer["counts"]["accepted"]) == ([old], 1)
    assert (answer["preview"]["matched"], answer["preview"]["action"]) == (1, "purge")
    assert list(fake.jobs) == [young]


def test_jobs_are_dropped_by_filter_and_those_already_dropped_are_left_out(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(3)]
    gone, other = fake.stopped(JobStatus.DROPPED), fake.stopped(queue="other")
    answer = cli("dlq", "drop", "-q", "mail", "--max", "2", "-r", "obsolete", "--yes", "--json").json
    assert (answer["preview"]["matched"], answer["preview"]["truncated"]) == (3, True)
    assert ([job["id"] for job in answer["jobs"]], answer["counts"]["accepted"]) == ([jobs[2], jobs[1]], 2)
    assert [fake.jobs[job].status.label for job in (jobs[0], gone, other)] == ["Failed", "Dropped", "Failed"]
    (call,) = fake.calls
    assert (call.action, call.reason, len(call.request or "")) == ("drop", "obsolete", 26)


@pytest.mark.usefixtures("terminal")
def test_a_drop_by_filter_is_confirmed_with_the_count_of_its_preview(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(2)]
    ran = cli("dlq", "drop", "--all", "-r", "x", stdin="drop 1\n", code=1)
    assert "not confirmed: 'drop 2' was to be typed" in ran.err
    assert fake.calls == []
    ran = cli("dlq", "drop", "--all", "-r", "x", stdin="drop 2\n")
    assert ran.err.splitlines()[:3] == ["2 jobs match.", f"The newest: {jobs[1]}, {jobs[0]}", "This will drop 2 jobs."]
    assert {job.status for job in fake.jobs.values()} == {JobStatus.DROPPED}


def test_a_resurrection_by_filter_touches_the_newest_up_to_the_maximum(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(4)]
    other = fake.stopped(queue="other")
    ran = cli("dlq", "resurrect", "--queue", "mail", "--max", "3", "--priority", "5", "--yes")
    assert ran.out.endswith("3 resurrected\n")
    assert [fake.jobs[job].status.label for job in [*jobs, other]] == ["Failed", *["Pending"] * 3, "Failed"]
    assert fake.calls[0].more["edits"] == Edits(priority=5)


def test_a_filter_that_matches_nothing_asks_and_changes_nothing(cli: Cli, fake: FakeRepairs) -> None:
    assert cli("dlq", "purge", "--all").out == "No stopped job matches; nothing was changed.\n"
    assert cli("dlq", "purge", "-q", "q", "--json").json["jobs"] == []
    assert fake.calls == []


def test_a_job_that_moved_on_since_the_preview_is_answered_for(cli: Cli, fake: FakeRepairs) -> None:
    job = fake.stopped()

    def meanwhile() -> None:
        fake.jobs.clear()

    fake.between = meanwhile
    assert f"{job} does not exist here" in cli("dlq", "purge", "--all", "--yes", code=1).err


# ── confirmation ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("terminal")
def test_what_destroys_is_done_only_when_its_phrase_is_typed(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(2)]
    for typed in ("", "yes\n", "purge\n", "purge 1\n"):
        ran = cli("dlq", "purge", *jobs, stdin=typed, code=1)
        assert "not confirmed: 'purge 2' was to be typed; nothing was changed" in ran.err
    assert fake.calls == []
    ran = cli("dlq", "purge", *jobs, "--json", stdin="Purge 2\n")
    assert ran.json["counts"]["accepted"] == 2
    assert ran.err == "This will purge 2 jobs.\nType `purge 2` to do it: "


@pytest.mark.usefixtures("terminal")
def test_an_action_by_filter_shows_what_it_means_before_it_asks(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(3)]
    ran = cli("dlq", "resurrect", "--all", "--max", "2", stdin="resurrect 2\n")
    assert ran.err.splitlines() == [
        "3 jobs match.",
        "Only the newest 2 are touched at once (--max).",
        f"The newest: {jobs[2]}, {jobs[1]}",
        "This will resurrect 2 jobs.",
        "Type `resurrect 2` to do it: ",
    ]
    assert fake.jobs[jobs[0]].status == JobStatus.FAILED


@pytest.mark.usefixtures("terminal")
def test_few_named_jobs_are_resurrected_and_cancelled_unasked_many_are_not(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(25)]
    assert "'resurrect 25' was to be typed" in cli("dlq", "resurrect", *jobs, stdin="\n", code=1).err
    assert "'cancel 25' was to be typed" in cli("jobs", "cancel", *jobs, stdin="\n", code=1).err
    assert cli("dlq", "resurrect", *jobs[:24]).code == 0


def test_without_a_terminal_and_without_yes_nothing_is_destroyed(cli: Cli, fake: FakeRepairs) -> None:
    job = fake.stopped()
    for command in (["purge", job], ["drop", job, "-r", "x"], ["resurrect", "--all"], ["purge", "--all"]):
        ran = cli("dlq", *command, stdin="purge 1\n", code=1)
        assert "there is nobody to ask: run it on a terminal, or say --yes; nothing was changed" in ran.err
    assert fake.calls == []


@pytest.mark.usefixtures("terminal")
def test_in_production_yes_is_refused_and_the_phrase_has_to_be_typed(cli: Cli, fake: FakeRepairs, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("production: true\ndatabase: mssql://sa:x@localhost/d?encrypt=yes\n")
    job = fake.stopped()
    for command in (["purge", job], ["drop", job, "-r", "x"], ["resurrect", "--all"], ["purge", "--all"]):
        ran = cli("dlq", *command, "--yes", code=1)
        assert "this is production (production: true)" in ran.err
        assert "--yes does not stand for it; nothing was changed" in ran.err
    assert "--yes does not stand for it" in cli("queues", "deactivate", "mail", "--yes", code=1).err
    assert fake.calls == []
    cli("dlq", "resurrect", job, "--yes")
    fake.stopped()
    cli("dlq", "purge", "--all", stdin="purge 1\n")
    assert [call.action for call in fake.calls] == ["resurrect", "purge"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["purge"], 2, "name jobs by their ids, or a filter"),
        (["resurrect"], 2, "name jobs by their ids, or a filter"),
        (["purge", "0" * 26, "--all"], 2, "either jobs by their ids, or a filter, or --all"),
        (["purge", "--queue", "q", "--all"], 2, "either jobs by their ids, or a filter, or --all"),
        (["resurrect", "0" * 26, "-q", "q"], 2, "either jobs by their ids, or a filter, or --all"),
        (["resurrect", "--all", "--payload", "{}"], 2, "a payload is for one job"),
        (["resurrect", "0" * 26, "1" * 26, "--payload", "{}"], 1, "2 jobs cannot share it"),
        (["resurrect", "x"], 1, "'x' is not a job id"),
        (["resurrect", "--status", "dropped"], 1, "a dropped job never runs again"),
        (["resurrect", "0" * 26, "--tags", "x", "--clear-tags"], 2, "both set and cleared"),
        (["purge", "--all", "--max", "0"], 1, "at most 1 to 1,000 jobs"),
        (["edit", "0" * 26], 1, "nothing to edit"),
        (["edit", "0" * 26, "--priority", "-1"], 1, "priority must be"),
        (["edit", "0" * 26, "--payload", "{"], 1, "the payload is not JSON"),
        (["edit", "0" * 26, "--payload", "@no.json"], 2, "cannot read no.json"),
        (["drop", "0" * 26, "-r", " "], 1, "give the reason"),
        (["drop", "--all"], 1, "give the reason"),
        (["drop"], 2, "name jobs by their ids, or a filter"),
        (["drop", "0" * 26, "--all"], 2, "either jobs by their ids, or a filter, or --all"),
        (["drop", "-s", "dropped", "-r", "x"], 1, "a dropped job never runs again"),
        (["purge", *["0" * 23 + f"{n:03}" for n in range(1_000)], "1" * 26], 1, "purge 1 to 1,000 jobs at a time"),
    ],
)
def test_a_wrong_repair_is_one_clear_message(
    cli: Cli, fake: FakeRepairs, arguments: list[str], code: int, message: str
) -> None:
    ran = cli("dlq", *arguments, code=code)
    assert message in ran.err
    assert (ran.out, fake.calls) == ("", [])
