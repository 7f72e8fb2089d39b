"""`chokaq dlq list | show | preview` and `chokaq audit`."""

from datetime import timedelta

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.records import Attempt, AttemptError, AuditEntry
from tests.support.fake_repairs import NOW, FakeRepairs

from .conftest import Cli, enqueue

ERROR = AttemptError(
    "SMTPError", "550 [red]no\x1b[31m", "Traceback (most recent call last):\n  line [1]\nSMTPError: 550"
)


def full(fake: FakeRepairs) -> str:
    """A stopped job with everything."""
    job = fake.stopped(
        JobStatus.ZOMBIE,
        failure_reason=FailureReason.POISON,
        crash_count=3,
        error_type="SMTPError",
        error_message="550 no",
        idempotency_key="k",
        payload='{"to":"\\u00fc","n":1.50}',
        headers='{"trace":"x"}',
        tags="vip",
    )
    fake.attempts = [
        Attempt(job_id=job, lease=lease, at=NOW, worker_id=None, reason=FailureReason.TRANSIENT, error=ERROR)
        for lease in range(1, 6)
    ]
    fake.audit = [
        AuditEntry(
            id=1,
            at=NOW,
            actor="anna",
            action="EditJob",
            target=job,
            reason="typo",
            before='{"priority":1}',
            after='{"priority":2}',
        )
    ]
    return job


def test_the_dlq_is_listed_newest_first_with_a_cursor_and_without_payloads(cli: Cli, fake: FakeRepairs) -> None:
    """C44."""
    fake.add()
    jobs = [fake.stopped(error_type="SMTPError") for _ in range(3)]
    page = cli("dlq", "list", "-n", "2", "--json").json
    assert [job["id"] for job in page["jobs"]] == [jobs[2], jobs[1]]
    assert {job["payload"] for job in page["jobs"]} == {None}
    rest = cli("dlq", "list", "-n", "5", "--after", page["after"], "--json").json
    assert ([job["id"] for job in rest["jobs"]], rest["after"]) == ([jobs[0]], None)
    out = cli("dlq", "list", "-n", "1").out
    assert "SMTPError" in out
    assert "More: --after " in out
    assert "another filter" in cli("dlq", "list", "-q", "mail", "--after", page["after"], code=1).err


def test_tables_fit_80_columns_with_whole_ids(cli: Cli, fake: FakeRepairs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = full(fake)
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["dlq", "list"], ["dlq", "show", job], ["audit"]):
        out = cli(*command).out
        assert job in out
        wide = [line for line in out.splitlines() if len(line) > 80]
        assert all(line.startswith(("-", "  ")) or "Traceback" in line for line in wide), wide


def test_when_room_is_short_names_are_cut_and_ages_are_not(
    cli: Cli, fake: FakeRepairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.stopped(type_key="billing.invoice.create-and-send.v1", queue="a-queue-with-a-long-name", error_type="E" * 60)
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = cli("dlq", "list").out.splitlines()
        assert max(len(line) for line in lines) <= width
        assert lines[2].rstrip().endswith(" ago")
        assert "…" in lines[2]


def test_a_stopped_job_is_shown_whole_with_what_a_resurrection_would_risk(cli: Cli, fake: FakeRepairs) -> None:
    job = full(fake)
    holder = fake.add(idempotency_key="k")
    found = cli("dlq", "show", job, "--json").json
    assert (found["job"]["payload"], found["job"]["headers"]) == ({"to": "ü", "n": 1.5}, {"trace": "x"})
    assert [attempt["error"]["trace"] for attempt in found["attempts"]] == [ERROR.trace] * 5
    assert (found["audit"][0]["reason"], found["audit"][0]["after"]) == ("typo", {"priority": 2})
    assert any(holder in risk for risk in found["risks"])
    out = cli("dlq", "show", job).out
    for part in (
        "Zombie Poison in dlq",
        "SMTPError: 550 no",
        '  "n": 1.50',
        "Trace of lease 5",
        "  line [1]",
        "550 [red]no\ufffd[31m",
        "What operators did",
        "What a resurrection would risk",
        "- Poison: its process died 3 times",
        "whether its effects happened is unknown",
        f"held by the live job {holder}",
    ):
        assert part in out, part
    assert "Trace of lease 2" not in out


def test_a_job_without_risks_says_so(cli: Cli, fake: FakeRepairs) -> None:
    assert "Nothing that is known." in cli("dlq", "show", fake.stopped(attempt_count=0)).out


def test_a_payload_that_is_not_json_is_shown_as_it_is(cli: Cli, fake: FakeRepairs) -> None:
    assert "{oops" in cli("dlq", "show", fake.stopped(payload="{oops")).out


def test_a_preview_counts_and_names_the_newest(cli: Cli, fake: FakeRepairs) -> None:
    jobs = [fake.stopped(tags="vip") for _ in range(12)]
    fake.stopped(JobStatus.DROPPED, tags="vip")
    found = cli("dlq", "preview", "--tag", "vip", "--max", "11", "--for", "resurrect", "--json").json
    assert found == {
        "action": "resurrect",
        "matched": 12,
        "more": False,
        "maximum": 11,
        "affected": 11,
        "truncated": True,
        "sample": jobs[:1:-1],
    }
    out = cli("dlq", "preview", "--tag", "vip").out
    assert out.startswith("13 jobs match.\n")
    assert jobs[-1] in out
    assert "Only the newest 5 are touched at once" in cli("dlq", "preview", "--max", "5").out


def test_every_word_of_a_filter_reaches_the_store(cli: Cli, fake: FakeRepairs) -> None:
    cli(
        "dlq", "preview", "-q", "q", "-t", "a.v1", "-s", "zombie", "--failure", "poison", "--tag", "t", "--search", "100%",
        "--failed-from", "2026-01-01T00:00+00:00", "--older-than", "1h",
    )  # fmt: skip
    where = fake.previews[0]
    assert (where.queue, where.type_key, where.status, where.reason, where.tag, where.search) == (
        "q",
        "a.v1",
        JobStatus.ZOMBIE,
        FailureReason.POISON,
        "t",
        "100%",
    )
    assert where.failed_from is not None
    assert where.failed_from.isoformat() == "2026-01-01T00:00:00+00:00"
    assert where.failed_until == NOW - timedelta(hours=1)
    cli("dlq", "preview", "--failed-until", "2026-01-01T00:00+00:00")
    assert fake.previews[1].failed_until == where.failed_from


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["list", "-n", "501"], 1, "a page holds 1 to 500 jobs"),
        (["list", "-s", "pending"], 1, "Pending stands in the pillar hot"),
        (["list", "--after", "0" * 26], 1, "is no cursor"),
        (["show", "x"], 1, "'x' is not a job id"),
        (["show", "0" * 26], 1, "there is no job 0000"),
        (["preview", "--max", "1001"], 1, "at most 1 to 1,000 jobs"),
        (["preview", "--older-than", "soon"], 2, "must be a duration"),
        (["preview", "--failed-from", "soon"], 2, "must be an instant"),
        (["preview", "--for", "fun"], 2, "Invalid value for '--for'"),
        (["lost"], 2, "No such command"),
    ],
)
def test_a_wrong_question_is_one_clear_message(
    cli: Cli, fake: FakeRepairs, arguments: list[str], code: int, message: str
) -> None:
    ran = cli("dlq", *arguments, code=code)
    assert message in ran.err
    assert (ran.out, fake.calls) == ("", [])


