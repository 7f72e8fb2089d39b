"""DropJobs and PurgeJobs: an operator's last words on a job, with actor and reason (C48, G16, G17)."""

import msgspec
import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.errors import StoreRefused
from chokaq.store.hashing import payload_hash
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Failure, Figures, Retry
from chokaq.store.repairs import RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id, new_ids
from tests.support.jobs import ERROR, QUEUE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stopped import STOPPED, everywhere, fail, stopped

FINAL = (JobStatus.SUCCEEDED, *STOPPED, JobStatus.DROPPED)


# ── drop ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("status", STOPPED)
def test_a_dropped_job_keeps_the_facts_of_its_failure(session: Session, lab: Lab, status: JobStatus) -> None:
    job_id = stopped(session, status, new_job(tags="t", idempotency_key="k"))
    before, attempts = lab.row(job_id, "JobsDLQ"), session.list_attempts(job_id)

    assert session.drop_jobs([job_id], "ann", "useless") == [RepairAnswer(job_id, "accepted", JobStatus.DROPPED)]

    assert lab.row(job_id, "JobsDLQ") == before | {"Status": 7, "LastModifiedBy": "ann"}
    assert session.list_attempts(job_id) == attempts


def test_only_a_stopped_job_can_be_dropped_and_a_dropped_one_never_leaves(session: Session, lab: Lab) -> None:
    """Design §3: Dropped is reachable from Failed, Cancelled and Zombie only, and has no way out."""
    found = everywhere(session)
    nobody = new_id()
    ids = [nobody, *found.values()]

    answers = session.drop_jobs(ids, "ann")

    expected = {found[status]: RepairAnswer(found[status], "wrong_state", status) for status in found}
    expected |= {found[status]: RepairAnswer(found[status], "accepted", JobStatus.DROPPED) for status in STOPPED}
    assert answers == [expected.get(job_id, RepairAnswer(job_id, "unknown")) for job_id in ids]
    before = lab.snapshot("JobsDLQ")
    dropped = [found[status] for status in (*STOPPED, JobStatus.DROPPED)]
    for answer in session.resurrect_jobs(dropped, "ann") + session.drop_jobs(dropped, "ann"):
        assert (answer.result, answer.status) == ("wrong_state", JobStatus.DROPPED)
    assert [answer.result for answer in session.cancel_jobs(dropped, "ann")] == ["final"] * 4
    assert lab.snapshot("JobsDLQ") == before


def test_the_key_of_a_dropped_job_is_free_unless_it_is_retained(session: Session) -> None:
    active = stopped(session, JobStatus.DROPPED, new_job(idempotency_key="a"))
    retained = stopped(session, JobStatus.DROPPED, new_job(idempotency_key="r", key_scope=KeyScope.RETAINED))

    first, second = session.enqueue_jobs([new_job(idempotency_key="a"), new_job(idempotency_key="r")])

    assert first.created
    assert first.id != active
    assert (second.id, second.created, second.status) == (retained, False, JobStatus.DROPPED)


def test_a_drop_is_recorded_with_actor_reason_and_the_state_before(session: Session) -> None:
    """C48: elsewhere a drop left neither actor nor reason, only a state and a time."""
    zombie, failed = stopped(session, JobStatus.ZOMBIE), stopped(session, JobStatus.FAILED)
    session.drop_jobs([zombie, failed, new_id()], "anna", "“никогда”\n#7")

    for job_id, before in ((zombie, "Zombie"), (failed, "Failed")):
        [entry] = session.list_audit(job_id)
        assert (entry.actor, entry.reason, entry.action) == ("anna", "“никогда”\n#7", "drop")
        assert msgspec.json.decode(entry.before or "") == {"status": before}
        assert msgspec.json.decode(entry.after or "") == {"status": "Dropped"}
    assert len(session.list_audit()) == 2


# ── purge ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def with_everything(session: Session, *, succeed: bool) -> str:
    """An ended job with a key entry, a note and an attempt."""
    session.enqueue_jobs(
        [new_job(idempotency_key=new_id(), key_scope=KeyScope.RETAINED, tags='"t"', payload='{"x":12}')]
    )
    holder = Holder(session)
    held = holder.take_one()
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 1, "note")], Figures())
    session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, ERROR)])
    held = holder.take_one()
    if succeed:
        holder.succeed([held])
    else:
        failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.TRANSIENT, ERROR)
        session.archive_failed(holder.worker, [failure])
    return held.id


