"""ReleaseWorker: what becomes of a dead worker's jobs (design §4, "Death" and "Crash policy")."""

import pytest

from chokaq.lifecycle.states import Answer, DeathCause, FailureReason, JobStatus, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, CrashPolicy, DeathNotice, Held, JobView, Released
from tests.support.holder import Holder
from tests.support.jobs import death, new_job, new_jobs
from tests.support.lab import Lab

HOUR = 3_600_000
DAY = 24 * HOUR
CRASH, LIMIT, SHUTDOWN = DeathCause.CRASH, DeathCause.LIMIT, DeathCause.SHUTDOWN
RETRY = CrashPolicy(on_crash="retry")


def policies(policy: CrashPolicy = CrashPolicy(), **types: CrashPolicy) -> CrashPolicies:  # noqa: B008 - immutable
    """The policy of the queue, and those of some types (`email` stands for `email.send.v1`)."""
    return CrashPolicies(default=policy, types={"email.send.v1": types["email"]} if "email" in types else {})


def view(session: Session, job_id: str) -> JobView:
    """The job, wherever it stands."""
    found = session.get_job(job_id)
    assert found is not None
    return found


def crash(session: Session, holder: Holder, given: CrashPolicies) -> Released:
    """The holder's process died of signal 9."""
    notice = death(holder.id, CRASH, signal=9, memory_kb=512_000, last_pulse_ms=120)
    return session.release_worker(Holder(session, "").worker, notice, given)


