"""Idempotency keys (design §3.6 and "Idempotency scope"): one row, one id, and a scope that is explicit."""

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, CrashPolicy, Enqueued, Failure, NewJob, Released
from tests.support.holder import Holder
from tests.support.jobs import death, new_job
from tests.support.lab import Lab

HOUR = 3_600_000
ACTIVE, RETAINED, WINDOW = KeyScope.ACTIVE, KeyScope.RETAINED, KeyScope.WINDOW


def keyed(scope: KeyScope = ACTIVE, key: str = "k", payload: str = "1", queue: str = "mail") -> NewJob:
    """A job with a key; a window lasts an hour."""
    window = HOUR if scope is WINDOW else None
    return new_job(idempotency_key=key, key_scope=scope, key_window_ms=window, payload=payload, queue=queue)


def enqueue(session: Session, job: NewJob) -> Enqueued:
    """One job in, its answer out."""
    [answer] = session.enqueue_jobs([job])
    return answer


def finish(session: Session, end: str = "succeed") -> str:
    """Run the one ready job of the queue to its end; its id."""
    holder = Holder(session)
    held = holder.take_one()
    if end == "succeed":
        holder.succeed([held])
    elif end == "crash":
        leader = Holder(session, "").worker
        assert session.release_worker(leader, death(holder.id, "crash", signal=9), CrashPolicies()) == Released(
            zombies=1
        )
    else:
        status = JobStatus.CANCELLED if end == "cancel" else JobStatus.FAILED
        session.archive_failed(holder.worker, [Failure(held.id, held.lease, status, FailureReason.FATAL_ERROR)])
    return held.id


@pytest.mark.parametrize("scope", [ACTIVE, RETAINED, WINDOW])
def test_a_live_job_answers_for_its_key(session: Session, lab: Lab, scope: KeyScope) -> None:
    job = keyed(scope)
    assert enqueue(session, job) == Enqueued(job.id, True, JobStatus.PENDING, False)
    before = lab.snapshot()

    again = enqueue(session, keyed(scope))

    assert again == Enqueued(job.id, False, JobStatus.PENDING, False)
    assert lab.snapshot() == before


@pytest.mark.parametrize("scope", [ACTIVE, RETAINED])
def test_the_answer_tells_the_state_and_whether_the_payload_differs(session: Session, scope: KeyScope) -> None:
    job = keyed(scope, payload='{"a":1}')
    enqueue(session, job)
    holder = Holder(session)
    held = holder.claim_one()
    assert enqueue(session, keyed(scope, payload='{"a":1}')) == Enqueued(job.id, False, JobStatus.FETCHED, False)
    holder.start([held])

    # The exact bytes are compared, not what they mean.
    assert enqueue(session, keyed(scope, payload='{"a": 1}')) == Enqueued(job.id, False, JobStatus.PROCESSING, True)


def test_the_key_is_unique_over_the_key_alone(session: Session) -> None:
    job = keyed(queue="mail")
    enqueue(session, job)

    assert enqueue(session, keyed(queue="other")).id == job.id


@pytest.mark.parametrize("end", ["succeed", "fail", "cancel", "crash"])
def test_an_active_key_is_free_once_its_job_has_left_hot(session: Session, end: str) -> None:
    """C39, C40: uniqueness is a property of live rows; there is no lock that could outlive the process that died."""
    first = keyed()
    enqueue(session, first)
    duplicate = keyed(payload="2")
    assert enqueue(session, duplicate) == Enqueued(first.id, False, JobStatus.PENDING, True)
    finish(session, end)
    assert session.get_job(duplicate.id) is None

    second = keyed()
    assert enqueue(session, second) == Enqueued(second.id, True, JobStatus.PENDING, False)


