"""FetchJobs: who is served, in which order, never early, and what the answer tells besides."""

import random
from datetime import timedelta

import pytest

from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.store.protocol import Session, Store
from chokaq.store.records import QueueChange
from tests.support.holder import Holder
from tests.support.jobs import new_job, new_jobs
from tests.support.lab import Lab

HOUR = 3_600_000


def test_a_claim_raises_the_lease_and_charges_nothing(session: Session, lab: Lab) -> None:
    """Design §3.4: a fetch does not touch attempts."""
    job = new_job(payload='{"a":1}', priority=7, tags="t", created_by="me", headers='{"h":"1"}')
    session.enqueue_jobs([job])
    holder = Holder(session)

    fetch = holder.fetch()

    [fetched] = fetch.jobs
    assert (fetched.id, fetched.type_key, fetched.payload, fetched.priority) == (job.id, job.type_key, '{"a":1}', 7)
    assert (fetched.tags, fetched.created_by, fetched.headers) == ("t", "me", '{"h":"1"}')
    assert (fetched.lease, fetched.attempt_count, fetched.crash_count) == (1, 0, 0)
    assert fetched.due_at == fetched.created_at
    assert 0 <= fetched.age_ms < 20_000
    assert not fetch.retired
    row = lab.row(job.id)
    assert (row["Status"], row["WorkerId"], row["LeaseNumber"], row["AttemptCount"]) == (1, holder.id, 1, 0)


def test_the_age_counts_from_the_first_due_time(session: Session, lab: Lab) -> None:
    job = new_job()
    session.enqueue_jobs([job])
    lab.age(job.id, "AgeFromUtc", 90_000)

    [fetched] = Holder(session).fetch().jobs

    assert 90_000 <= fetched.age_ms < 110_000


def test_the_age_of_a_delayed_job_counts_from_when_it_was_due(session: Session, lab: Lab) -> None:
    job = new_job(delay_ms=HOUR)
    session.enqueue_jobs([job])

    assert lab.row(job.id)["AgeFromUtc"] == lab.row(job.id)["DueAtUtc"]


def test_the_order_is_priority_then_due_time_then_id(session: Session, lab: Lab) -> None:
    """Design §3.8."""
    jobs = new_jobs(6, priority=10) + new_jobs(2, priority=500) + new_jobs(2, priority=0)
    session.enqueue_jobs(random.Random(7).sample(jobs, len(jobs)))
    same = lab.row(jobs[0].id)["DueAtUtc"]
    for job in jobs:
        lab.set_time(job.id, "DueAtUtc", same)
    lab.age(jobs[4].id, "DueAtUtc", 5_000)
    lab.age(jobs[2].id, "DueAtUtc", 1)

    fetched = [job.id for job in Holder(session).fetch(20).jobs]

    order = [6, 7, 4, 2, 0, 1, 3, 5, 8, 9]
    assert fetched == [jobs[n].id for n in order]


def test_small_claims_in_a_row_follow_the_same_order(session: Session) -> None:
    chance = random.Random(11)
    jobs = [new_job(priority=chance.choice([0, 10, 10, 20, 1_000_000])) for _ in range(40)]
    session.enqueue_jobs(jobs)
    holder = Holder(session)

    served = [job.id for _ in range(14) for job in holder.fetch(3).jobs]

    assert served == [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.id))]


def test_no_more_than_asked_and_only_the_own_queue(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(5) + new_jobs(5, queue="other", priority=99))

    jobs = Holder(session).fetch(3).jobs

    assert len(jobs) == 3
    assert lab.leases("mail") == 3
    assert lab.leases("other") == 0


@pytest.mark.parametrize("delay", [60_000, HOUR, 400 * 24 * HOUR])
def test_a_future_job_is_never_early(session: Session, delay: int) -> None:
    """Design §3.8, a job due in 400 days included; the priority of a future job counts for nothing."""
    later = new_job(delay_ms=delay, priority=1_000_000)
    now = new_job(priority=0)
    session.enqueue_jobs([later, now])
    holder = Holder(session)

    assert [job.id for job in holder.fetch(10).jobs] == [now.id]
    fetch = holder.fetch(10)
    assert fetch.jobs == []
    assert fetch.next_due_ms is not None
    assert delay - 20_000 < fetch.next_due_ms <= delay


def test_an_instant_in_400_days_is_not_early_and_one_in_the_past_is_due(session: Session, store: Store) -> None:
    far = new_job(due_at=store.now() + timedelta(days=400))
    past = new_job(due_at=store.now() - timedelta(days=2))
    session.enqueue_jobs([far, past])

    assert [job.id for job in Holder(session).fetch(10).jobs] == [past.id]