def running(session: Session, lab: Lab, *, attempts: int = 1, crashes: int = 0, age: int = 0) -> tuple[Holder, Held]:
    """A Processing job with that history."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    lab.put(held.id, AttemptCount=attempts, CrashCount=crashes)
    if age:
        lab.age(held.id, "AgeFromUtc", age)
    return holder, held


def test_by_default_a_running_job_becomes_a_zombie(session: Session, lab: Lab) -> None:
    """C8: its side effects are unknown, so nobody repeats them unasked."""
    holder, held = running(session, lab)

    assert crash(session, holder, policies()) == Released(zombies=1)

    job = view(session, held.id)
    assert (job.pillar, job.status, job.failure_reason) == (Pillar.DLQ, JobStatus.ZOMBIE, FailureReason.ZOMBIE)
    assert (job.attempt_count, job.crash_count, job.lease) == (1, 1, held.lease)


def test_with_retry_it_waits_its_backoff_and_the_crash_is_charged(session: Session, lab: Lab) -> None:
    """C8, design §3.4: a crash does count."""
    holder, held = running(session, lab)
    before = lab.row(held.id)

    assert crash(session, holder, policies(RETRY)) == Released(pending=1)

    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"], row["CrashCount"], row["LeaseNumber"]) == (0, 1, 1, held.lease)
    assert 3_000 <= row["DueAtUtc"] - before["StartedAtUtc"] < 23_000
    assert row["AgeFromUtc"] == before["AgeFromUtc"]
    assert Holder(session).fetch(5).jobs == []
    lab.age(held.id, "DueAtUtc", 25_000)
    [again] = Holder(session).fetch(5).jobs
    assert (again.lease, again.attempt_count, again.crash_count) == (held.lease + 1, 1, 1)


@pytest.mark.parametrize(("attempts", "delay"), [(1, 10_000), (2, 200_000), (3, 4_000_000), (4, 4_000_000)])
def test_the_backoff_follows_the_attempts_and_its_last_entry_repeats(
    session: Session, lab: Lab, attempts: int, delay: int
) -> None:
    holder, held = running(session, lab, attempts=attempts)
    before = lab.row(held.id)
    policy = CrashPolicy(
        on_crash="retry", max_attempts=9, crash_limit=99, backoff_ms=(10_000, 200_000, 4_000_000), max_age_ms=None
    )

    assert crash(session, holder, policies(policy)) == Released(pending=1)

    assert delay <= lab.row(held.id)["DueAtUtc"] - before["StartedAtUtc"] < delay + 20_000


def test_the_last_crash_allowed_is_poison_before_anything_but_a_cancellation(session: Session, lab: Lab) -> None:
    """C13: CrashCount + 1 ≥ crash_limit → Zombie with reason Poison, under every policy."""
    for policy in (CrashPolicy(), RETRY, CrashPolicy(on_crash="retry", max_attempts=1, max_age_ms=1)):
        holder, held = running(session, lab, attempts=3, crashes=2, age=2 * DAY)

        assert crash(session, holder, policies(policy)) == Released(poisoned=1)

        job = view(session, held.id)
        assert (job.status, job.failure_reason, job.crash_count) == (JobStatus.ZOMBIE, FailureReason.POISON, 3)


@pytest.mark.parametrize(("crashes", "poisoned"), [(0, False), (3, False), (4, True), (9, True)])
def test_the_crash_limit_is_the_policys(session: Session, lab: Lab, crashes: int, poisoned: bool) -> None:
    holder, _ = running(session, lab, crashes=crashes)

    released = crash(session, holder, policies(CrashPolicy(on_crash="retry", crash_limit=5)))

    assert released == (Released(poisoned=1) if poisoned else Released(pending=1))


def test_a_requested_cancellation_beats_poison(session: Session, lab: Lab) -> None:
    """C13: cancelling it works at any time."""
    holder, held = running(session, lab, attempts=3, crashes=2, age=2 * DAY)
    session.cancel_jobs([held.id], "ann", "enough of it")

    assert crash(session, holder, policies()) == Released(cancelled=1)

    job = view(session, held.id)
    assert (job.status, job.failure_reason) == (JobStatus.CANCELLED, FailureReason.CANCELLED)


def test_spent_attempts_make_a_zombie_even_with_retry_and_before_the_age(session: Session, lab: Lab) -> None:
    holder, held = running(session, lab, attempts=3, age=2 * DAY)

    assert crash(session, holder, policies(RETRY)) == Released(zombies=1)
    assert view(session, held.id).failure_reason is FailureReason.ZOMBIE


def test_dead_letter_comes_before_the_age(session: Session, lab: Lab) -> None:
    holder, _ = running(session, lab, age=2 * DAY)

    assert crash(session, holder, policies()) == Released(zombies=1)


@pytest.mark.parametrize(("age", "limit", "expired"), [(DAY, DAY, True), (HOUR, DAY, False), (400 * DAY, None, False)])
def test_a_job_too_old_to_retry_has_failed(
    session: Session, lab: Lab, age: int, limit: int | None, expired: bool
) -> None:
    holder, held = running(session, lab, age=age)

    released = crash(session, holder, policies(CrashPolicy(on_crash="retry", max_age_ms=limit)))

    assert released == (Released(failed=1) if expired else Released(pending=1))
    if expired:
        job = view(session, held.id)
        assert (job.status, job.failure_reason) == (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED)
        assert job.crash_count == 1


def test_a_type_may_have_its_own_policy(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job(), new_job(type_key="report.make.v1")])
    held = holder.take(2)

    released = crash(session, holder, policies(CrashPolicy(), email=RETRY))

    assert released == Released(pending=1, zombies=1)
    assert view(session, held[0].id).status is JobStatus.PENDING
    assert view(session, held[1].id).status is JobStatus.ZOMBIE


def test_buffered_jobs_return_uncharged_whatever_the_cause(session: Session, lab: Lab) -> None:
    """C13, C24: user code has not run; even a job that crashed often before is not charged."""
    for cause in (CRASH, LIMIT, SHUTDOWN):
        session.enqueue_jobs([new_job()])
        holder = Holder(session)
        held = holder.claim_one()
        lab.put(held.id, CrashCount=2)
        before = lab.row(held.id)

        notice = death(holder.id, cause, held)
        assert session.release_worker(Holder(session, "").worker, notice, policies()) == Released(pending=1)

        row = lab.row(held.id)
        assert (row["Status"], row["AttemptCount"], row["CrashCount"]) == (0, 0, 2)
        assert row["DueAtUtc"] == before["DueAtUtc"]
        next_holder = Holder(session)
        next_holder.succeed(next_holder.take(1))


def test_a_hard_limit_stops_the_culprits_and_hands_the_others_back(session: Session, lab: Lab) -> None:
    """C20: only the job that would not stop is to blame; its neighbours are refunded."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(6))
    held = holder.take(5) + holder.claim(1)
    lab.put(held[3].id, CrashCount=2)
    lab.put(held[2].id, AttemptCount=3)
    session.cancel_jobs([held[1].id, held[4].id], "ann", "enough")
    wrong_lease = Held(held[2].id, held[2].lease + 1)

    notice = death(holder.id, LIMIT, held[0], held[1], wrong_lease, exit_code=None, signal=9)
    released = session.release_worker(Holder(session, "").worker, notice, policies())

    assert released == Released(pending=3, failed=1, cancelled=2)
    jobs = [view(session, h.id) for h in held]
    assert [job.status.name for job in jobs] == ["FAILED", "CANCELLED", "PENDING", "PENDING", "CANCELLED", "PENDING"]
    assert jobs[0].failure_reason is FailureReason.TIMEOUT
    assert [(job.attempt_count, job.crash_count) for job in jobs[2:4]] == [(2, 0), (0, 2)]


