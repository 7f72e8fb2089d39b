"""RecoverAbandoned and ArchiveZombies: what the timeouts decide when nobody knows how an owner ended."""

from collections.abc import Callable
from functools import partial

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, CrashPolicies, CrashPolicy, Figures, Held, QueueChange, Released
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

MINUTE = 60_000
TIMEOUT = 10 * MINUTE
DEFAULT = CrashPolicies()
RETRY = CrashPolicies(default=CrashPolicy(on_crash="retry"))
Page = Callable[[str | None], Released]


def walk(page: Page) -> Released:
    """Call page after page to the end; the sum of what moved."""
    total, cursor, pages = Released(), None, 0
    while True:
        found = page(cursor)
        assert found.pending + found.zombies + found.poisoned + found.failed + found.cancelled <= 1000
        total = Released(
            pending=total.pending + found.pending,
            zombies=total.zombies + found.zombies,
            poisoned=total.poisoned + found.poisoned,
            failed=total.failed + found.failed,
            cancelled=total.cancelled + found.cancelled,
        )
        cursor, pages = found.cursor, pages + 1
        assert pages < 50, "the cursor does not come to an end"
        if cursor is None:
            return total


def abandoned(holder: Holder, queue: str = QUEUE, timeout: int = TIMEOUT) -> Released:
    """The whole walk over Fetched jobs."""
    return walk(lambda cursor: holder.session.recover_abandoned(holder.worker, queue, timeout, cursor))


def zombies(
    holder: Holder,
    given: CrashPolicies = DEFAULT,
    queue: str = QUEUE,
    timeout: int = TIMEOUT,
) -> Released:
    """The whole walk over Processing jobs."""
    return walk(lambda cursor: holder.session.archive_zombies(holder.worker, queue, timeout, given, cursor))


def leader(session: Session) -> Holder:
    """A maintenance process."""
    return Holder(session, "")


