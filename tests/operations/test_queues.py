"""Overriding a queue's settings, with bounds and an audit row each."""

from collections.abc import Callable
from typing import Any

import pytest

from chokaq.operations import (
    OperationError,
    activate_queue,
    by,
    deactivate_queue,
    list_queues,
    pause_queue,
    resume_queue,
    set_queue,
    show_queue,
)
from chokaq.store.protocol import Session
from chokaq.store.records import LiveQueue, QueueView
from tests.support.jobs import QUEUE, new_job

ANNA = by("anna", "a test")


@pytest.fixture
def known(session: Session) -> Session:
    """A session whose store knows QUEUE by a job."""
    session.enqueue_jobs([new_job()])
    return session


def test_a_queue_is_paused_and_resumed_deactivated_and_activated(known: Session) -> None:
    def live(change: Callable[..., QueueView]) -> tuple[bool, bool]:
        view = change(known, QUEUE, ANNA)
        assert view.updated_by == "anna"
        return view.live.paused, view.live.active

    assert live(pause_queue) == (True, True)
    assert live(deactivate_queue) == (True, False)
    assert live(resume_queue) == (False, False)
    assert live(activate_queue) == (False, True)
    assert [entry.actor for entry in known.list_audit(QUEUE)] == ["anna"] * 4


def test_overrides_hold_until_they_are_cleared(known: Session) -> None:
    set_queue(known, QUEUE, ANNA, max_workers=7, execution_timeout=1.5)
    view = set_queue(known, QUEUE, ANNA, fleet_max_workers=9, zombie_timeout=86_400)
    assert view.live == LiveQueue(
        max_workers=7, fleet_max_workers=9, execution_timeout_ms=1_500, zombie_timeout_ms=86_400_000
    )
    view = set_queue(
        known, QUEUE, ANNA, max_workers=None, fleet_max_workers=None, execution_timeout=None, zombie_timeout=None
    )
    assert view.live == LiveQueue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "nothing to set"),
        ({"max_workers": 0}, "max_workers must be a whole number from 1 to 10,000, got 0"),
        ({"max_workers": 10_001}, "max_workers must be"),
        ({"max_workers": True}, "max_workers must be"),
        ({"fleet_max_workers": 0}, "fleet_max_workers must be a whole number from 1 to 100,000"),
        ({"fleet_max_workers": 100_001}, "fleet_max_workers must be"),
        ({"execution_timeout": 0.5}, "execution_timeout must be from 1 s to 86,400 s"),
        ({"zombie_timeout": 86_401}, "zombie_timeout must be from 1 s"),
        ({"zombie_timeout": float("nan")}, "zombie_timeout must be from 1 s"),
    ],
)
def test_what_is_out_of_bounds_is_refused(known: Session, change: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        set_queue(known, QUEUE, ANNA, **change)
    assert known.list_audit(QUEUE) == []


def test_a_misspelt_queue_is_refused_with_the_nearest_one(known: Session) -> None:
    with pytest.raises(OperationError, match=f"there is no queue 'mial' here; did you mean {QUEUE}"):
        pause_queue(known, "mial", ANNA)
    with pytest.raises(OperationError, match=f"known: {QUEUE}"):
        pause_queue(known, "zzz", ANNA)
    assert [view.name for view in list_queues(known)] == [QUEUE]


def test_a_queue_can_be_paused_before_its_first_job(session: Session) -> None:
    assert pause_queue(session, "later", ANNA, create=True).live.paused


@pytest.mark.parametrize("name", ["", " q", "q\n", "ü", "x" * 256])
def test_what_is_no_queue_name_is_refused(session: Session, name: str) -> None:
    with pytest.raises(OperationError, match="is not a queue name"):
        pause_queue(session, name, ANNA, create=True)


def test_a_queue_is_shown_with_the_lag_of_each_priority(known: Session) -> None:
    """C42."""
    known.enqueue_jobs([new_job(priority=99), new_job(priority=99)])

    detail = show_queue(known, QUEUE)

    assert detail.queue.pending == 3
    assert [(view.priority, view.waiting) for view in detail.priorities] == [(99, 2), (10, 1)]
    with pytest.raises(OperationError, match=f"there is no queue 'mial' here; did you mean {QUEUE}\\?$"):
        show_queue(known, "mial")


def test_a_zombie_timeout_that_the_heartbeat_does_not_allow_is_refused_and_nothing_is_written(known: Session) -> None:
    with pytest.raises(OperationError, match=r"under three heartbeats .*\(10 s each.*at least 30 s"):
        set_queue(known, QUEUE, ANNA, max_workers=3, zombie_timeout=29.9, heartbeat=10.0)
    assert known.list_audit(QUEUE) == []
    assert set_queue(known, QUEUE, ANNA, zombie_timeout=30, heartbeat=10.0).live.zombie_timeout_ms == 30_000
    assert set_queue(known, QUEUE, ANNA, zombie_timeout=None, heartbeat=10.0).live.zombie_timeout_ms is None
    assert set_queue(known, QUEUE, ANNA, max_workers=3, heartbeat=10.0).live.max_workers == 3
