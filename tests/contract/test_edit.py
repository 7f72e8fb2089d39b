"""EditJob: what may be edited, and what an edit leaves behind."""

from typing import Any

import msgspec
import pytest

from chokaq.lifecycle.states import JobStatus, KeyScope
from chokaq.store.errors import StoreRefused
from chokaq.store.hashing import payload_hash
from chokaq.store.protocol import Session
from chokaq.store.repairs import Edits, RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import new_job
from tests.support.lab import Lab
from tests.support.stopped import STOPPED, everywhere, stopped

HOUR = 3_600_000
EDITABLE = (JobStatus.PENDING, *STOPPED)
NEW = '{"text":"\\u00e9\\n\\"x\\" \\\\"}'


def place(session: Session, status: JobStatus) -> tuple[str, str]:
    """A job in that state, and its table."""
    job = new_job(tags="old", priority=5, idempotency_key="k", key_scope=KeyScope.RETAINED)
    if status is JobStatus.PENDING:
        session.enqueue_jobs([job])
        return job.id, "JobsHot"
    return stopped(session, status, job), "JobsDLQ"


@pytest.mark.parametrize("status", EDITABLE)
@pytest.mark.parametrize(
    ("edits", "changed"),
    [
        (Edits(payload=NEW), {"Payload": NEW, "PayloadHash": payload_hash(NEW)}),
        (Edits(tags="new “tag”\n\t😀"), {"Tags": "new “tag”\n\t😀"}),
        (Edits(tags=None), {"Tags": None}),
        (Edits(tags=""), {"Tags": ""}),
        (Edits(priority=0), {"Priority": 0}),
        (
            Edits(payload="[]", tags="t", priority=1_000_000),
            {"Payload": "[]", "PayloadHash": payload_hash("[]"), "Tags": "t", "Priority": 1_000_000},
        ),
    ],
    ids=["payload", "tags", "no-tags", "empty-tags", "priority", "all"],
)
def test_an_edit_changes_what_it_names_and_nothing_else(
    session: Session, lab: Lab, status: JobStatus, edits: Edits, changed: dict[str, Any]
) -> None:
    job_id, table = place(session, status)
    before = lab.row(job_id, table)

    assert session.edit_job(job_id, edits, "ann") == RepairAnswer(job_id, "accepted", status)

    by = {"LastModifiedBy": "ann"} if table == "JobsDLQ" else {}
    assert lab.row(job_id, table) == before | changed | by


def test_only_what_waits_or_has_stopped_can_be_edited(session: Session, lab: Lab) -> None:
    """A running job is untouchable, a finished or dropped one is history."""
    found = everywhere(session)
    before = lab.snapshot()

    for status, job_id in found.items():
        if status not in EDITABLE:
            assert session.edit_job(job_id, Edits(priority=1), "ann") == RepairAnswer(job_id, "wrong_state", status)
    for nobody in (new_id(), "", "no id " * 9):
        assert session.edit_job(nobody, Edits(priority=1), "ann") == RepairAnswer(nobody, "unknown")
    assert lab.snapshot() == before


def test_a_new_priority_is_obeyed_by_the_next_fetch(session: Session) -> None:
    first, second, later = new_job(), new_job(), new_job(delay_ms=HOUR)
    session.enqueue_jobs([first, second, later])

    session.edit_job(second.id, Edits(priority=50), "ann")
    session.edit_job(later.id, Edits(priority=99), "ann")

    assert [job.id for job in Holder(session).fetch(5).jobs] == [second.id, first.id]


def test_a_worker_gets_the_edited_payload_uncharged(session: Session) -> None:
    job_id, _ = place(session, JobStatus.PENDING)
    session.edit_job(job_id, Edits(payload=NEW, tags="t"), "ann")

    [job] = Holder(session).fetch(1).jobs

    assert (job.payload, job.tags, job.attempt_count) == (NEW, "t", 0)


def test_an_enqueue_with_its_key_is_compared_with_the_payload_of_now(session: Session) -> None:
    """Design §3.6: the hash is that of the exact payload bytes, the edited ones."""
    job_id, _ = place(session, JobStatus.PENDING)
    session.edit_job(job_id, Edits(payload=NEW), "ann")

    same, other = (
        session.enqueue_jobs([new_job(idempotency_key="k", payload=payload)])[0] for payload in (NEW, '{"n":1}')
    )

    assert (same.id, same.payload_differs) == (job_id, False)
    assert (other.id, other.payload_differs) == (job_id, True)


@pytest.mark.parametrize("status", EDITABLE)
def test_an_edit_is_recorded_with_before_and_after_and_without_the_payload(session: Session, status: JobStatus) -> None:
    """C48."""
    job_id, _ = place(session, status)
    session.edit_job(job_id, Edits(payload='{"secret":1}', tags='"x"\\\n😀', priority=77), "anna", "“typo”\n#7")

    entry = session.list_audit(job_id)[0]

    assert (entry.actor, entry.reason, entry.action) == ("anna", "“typo”\n#7", "edit")
    assert entry.before is not None
    assert entry.after is not None
    assert "secret" not in entry.after
    before, after = msgspec.json.decode(entry.before), msgspec.json.decode(entry.after)
    assert before["status"] == after["status"] == status.label
    assert before | {
        "priority": 77, "tags": '"x"\\\n😀', "payload_hash": payload_hash('{"secret":1}'), "payload_size": 12
    } == after  # fmt: skip
    assert (before["priority"], before["tags"], before["payload_size"]) == (5, "old", len('{"n":1}'))


def test_a_repeat_answers_what_its_first_try_did_and_edits_nothing(session: Session, lab: Lab) -> None:
    """The answer was lost, and somebody else has edited the job since: their edit stands."""
    job_id, _ = place(session, JobStatus.PENDING)
    request = new_id()
    session.edit_job(job_id, Edits(priority=1), "ann", request=request)
    session.edit_job(job_id, Edits(priority=2), "bob", request=new_id())

    again = session.edit_job(job_id, Edits(priority=1), "ann", request=request)

    assert again == RepairAnswer(job_id, "accepted", JobStatus.PENDING)
    assert lab.row(job_id)["Priority"] == 2
    assert [entry.actor for entry in session.list_audit(job_id)] == ["bob", "ann"]
    Holder(session).take_one()
    again = session.edit_job(job_id, Edits(priority=1), "ann", request=request)
    assert again == RepairAnswer(job_id, "accepted", JobStatus.PROCESSING)


@pytest.mark.parametrize(
    ("edits", "actor", "message"),
    [
        (Edits(), "ann", "at least one"),
        (Edits(payload='"é"'), "ann", "payload"),
        (Edits(payload="\0"), "ann", "payload"),
        (Edits(tags="\ud800"), "ann", "tags"),
        (Edits(priority=-1), "ann", "priority"),
        (Edits(priority=1_000_001), "ann", "priority"),
        (Edits(priority=1), "", "actor"),
    ],
)
def test_an_edit_that_cannot_be_meant_is_refused(
    session: Session, lab: Lab, edits: Edits, actor: str, message: str
) -> None:
    job_id, _ = place(session, JobStatus.PENDING)
    before = lab.snapshot()

    with pytest.raises(StoreRefused, match=message):
        session.edit_job(job_id, edits, actor)
    assert lab.snapshot() == before
