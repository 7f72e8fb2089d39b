"""What a maintenance process counts: whom it rescued, where they went and of which types, on a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chokaq.lifecycle.states import DeathCause
from chokaq.maintenance.tally import MaintenanceTally
from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, CrashPolicy, Held
from tests.support.figures import Figures
from tests.support.holder import Holder
from tests.support.jobs import death, new_job, worker_info
from tests.support.lab import Lab

QUEUE = "emails"
NOW = CrashPolicies(default=CrashPolicy(on_crash="dead_letter"))
AGAIN = CrashPolicies(default=CrashPolicy(on_crash="retry", max_age_ms=None))


@pytest.fixture
def figures(tmp_path: Path) -> Iterator[Figures]:
    made = Figures(tmp_path)
    yield made
    sql.sink = None
    made.close()


@pytest.fixture
def counted(session: Session, figures: Figures) -> Session:
    """A session that is counted."""
    return MaintenanceTally(figures.recorder, "main").watching(session)


def took(session: Session, *types: str) -> tuple[Holder, list[Held]]:
    """A worker that runs a job of each of these types."""
    session.enqueue_jobs([new_job(queue=QUEUE, type_key=type_key) for type_key in types])
    holder = Holder(session, QUEUE)
    return holder, holder.take(len(types))


def by(session: Session) -> Holder:
    """Who does the maintenance."""
    return Holder(session, "")


def test_the_dead_letters_of_a_crash_are_counted_by_reason_and_type(
    session: Session, counted: Session, figures: Figures
) -> None:
    holder, _ = took(session, "a.v1", "b.v1", "b.v1")
    other, _ = took(session, "c.v1")
    counted.release_worker(by(session).worker, death(holder.id, DeathCause.CRASH, queue=QUEUE), NOW)
    assert figures.labels("rescued_jobs") == {(QUEUE, "ReleaseWorker", "zombie"): 3}
    assert figures.labels("jobs_dlq") == {(QUEUE, "a.v1", "Zombie"): 1, (QUEUE, "b.v1", "Zombie"): 2}
    assert figures.labels("jobs_failed") == {(QUEUE, "a.v1", "WorkerDied"): 1, (QUEUE, "b.v1", "WorkerDied"): 2}
    counted.release_worker(by(session).worker, death(other.id, DeathCause.CRASH, queue=QUEUE), NOW)
    assert figures.count("jobs_dlq", QUEUE, "c.v1", "Zombie") == 1
    assert sum(figures.labels("jobs_dlq").values()) == 4


def test_what_comes_back_is_counted_and_is_no_dead_letter(session: Session, counted: Session, figures: Figures) -> None:
    holder, _ = took(session, "a.v1", "a.v1")
    counted.release_worker(by(session).worker, death(holder.id, DeathCause.CRASH, queue=QUEUE), AGAIN)
    assert figures.labels("rescued_jobs") == {(QUEUE, "ReleaseWorker", "pending"): 2}
    assert figures.labels("jobs_dlq") == figures.labels("jobs_failed") == {}


def test_the_culprit_of_a_hard_limit_is_a_timeout_and_the_cancelled_one_a_cancellation(
    session: Session, counted: Session, figures: Figures
) -> None:
    holder, held = took(session, "a.v1", "b.v1", "c.v1")
    session.cancel_jobs([held[1].id], "me")
    notice = death(holder.id, DeathCause.LIMIT, held[0], held[1], queue=QUEUE)
    counted.release_worker(by(session).worker, notice, NOW)
    assert figures.labels("rescued_jobs") == {
        (QUEUE, "ReleaseWorker", "failed"): 1,
        (QUEUE, "ReleaseWorker", "cancelled"): 1,
        (QUEUE, "ReleaseWorker", "pending"): 1,
    }
    assert figures.labels("jobs_dlq") == {(QUEUE, "a.v1", "Timeout"): 1, (QUEUE, "b.v1", "Cancelled"): 1}
    assert figures.labels("jobs_failed") == {(QUEUE, "a.v1", "HardLimit"): 1}


def test_poison_and_age_have_their_own_reasons(session: Session, counted: Session, figures: Figures) -> None:
    poison = CrashPolicies(default=CrashPolicy(on_crash="retry", crash_limit=1))
    old = CrashPolicies(default=CrashPolicy(on_crash="retry", max_age_ms=1))
    for policies in (poison, old):
        holder, _ = took(session, "a.v1")
        counted.release_worker(by(session).worker, death(holder.id, DeathCause.CRASH, queue=QUEUE), policies)
    assert figures.labels("jobs_dlq") == {(QUEUE, "a.v1", "Poison"): 1, (QUEUE, "a.v1", "RetryLifetimeExpired"): 1}


def test_jobs_of_workers_that_fell_silent_are_counted_by_how_they_were_found(
    session: Session, counted: Session, figures: Figures, lab: Lab
) -> None:
    _, held = took(session, "a.v1")
    session.enqueue_jobs([new_job(queue=QUEUE, type_key="b.v1")])
    waiting = Holder(session, QUEUE).claim(1)
    for job in (*held, *waiting):
        lab.age(job.id, "HeartbeatUtc", 3_600_000)
    me = by(session).worker
    counted.recover_abandoned(me, QUEUE, 1_000)
    counted.archive_zombies(me, QUEUE, 1_000, NOW)
    assert figures.labels("rescued_jobs") == {
        (QUEUE, "RecoverAbandoned", "pending"): 1,
        (QUEUE, "ArchiveZombies", "zombie"): 1,
    }
    assert figures.labels("jobs_dlq") == {(QUEUE, "a.v1", "Zombie"): 1}


def test_what_is_purged_is_counted_per_table(session: Session, counted: Session, figures: Figures, lab: Lab) -> None:
    holder, held = took(session, "a.v1", "a.v1")
    session.archive_succeeded(holder.worker, held)
    lab.age_all("JobsArchive", "FinishedAtUtc", 3_600_000)
    assert counted.purge_archive(QUEUE, 1_000) == 2
    assert counted.purge_dlq(QUEUE, 1_000) == 0
    assert figures.labels("purged_rows") == {("archive",): 2}


def test_everything_else_of_a_session_is_what_it_was(session: Session, counted: Session) -> None:
    worker = counted.register_worker(worker_info(QUEUE))
    assert [view.worker_id for view in counted.list_workers()] == [worker.worker_id]
    assert counted.hot_queues() == [QUEUE]


class Blind:
    """A session whose login may not look into the DLQ."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.looks = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def browse_jobs(self, *_args: object) -> object:
        self.looks += 1
        raise StoreRefused("The EXECUTE permission was denied")


def test_without_the_right_to_look_into_the_dlq_only_the_types_are_unknown(session: Session, figures: Figures) -> None:
    blind = Blind(session)
    counted = MaintenanceTally(figures.recorder, "main").watching(blind)  # type: ignore[arg-type]
    with capture_logs() as logs:
        for _ in range(2):
            holder, _ = took(session, "a.v1")
            counted.release_worker(by(session).worker, death(holder.id, DeathCause.CRASH, queue=QUEUE), NOW)
    assert figures.labels("jobs_dlq") == {(QUEUE, "unknown", "Zombie"): 2}
    assert [log["event"] for log in logs] == ["metrics_without_types"]
    assert blind.looks == 1


def test_time_without_the_store_is_counted(figures: Figures) -> None:
    tally = MaintenanceTally(figures.recorder, "main")
    assert figures.count("store_outage_seconds", "maintenance") == 0
    tally.back()
    tally.away()
    tally.away()
    during = figures.count("store_outage_seconds", "maintenance")
    tally.back()
    after = figures.count("store_outage_seconds", "maintenance")
    assert 0 < during < after
    tally.back()
    assert figures.count("store_outage_seconds", "maintenance") == after