@pytest.mark.parametrize("scope", [ACTIVE, RETAINED, WINDOW])
@pytest.mark.parametrize("owner", ["crashed, to be tried again", "silent, not yet rescued"])
def test_the_key_of_a_job_whose_worker_died_answers_with_it_and_hides_no_new_one_for_ever(
    session: Session, lab: Lab, scope: KeyScope, owner: str
) -> None:
    """C39: elsewhere the lock outlives the crash and new jobs vanish. Here the job itself lives on, and says so."""
    first = keyed(scope)
    enqueue(session, first)
    holder = Holder(session)
    held = holder.take_one()
    again = CrashPolicies(default=CrashPolicy(on_crash="retry"))
    if owner.startswith("crashed"):
        session.release_worker(Holder(session, "").worker, death(holder.id, "crash", signal=9), again)
        expected = JobStatus.PENDING
    else:
        lab.age(held.id, "HeartbeatUtc", HOUR)
        expected = JobStatus.PROCESSING

    assert enqueue(session, keyed(scope)) == Enqueued(first.id, False, expected, False)

    session.archive_zombies(Holder(session, "").worker, "mail", HOUR // 2, again)
    lab.age(first.id, "DueAtUtc", HOUR)
    finish(session)
    assert enqueue(session, keyed()).created is (scope is ACTIVE)


@pytest.mark.parametrize(
    ("end", "status"),
    [("succeed", JobStatus.SUCCEEDED), ("fail", JobStatus.FAILED), ("cancel", JobStatus.CANCELLED)],
)
@pytest.mark.parametrize("scope", [RETAINED, WINDOW])
@pytest.mark.parametrize("asking", [ACTIVE, RETAINED, WINDOW])
def test_a_retained_or_windowed_key_answers_with_the_finished_job(
    session: Session, lab: Lab, end: str, status: JobStatus, scope: KeyScope, asking: KeyScope
) -> None:
    """C40: the scope is explicit, and that of the existing row rules, whatever the newcomer asks for."""
    first = keyed(scope, payload="1")
    enqueue(session, first)
    finish(session, end)
    before = lab.snapshot()

    assert enqueue(session, keyed(asking, payload="2")) == Enqueued(first.id, False, status, True)
    assert lab.snapshot() == before


def test_a_retained_key_answers_for_a_dropped_job_too(session: Session, lab: Lab) -> None:
    first = keyed(RETAINED)
    enqueue(session, first)
    finish(session, "fail")
    lab.put(first.id, "JobsDLQ", Status=JobStatus.DROPPED.value)

    assert enqueue(session, keyed(RETAINED)) == Enqueued(first.id, False, JobStatus.DROPPED, False)


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_retained_key_is_free_once_its_row_is_purged(session: Session, lab: Lab, end: str) -> None:
    enqueue(session, keyed(RETAINED))
    gone = finish(session, end)
    table, column = ("JobsArchive", "FinishedAtUtc") if end == "succeed" else ("JobsDLQ", "FailedAtUtc")
    lab.age(gone, column, HOUR, table)
    purge = session.purge_archive if end == "succeed" else session.purge_dlq
    assert purge("mail", 1_000) == 1
    assert lab.rows("JobKeys") == []

    second = keyed(RETAINED)
    assert enqueue(session, second) == Enqueued(second.id, True, JobStatus.PENDING, False)


def test_a_window_counts_from_acceptance_and_is_replaced_once_over(session: Session, lab: Lab) -> None:
    first = keyed(WINDOW)
    enqueue(session, first)
    [entry] = lab.rows("JobKeys")
    assert (entry["IdempotencyKey"], entry["JobId"], entry["KeyScope"]) == ("k", first.id, WINDOW.value)
    assert abs(entry["ExpiresAtUtc"] - lab.row(first.id)["CreatedAtUtc"] - HOUR) < 1_000
    finish(session)
    assert not enqueue(session, keyed(WINDOW)).created

    lab.age_all("JobKeys", "ExpiresAtUtc", 2 * HOUR)

    second = keyed(RETAINED)
    assert enqueue(session, second).created
    [entry] = lab.rows("JobKeys")
    assert (entry["JobId"], entry["KeyScope"], entry["ExpiresAtUtc"]) == (second.id, RETAINED.value, None)


def test_an_expired_window_still_answers_while_its_job_lives(session: Session, lab: Lab) -> None:
    first = keyed(WINDOW)
    enqueue(session, first)
    lab.age_all("JobKeys", "ExpiresAtUtc", 2 * HOUR)

    assert enqueue(session, keyed(WINDOW)) == Enqueued(first.id, False, JobStatus.PENDING, False)


def test_an_expired_window_gives_way_to_an_active_key_and_never_haunts_it(session: Session, lab: Lab) -> None:
    enqueue(session, keyed(WINDOW))
    finish(session)
    lab.age_all("JobKeys", "ExpiresAtUtc", 2 * HOUR)

    second = keyed(ACTIVE)
    assert enqueue(session, second).created
    assert enqueue(session, keyed(ACTIVE)).id == second.id
    finish(session)
    third = keyed(ACTIVE)
    assert enqueue(session, third).created


def test_a_retained_newcomer_meets_a_live_active_job_and_writes_nothing(session: Session, lab: Lab) -> None:
    first = keyed(ACTIVE)
    enqueue(session, first)

    assert enqueue(session, keyed(RETAINED)) == Enqueued(first.id, False, JobStatus.PENDING, False)
    assert lab.rows("JobKeys") == []


@pytest.mark.parametrize("scope", [ACTIVE, RETAINED, WINDOW])
def test_equal_keys_inside_one_call_become_one_job(session: Session, lab: Lab, scope: KeyScope) -> None:
    jobs = [keyed(scope, "a"), keyed(scope, "b"), keyed(scope, "a"), new_job(), keyed(scope, "a", payload="2")]

    answers = session.enqueue_jobs(jobs)

    assert [answer.id for answer in answers] == [jobs[0].id, jobs[1].id, jobs[0].id, jobs[3].id, jobs[0].id]
    assert [answer.created for answer in answers] == [True, True, False, True, False]
    assert [answer.payload_differs for answer in answers] == [False, False, False, False, True]
    assert lab.count("JobsHot") == 3
    assert session.enqueue_jobs(jobs) == answers


def test_one_call_may_meet_old_and_new_keys(session: Session) -> None:
    old = keyed(ACTIVE, "old")
    enqueue(session, old)
    jobs = [keyed(ACTIVE, "new"), keyed(ACTIVE, "old", payload="2"), keyed(RETAINED, "newer")]

    answers = session.enqueue_jobs(jobs)

    assert [(answer.id, answer.created) for answer in answers] == [
        (jobs[0].id, True), (old.id, False), (jobs[2].id, True)
    ]  # fmt: skip
    assert answers[1].payload_differs


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("почта-1", "почта-2"),
        ("заказ", "закат"),
        ("Key", "key"),
        ("é", "e\u0301"),
        ("订单", "訂單"),
        ("😀", "😁"),
        ("a'b", "a''b"),
        ("a\\b", "a\\\\b"),
        ("x" * 255, "x" * 254 + "y"),
        ("ü" * 255, "ü" * 254),
        ("100%", "100_"),
    ],
)
def test_different_keys_are_different_whatever_they_are_written_in(session: Session, left: str, right: str) -> None:
    """As varchar, different Cyrillic keys would collide as `????` and swallow a job."""
    jobs = [keyed(RETAINED, left), keyed(RETAINED, right)]

    assert [answer.created for answer in session.enqueue_jobs(jobs)] == [True, True]
    for job in jobs:
        view = session.get_job(job.id)
        assert view is not None
        assert view.idempotency_key == job.idempotency_key
    again = session.enqueue_jobs([keyed(RETAINED, right), keyed(RETAINED, left)])
    assert [answer.id for answer in again] == [jobs[1].id, jobs[0].id]
