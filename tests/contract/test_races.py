"""Real threads and real processes on one store: whatever they do at once, a job is done once and nobody sees an error."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus, KeyScope
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import CancelAnswer, CrashPolicies, Enqueued, Failure, Held, NewJob, Release
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, death, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.processes import run_programs
from tests.support.stores import Sessions
from tests.support.together import together


def drain(holder: Holder, size: int) -> list[Held]:
    """Claim and start until nothing waits."""
    taken: list[Held] = []
    while True:
        fetch = holder.fetch(size)
        held = [Held(job.id, job.lease) for job in fetch.jobs]
        holder.start(held)
        taken += held
        if not held and fetch.next_due_ms is None:
            return taken


def test_concurrent_claims_are_disjoint_and_every_one_can_be_started(sessions: Sessions, lab: Lab) -> None:
    """10 workers by batches of 10 over 60 jobs, from one barrier."""
    several = sessions.many(10)
    jobs = new_jobs(60)
    several[0].enqueue_jobs(jobs)
    holders = [Holder(session) for session in several]

    taken = together([partial(drain, holder, 10) for holder in holders])

    served = [held.id for part in taken for held in part]
    assert Counter(served) == Counter(job.id for job in jobs)
    assert {row["LeaseNumber"] for row in lab.rows("JobsHot")} == {1}
    owners = {row["Id"]: row["WorkerId"] for row in lab.rows("JobsHot")}
    assert all(owners[held.id] == holder.id for holder, part in zip(holders, taken, strict=True) for held in part)


@pytest.mark.parametrize("scope", [KeyScope.ACTIVE, KeyScope.RETAINED])
def test_one_key_from_many_threads_is_one_job_and_no_error(sessions: Sessions, lab: Lab, scope: KeyScope) -> None:
    """C43: the reference's own skipped test. Many enqueues with one key: one row, one id, no error, no deadlock."""
    several = sessions.many(8)
    rounds = [[new_job(idempotency_key=f"k{n}", key_scope=scope) for n in range(5)] for _ in several]

    def enqueue(session: Session, jobs: list[NewJob]) -> list[Enqueued]:
        return [session.enqueue_jobs([job])[0] for job in jobs]

    answers = together([partial(enqueue, *pair) for pair in zip(several, rounds, strict=True)])

    for n in range(5):
        assert len({part[n].id for part in answers}) == 1
        assert sum(part[n].created for part in answers) == 1
    assert lab.count("JobsHot") == 5


def test_batches_with_the_same_keys_in_other_orders_do_not_deadlock(sessions: Sessions, lab: Lab) -> None:
    """C27, C43: keys are taken in sorted order."""
    several = sessions.many(4)
    keys = [f"k{n}" for n in range(40)]
    batches = [
        [new_job(idempotency_key=key, key_scope=KeyScope.RETAINED) for key in keys[turn * 10 :] + keys[: turn * 10]]
        for turn in range(4)
    ]

    answers = together([partial(s.enqueue_jobs, batch) for s, batch in zip(several, batches, strict=True)])

    by_key: dict[str, set[str]] = {}
    for batch, part in zip(batches, answers, strict=True):
        for job, answer in zip(batch, part, strict=True):
            by_key.setdefault(str(job.idempotency_key), set()).add(answer.id)
    assert all(len(found) == 1 for found in by_key.values())
    assert sum(answer.created for part in answers for answer in part) == 40
    assert lab.count("JobsHot") == lab.count("JobKeys") == 40


@pytest.mark.processes
@pytest.mark.parametrize("scope", [KeyScope.ACTIVE, KeyScope.RETAINED])
def test_one_key_from_many_processes_is_one_job_and_no_error(
    store_options: DatabaseSettings, lab: Lab, scope: KeyScope
) -> None:
    """C43 with real processes."""
    reports = run_programs("enqueue_same_keys", 6, store_options, rounds=20, scope=scope.value)

    for key in reports[0]["answers"]:
        answers = [report["answers"][key] for report in reports]
        assert len({job_id for job_id, _ in answers}) == 1, key
        assert sum(created for _, created in answers) == 1, key
    assert lab.count("JobsHot") == 40


def test_eight_archives_of_the_same_jobs_move_them_once(sessions: Sessions, lab: Lab) -> None:
    """C7: finalise exactly once. Every caller hears `applied`: it cannot know which of them did it."""
    several = sessions.many(8)
    holder = Holder(several[0])
    several[0].enqueue_jobs(new_jobs(20))
    held = holder.take(20)

    answers = together([partial(s.archive_succeeded, holder.worker, held) for s in several])

    assert answers == [[Answer.APPLIED] * 20] * 8
    assert lab.count("JobsArchive") == 20
    assert sum(row["JobCount"] for row in lab.rows("MetricBuckets")) == 20


def test_of_success_and_failure_at_once_one_stands(sessions: Sessions, lab: Lab) -> None:
    """C7: elsewhere a job was finished and failed at once."""
    several = sessions.many(6)
    holder = Holder(several[0])
    several[0].enqueue_jobs(new_jobs(30))
    held = holder.take(30)
    failures = [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR) for h in held]

    def settle(session: Session, number: int) -> list[Answer]:
        if number % 2:
            return session.archive_succeeded(holder.worker, held[number * 5 :] + held[: number * 5])
        return session.archive_failed(holder.worker, failures)

    answers = together([partial(settle, session, number) for number, session in enumerate(several)])

    assert lab.count("JobsArchive") + lab.count("JobsDLQ") == 30
    assert lab.count("JobsHot") == 0
    assert sum(row["JobCount"] for row in lab.rows("MetricBuckets")) == 30
    assert all(answer in (Answer.APPLIED, Answer.STALE) for part in answers for answer in part)


