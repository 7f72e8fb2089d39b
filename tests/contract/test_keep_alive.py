"""KeepAlive: leases, progress, notes and the worker's figures; and the worker registry behind it."""

from functools import partial

import pytest

from chokaq.lifecycle.states import Answer, JobStatus
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, CrashPolicies, Figures
from tests.support.holder import Holder
from tests.support.jobs import death, new_job, new_jobs, worker_info
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

HOUR = 3_600_000


@pytest.mark.parametrize("started", [True, False])
def test_a_beat_renews_the_lease_from_the_claim_on(session: Session, lab: Lab, started: bool) -> None:
    """Design §3.3: KeepAlive matches Status 1 or 2, from the moment of the claim on."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one() if started else holder.claim_one()
    fresh = lab.row(held.id)["HeartbeatUtc"]
    lab.age(held.id, "HeartbeatUtc", HOUR)

    answers, cancellations = session.keep_alive(holder.worker, [Beat(held.id, held.lease)], Figures())

    assert (answers, cancellations) == ([Answer.APPLIED], [])
    row = lab.row(held.id)
    assert row["HeartbeatUtc"] >= fresh
    assert row["Status"] == (2 if started else 1)


def test_a_beat_stores_progress_and_note_and_none_means_nothing_new(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    seen = []
    for progress, note in ((0, None), (10, "ten"), (None, None), (30, None), (None, "later"), (100, "done")):
        session.keep_alive(holder.worker, [Beat(held.id, held.lease, progress, note)], Figures())
        view = session.get_job(held.id)
        assert view is not None
        seen.append((view.progress, view.note))

    assert seen == [(0, None), (10, "ten"), (10, "ten"), (30, "ten"), (30, "later"), (100, "done")]


def test_progress_of_several_jobs_in_one_call_goes_to_each(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(4))
    held = holder.take(4)
    beats = [Beat(h.id, h.lease, n * 10 if n % 2 else None, f"note {n}" if n > 1 else None) for n, h in enumerate(held)]

    session.keep_alive(holder.worker, beats, Figures())

    assert [lab.row(h.id)["Progress"] for h in held] == [None, 10, None, 30]
    assert {row["JobId"]: row["Note"] for row in lab.rows("JobNotes")} == {held[2].id: "note 2", held[3].id: "note 3"}


def test_the_workers_figures_and_heartbeat_are_kept(session: Session, lab: Lab) -> None:
    info = worker_info(max_workers=12)
    worker = session.register_worker(info)
    lab.age_worker(worker.worker_id, HOUR)

    session.keep_alive(worker, [], Figures(running=3, buffered=20, loop_lag_ms=7, memory_kb=123_456))

    [view] = session.list_workers()
    assert (view.worker_id, view.queue, view.host, view.pid, view.version) == (
        info.worker_id, info.queue, info.host, info.pid, info.version
    )  # fmt: skip
    assert (view.slot, view.max_workers, view.ended_at, view.ended_cause) == (worker.slot, 12, None, None)
    assert view.figures == Figures(running=3, buffered=20, loop_lag_ms=7, memory_kb=123_456)
    assert 0 <= view.heartbeat_age_ms < 20_000


def test_a_registration_may_be_repeated(session: Session, lab: Lab) -> None:
    info = worker_info()
    first = session.register_worker(info)
    before = lab.snapshot("Queues")

    assert session.register_worker(info) == first
    assert lab.count("Workers") == 1
    assert lab.snapshot("Queues") == before


def test_a_maintenance_process_registers_without_a_queue(session: Session, lab: Lab) -> None:
    worker = session.register_worker(worker_info(queue=""))

    assert worker.queue == ""
    assert lab.rows("Queues") == []
    assert [view.queue for view in session.list_workers()] == [""]


def test_slots_of_live_workers_are_unique_also_when_they_register_at_once(session: Session, sessions: Sessions) -> None:
    """Design §6: a counter row never has two writers. Slot 0 belongs to the roll-up."""
    several = sessions.many(6)

    def register(one: Session) -> list[int]:
        return [one.register_worker(worker_info()).slot for _ in range(5)]

    slots = [slot for found in together([partial(register, one) for one in several]) for slot in found]

    assert len(set(slots)) == 30
    assert 0 not in slots
    assert [view.slot for view in session.list_workers()] != []


def test_the_slot_of_an_ended_worker_may_serve_again(session: Session) -> None:
    first, by = Holder(session), Holder(session)
    session.release_worker(by.worker, death(first.id, "shutdown"), CrashPolicies())

    slots = {Holder(session).worker.slot for _ in range(3)} | {by.worker.slot}

    assert len(slots) == 4


def test_many_registrations_leave_one_queue_row(sessions: Sessions, lab: Lab) -> None:
    several = sessions.many(8)

    together([partial(Holder, session, "fresh") for session in several])

    assert [row["Name"] for row in lab.rows("Queues")] == ["fresh"]


def test_ended_workers_show_only_when_asked(session: Session) -> None:
    gone, by = Holder(session), Holder(session)
    session.release_worker(by.worker, death(gone.id, "crash", signal=9), CrashPolicies())

    assert [view.worker_id for view in session.list_workers()] == [by.id]
    views = session.list_workers(ended=True)
    assert [view.worker_id for view in views] == [by.id, gone.id]
    assert views[1].ended_at is not None
    assert views[1].ended_cause is not None
    assert "crash" in views[1].ended_cause


def test_a_beat_of_a_cancelled_job_is_stale(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.claim_one()
    session.cancel_jobs([held.id], "ann")

    assert session.keep_alive(holder.worker, [Beat(held.id, held.lease)], Figures())[0] == [Answer.STALE]
    view = session.get_job(held.id)
    assert view is not None
    assert view.status is JobStatus.CANCELLED
