"""Retention: what is deleted, what goes with it, and what must stay."""

from collections.abc import Callable
from functools import partial

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, CrashPolicies, Failure, Figures, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, death, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

DAY = 86_400_000
PLACES = [("archive", "JobsArchive", "FinishedAtUtc"), ("dlq", "JobsDLQ", "FailedAtUtc")]
each_place = pytest.mark.parametrize(("place", "table", "column"), PLACES, ids=["archive", "dlq"])


def fill(session: Session, place: str, count: int, queue: str = QUEUE) -> list[str]:
    """That many finished jobs, each with a key, a note and an attempt."""
    key = f"{queue}-{len(session.list_workers(ended=True))}"
    session.enqueue_jobs(
        [new_job(queue=queue, idempotency_key=f"{key}-{n}", key_scope=KeyScope.RETAINED) for n in range(count)]
    )
    holder = Holder(session, queue)
    held = holder.take(count)
    session.keep_alive(holder.worker, [Beat(h.id, h.lease, 1, "note") for h in held], Figures())
    session.reschedule_for_retry(holder.worker, [Retry(h.id, h.lease, 0, ERROR) for h in held])
    held = holder.take(count)
    if place == "archive":
        holder.succeed(held)
    else:
        failures = [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR) for h in held]
        session.archive_failed(holder.worker, failures)
    return sorted(h.id for h in held)


def purger(session: Session, place: str) -> Callable[..., int]:
    """The operation of that pillar."""
    return session.purge_archive if place == "archive" else session.purge_dlq


@each_place
def test_only_old_rows_go_and_everything_of_theirs_with_them(
    session: Session, lab: Lab, place: str, table: str, column: str
) -> None:
    old, young = fill(session, place, 3), fill(session, place, 2)
    for job_id in old:
        lab.age(job_id, column, 8 * DAY, table)
    for job_id in young:
        lab.age(job_id, column, 6 * DAY, table)

    assert purger(session, place)(QUEUE, 7 * DAY) == 3

    assert sorted(row["Id"] for row in lab.rows(table)) == young
    for side in ("JobKeys", "JobNotes", "JobAttempts"):
        assert {row["JobId"] for row in lab.rows(side)} == set(young)
    assert session.get_job(old[0]) is None
    assert session.list_attempts(old[0]) == []
    assert purger(session, place)(QUEUE, 7 * DAY) == 0


@each_place
def test_an_age_of_more_than_25_days_does_not_overflow(
    session: Session, lab: Lab, place: str, table: str, column: str
) -> None:
    [kept], [gone] = fill(session, place, 1), fill(session, place, 1)
    lab.age(kept, column, 300 * DAY, table)
    lab.age(gone, column, 500 * DAY, table)

    assert purger(session, place)(None, 400 * DAY) == 1
    assert [row["Id"] for row in lab.rows(table)] == [kept]


@each_place
def test_one_queue_or_all(session: Session, lab: Lab, place: str, table: str, column: str) -> None:
    for queue in ("a", "b", "c"):
        fill(session, place, 2, queue)
    lab.age_all(table, column, DAY)
    purge = purger(session, place)

    assert purge("b", 1_000) == 2
    assert {row["Queue"] for row in lab.rows(table)} == {"a", "c"}
    assert purge(None, 1_000) == 4


@each_place
def test_a_call_deletes_no_more_than_its_size(session: Session, lab: Lab, place: str, table: str, column: str) -> None:
    """C33: small batches. The oldest go first."""
    jobs = fill(session, place, 7)
    for n, job_id in enumerate(jobs):
        lab.age(job_id, column, DAY + n * 1_000, table)
    purge = purger(session, place)

    assert purge(QUEUE, 1_000, 3) == 3
    assert sorted(row["Id"] for row in lab.rows(table)) == jobs[:4]
    assert [purge(QUEUE, 1_000, 3), purge(QUEUE, 1_000, 3)] == [3, 1]