def test_a_job_is_served_once_its_time_has_come(session: Session, lab: Lab) -> None:
    soon, late = new_job(delay_ms=HOUR), new_job(delay_ms=2 * HOUR)
    session.enqueue_jobs([late, soon])
    holder = Holder(session)
    assert holder.fetch(10).jobs == []

    lab.age(soon.id, "DueAtUtc", HOUR)

    fetch = holder.fetch(10)
    assert [job.id for job in fetch.jobs] == [soon.id]
    assert fetch.next_due_ms is not None
    assert HOUR < fetch.next_due_ms <= 2 * HOUR


def test_next_due_tells_how_long_one_may_sleep(session: Session) -> None:
    holder = Holder(session)
    assert holder.fetch(5).next_due_ms is None

    session.enqueue_jobs(new_jobs(3))
    assert holder.fetch(0).next_due_ms == 0
    assert holder.fetch(2).next_due_ms == 0
    assert holder.fetch(1).next_due_ms is None


def test_a_fetch_promotes_at_most_a_thousand_due_rows_earliest_first(session: Session, lab: Lab) -> None:
    """Design §6: the cost of a fetch does not depend on how many jobs became due at once."""
    jobs = new_jobs(1200, delay_ms=2 * HOUR)
    session.enqueue_jobs(jobs[:700])
    session.enqueue_jobs(jobs[700:])
    lab.age_all("JobsHot", "DueAtUtc", 3 * HOUR)
    early = {job.id for job in jobs[600:]}
    lab.age_all("JobsHot", "DueAtUtc", HOUR, f"Id >= '{jobs[600].id}'")
    holder = Holder(session)

    [first] = holder.fetch(1).jobs

    waiting = {row["Id"] for row in lab.rows("JobsHot") if row["Status"] == 0 and not row["IsReady"]}
    assert len(waiting) >= 200
    assert first.id == jobs[600].id
    assert not waiting & early
    served = {first.id}
    while found := holder.fetch(500).jobs:
        served |= {job.id for job in found}
    assert served == {job.id for job in jobs}


def test_an_idle_fetch_writes_nothing(session: Session, lab: Lab) -> None:
    """Design §7: the probe is a plain read; thousands of idle polls cost no write."""
    session.enqueue_jobs([new_job(delay_ms=HOUR), new_job(queue="other")])
    holder = Holder(session)
    holder.fetch(0)
    before = lab.snapshot("JobsHot", "Workers", "Queues")

    for size in (10, 0, 10, 0):
        assert holder.fetch(size).jobs == []

    assert lab.snapshot("JobsHot", "Workers", "Queues") == before


def test_a_sync_of_size_zero_claims_nothing(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(2))

    fetch = Holder(session).fetch(0)

    assert fetch.jobs == []
    assert lab.leases("mail") == 0


@pytest.mark.parametrize("change", [QueueChange(paused=True), QueueChange(active=False)])
def test_a_paused_or_inactive_queue_claims_nothing_new_and_running_jobs_finish(
    session: Session, lab: Lab, change: QueueChange
) -> None:
    """Design §3.9."""
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    running = holder.take_one()
    session.set_queue("mail", change, "ann")

    fetch = holder.fetch(10)

    assert fetch.jobs == []
    assert (fetch.live.paused, fetch.live.active) == (change.paused is True, change.active is not False)
    holder.succeed([running])
    assert Holder(session).fetch(10).jobs == []
    assert lab.leases("mail") == 0

    session.set_queue("mail", QueueChange(paused=False, active=True), "ann")
    assert len(holder.fetch(10).jobs) == 2


def test_an_override_survives_the_registration_of_a_worker(session: Session) -> None:
    """Design §6: registering inserts the queue's row when missing, and never an override."""
    change = QueueChange(
        paused=True, max_workers=3, fleet_max_workers=9, execution_timeout_ms=5_000, zombie_timeout_ms=60_000
    )
    session.set_queue("mail", change, "ann")

    live = Holder(session).fetch(5).live

    assert (live.paused, live.active, live.max_workers, live.fleet_max_workers) == (True, True, 3, 9)
    assert (live.execution_timeout_ms, live.zombie_timeout_ms) == (5_000, 60_000)


def test_a_released_job_returns_in_its_old_place_under_a_higher_lease(session: Session) -> None:
    from chokaq.store.records import Release

    jobs = new_jobs(3)
    session.enqueue_jobs(jobs)
    holder = Holder(session)
    held = holder.claim_one()
    session.release_jobs(holder.worker, [Release(held.id, held.lease)])

    fetched = holder.fetch(3).jobs

    assert [(job.id, job.lease) for job in fetched] == [(jobs[0].id, 2), (jobs[1].id, 1), (jobs[2].id, 1)]


def test_get_job_shows_who_holds_it(session: Session) -> None:
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.claim_one()

    view = session.get_job(held.id)

    assert view is not None
    assert (view.pillar, view.status, view.worker_id, view.lease) == (Pillar.HOT, JobStatus.FETCHED, holder.id, 1)
    assert view.heartbeat_at is not None
