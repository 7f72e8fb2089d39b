"""The bounded reads: keyset pages that stay stable, filters that mean what they say, and no payloads (C44)."""

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import Failure, JobFilter, JobView, Page
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab

HOUR = 3_600_000


def pages(session: Session, where: JobFilter, limit: int) -> list[JobView]:
    """Every page to the end."""
    found: list[JobView] = []
    after: str | None = None
    for _ in range(100):
        page = session.list_jobs(where, limit, after)
        assert len(page.jobs) <= limit
        found += page.jobs
        after = page.after
        if after is None:
            return found
        assert page.jobs, "an empty page must be the last"
    raise AssertionError("the pages do not come to an end")


def ids(found: list[JobView]) -> list[str]:
    """In order."""
    return [job.id for job in found]


@pytest.mark.parametrize("limit", [1, 3, 7, 25, 500])
def test_pages_are_newest_first_without_gap_or_overlap(session: Session, limit: int) -> None:
    jobs = new_jobs(25)
    session.enqueue_jobs(jobs)

    assert ids(pages(session, JobFilter(), limit)) == [job.id for job in jobs[::-1]]


def test_pages_stay_stable_while_jobs_come_and_go(session: Session) -> None:
    """The reference's OFFSET pages overlap."""
    jobs = new_jobs(10)
    session.enqueue_jobs(jobs)
    first = session.list_jobs(JobFilter(), 4)
    session.enqueue_jobs(new_jobs(5))
    holder = Holder(session)
    holder.succeed(holder.take(1))

    second = session.list_jobs(JobFilter(), 4, first.after)
    third = session.list_jobs(JobFilter(), 4, second.after)

    assert ids(first.jobs) == [job.id for job in jobs[9:5:-1]]
    assert ids(second.jobs) == [job.id for job in jobs[5:1:-1]]
    assert ids(third.jobs) == [jobs[1].id]
    assert third.after is None


def test_an_empty_store_has_one_empty_page(session: Session) -> None:
    for pillar in Pillar:
        assert session.list_jobs(JobFilter(pillar=pillar)) == Page([], None)


