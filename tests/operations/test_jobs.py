"""Looking at jobs and cancelling them, with bounds."""

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations import OperationError, by, cancel_jobs, list_jobs, show_job
from chokaq.store.protocol import Session
from chokaq.store.records import JobFilter
from tests.support.holder import Holder
from tests.support.ids import new_ids
from tests.support.jobs import new_job, new_jobs

ANNA = by("anna", "a test")


def test_a_waiting_job_is_cancelled_a_running_one_told_and_each_is_audited_once(session: Session) -> None:
    waiting, running = new_jobs(2)
    session.enqueue_jobs([running])
    Holder(session).take(1)
    session.enqueue_jobs([waiting])
    unknown = new_ids(1)[0]
    answers = cancel_jobs(session, [waiting.id.lower(), running.id, unknown, waiting.id], ANNA)
    assert [(answer.id, answer.result) for answer in answers] == [
        (waiting.id, "cancelled"),
        (running.id, "requested"),
        (unknown, "unknown"),
    ]
    detail = show_job(session, waiting.id)
    assert (detail.job.status, detail.job.payload) == (JobStatus.CANCELLED, waiting.payload)
    assert [(entry.actor, entry.reason) for entry in detail.audit] == [("anna", "a test")]


@pytest.mark.parametrize("count", [0, 1_001])
def test_a_batch_holds_1_to_1000_distinct_jobs(session: Session, count: int) -> None:
    with pytest.raises(OperationError, match="cancel 1 to 1,000 jobs at a time"):
        cancel_jobs(session, new_ids(count), ANNA)


def test_1000_jobs_named_twice_are_1000(session: Session) -> None:
    ids = new_ids(1_000)
    assert len(cancel_jobs(session, ids + ids, ANNA)) == 1_000


@pytest.mark.parametrize("text", ["", "x", "1" * 26 + "1", "I" * 26, "8" + "0" * 25])
def test_what_is_no_id_is_refused_before_the_store_is_asked(session: Session, text: str) -> None:
    with pytest.raises(OperationError, match="is not a job id"):
        cancel_jobs(session, [text], ANNA)
    with pytest.raises(OperationError, match="is not a job id"):
        show_job(session, text)


def test_a_job_that_is_nowhere_is_said_so(session: Session) -> None:
    with pytest.raises(OperationError, match="there is no job"):
        show_job(session, new_ids(1)[0])


def test_pages_follow_each_other(session: Session) -> None:
    jobs = new_jobs(5)
    session.enqueue_jobs(jobs)
    first = list_jobs(session, JobFilter(), 3)
    rest = list_jobs(session, JobFilter(), 3, first.after)
    assert [job.id for job in [*first.jobs, *rest.jobs]] == [job.id for job in reversed(jobs)]
    assert rest.after is None


@pytest.mark.parametrize("limit", [0, 501])
def test_a_page_holds_1_to_500_jobs(session: Session, limit: int) -> None:
    with pytest.raises(OperationError, match="1 to 500"):
        list_jobs(session, JobFilter(), limit)


def test_a_cursor_of_another_filter_is_refused_and_the_size_of_a_page_may_change(session: Session) -> None:
    session.enqueue_jobs(new_jobs(4))
    after = list_jobs(session, JobFilter(), 2).after
    assert len(list_jobs(session, JobFilter(), 1, after).jobs) == 1
    for where in (JobFilter(queue="other"), JobFilter(pillar=Pillar.DLQ)):
        with pytest.raises(OperationError, match="another filter"):
            list_jobs(session, where, 2, after)
    with pytest.raises(OperationError, match="is no cursor"):
        list_jobs(session, JobFilter(), 2, new_ids(1)[0])


def test_lists_never_load_payloads(session: Session) -> None:
    """C44: a huge payload costs a list nothing."""
    session.enqueue_jobs([new_job(payload=f'"{"x" * 900_000}"', headers='{"a":"b"}')])
    job = list_jobs(session, JobFilter()).jobs[0]
    assert (job.payload, job.headers) == (None, None)


def test_the_failed_attempts_of_a_job_are_shown_with_it(session: Session) -> None:
    from chokaq.store.records import Failure
    from tests.support.jobs import ERROR

    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    session.archive_failed(
        holder.worker, [Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR)]
    )
    detail = show_job(session, held.id)
    assert [(attempt.reason, attempt.error) for attempt in detail.attempts] == [(FailureReason.FATAL_ERROR, ERROR)]
