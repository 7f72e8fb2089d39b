"""ReadChanges: whatever an open page shows cannot change without a mark changing."""

from collections.abc import Callable

import pytest

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, Outcome, Pillar
from chokaq.store.circuits import CircuitChange
from chokaq.store.looking import Changes
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Failure, Figures, QueueChange
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab

Step = Callable[[Session], None]


def test_an_empty_store_has_nothing_to_tell(session: Session) -> None:
    changes = session.read_changes()

    assert (changes.audit, changes.order, changes.circuits, changes.workers) == (0, 0, (0, 0, None), (0, 0, None))
    assert (changes.newest, changes.buckets, changes.leases, changes.watched) == ([], [], {}, [])


def test_a_look_that_meets_no_change_reads_the_same(session: Session) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    held = holder.take(2)
    holder.succeed(held[:1])
    ids = [job.id for job in held]

    assert told(session.read_changes(ids)) == told(session.read_changes(ids))


def told(changes: Changes) -> tuple[object, ...]:
    """Everything but the clock and what left the window."""
    return (
        changes.audit,
        changes.order,
        changes.circuits,
        changes.workers,
        changes.newest,
        changes.leases,
        changes.watched,
    )


def test_a_new_job_is_among_the_newest(session: Session) -> None:
    session.enqueue_jobs(new_jobs(60))
    newcomer = new_job(queue="other")
    session.enqueue_jobs([newcomer])

    newest = session.read_changes().newest

    assert len(newest) == 50
    assert newest[0] == (newcomer.id, "other")


def test_leases_are_counted_per_queue(session: Session) -> None:
    session.enqueue_jobs([*new_jobs(3), *new_jobs(2, queue="other")])
    Holder(session).take(2)
    Holder(session, "other").claim(1)

    assert session.read_changes().leases == {QUEUE: 2, "other": 1}


def test_every_end_shows_as_a_grown_bucket(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    first, second, third = holder.take(3)

    holder.succeed([first])
    one = counts(session.read_changes())
    session.archive_failed(
        holder.worker, [Failure(second.id, second.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR)]
    )
    session.archive_failed(
        holder.worker, [Failure(third.id, third.lease, JobStatus.CANCELLED, FailureReason.CANCELLED)]
    )

    assert one == {Outcome.SUCCEEDED: 1}
    assert counts(session.read_changes()) == {Outcome.SUCCEEDED: 1, Outcome.FAILED: 2}
    lab.age_all("MetricBuckets", "StartUtc", 20_000)
    assert session.read_changes().buckets == []


def counts(changes: Changes) -> dict[int, int]:
    """Outcomes within the window."""
    found: dict[int, int] = {}
    for mark in changes.buckets:
        assert mark.queue == QUEUE
        found[mark.outcome] = found.get(mark.outcome, 0) + mark.count
    return found


@pytest.mark.parametrize(
    "act",
    [
        lambda session: session.set_queue(QUEUE, QueueChange(paused=True), "anna"),
        lambda session: session.force_circuit("email.send.v1", Forced.OPEN, "anna", request=new_id()),
    ],
    ids=["override", "order"],
)
def test_every_action_of_an_operator_raises_the_newest_audit_id(session: Session, act: Step) -> None:
    before = session.read_changes()
    act(session)
    after = session.read_changes()

    assert after.audit > before.audit


def test_an_order_and_a_circuit_that_opens_are_seen(session: Session) -> None:
    holder = Holder(session)
    session.force_circuit("email.send.v1", Forced.OPEN, "anna", request=new_id())
    session.report_circuits(
        holder.worker,
        [
            CircuitChange(
                type_key="email.send.v1", state=CircuitState.OPEN, failures=5, generation=1, last_error="OSError"
            )
        ],
    )

    changes = session.read_changes()

    assert changes.order == 1
    rows, failures, changed = changes.circuits
    assert (rows, failures) == (1, 5)
    assert changed is not None


def test_workers_that_come_beat_and_drain_are_seen(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    lab.age_worker(holder.id, 5_000)
    first = session.read_changes().workers
    session.keep_alive(holder.worker, [], Figures())
    second = session.read_changes().workers
    session.drain_worker(holder.id, "anna", request=new_id())

    assert first[:2] == (1, 0)
    assert first[2] is not None
    assert second[2] is not None
    assert second[2] > first[2]
    assert session.read_changes().workers[:2] == (1, 1)


def test_a_watched_job_is_told_through_every_pillar(session: Session) -> None:
    session.enqueue_jobs([job := new_job(), other := new_job()])
    ids = [job.id, other.id, new_id()]
    holder = Holder(session)

    waiting = {seen.id: seen for seen in session.read_changes(ids).watched}
    held = holder.take(2)
    mine = next(one for one in held if one.id == job.id)
    theirs = next(one for one in held if one.id == other.id)
    session.keep_alive(holder.worker, [Beat(mine.id, mine.lease, 40, "half way")], Figures())
    running = {seen.id: seen for seen in session.read_changes(ids).watched}
    session.cancel_jobs([job.id], "anna", request=new_id())
    asked = {seen.id: seen for seen in session.read_changes(ids).watched}
    holder.succeed([mine])
    session.archive_failed(
        holder.worker, [Failure(theirs.id, theirs.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR)]
    )
    ended = {seen.id: seen for seen in session.read_changes(ids).watched}

    assert set(waiting) == {job.id, other.id}
    assert (waiting[job.id].pillar, waiting[job.id].status) == (Pillar.HOT, JobStatus.PENDING)
    assert (running[job.id].status, running[job.id].progress, running[job.id].lease) == (JobStatus.PROCESSING, 40, 1)
    assert running[job.id].noted_at is not None
    assert not running[job.id].cancel_requested
    assert asked[job.id].cancel_requested
    assert (ended[job.id].pillar, ended[job.id].status) == (Pillar.ARCHIVE, JobStatus.SUCCEEDED)
    assert (ended[other.id].pillar, ended[other.id].status) == (Pillar.DLQ, JobStatus.FAILED)


def test_at_most_500_jobs_are_watched(session: Session) -> None:
    jobs = new_jobs(520)
    session.enqueue_jobs(jobs)

    assert len(session.read_changes([job.id for job in jobs]).watched) == 500