@each_place
def test_concurrent_purges_delete_each_row_once(
    session: Session, sessions: Sessions, lab: Lab, place: str, table: str, column: str
) -> None:
    fill(session, place, 60)
    lab.age_all(table, column, DAY)

    def purge(one: Session) -> int:
        total = 0
        while lab_count := purger(one, place)(QUEUE, 1_000, 10):
            total += lab_count
        return total

    counts = together([partial(purge, one) for one in sessions.many(3)])

    assert sum(counts) + purge(session) == 60
    assert lab.rows(table) == lab.rows("JobKeys") == []


def test_a_purge_of_one_pillar_leaves_the_others(session: Session, lab: Lab) -> None:
    fill(session, "archive", 1)
    fill(session, "dlq", 1)
    session.enqueue_jobs(new_jobs(2))
    lab.age_all("JobsArchive", "FinishedAtUtc", DAY)
    lab.age_all("JobsDLQ", "FailedAtUtc", DAY)

    assert session.purge_archive(None, 1_000) == 1
    assert (lab.count("JobsHot"), lab.count("JobsDLQ")) == (2, 1)


def test_leftovers_are_workers_ended_long_ago_and_keys_whose_window_is_over(session: Session, lab: Lab) -> None:
    by, long_ago, lately = Holder(session, ""), Holder(session), Holder(session)
    for gone in (long_ago, lately):
        session.release_worker(by.worker, death(gone.id, "shutdown"), CrashPolicies())
    lab.age_all("Workers", "EndedAtUtc", 8 * DAY, f"WorkerId = '{long_ago.id}'")
    lab.age_all("Workers", "EndedAtUtc", 6 * DAY, f"WorkerId = '{lately.id}'")
    lab.age_all("Workers", "StartedAtUtc", 90 * DAY)
    window = {"key_scope": KeyScope.WINDOW, "key_window_ms": DAY}
    over, live, open_ = (new_job(idempotency_key=key, **window) for key in ("over", "live", "open"))
    session.enqueue_jobs([over, open_, new_job(idempotency_key="kept", key_scope=KeyScope.RETAINED)])
    holder = Holder(session)
    holder.succeed(holder.take(3))
    session.enqueue_jobs([live])
    lab.age_all("JobKeys", "ExpiresAtUtc", 2 * DAY, "IdempotencyKey IN ('over', 'live')")

    assert session.purge_leftovers() == 2

    assert {row["IdempotencyKey"] for row in lab.rows("JobKeys")} == {"live", "open", "kept"}
    assert {row["WorkerId"] for row in lab.rows("Workers")} == {by.id, lately.id, holder.id}
    assert session.purge_leftovers() == 0


def test_a_worker_that_is_seen_is_never_purged_however_old(session: Session, lab: Lab) -> None:
    """Nor one that has been silent for some days. (Whether one silent for over 7 days goes is left to the store.)"""
    old, silent = Holder(session), Holder(session)
    session.enqueue_jobs([new_job()])
    held = old.take_one()
    lab.age_all("Workers", "StartedAtUtc", 90 * DAY)
    lab.age_worker(silent.id, 6 * DAY)

    assert session.purge_leftovers() == 0

    old.succeed([held])
    assert not old.fetch(0).retired
    assert not silent.fetch(0).retired


def test_leftovers_go_in_small_batches_too(session: Session, lab: Lab) -> None:
    by = Holder(session, "")
    for _ in range(5):
        session.release_worker(by.worker, death(Holder(session).id, "shutdown"), CrashPolicies())
    lab.age_all("Workers", "EndedAtUtc", 30 * DAY)

    assert 1 <= session.purge_leftovers(2) <= 6
    assert lab.count("Workers") >= 2
    for _ in range(5):
        session.purge_leftovers(2)
    assert [row["WorkerId"] for row in lab.rows("Workers")] == [by.id]
