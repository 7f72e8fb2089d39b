"""DrainWorker: a worker is asked to end, and told so by every fetch."""

import msgspec
import pytest

from chokaq.lifecycle.states import DeathCause
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, QueueChange
from chokaq.store.repairs import RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, death, new_jobs
from tests.support.lab import Lab


def test_every_fetch_tells_it_whether_it_claims_or_only_asks(session: Session) -> None:
    holder, other = Holder(session), Holder(session)
    session.enqueue_jobs(new_jobs(3))
    assert not holder.fetch(0).draining

    assert session.drain_worker(holder.id, "ann", "leaks") == RepairAnswer(holder.id, "accepted")

    claimed = holder.fetch(1)
    assert (claimed.draining, len(claimed.jobs)) == (True, 1), "it works on until its replacement is there"
    assert session.fetch_jobs(holder.worker, holder.request, 1).draining
    assert holder.fetch(0).draining
    session.set_queue(QUEUE, QueueChange(paused=True), "ann")
    assert holder.fetch(5).draining
    session.set_queue(QUEUE, QueueChange(paused=False, fleet_max_workers=1), "ann")
    assert holder.fetch(5).draining
    assert not other.fetch(0).draining


def test_the_registry_shows_since_when(session: Session, lab: Lab) -> None:
    holder, other = Holder(session), Holder(session)
    session.drain_worker(holder.id, "ann")

    asked = {worker.worker_id: worker.drain_at for worker in session.list_workers()}

    assert asked[other.id] is None
    assert asked[holder.id] is not None
    first = lab.rows("Workers")
    assert session.drain_worker(holder.id, "bob").result == "accepted", "asked already"
    assert lab.rows("Workers") == first
    assert [entry.actor for entry in session.list_audit(holder.id)] == ["ann"]


def test_one_that_has_ended_one_that_fetches_nothing_and_one_unknown(session: Session, lab: Lab) -> None:
    ended, maintenance, nobody = Holder(session), Holder(session, ""), new_id()
    session.release_worker(maintenance.worker, death(ended.id, DeathCause.SHUTDOWN), CrashPolicies())
    before = lab.snapshot("Workers", "AuditLog")

    answers = [session.drain_worker(worker, "ann") for worker in (ended.id, maintenance.id, nobody, "no id " * 9)]

    assert [answer.result for answer in answers] == ["wrong_state", "wrong_state", "unknown", "unknown"]
    assert lab.snapshot("Workers", "AuditLog") == before


def test_it_is_recorded_and_a_repeat_knows_what_it_did(session: Session) -> None:
    """C48, design §3.10: the worker has ended since, as it was asked to."""
    holder, by, request = Holder(session), Holder(session, ""), new_id()
    session.drain_worker(holder.id, "anna", "“leaks”\n#7", request=request)
    session.release_worker(by.worker, death(holder.id, DeathCause.SHUTDOWN), CrashPolicies())

    assert session.drain_worker(holder.id, "anna", request=request) == RepairAnswer(holder.id, "accepted")
    assert session.drain_worker(holder.id, "anna", request=new_id()).result == "wrong_state"

    [entry] = session.list_audit(holder.id)
    assert (entry.actor, entry.reason, entry.action) == ("anna", "“leaks”\n#7", "drain")
    states = [msgspec.json.decode(text or "") for text in (entry.before, entry.after)]
    assert states == [{"draining": False}, {"draining": True}]
    with pytest.raises(StoreRefused, match="actor"):
        session.drain_worker(holder.id, "")