def everything(session: Session) -> dict[str, str]:
    """One job in each place; ids by name."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(5))
    done, failed, cancelled, running, buffered = holder.claim(5)
    holder.start([done, failed, cancelled, running])
    holder.succeed([done])
    session.archive_failed(
        holder.worker,
        [
            Failure(failed.id, failed.lease, JobStatus.FAILED, FailureReason.TIMEOUT),
            Failure(cancelled.id, cancelled.lease, JobStatus.CANCELLED, FailureReason.CANCELLED),
        ],
    )
    waiting, other, later = new_job(), new_job(queue="other", type_key="report.v1"), new_job(delay_ms=HOUR)
    session.enqueue_jobs([waiting, other, later])
    return {
        "done": done.id,
        "failed": failed.id,
        "cancelled": cancelled.id,
        "running": running.id,
        "buffered": buffered.id,
        "waiting": waiting.id,
        "other": other.id,
        "later": later.id,
    }


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (JobFilter(), {"running", "buffered", "waiting", "other", "later"}),
        (JobFilter(queue=QUEUE), {"running", "buffered", "waiting", "later"}),
        (JobFilter(queue="nobody"), set()),
        (JobFilter(status=JobStatus.PENDING), {"waiting", "other", "later"}),
        (JobFilter(status=JobStatus.FETCHED), {"buffered"}),
        (JobFilter(status=JobStatus.PROCESSING, queue=QUEUE), {"running"}),
        (JobFilter(type_key="report.v1"), {"other"}),
        (JobFilter(pillar=Pillar.ARCHIVE), {"done"}),
        (JobFilter(pillar=Pillar.ARCHIVE, queue="other"), set()),
        (JobFilter(pillar=Pillar.DLQ), {"failed", "cancelled"}),
        (JobFilter(pillar=Pillar.DLQ, status=JobStatus.CANCELLED), {"cancelled"}),
        (JobFilter(pillar=Pillar.DLQ, reason=FailureReason.TIMEOUT), {"failed"}),
        (JobFilter(pillar=Pillar.DLQ, reason=FailureReason.TIMEOUT, queue="other"), set()),
    ],
    ids=str,
)
def test_a_filter_shows_what_it_says(session: Session, where: JobFilter, names: set[str]) -> None:
    known = everything(session)

    assert {name for name, job_id in known.items() if job_id in ids(pages(session, where, 2))} == names


def test_a_row_of_a_list_shows_the_job_without_its_payload(session: Session) -> None:
    """C44: lists never load payloads, headers or notes."""
    known = everything(session)
    for pillar in Pillar:
        for job in session.list_jobs(JobFilter(pillar=pillar)).jobs:
            assert (job.payload, job.headers, job.note) == (None, None, None)
            assert job.pillar is pillar
            whole = session.get_job(job.id)
            assert whole is not None
            assert (job.status, job.queue, job.lease, job.due_at, job.created_at) == (
                whole.status, whole.queue, whole.lease, whole.due_at, whole.created_at
            )  # fmt: skip
            assert (job.failure_reason, job.finished_at, job.duration_ms) == (
                whole.failure_reason, whole.finished_at, whole.duration_ms
            )  # fmt: skip
    assert len(known) == 8


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("100%", ["100% sure"]),
        ("%", ["100% sure", "a%b"]),
        ("a_b", ["a_b"]),
        ("_", ["a_b"]),
        ("[x]", ["[x]"]),
        ("[", ["[x]"]),
        ("x", ["[x]"]),
        ("\\", ["back\\slash"]),
        ("^", ["^"]),
        ("'", ["it's"]),
        ("счёт", ["счёт-7"]),
        ("nowhere", []),
    ],
)
@pytest.mark.parametrize("pillar", list(Pillar))
def test_wildcards_in_a_tag_stand_for_themselves(
    session: Session, pillar: Pillar, tag: str, expected: list[str]
) -> None:
    """The reference did not escape them."""
    tags = ["100% sure", "1000 sure", "a%b", "a_b", "acb", "[x]", "back\\slash", "^", "it's", "счёт-7", None]
    session.enqueue_jobs([new_job(tags=text) for text in tags])
    if pillar is not Pillar.HOT:
        holder = Holder(session)
        held = holder.take(20)
        if pillar is Pillar.ARCHIVE:
            holder.succeed(held)
        else:
            failures = [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR) for h in held]
            session.archive_failed(holder.worker, failures)

    found = pages(session, JobFilter(pillar=pillar, tag=tag), 2)

    if tag != "x":
        assert sorted(str(job.tags) for job in found) == sorted(expected)
    assert all(tag in str(job.tags) for job in found)


@pytest.mark.parametrize("limit", [0, -1, 501, 10**9])
def test_a_limit_out_of_bounds_is_refused_or_clamped(session: Session, limit: int) -> None:
    """1 ≤ limit ≤ 500. The protocol does not say which of the two; nobody gets an unbounded answer."""
    from chokaq.store.errors import StoreRefused

    session.enqueue_jobs(new_jobs(600))
    try:
        page = session.list_jobs(JobFilter(), limit)
    except (StoreRefused, ValueError):
        return
    assert 1 <= len(page.jobs) <= 500


def test_the_attempts_of_a_job_come_oldest_first(session: Session, lab: Lab) -> None:
    from chokaq.store.records import AttemptError, Retry

    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    for n in range(4):
        for held in holder.take(2):
            error = AttemptError("E", f"failure {n} of {held.id}")
            session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, error)])

    for row in lab.rows("JobsHot"):
        attempts = session.list_attempts(row["Id"])
        assert [attempt.error.message for attempt in attempts] == [f"failure {n} of {row['Id']}" for n in range(4)]
        assert [attempt.lease for attempt in attempts] == [1, 2, 3, 4]
    assert session.list_attempts("0" * 26) == []


def test_a_queue_shows_its_figures(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(6) + new_jobs(2, delay_ms=HOUR) + [new_job(queue="unserved")])
    holder = Holder(session)
    done, _, _ = holder.take(3)
    holder.claim(1)
    holder.succeed([done])
    waiting = [
        row["Id"] for row in lab.rows("JobsHot") if row["Status"] == 0 and row["IsReady"] and row["Queue"] == QUEUE
    ]
    lab.age(max(waiting), "DueAtUtc", 90_000)

    views = {view.name: view for view in session.list_queues()}

    assert list(views) == sorted(views)
    mail, unserved = views[QUEUE], views["unserved"]
    assert (mail.pending, mail.scheduled, mail.fetched, mail.processing) == (2, 2, 1, 2)
    assert (mail.succeeded_total, mail.known, mail.live_workers) == (1, True, 1)
    assert mail.oldest_due_ms is not None
    assert 90_000 <= mail.oldest_due_ms < 110_000
    assert (unserved.pending, unserved.known, unserved.live_workers) == (1, False, 0)


def test_a_queue_where_nothing_is_due_has_no_oldest(session: Session) -> None:
    session.enqueue_jobs([new_job(delay_ms=HOUR)])

    [view] = session.list_queues()

    assert (view.pending, view.scheduled, view.oldest_due_ms) == (0, 1, None)


def test_a_scheduled_job_whose_time_has_come_is_pending(session: Session, lab: Lab) -> None:
    """Also before a fetch has promoted it: it is due and waiting."""
    job = new_job(delay_ms=HOUR)
    session.enqueue_jobs([job])
    lab.age(job.id, "DueAtUtc", 2 * HOUR)

    [view] = session.list_queues()

    assert (view.pending, view.scheduled) == (1, 0)
    assert view.oldest_due_ms is not None
    assert view.oldest_due_ms >= HOUR


def test_only_workers_seen_within_a_minute_count_as_live(session: Session, lab: Lab) -> None:
    from chokaq.store.records import CrashPolicies
    from tests.support.jobs import death

    silent, ended, alive = Holder(session), Holder(session), Holder(session)
    lab.age_worker(silent.id, 61_000)
    session.release_worker(alive.worker, death(ended.id, "shutdown"), CrashPolicies())

    [view] = session.list_queues()

    assert view.live_workers == 1
    assert {worker.worker_id for worker in session.list_workers()} == {silent.id, alive.id}
