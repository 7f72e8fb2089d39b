"""Maintenance on a real store: released leases, rescued jobs, retention."""

from collections.abc import Iterator

import pytest

from chokaq.config.settings import MaintenanceSettings, Policy, QueueSettings, Settings
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.maintenance.leader import COMEBACK
from chokaq.maintenance.link import StoreLink
from chokaq.maintenance.loop import MaintenanceLoop
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Held, NewJob, Registration, WorkerInfo
from tests.support.ids import new_id
from tests.support.lab import Lab

from .fakes import Boss, FakeSlot

QUEUE = "emails"


class Bench:
    """A loop on a real store, turned by hand."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.boss = Boss()
        info = WorkerInfo(worker_id=new_id(), queue="", host="here", pid=1, version="0")
        self.link = StoreLink(store, info)
        self.loop = MaintenanceLoop(settings, self.link, self.boss.theirs, FakeSlot())
        self.now = 0.0

    def turns(self, count: int) -> None:
        """Turn without waiting: the store's clock is its own, the loop's is ours."""
        for _ in range(count):
            wait = self.loop.turn(self.now)
            self.now += wait or 0.0

    def close(self) -> None:
        """Give back what is open."""
        self.link.close()
        self.boss.close()


@pytest.fixture
def make(store: Store) -> Iterator[list[Bench]]:
    """Benches that are closed in the end."""
    benches: list[Bench] = []
    yield benches
    for bench in benches:
        bench.close()


def claimed(session: Session, jobs: int) -> tuple[Registration, list[Held]]:
    """A worker that has claimed that many jobs."""
    worker = session.register_worker(
        WorkerInfo(worker_id=new_id(), queue=QUEUE, host="there", pid=2, version="0", max_workers=5)
    )
    session.enqueue_jobs(
        [NewJob(id=new_id(), queue=QUEUE, type_key="email.send.v1", payload="{}") for _ in range(jobs)]
    )
    fetched = session.fetch_jobs(worker, 1, jobs).jobs
    return worker, [Held(job.id, job.lease) for job in fetched]


def settings(policy: Policy) -> Settings:
    """A queue that is judged as soon after the first pass as any is: its two heartbeats are shorter than COMEBACK."""
    queue = QueueSettings(name=QUEUE, policy=policy, heartbeat=COMEBACK / 5)
    return Settings(queues={QUEUE: queue}, maintenance=MaintenanceSettings(rescue_interval=60.0))


def test_a_crash_notice_returns_buffered_jobs_and_applies_the_policy_to_running_ones(
    store: Store, session: Session, make: list[Bench]
) -> None:
    worker, held = claimed(session, 4)
    session.start_jobs(worker, held[:2])
    bench = Bench(store, settings(Policy(on_crash="retry")))
    make.append(bench)
    bench.boss.tell(1, worker.worker_id)
    bench.turns(2)
    assert bench.boss.acks() == [1]
    assert session.get_statuses([job.id for job in held]) == [JobStatus.PENDING] * 4
    [attempt] = session.list_attempts(held[0].id)
    assert "cause crash" in attempt.error.message
    assert session.fetch_jobs(worker, 2, 10).retired


def test_a_drained_worker_leaves_nothing_charged(store: Store, session: Session, make: list[Bench]) -> None:
    worker, held = claimed(session, 2)
    session.start_jobs(worker, held)
    bench = Bench(store, settings(Policy()))
    make.append(bench)
    bench.boss.tell(1, worker.worker_id, "shutdown")
    bench.turns(2)
    job = session.get_job(held[0].id)
    assert job is not None
    assert (job.status, job.attempt_count, job.crash_count) == (JobStatus.PENDING, 0, 0)


def test_the_leader_rescues_what_a_lost_host_held(store: Store, session: Session, lab: Lab, make: list[Bench]) -> None:
    worker, held = claimed(session, 2)
    session.start_jobs(worker, held[:1])
    lab.age_all("JobsHot", "HeartbeatUtc", 601_000)
    bench = Bench(store, settings(Policy()))
    make.append(bench)
    bench.turns(40)
    running, buffered = (session.get_job(job.id) for job in held)
    assert running is not None
    assert buffered is not None
    assert (running.status, running.failure_reason) == (JobStatus.ZOMBIE, FailureReason.ZOMBIE)
    assert buffered.status == JobStatus.PENDING


def test_retention_deletes_what_succeeded_long_enough_ago(
    store: Store, session: Session, lab: Lab, make: list[Bench]
) -> None:
    worker, held = claimed(session, 3)
    session.start_jobs(worker, held)
    session.archive_succeeded(worker, held)
    for job in held[:2]:
        lab.age(job.id, "FinishedAtUtc", 8 * 86_400_000, "JobsArchive")
    bench = Bench(store, settings(Policy()))
    make.append(bench)
    bench.turns(20)
    assert session.get_statuses([job.id for job in held]) == [None, None, JobStatus.SUCCEEDED]


def test_it_registers_without_a_queue_and_ends_its_own_row(store: Store, session: Session, make: list[Bench]) -> None:
    bench = Bench(store, settings(Policy()))
    make.append(bench)
    bench.turns(3)
    [row] = session.list_workers()
    assert (row.queue, row.ended_at) == ("", None)
    bench.boss.stop()
    bench.turns(2)
    assert session.list_workers() == []


def test_two_leaders_at_once_do_no_harm(store: Store, session: Session, make: list[Bench]) -> None:
    worker, held = claimed(session, 6)
    session.start_jobs(worker, held)
    benches = [Bench(store, settings(Policy(on_crash="retry"))) for _ in range(2)]
    make.extend(benches)
    for bench in benches:
        bench.boss.tell(1, worker.worker_id)
    for _ in range(20):
        for bench in benches:
            bench.turns(1)
    jobs = [session.get_job(job.id) for job in held]
    assert {(job.status, job.crash_count) for job in jobs if job is not None} == {(JobStatus.PENDING, 1)}


def test_workers_whose_host_is_gone_are_ended_by_the_leader_and_their_jobs_meet_the_crash_policy(
    store: Store, session: Session, make: list[Bench], lab: Lab
) -> None:
    (lost, held), (young, kept) = claimed(session, 2), claimed(session, 1)
    session.start_jobs(lost, held)
    old_maintenance = session.register_worker(
        WorkerInfo(worker_id=new_id(), queue="", host="there", pid=3, version="0", max_workers=0)
    )
    lab.age_worker(lost.worker_id, 601_000)
    lab.age_worker(old_maintenance.worker_id, 601_000)
    # A minute short of it: the store's own clock runs on meanwhile.
    lab.age_worker(young.worker_id, 540_000)
    bench = Bench(store, settings(Policy(on_crash="retry")))
    make.append(bench)
    bench.turns(60)
    assert bench.link.registration is not None
    here = {worker.worker_id for worker in session.list_workers()}
    assert here == {young.worker_id, bench.link.registration.worker_id}
    assert session.get_statuses([job.id for job in held]) == [JobStatus.PENDING] * 2
    assert session.get_statuses([job.id for job in kept]) == [JobStatus.FETCHED]
