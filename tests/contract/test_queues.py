"""SetQueue and the audit log: overrides, and who wrote them (C48)."""

import json

import msgspec
import pytest

from chokaq.store.protocol import Session
from chokaq.store.records import LiveQueue, QueueChange
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_jobs
from tests.support.lab import Lab

ALL = QueueChange(
    max_workers=3,
    fleet_max_workers=9,
    execution_timeout_ms=5_000_000_000,
    zombie_timeout_ms=60_000,
    paused=True,
    active=False,
)
COLUMNS = {
    "max_workers": "MaxWorkers",
    "fleet_max_workers": "FleetMaxWorkers",
    "execution_timeout_ms": "ExecutionTimeoutMs",
    "zombie_timeout_ms": "ZombieTimeoutMs",
    "paused": "IsPaused",
    "active": "IsActive",
}


def test_a_queue_nobody_registered_may_be_set(session: Session) -> None:
    view = session.set_queue(QUEUE, QueueChange(max_workers=3), "ann", "too loud")

    assert (view.name, view.known, view.updated_by) == (QUEUE, True, "ann")
    assert view.live == LiveQueue(max_workers=3)
    assert view.updated_at is not None
    assert session.list_queues() == [view]


def test_every_override_is_stored_and_reaches_the_children(session: Session) -> None:
    view = session.set_queue(QUEUE, ALL, "ann")

    expected = LiveQueue(
        max_workers=3,
        fleet_max_workers=9,
        execution_timeout_ms=5_000_000_000,
        zombie_timeout_ms=60_000,
        paused=True,
        active=False,
    )
    assert view.live == expected
    assert Holder(session).fetch(0).live == expected


@pytest.mark.parametrize("field", COLUMNS)
def test_unset_leaves_a_column_alone(session: Session, lab: Lab, field: str) -> None:
    session.set_queue(QUEUE, ALL, "ann")
    [before] = lab.rows("Queues")
    value = {"paused": False, "active": True}.get(field, 7)

    session.set_queue(QUEUE, msgspec.structs.replace(QueueChange(), **{field: value}), "bob")

    [after] = lab.rows("Queues")
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"UpdatedAtUtc", "UpdatedBy"} == {COLUMNS[field]}
    assert after["UpdatedBy"] == "bob"


@pytest.mark.parametrize("field", [field for field in COLUMNS if field not in ("paused", "active")])
def test_none_clears_an_override(session: Session, field: str) -> None:
    session.set_queue(QUEUE, ALL, "ann")

    view = session.set_queue(QUEUE, msgspec.structs.replace(QueueChange(), **{field: None}), "ann")

    assert getattr(view.live, field) is None
    others = [name for name in COLUMNS if name not in (field, "paused", "active")]
    assert all(getattr(view.live, name) is not None for name in others)


def test_reactivating_does_not_leave_the_queue_paused(session: Session) -> None:
    """The reference's SetQueueActive pauses in both directions."""
    session.set_queue(QUEUE, QueueChange(active=False), "ann")
    view = session.set_queue(QUEUE, QueueChange(active=True), "ann")

    assert (view.live.active, view.live.paused) == (True, False)


def test_the_audit_row_tells_before_and_after(session: Session) -> None:
    session.set_queue(QUEUE, QueueChange(max_workers=3), "ann", "first")
    session.set_queue(QUEUE, QueueChange(max_workers=9, paused=True), "bob", "second")

    newest, oldest = session.list_audit(QUEUE)

    assert (newest.actor, newest.reason, newest.target) == ("bob", "second", QUEUE)
    assert (oldest.actor, oldest.reason) == ("ann", "first")
    assert newest.id > oldest.id
    assert "queue" in newest.action.lower()
    before, after = json.loads(newest.before or "null"), json.loads(newest.after or "null")
    assert before != after
    assert 3 in before.values()
    assert 9 in after.values()
    assert json.loads(oldest.after or "null") == before


def test_setting_the_same_twice_ends_the_same(session: Session, lab: Lab) -> None:
    session.set_queue(QUEUE, ALL, "ann")
    first = {name: value for name, value in lab.rows("Queues")[0].items() if name != "UpdatedAtUtc"}

    session.set_queue(QUEUE, ALL, "ann")

    assert {name: value for name, value in lab.rows("Queues")[0].items() if name != "UpdatedAtUtc"} == first


def test_the_audit_log_pages_newest_first(session: Session) -> None:
    for n in range(12):
        session.set_queue(f"q{n % 2}", QueueChange(max_workers=n), "ann", f"reason {n}")

    seen: list[str | None] = []
    after: int | None = None
    while page := session.list_audit(limit=5, after=after):
        assert len(page) <= 5
        seen += [entry.reason for entry in page]
        after = page[-1].id

    assert seen == [f"reason {n}" for n in range(11, -1, -1)]
    assert [entry.reason for entry in session.list_audit("q1", limit=3)] == ["reason 11", "reason 9", "reason 7"]
    assert session.list_audit("nobody") == []


def test_setting_a_queue_touches_no_job(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    Holder(session).take(1)
    before = lab.snapshot("JobsHot")

    session.set_queue(QUEUE, ALL, "ann")

    assert lab.snapshot("JobsHot") == before