def test_a_shutdown_hands_everything_back_uncharged_and_due_at_once(session: Session, lab: Lab) -> None:
    """C26: a deploy does not count as a failure."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(4))
    held = holder.take(3) + holder.claim(1)
    session.cancel_jobs([held[1].id], "ann")

    notice = death(holder.id, SHUTDOWN, exit_code=0)
    released = session.release_worker(Holder(session, "").worker, notice, policies())

    assert released == Released(pending=3, cancelled=1)
    [second] = [view(session, held[1].id)]
    assert second.status is JobStatus.CANCELLED
    again = Holder(session).fetch(9).jobs
    assert [(job.id, job.attempt_count, job.crash_count, job.lease) for job in again] == [
        (held[n].id, 0, 0, 2) for n in (0, 2, 3)
    ]
    assert [row["JobId"] for row in lab.rows("JobAttempts")] in ([], [held[1].id])


def test_the_record_says_how_the_worker_died(session: Session, lab: Lab) -> None:
    """C21: signal, memory and last pulse stand in the attempt's record."""
    holder, held = running(session, lab)
    crash(session, holder, policies(RETRY))

    [attempt] = session.list_attempts(held.id)

    assert (attempt.lease, attempt.worker_id) == (held.lease, holder.id)
    for word in ("signal 9", "memory 500 MB", "last pulse 120 ms"):
        assert word in attempt.error.message
    holder.session.start_jobs(holder.worker, [])


@pytest.mark.parametrize(
    ("how", "told"),
    [({"exit_code": 137}, "exit code 137"), ({"signal": 15}, "signal 15"), ({"exit_code": 0}, "exit code 0")],
)
@pytest.mark.parametrize("crashes", [0, 2])
def test_every_way_to_die_is_told_in_the_attempt_and_in_the_dlq(
    session: Session, lab: Lab, how: dict[str, int], told: str, crashes: int
) -> None:
    """C21, C13: elsewhere it says "terminated unexpectedly". Of a zombie and of a poisonous job alike."""
    holder, held = running(session, lab, crashes=crashes)
    notice = death(holder.id, CRASH, memory_kb=256_000, last_pulse_ms=4_500, **how)

    released = session.release_worker(Holder(session, "").worker, notice, policies())

    assert released == (Released(poisoned=1) if crashes else Released(zombies=1))
    [attempt] = session.list_attempts(held.id)
    for text in (attempt.error.message, view(session, held.id).error_message or ""):
        for word in (told, "memory 250 MB", "last pulse 4500 ms"):
            assert word in text


def test_the_record_of_a_zombie_is_readable_in_the_dlq(session: Session, lab: Lab) -> None:
    holder, held = running(session, lab)
    crash(session, holder, policies())

    job = view(session, held.id)

    assert job.error_message is not None
    assert "signal 9" in job.error_message
    [attempt] = session.list_attempts(held.id)
    assert "signal 9" in attempt.error.message


def test_only_the_dead_workers_jobs_are_touched(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(4))
    dead, alive = Holder(session), Holder(session)
    gone, kept = dead.take(2), alive.take(1) + alive.claim(1)

    assert crash(session, dead, policies()) == Released(zombies=2)

    assert [lab.where(held.id) for held in gone] == [[Pillar.DLQ]] * 2
    assert [view(session, held.id).worker_id for held in kept] == [alive.id] * 2
    alive.succeed(kept[:1])


def test_a_release_may_be_repeated_and_a_dead_workers_words_are_stale(session: Session, lab: Lab) -> None:
    """C2, C3, C12: the notice is delivered at least once; the dead worker's late writes change nothing."""
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    held = holder.take(2) + holder.claim(1)
    crash(session, holder, policies(RETRY))
    before = lab.snapshot()

    assert crash(session, holder, policies()) == Released()
    assert session.archive_succeeded(holder.worker, held) == [Answer.STALE] * 3
    assert holder.fetch(5).retired
    assert lab.snapshot() == before


def test_a_worker_nobody_knows_may_be_released(session: Session) -> None:
    """It died before its registration was committed."""
    from tests.support.ids import new_id

    notice = DeathNotice(worker_id=new_id(), queue="mail", cause=CRASH.value, exit_code=1)

    assert session.release_worker(Holder(session, "").worker, notice, policies()) == Released()


def test_a_worker_with_more_than_a_call_may_move_is_released_in_several(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(1000))
    session.enqueue_jobs(new_jobs(250))
    holder = Holder(session)
    holder.take(500)
    holder.take(500)
    holder.claim(250)
    by = Holder(session, "").worker
    notice = death(holder.id, SHUTDOWN)

    moved, calls, done = 0, 0, False
    while not done:
        released = session.release_worker(by, notice, policies())
        assert released.pending <= 1000
        moved, calls, done = moved + released.pending, calls + 1, released.done
        assert calls < 10
    assert moved == 1250
    assert calls >= 2
    assert lab.count("JobsHot", "Status = 0") == 1250