@pytest.mark.parametrize("succeed", [True, False], ids=["archive", "dlq"])
def test_a_purged_job_goes_with_all_that_hangs_on_it(session: Session, lab: Lab, succeed: bool) -> None:
    gone, kept = with_everything(session, succeed=succeed), with_everything(session, succeed=succeed)

    assert session.purge_jobs([gone], "ann", "asked to") == [RepairAnswer(gone, "accepted")]

    assert lab.where(gone) == []
    assert lab.where(kept) == [Pillar.ARCHIVE if succeed else Pillar.DLQ]
    for side in ("JobKeys", "JobNotes", "JobAttempts"):
        assert {row["JobId"] for row in lab.rows(side)} == {kept}
    assert session.get_job(gone) is None


def test_only_ended_jobs_can_be_purged(session: Session, lab: Lab) -> None:
    """G17: elsewhere "delete for ever" on a live job did nothing and said nothing."""
    found = everywhere(session)
    ids = [new_id(), *found.values()]

    answers = session.purge_jobs(ids, "ann")

    expected = {found[status]: RepairAnswer(found[status], "accepted") for status in FINAL}
    expected |= {job_id: RepairAnswer(job_id, "wrong_state", status) for status, job_id in found.items() if status < 3}
    assert answers == [expected.get(job_id, RepairAnswer(job_id, "unknown")) for job_id in ids]
    assert lab.rows("JobsArchive") == lab.rows("JobsDLQ") == []
    assert lab.count("JobsHot") == 3


def test_the_audit_log_keeps_what_a_purged_job_was(session: Session) -> None:
    job_id = with_everything(session, succeed=True)
    job = session.get_job(job_id)
    assert job is not None

    session.purge_jobs([job_id], "anna", "GDPR")

    [entry] = session.list_audit(job_id)
    assert (entry.actor, entry.reason, entry.action) == ("anna", "GDPR", "purge")
    assert msgspec.json.decode(entry.before or "") == {
        "status": "Succeeded", "queue": QUEUE, "type": "email.send.v1", "priority": 10, "tags": '"t"',
        "idempotency_key": job.idempotency_key, "attempts": 2, "crashes": 0, "failure_reason": None,
        "payload_hash": payload_hash('{"x":12}'), "payload_size": 8,
    }  # fmt: skip
    assert msgspec.json.decode(entry.after or "") == {"purged": True}


def test_a_purge_leaves_the_totals_as_they_are(session: Session) -> None:
    """G16: the reference's purge rewrote "lifetime" totals."""
    ids = [stopped(session, status) for status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.DROPPED)]

    session.purge_jobs(ids, "ann")

    [view] = [queue for queue in session.list_queues() if queue.name == QUEUE]
    assert (view.succeeded_total, view.failed_total) == (1, 2)


# ── both ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_repeat_answers_what_its_first_try_did(session: Session, lab: Lab) -> None:
    dropped, purged = stopped(session, JobStatus.FAILED), stopped(session, JobStatus.SUCCEEDED)
    requests = new_ids(2)
    session.drop_jobs([dropped], "ann", request=requests[0])
    session.purge_jobs([purged], "ann", request=requests[1])
    before = lab.snapshot()

    assert session.drop_jobs([dropped], "ann", request=requests[0]) == [
        RepairAnswer(dropped, "accepted", JobStatus.DROPPED)
    ]
    assert session.purge_jobs([purged], "ann", request=requests[1]) == [RepairAnswer(purged, "accepted")]
    assert lab.snapshot() == before
    assert session.drop_jobs([dropped], "ann", request=new_id())[0].result == "wrong_state"
    assert session.purge_jobs([purged], "ann", request=new_id())[0].result == "unknown"
    # A request names one order: it does not make another kind of order on the same job look done.
    assert session.purge_jobs([dropped], "ann", request=requests[0]) == [RepairAnswer(dropped, "accepted")]
    assert session.drop_jobs([dropped], "ann", request=requests[0]) == [RepairAnswer(dropped, "accepted")]


def test_an_empty_set_a_thousand_and_one_more(session: Session, lab: Lab) -> None:
    assert session.drop_jobs([], "ann") == session.purge_jobs([], "ann") == []
    ids = fail(session, new_jobs(1000))

    assert {answer.result for answer in session.drop_jobs(ids, "ann")} == {"accepted"}
    assert lab.count("JobsDLQ", "Status = 7") == 1000
    assert {answer.result for answer in session.purge_jobs(ids, "ann")} == {"accepted"}
    assert (lab.count("JobsDLQ"), lab.count("AuditLog")) == (0, 2000)
    for order in (session.drop_jobs, session.purge_jobs):
        with pytest.raises(StoreRefused, match=r"1,?000"):
            order(new_ids(1001), "ann")
        with pytest.raises(StoreRefused, match="actor"):
            order(ids[:1], " ")
