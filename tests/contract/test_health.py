"""What probes ask: the lag of a worker's queues, and the schema's version; nothing is counted."""

import pytest

from chokaq.store.errors import StoreRefused
from chokaq.store.probing import QueueLag
from chokaq.store.protocol import Session
from chokaq.store.records import QueueChange
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab

HOUR = 3_600_000
SLACK = 60_000
"""Milliseconds a test may take between ageing a row and reading its age."""


def lag(session: Session, *queues: str) -> dict[str, QueueLag]:
    """The answer by name."""
    return {queue.name: queue for queue in session.read_health(queues or (QUEUE,)).queues}


def test_the_oldest_due_job_of_each_queue_is_told_whatever_its_priority(session: Session, lab: Lab) -> None:
    starved, overdue, other = new_job(priority=1), new_job(priority=50, delay_ms=9 * HOUR), new_job(queue="other")
    session.enqueue_jobs([*new_jobs(3, priority=90), starved, overdue, other])
    lab.age(starved.id, "DueAtUtc", 2 * HOUR)
    lab.age(other.id, "DueAtUtc", HOUR)

    found = lag(session, "other", QUEUE)

    assert list(found) == sorted([QUEUE, "other"])
    mine, others = found[QUEUE].oldest_due_ms, found["other"].oldest_due_ms
    assert mine is not None
    assert others is not None
    assert 2 * HOUR <= mine < 2 * HOUR + SLACK
    assert HOUR <= others < HOUR + SLACK
    # What has come due since the last fetch, which nobody has promoted yet, counts too.
    lab.age(overdue.id, "DueAtUtc", 13 * HOUR)
    late = lag(session)[QUEUE].oldest_due_ms
    assert late is not None
    assert 4 * HOUR <= late < 4 * HOUR + SLACK


def test_what_runs_is_buffered_or_waits_for_its_time_has_no_lag(session: Session) -> None:
    session.enqueue_jobs([*new_jobs(2), new_job(delay_ms=HOUR)])
    holder = Holder(session)
    holder.take_one()
    holder.claim_one()
    assert lag(session)[QUEUE] == QueueLag(name=QUEUE, paused=False, active=True, oldest_due_ms=None)


def test_paused_and_inactive_queues_say_so(session: Session) -> None:
    session.set_queue("resting", QueueChange(paused=True), "dan")
    session.set_queue("retired", QueueChange(active=False), "dan")
    found = lag(session, "resting", "retired")
    assert (found["resting"].paused, found["resting"].active) == (True, True)
    assert (found["retired"].paused, found["retired"].active) == (False, False)


def test_only_the_queues_that_are_asked_for_are_told_of_each_once(session: Session) -> None:
    session.enqueue_jobs(new_jobs(1))
    assert session.read_health([]).queues == []
    odd = 'a "quoted" \\ {name}'
    assert list(lag(session, "unheard", odd, "unheard")) == sorted([odd, "unheard"])
    assert lag(session, odd)[odd].oldest_due_ms is None
    with pytest.raises(StoreRefused, match="queue"):
        session.read_health(["größe"])


def test_the_schema_fits(session: Session) -> None:
    health = session.read_health([QUEUE])
    assert health.fits
    assert health.version == health.needed > 0