# ── audit ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dlq_is_listed_by_text_time_and_reason(cli: Cli, fake: FakeRepairs) -> None:
    old = fake.stopped(finished_at=NOW - timedelta(days=3), error_message="Mailbox 100% full")
    young = fake.stopped(error_message="Mailbox gone", failure_reason=FailureReason.TIMEOUT)

    def listed(*words: str) -> list[str]:
        return [job["id"] for job in cli("dlq", "list", *words, "--json").json["jobs"]]

    assert listed("--search", "Mailbox") == [young, old]
    assert listed("--search", "100%") == [old]
    assert listed("--failure", "timeout") == [young]
    assert listed("--older-than", "2d") == [old]
    assert listed("--failed-from", (NOW - timedelta(hours=2)).isoformat()) == [young]
    assert listed("--failed-until", (NOW - timedelta(hours=2)).isoformat()) == [old]
    assert cli("dlq", "list", "--search", "Mailbox", "--json").json["searched"] == 10_000
    assert "Searched: the newest 10,000 jobs" in cli("dlq", "list", "--search", "Mailbox").out


def test_a_page_of_a_list_by_age_goes_on_although_the_clock_does_too(
    cli: Cli, fake: FakeRepairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [fake.stopped(finished_at=NOW - timedelta(days=3)) for _ in range(3)]
    page = cli("dlq", "list", "--older-than", "2d", "-n", "2", "--json").json
    monkeypatch.setattr("tests.support.fake_repairs.NOW", NOW + timedelta(minutes=5))
    rest = cli("dlq", "list", "--older-than", "2d", "--after", page["after"], "--json").json
    assert [job["id"] for job in page["jobs"] + rest["jobs"]] == jobs[::-1]
    assert "another filter" in cli("dlq", "list", "--older-than", "1d", "--after", page["after"], code=1).err


def test_the_audit_log_is_listed_newest_first_page_by_page_with_actor_and_reason(cli: Cli) -> None:
    """C48."""
    job = enqueue(cli)
    cli("queues", "pause", "emails", "-r", "storm", "--actor", "anna")
    cli("jobs", "cancel", job, "-r", "not wanted", "--actor", "bert")
    first = cli("audit", "-n", "1", "--json").json
    assert [(entry["actor"], entry["target"], entry["reason"]) for entry in first["entries"]] == [
        ("bert", job, "not wanted")
    ]
    assert first["entries"][0]["before"]["status"] == "Pending"
    rest = cli("audit", "--after", first["after"], "--json").json
    assert [(entry["actor"], entry["after"]["paused"]) for entry in rest["entries"]] == [("anna", True)]
    assert rest["after"] is None
    assert [entry["actor"] for entry in cli("audit", "emails", "--json").json["entries"]] == ["anna"]
    out = cli("audit", job.lower()).out
    assert job in out
    assert "not wanted" in out
    assert "storm" not in out
    assert "More: --after" in cli("audit", "-n", "1").out
    assert "another filter" in cli("audit", "emails", "--after", first["after"], code=1).err
    assert "1 to 200 entries" in cli("audit", "-n", "0", code=1).err


def test_an_empty_audit_log_says_so(cli: Cli) -> None:
    cli("schema", "apply")
    assert "No operator did anything" in cli("audit").out
