"""Fetch requests (design §7): a fetch carries a number, so that a lost answer loses no job and a dead worker claims none."""

from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies
from tests.support.holder import Holder
from tests.support.jobs import death, new_job, new_jobs
from tests.support.lab import Lab


def test_the_used_number_answers_the_same_rows_again(session: Session, lab: Lab) -> None:
    """Design §7: a lost answer loses no job."""
    session.enqueue_jobs(new_jobs(5))
    holder = Holder(session)
    first = holder.fetch(2)
    before = lab.snapshot("JobsHot", "Workers")

    again = session.fetch_jobs(holder.worker, holder.request, 2)

    assert [(job.id, job.lease, job.payload) for job in again.jobs] == [(j.id, j.lease, j.payload) for j in first.jobs]
    assert lab.snapshot("JobsHot", "Workers") == before
    # A bigger size under a used number claims nothing more.
    assert len(session.fetch_jobs(holder.worker, holder.request, 5).jobs) == 2


def test_an_older_number_answers_what_is_still_fetched_under_it(session: Session) -> None:
    session.enqueue_jobs(new_jobs(6))
    holder = Holder(session)
    first = holder.claim(3)
    second = holder.claim(3)
    holder.start(first[:1])
    holder.session.release_jobs(holder.worker, [])

    repeat = session.fetch_jobs(holder.worker, 1, 3)

    assert [job.id for job in repeat.jobs] == [held.id for held in first[1:]]
    assert [job.id for job in session.fetch_jobs(holder.worker, 2, 3).jobs] == [held.id for held in second]


def test_numbers_may_be_skipped_but_never_reused(session: Session) -> None:
    session.enqueue_jobs(new_jobs(4))
    holder = Holder(session)
    assert len(session.fetch_jobs(holder.worker, 7, 1).jobs) == 1
    assert session.fetch_jobs(holder.worker, 5, 1).jobs == []
    assert len(session.fetch_jobs(holder.worker, 8, 1).jobs) == 1


def test_a_fetch_after_the_workers_release_is_retired_and_claims_nothing(session: Session, lab: Lab) -> None:
    """Design §7, C3: a fetch that arrives late must not hide a job under a dead worker."""
    session.enqueue_jobs(new_jobs(3))
    holder, other = Holder(session), Holder(session)
    holder.claim(1)
    session.release_worker(other.worker, death(holder.id, "crash"), CrashPolicies())

    for request in (1, 2, 3):
        fetch = session.fetch_jobs(holder.worker, request, 10)
        assert fetch.retired
        assert fetch.jobs == []
    assert holder.fetch(0).retired
    assert lab.leases("mail") == 0


def test_a_worker_the_registry_does_not_know_is_retired(session: Session, lab: Lab) -> None:
    """Not written in the design: its row was purged after its end, so it is treated as ended."""
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    lab.execute("DELETE FROM {Workers}")

    fetch = holder.fetch(5)

    assert (fetch.retired, fetch.jobs) == (True, [])