def test_cancellations_race_with_starts_and_every_job_ends_where_it_was_told(sessions: Sessions, lab: Lab) -> None:
    """C47: a start that answers stale never runs; a cancelled job that did start is told."""
    first, second = sessions.many(2)
    holder = Holder(first)
    first.enqueue_jobs(new_jobs(60))
    held = holder.claim(60)

    started: list[Answer] = []
    cancelled: list[CancelAnswer] = []

    def start() -> None:
        for job in held:
            started.extend(first.start_jobs(holder.worker, [job]))

    def cancel() -> None:
        for job in reversed(held):
            cancelled.extend(second.cancel_jobs([job.id], "ann"))

    together([start, cancel])

    results = {answer.id: answer.result for answer in cancelled}
    for job, answer in zip(held, started, strict=True):
        expected = "requested" if answer is Answer.APPLIED else "cancelled"
        assert results[job.id] == expected
    told = {cancellation.id for cancellation in holder.fetch(0).cancellations}
    assert told == {job_id for job_id, result in results.items() if result == "requested"}


def test_a_fetch_racing_with_the_release_of_its_worker_leaves_no_job_behind(sessions: Sessions, lab: Lab) -> None:
    """C3, design §7: whatever the dead worker's last fetch claimed is found by the release, or it claimed nothing."""
    first, second = sessions.many(2)
    first.enqueue_jobs(new_jobs(100))
    by = Holder(second, "").worker
    for _ in range(8):
        holder = Holder(first)

        def claim(dying: Holder = holder) -> None:
            while not dying.fetch(2).retired:
                pass

        def release(dying: Holder = holder) -> None:
            while not second.release_worker(by, death(dying.id, "crash"), CrashPolicies()).done:
                pass

        together([claim, release])

        assert lab.count("JobsHot", f"WorkerId = '{holder.id}' AND Status IN (1, 2)") == 0
    assert lab.count("JobsHot", "Status = 0") == 100


def test_a_moving_job_is_never_reported_missing(sessions: Sessions) -> None:
    """Design §3.1: GetJob reads Hot, Archive, DLQ, then Hot again."""
    mover, *askers = sessions.many(3)
    holder = Holder(mover)
    jobs = new_jobs(40)
    mover.enqueue_jobs(jobs)
    over = threading.Event()

    def move() -> int:
        try:
            for number in range(40):
                for _ in range(2):
                    held = holder.take(1)
                    mover.release_jobs(holder.worker, [Release(h.id, h.lease) for h in held])
                held = holder.take(1)
                if number % 2:
                    holder.succeed(held)
                else:
                    failures = [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR) for h in held]
                    mover.archive_failed(holder.worker, failures)
        finally:
            over.set()
        return 0

    def ask(session: Session) -> int:
        missing = asked = 0
        ids = [job.id for job in jobs]
        while not over.is_set():
            for job_id in ids:
                asked += 1
                missing += session.get_job(job_id) is None
            missing += session.get_statuses(ids).count(None)
        assert asked >= 40
        return missing

    calls: list[Callable[[], int]] = [move, *(partial(ask, session) for session in askers)]
    assert together(calls) == [0, 0, 0]


def test_the_counts_of_mixed_traffic_add_up(sessions: Sessions, lab: Lab) -> None:
    """C27: enqueue, claim, beat, settle, cancel, purge and lists at once: no error, no deadlock, nothing lost."""
    several = sessions.many(6)
    made: list[str] = []

    def produce(session: Session) -> None:
        for _ in range(12):
            made.extend(answer.id for answer in session.enqueue_jobs(new_jobs(10)))

    def consume(session: Session) -> None:
        holder = Holder(session)
        for _ in range(30):
            held = holder.take(7)
            holder.succeed(held[::2])
            session.release_jobs(holder.worker, [Release(h.id, h.lease) for h in held[1::2]])

    def operate(session: Session) -> None:
        for _ in range(15):
            session.cancel_jobs(made[-3:], "ann")
            session.list_queues()
            session.roll_up()
            session.purge_leftovers()

    together([
        *(partial(produce, session) for session in several[:2]),
        *(partial(consume, session) for session in several[2:5]),
        partial(operate, several[5]),
    ])  # fmt: skip

    assert len(made) == 240
    stands = sum(lab.count(table) for table in ("JobsHot", "JobsArchive", "JobsDLQ"))
    assert stands == 240
    view = next(queue for queue in several[0].list_queues() if queue.name == QUEUE)
    assert (view.succeeded_total, view.failed_total) == (lab.count("JobsArchive"), lab.count("JobsDLQ"))


@pytest.mark.processes
@pytest.mark.timeout(240)
def test_many_processes_share_one_store_without_an_error(
    store_options: DatabaseSettings, lab: Lab, store_kind: str
) -> None:
    """ "Database is locked" never reaches a caller: forty processes on one SQLite file; ten on the server."""
    crew, rounds = (40, 6) if store_kind == "sqlite" else (10, 6)

    reports = run_programs("live_together", crew, store_options, timeout=200, rounds=rounds)

    done = sum(report["done"] for report in reports)
    assert done == lab.count("JobsArchive")
    assert done + lab.count("JobsHot") == crew * rounds * 2
    assert lab.count("JobsDLQ") == lab.count("JobsHot", "Status <> 0") == 0