def test_a_buffered_job_whose_owner_is_silent_returns_uncharged(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    stale, fresh, young = holder.claim(3)
    before = lab.row(stale.id)
    lab.age(stale.id, "HeartbeatUtc", TIMEOUT + 1)
    lab.age(young.id, "HeartbeatUtc", TIMEOUT - MINUTE)

    assert abandoned(leader(session)) == Released(pending=1)

    row = lab.row(stale.id)
    assert (row["Status"], row["AttemptCount"], row["CrashCount"], row["LeaseNumber"]) == (0, 0, 0, stale.lease)
    assert row["DueAtUtc"] == before["DueAtUtc"]
    assert session.start_jobs(holder.worker, [stale, fresh, young]) == [Answer.STALE, Answer.APPLIED, Answer.APPLIED]
    [again] = Holder(session).claim(5)
    assert again == Held(stale.id, stale.lease + 1)


def test_the_two_timeouts_are_separate(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    [running] = holder.take(1)
    [buffered] = holder.claim(1)
    lab.age_all("JobsHot", "HeartbeatUtc", 2 * TIMEOUT)

    assert zombies(leader(session)) == Released(zombies=1)
    assert lab.where(buffered.id) == [Pillar.HOT]
    assert lab.row(buffered.id)["Status"] == 1
    assert abandoned(leader(session)) == Released(pending=1)
    assert lab.where(running.id) == [Pillar.DLQ]


def test_a_running_job_whose_owner_is_silent_meets_the_crash_policy(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(7))
    holder = Holder(session)
    held = holder.take(7)
    lab.put(held[2].id, CrashCount=2)
    lab.put(held[3].id, AttemptCount=3)
    lab.age(held[4].id, "AgeFromUtc", 48 * 60 * MINUTE)
    session.cancel_jobs([held[5].id], "ann")
    lab.age_all("JobsHot", "HeartbeatUtc", TIMEOUT + MINUTE, f"Id <> '{held[6].id}'")

    released = zombies(leader(session), RETRY)

    assert released == Released(pending=2, poisoned=1, zombies=1, failed=1, cancelled=1)
    found = [session.get_job(h.id) for h in held]
    assert [(job.status, job.failure_reason) for job in found if job is not None] == [
        (JobStatus.PENDING, None),
        (JobStatus.PENDING, None),
        (JobStatus.ZOMBIE, FailureReason.POISON),
        (JobStatus.ZOMBIE, FailureReason.ZOMBIE),
        (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED),
        (JobStatus.CANCELLED, FailureReason.CANCELLED),
        (JobStatus.PROCESSING, None),
    ]
    assert [(job.attempt_count, job.crash_count) for job in found[:2] if job is not None] == [(1, 1), (1, 1)]
    assert {row["JobId"] for row in lab.rows("JobAttempts")} >= {h.id for h in held[:5]}


def test_by_default_a_zombie_is_never_repeated(session: Session, lab: Lab) -> None:
    session.enqueue_jobs([new_job()])
    held = Holder(session).take_one()
    lab.age(held.id, "HeartbeatUtc", TIMEOUT + MINUTE)

    assert zombies(leader(session)) == Released(zombies=1)
    assert Holder(session).fetch(5).jobs == []


def test_a_renewed_lease_is_never_rescued(session: Session, lab: Lab) -> None:
    """C5: a 47-minute job handed to a second worker each night."""
    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    [running] = holder.take(1)
    [buffered] = holder.claim(1)
    lab.age_all("JobsHot", "StartedAtUtc", 47 * MINUTE)
    lab.age_all("JobsHot", "HeartbeatUtc", 47 * MINUTE)
    lab.age_all("JobsHot", "CreatedAtUtc", 47 * MINUTE)
    session.keep_alive(holder.worker, [Beat(h.id, h.lease) for h in (running, buffered)], Figures())

    assert zombies(leader(session)) == Released()
    assert abandoned(leader(session)) == Released()
    holder.succeed([running])


def test_a_late_success_neither_revives_nor_overrides(session: Session, lab: Lab) -> None:
    """C6, C9: the zombie stays what the rescue made of it, and its old owner hears `stale`."""
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    lab.age(held.id, "HeartbeatUtc", TIMEOUT + MINUTE)
    zombies(leader(session))
    before = lab.snapshot()

    assert session.archive_succeeded(holder.worker, [held]) == [Answer.STALE]
    assert session.keep_alive(holder.worker, [Beat(held.id, held.lease)], Figures())[0] == [Answer.STALE]
    assert lab.snapshot() == before


def test_a_success_that_came_first_is_not_marked_abandoned(session: Session, lab: Lab) -> None:
    """C9: clean-up never overrides a finished job."""
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    lab.age(held.id, "HeartbeatUtc", TIMEOUT + MINUTE)
    holder.succeed([held])

    assert zombies(leader(session)) == Released()
    assert lab.where(held.id) == [Pillar.ARCHIVE]


@pytest.mark.parametrize(("override", "rescued"), [(2 * MINUTE, 1), (30 * MINUTE, 0), (None, 0)])
def test_the_queues_own_zombie_timeout_wins(session: Session, lab: Lab, override: int | None, rescued: int) -> None:
    session.set_queue(QUEUE, QueueChange(zombie_timeout_ms=override), "ann")
    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    [running] = holder.take(1)
    [buffered] = holder.claim(1)
    lab.age_all("JobsHot", "HeartbeatUtc", 5 * MINUTE)

    assert zombies(leader(session)) == Released(zombies=rescued)
    assert abandoned(leader(session)) == Released(), "the override is the zombie timeout, not that of buffered jobs"
    assert lab.where(running.id) == [Pillar.DLQ if rescued else Pillar.HOT]
    assert lab.row(buffered.id)["Status"] == 1


def test_only_the_named_queue_is_walked(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(2, queue="a") + new_jobs(2, queue="b"))
    for queue in ("a", "b"):
        holder = Holder(session, queue)
        holder.take(1)
        holder.claim(1)
    lab.age_all("JobsHot", "HeartbeatUtc", 2 * TIMEOUT)

    assert zombies(leader(session), queue="a") == Released(zombies=1)
    assert abandoned(leader(session), queue="a") == Released(pending=1)
    assert lab.leases("b") == 2


@pytest.mark.parametrize("kind", ["abandoned", "zombies"])
def test_rescue_pages_past_the_rows_it_may_not_touch(session: Session, lab: Lab, kind: str) -> None:
    """C4: thousands "running" for weeks because the rescuer's page is full of rows it may not touch."""
    session.enqueue_jobs(new_jobs(1000))
    session.enqueue_jobs(new_jobs(600))
    lively, dead = Holder(session), Holder(session)
    hold = Holder.claim if kind == "abandoned" else Holder.take
    first = hold(lively, 1000) + hold(lively, 200)
    last = hold(dead, 400)
    for held in (first[500], *last[100:]):
        lab.age(held.id, "HeartbeatUtc", 2 * TIMEOUT)

    released = abandoned(leader(session)) if kind == "abandoned" else zombies(leader(session))

    assert released.pending + released.zombies == 301
    assert lab.leases(QUEUE) == 1299


def test_more_than_a_page_of_dead_jobs_is_rescued_to_the_last(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(1000))
    session.enqueue_jobs(new_jobs(300))
    holder = Holder(session)
    holder.take(1000)
    holder.take(300)
    lab.age_all("JobsHot", "HeartbeatUtc", 2 * TIMEOUT)

    assert zombies(leader(session)) == Released(zombies=1300)
    assert lab.count("JobsDLQ") == 1300


def test_two_leaders_at_once_do_no_harm(session: Session, sessions: Sessions, lab: Lab) -> None:
    """Design §7: every maintenance step is safe with two leaders."""
    session.enqueue_jobs(new_jobs(200))
    holder = Holder(session)
    holder.take(100)
    holder.claim(100)
    lab.age_all("JobsHot", "HeartbeatUtc", 2 * TIMEOUT)
    leaders = [leader(s) for s in sessions.many(2)]

    def rescue(each: Holder) -> Released:
        dead, back = zombies(each), abandoned(each)
        return Released(zombies=dead.zombies, pending=back.pending)

    found = together([partial(rescue, each) for each in leaders])

    # A row that one of them was holding may have been passed over by the other, never moved twice.
    rest = rescue(leaders[0])
    assert sum(part.zombies for part in [*found, rest]) == 100
    assert sum(part.pending for part in [*found, rest]) == 100
    assert lab.count("JobsDLQ") == 100
    assert len(lab.rows("JobAttempts")) == 100


def test_a_rescue_may_be_repeated_and_of_nothing_does_nothing(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    holder.take(1)
    holder.claim(1)
    lab.age_all("JobsHot", "HeartbeatUtc", 2 * TIMEOUT)
    by = leader(session)
    zombies(by)
    abandoned(by)
    before = lab.snapshot()

    assert zombies(by) == abandoned(by) == Released()
    assert zombies(by, queue="never-seen") == abandoned(by, queue="never-seen") == Released()
    assert lab.snapshot() == before


def test_the_rescue_knows_every_queue_that_holds_jobs_or_has_a_row(session: Session) -> None:
    """Also a queue that no living worker serves: its orphans are found from the job rows (C3)."""
    session.enqueue_jobs([new_job(queue="jobs-only"), new_job(queue="jobs-only"), new_job(queue="both")])
    Holder(session, "both")
    session.set_queue("row-only", QueueChange(paused=True), "ann")

    assert sorted(session.hot_queues()) == ["both", "jobs-only", "row-only"]


def test_an_abandoned_job_with_a_requested_cancellation_ends_cancelled(session: Session, lab: Lab) -> None:
    """Design §3.7. A Fetched job is cancelled at once, so only a race can leave it with a request."""
    session.enqueue_jobs([new_job()])
    held = Holder(session).claim_one()
    lab.set_time(held.id, "CancelRequestedAtUtc", lab.row(held.id)["CreatedAtUtc"])
    lab.age(held.id, "HeartbeatUtc", 2 * TIMEOUT)

    assert abandoned(leader(session)) == Released(cancelled=1)

    job = session.get_job(held.id)
    assert job is not None
    assert job.status is JobStatus.CANCELLED
