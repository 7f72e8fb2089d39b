"""Lag per priority (C42), and the age of the oldest running job (C4): what a queue's own figures would hide is visible."""

import pytest

from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import PriorityView
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab

HOUR = 3_600_000
SLACK = 60_000
"""Milliseconds a test may take between ageing a row and reading its age."""


def waiting(views: list[PriorityView]) -> list[tuple[int, int]]:
    """(priority, jobs), in the order of the answer."""
    return [(view.priority, view.waiting) for view in views]


def test_a_low_priority_that_starves_shows_in_its_own_lag(session: Session, lab: Lab) -> None:
    """C42: elsewhere a busy high priority hid that the low one had not been served for hours."""
    starved = new_job(priority=1)
    session.enqueue_jobs([starved])
    lab.age(starved.id, "DueAtUtc", 3 * HOUR)
    holder = Holder(session)
    for _ in range(5):
        session.enqueue_jobs(new_jobs(4, priority=50))
        holder.succeed(holder.take(4))
    session.enqueue_jobs(new_jobs(2, priority=50))

    high, low = session.list_priorities(QUEUE)

    assert waiting([high, low]) == [(50, 2), (1, 1)]
    assert high.oldest_due_ms < SLACK
    assert 3 * HOUR <= low.oldest_due_ms < 3 * HOUR + SLACK


def test_only_what_is_due_and_waiting_in_this_queue_counts(session: Session, lab: Lab) -> None:
    """Also what has come due since the last fetch, which nobody has promoted yet; not what runs, is buffered or done."""
    promoted, overdue, later = (
        new_job(priority=7),
        new_job(priority=7, delay_ms=HOUR),
        new_job(priority=8, delay_ms=HOUR),
    )
    alone = new_job(priority=3, delay_ms=HOUR)
    session.enqueue_jobs(new_jobs(3, priority=90))
    holder = Holder(session)
    done, _ = holder.take(2)
    holder.claim(1)
    holder.succeed([done])
    session.enqueue_jobs([promoted, overdue, later, alone, new_job(queue="other", priority=5)])
    for job, age in ((promoted, 1_000), (overdue, 3 * HOUR), (alone, 2 * HOUR)):
        lab.age(job.id, "DueAtUtc", age)

    seven, three = session.list_priorities(QUEUE)

    assert waiting([seven, three]) == [(7, 2), (3, 1)]
    assert 2 * HOUR <= seven.oldest_due_ms < 3 * HOUR + SLACK
    assert HOUR <= three.oldest_due_ms < HOUR + SLACK
    assert waiting(session.list_priorities("other")) == [(5, 1)]
    assert session.list_priorities("nobody") == []


def test_of_many_priorities_those_that_waited_longest_are_told(session: Session, lab: Lab) -> None:
    """Bounded, and not at the expense of the low ones."""
    jobs = [new_job(priority=number) for number in range(130)]
    session.enqueue_jobs(jobs)
    for job in jobs[:20]:
        lab.age(job.id, "DueAtUtc", HOUR)

    views = session.list_priorities(QUEUE)

    priorities = [view.priority for view in views]
    assert len(priorities) == 100
    assert priorities == sorted(priorities, reverse=True)
    assert set(range(20)) <= set(priorities)
    assert all((view.oldest_due_ms >= HOUR) == (view.priority < 20) for view in views)


def test_the_count_of_a_priority_stops_where_it_says(session: Session) -> None:
    for _ in range(11):
        session.enqueue_jobs(new_jobs(1_000, priority=4))
    session.enqueue_jobs(new_jobs(3, priority=5))

    assert waiting(session.list_priorities(QUEUE)) == [(5, 3), (4, 10_000)]


@pytest.mark.parametrize("queue", ["", "ü", "x" * 256])
def test_what_is_no_queue_name_is_refused(session: Session, queue: str) -> None:
    with pytest.raises(StoreRefused, match="queue"):
        session.list_priorities(queue)


def test_the_age_of_the_oldest_running_job_can_be_read(session: Session, lab: Lab) -> None:
    """C4: thousands "running" for weeks, and no figure said so. A buffered job does not run."""
    session.enqueue_jobs([*new_jobs(4), new_job(queue="other")])
    holder = Holder(session)
    old, young = holder.take(2)
    [buffered] = holder.claim(1)
    lab.age(old.id, "StartedAtUtc", 14 * 24 * HOUR)

    views = {view.name: view for view in session.list_queues()}

    oldest = views[QUEUE].oldest_running_ms
    assert oldest is not None
    assert 14 * 24 * HOUR <= oldest < 14 * 24 * HOUR + SLACK
    assert views["other"].oldest_running_ms is None

    holder.succeed([old])
    [view] = [view for view in session.list_queues() if view.name == QUEUE]
    assert view.oldest_running_ms is not None
    assert view.oldest_running_ms < SLACK
    holder.succeed([young])
    [view] = [view for view in session.list_queues() if view.name == QUEUE]
    assert view.oldest_running_ms is None
    assert lab.row(buffered.id)["Status"] == 1
