"""The state of everything: what is a problem, and what is only worth knowing."""

from chokaq.config.settings import QueueSettings, Settings
from chokaq.operations import by, deactivate_queue, pause_queue, read_status
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, DeathNotice
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs, worker_info
from tests.support.lab import Lab

ANNA = by("anna")


def test_an_empty_store_has_no_problems(session: Session) -> None:
    found = read_status(session)
    assert (found.queues, found.workers, found.problems, found.notes, found.circuits) == ([], [], [], [], [])


def test_a_queue_that_holds_jobs_without_a_worker_anywhere_is_a_problem(session: Session) -> None:
    session.enqueue_jobs([*new_jobs(2), new_job(delay_ms=60_000)])
    found = read_status(session)
    assert len(found.problems) == 1
    assert f"The queue {QUEUE} holds 3 jobs but has no live worker anywhere" in found.problems[0]


def test_with_a_worker_and_maintenance_all_is_well_and_outcomes_are_counted(session: Session) -> None:
    session.register_worker(worker_info(""))
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    holder.succeed(holder.take(2))
    found = read_status(session)
    assert found.problems == []
    assert [(entry.queue.name, entry.held, entry.last_minute.succeeded) for entry in found.queues] == [(QUEUE, 1, 2)]
    assert {worker.queue for worker in found.workers} == {QUEUE, ""}


def test_workers_without_maintenance_are_a_problem(session: Session) -> None:
    Holder(session)
    assert [problem.startswith("Workers run but no maintenance") for problem in read_status(session).problems] == [True]


def test_a_silent_worker_is_a_problem_with_its_host(session: Session, lab: Lab) -> None:
    session.register_worker(worker_info(""))
    holder = Holder(session)
    lab.age_worker(holder.id, 120_000)
    problems = read_status(session).problems
    assert any(
        f"The worker {holder.id} (queue {QUEUE}, host-1, pid 4321) has been silent for 12" in text for text in problems
    )


def test_a_paused_or_deactivated_queue_with_jobs_is_noted(session: Session) -> None:
    session.register_worker(worker_info(""))
    Holder(session)
    session.enqueue_jobs([new_job()])
    pause_queue(session, QUEUE, ANNA)
    found = read_status(session)
    assert found.problems == []
    assert found.notes == [f"The queue {QUEUE} holds 1 job and is paused: `chokaq queues resume {QUEUE}`."]
    deactivate_queue(session, QUEUE, ANNA)
    assert "deactivated" in read_status(session).notes[0]


def test_a_worker_is_live_by_the_heartbeat_of_its_queue_where_that_is_known(session: Session, lab: Lab) -> None:
    session.register_worker(worker_info(""))
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    lab.age_worker(holder.id, 2_000_000)
    assert len(read_status(session).problems) == 2
    slow = Settings(queues={QUEUE: QueueSettings(name=QUEUE, heartbeat=3_600.0, zombie_timeout=7_200.0)})
    assert read_status(session, slow).problems == []
    assert len(read_status(session, Settings(queues={QUEUE: QueueSettings(name=QUEUE)})).problems) == 2


def test_a_worker_that_has_been_released_is_no_problem(session: Session, lab: Lab) -> None:
    me = session.register_worker(worker_info(""))
    holder = Holder(session)
    lab.age_worker(holder.id, 2_000_000)
    assert read_status(session).problems != []
    session.release_worker(me, DeathNotice(worker_id=holder.id, queue=QUEUE, cause="crash"), CrashPolicies())
    assert read_status(session).problems == []
