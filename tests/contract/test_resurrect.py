"""ResurrectJobs: what comes back, with what, and what stays where it is (design §7; G12 of the reference)."""

from typing import Any

import msgspec
import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.errors import StoreRefused
from chokaq.store.hashing import payload_hash
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Failure, Figures, Held, Release, Retry
from chokaq.store.repairs import Edits, RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id, new_ids
from tests.support.jobs import ERROR, QUEUE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stopped import STOPPED, everywhere, fail, stopped

DAY = 86_400_000
CARRIED = (
    "Id", "Queue", "Type", "Priority", "LeaseNumber", "CreatedAtUtc", "ScheduledAtUtc", "KeyScope", "PayloadHash", "IdempotencyKey",
    "OwnerLogin", "CreatedBy", "Tags", "Headers", "Payload",
)  # fmt: skip


def rich() -> Any:
    """A job with everything a job can have."""
    return new_job(
        priority=70, tags="a “tag”\n\\ 😀", created_by="shop", headers='{"traceparent":"00-1"}', idempotency_key="order-7",
        key_scope=KeyScope.RETAINED, payload='{"text":"\\u00e9\\n\\"x\\""}',
    )  # fmt: skip


def test_the_queue_is_told_in_which_a_resurrected_job_waits(session: Session) -> None:
    here, there = stopped(session, JobStatus.FAILED), stopped(session, JobStatus.FAILED, new_job(queue="other"))
    request = new_id()
    answers = session.resurrect_jobs([here, there], "ann", request=request)
    assert [answer.queue for answer in answers] == [QUEUE, "other"]
    Holder(session).take_one()
    again = session.resurrect_jobs([here, there], "ann", request=request)
    assert [(answer.result, answer.queue) for answer in again] == [("accepted", None), ("accepted", "other")]


@pytest.mark.parametrize("status", STOPPED)
def test_a_stopped_job_begins_a_new_life_with_all_it_had(session: Session, lab: Lab, status: JobStatus) -> None:
    """G12: priority, key, headers, tags, creator and owner stay; the age begins anew, so that it is not too old at once."""
    job_id = stopped(session, status, rich())
    for column in ("CreatedAtUtc", "AgeFromUtc", "DueAtUtc"):
        lab.age(job_id, column, 40 * DAY, "JobsDLQ")
    before = lab.row(job_id, "JobsDLQ")

    assert session.resurrect_jobs([job_id], "ann") == [RepairAnswer(job_id, "accepted", JobStatus.PENDING, queue=QUEUE)]

    assert lab.where(job_id) == [Pillar.HOT]
    after = lab.row(job_id)
    assert {name: after[name] for name in CARRIED} == {name: before[name] for name in CARRIED}
    assert (after["Status"], after["IsReady"], after["AttemptCount"], after["CrashCount"]) == (0, 1, 0, 0)
    for column in ("WorkerId", "FetchRequest", "HeartbeatUtc", "StartedAtUtc", "CancelRequestedAtUtc"):
        assert after[column] is None
    assert after["AgeFromUtc"] == after["DueAtUtc"] > before["AgeFromUtc"] + 39 * DAY
    [fetched] = Holder(session).fetch(5).jobs
    assert (fetched.id, fetched.lease, fetched.attempt_count) == (job_id, before["LeaseNumber"] + 1, 0)
    assert fetched.age_ms < DAY


def test_each_job_is_answered_by_where_it_stands_in_the_order_asked(session: Session, lab: Lab) -> None:
    """Resurrection only from Failed, Cancelled and Zombie: Dropped and Succeeded never run again."""
    found = everywhere(session)
    nobody = new_id()
    before = lab.snapshot("JobsArchive")
    ids = [nobody, *(found[status] for status in sorted(found, reverse=True)), "no id at all " * 5]

    answers = session.resurrect_jobs(ids, "ann")

    expected = {found[status]: RepairAnswer(found[status], "wrong_state", status) for status in found}
    expected |= {
        found[status]: RepairAnswer(found[status], "accepted", JobStatus.PENDING, queue=QUEUE) for status in STOPPED
    }
    assert answers == [expected.get(job_id, RepairAnswer(job_id, "unknown")) for job_id in ids]
    assert lab.snapshot("JobsArchive") == before
    assert [row["Id"] for row in lab.rows("JobsDLQ")] == [found[JobStatus.DROPPED]]
    assert {row["Id"]: row["Status"] for row in lab.rows("JobsHot") if row["Status"]} == {
        found[JobStatus.PROCESSING]: 2,
        found[JobStatus.FETCHED]: 1,
    }


def test_an_empty_set_a_thousand_and_one_more(session: Session, lab: Lab) -> None:
    assert session.resurrect_jobs([], "ann") == []
    ids = fail(session, new_jobs(1000))

    answers = session.resurrect_jobs(ids[::-1], "ann")

    assert answers == [RepairAnswer(job_id, "accepted", JobStatus.PENDING, queue=QUEUE) for job_id in ids[::-1]]
    assert (lab.count("JobsHot"), lab.count("JobsDLQ"), lab.count("AuditLog")) == (1000, 0, 1000)
    with pytest.raises(StoreRefused, match=r"1,?000"):
        session.resurrect_jobs(new_ids(1001), "ann")


def test_a_job_named_twice_is_resurrected_once(session: Session) -> None:
    job_id = stopped(session, JobStatus.FAILED)

    assert (
        session.resurrect_jobs([job_id, job_id], "ann")
        == [RepairAnswer(job_id, "accepted", JobStatus.PENDING, queue=QUEUE)] * 2
    )
    assert len(session.list_audit(job_id)) == 1


def test_its_failed_attempts_and_its_note_stay_readable(session: Session) -> None:
    """G11: a retry by hand erased what had gone wrong."""
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 40, "halfway")], Figures())
    session.archive_failed(
        holder.worker, [Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR)]
    )
    attempts = session.list_attempts(held.id)
    session.resurrect_jobs([held.id], "ann")

    assert session.list_attempts(held.id) == attempts
    job = session.get_job(held.id)
    assert job is not None
    assert (job.note, job.error_message, job.failure_reason) == ("halfway", None, None)

    again = holder.take_one()
    session.reschedule_for_retry(holder.worker, [Retry(again.id, again.lease, 0, ERROR)])
    assert [attempt.lease for attempt in session.list_attempts(held.id)] == [held.lease, again.lease]


def test_whoever_held_it_before_is_fenced_off(session: Session) -> None:
    """Design §3.3: the lease number is carried on, so a late write of the former holder meets another life."""
    job_id = stopped(session, JobStatus.ZOMBIE)
    session.resurrect_jobs([job_id], "ann")
    late = Held(job_id, 1)
    holder = Holder(session)

    def late_writes() -> list[Answer]:
        failure = Failure(job_id, 1, JobStatus.FAILED, FailureReason.FATAL_ERROR)
        return [
            *session.archive_succeeded(holder.worker, [late]),
            *session.archive_failed(holder.worker, [failure]),
            *session.start_jobs(holder.worker, [late]),
            *session.keep_alive(holder.worker, [Beat(job_id, 1)], Figures())[0],
        ]

    assert late_writes() == [Answer.STALE] * 4
    held = holder.take_one()
    assert held == Held(job_id, 2)
    assert late_writes() == [Answer.STALE] * 4
    assert session.release_jobs(holder.worker, [Release(job_id, 1)]) == [Answer.STALE]
    holder.succeed([held])


def test_edits_are_applied_in_the_same_step(session: Session, lab: Lab) -> None:
    plain, other = fail(session, [new_job(priority=5, tags="old"), new_job(priority=6)])
    payload = '{"to":"\\u00fc\\n\\"\\\\","n":[1,2]}'

    session.resurrect_jobs([plain, other], "ann", edits=Edits(payload=payload, tags="new \"tag\"\t'ö'", priority=900))

    for job_id in (plain, other):
        row = lab.row(job_id)
        assert (row["Payload"], row["PayloadHash"]) == (payload, payload_hash(payload))
        assert (row["Tags"], row["Priority"]) == ("new \"tag\"\t'ö'", 900)


@pytest.mark.parametrize(
    ("edits", "changed"),
    [
        (Edits(), {}),
        (Edits(tags=None), {"Tags": None}),
        (Edits(priority=0), {"Priority": 0}),
        (Edits(payload="{}"), {"Payload": "{}", "PayloadHash": payload_hash("{}")}),
    ],
    ids=["none", "tags", "priority", "payload"],
)
def test_what_an_edit_does_not_name_stays(session: Session, lab: Lab, edits: Edits, changed: dict[str, Any]) -> None:
    job_id = stopped(session, JobStatus.FAILED, rich())
    before = lab.row(job_id, "JobsDLQ")

    session.resurrect_jobs([job_id], "ann", edits=edits)

    after = lab.row(job_id)
    assert {name: after[name] for name in CARRIED} == {name: before[name] for name in CARRIED} | changed


def test_a_large_payload_comes_back_whole_and_may_be_replaced_by_another(session: Session, lab: Lab) -> None:
    large, larger = '"' + "x" * 900_000 + '"', '"' + "y" * 950_000 + '"'
    kept, edited = fail(session, [new_job(payload=large)]), fail(session, [new_job(payload=large)])

    session.resurrect_jobs(kept, "ann")
    session.resurrect_jobs(edited, "ann", edits=Edits(payload=larger))

    assert lab.row(kept[0])["Payload"] == large
    assert lab.row(edited[0])["Payload"] == larger


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("scope", list(KeyScope))
def test_a_job_whose_key_another_live_job_holds_stays_and_names_it(session: Session, lab: Lab, scope: KeyScope) -> None:
    old = stopped(session, JobStatus.FAILED, new_job(idempotency_key="k"))
    free = stopped(session, JobStatus.FAILED)
    new = new_job(idempotency_key="k", key_scope=scope, key_window_ms=DAY if scope is KeyScope.WINDOW else None)
    session.enqueue_jobs([new])
    before = lab.row(old, "JobsDLQ"), lab.rows("JobKeys")

    answers = session.resurrect_jobs([old, free], "ann")

    assert answers == [
        RepairAnswer(old, "key_conflict", JobStatus.FAILED, new.id),
        RepairAnswer(free, "accepted", JobStatus.PENDING, queue=QUEUE),
    ]
    assert (lab.row(old, "JobsDLQ"), lab.rows("JobKeys")) == before
    assert session.list_audit(old) == []


def test_an_entry_of_another_live_job_is_a_conflict_too(session: Session, lab: Lab) -> None:
    old = stopped(session, JobStatus.FAILED, new_job(idempotency_key="k"))
    new = new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)
    session.enqueue_jobs([new])
    lab.put(new.id, IdempotencyKey=None)

    assert session.resurrect_jobs([old], "ann") == [RepairAnswer(old, "key_conflict", JobStatus.FAILED, new.id)]


def test_a_key_whose_other_holder_has_ended_is_free(session: Session, lab: Lab) -> None:
    old = stopped(session, JobStatus.FAILED, new_job(idempotency_key="k"))
    stopped(session, JobStatus.SUCCEEDED, new_job(idempotency_key="k", key_scope=KeyScope.RETAINED))
    entries = lab.rows("JobKeys")

    assert session.resurrect_jobs([old], "ann") == [RepairAnswer(old, "accepted", JobStatus.PENDING, queue=QUEUE)]
    assert lab.row(old)["IdempotencyKey"] == "k"
    assert lab.rows("JobKeys") == entries


def test_without_its_key_it_comes_back_whoever_holds_it(session: Session, lab: Lab) -> None:
    old = stopped(session, JobStatus.FAILED, new_job(idempotency_key="k"))
    new = new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)
    session.enqueue_jobs([new])

    answers = session.resurrect_jobs([old], "ann", without_key=True)

    assert answers == [RepairAnswer(old, "accepted", JobStatus.PENDING, queue=QUEUE)]
    assert (lab.row(old)["IdempotencyKey"], lab.row(new.id)["IdempotencyKey"]) == (None, "k")
    assert [row["JobId"] for row in lab.rows("JobKeys")] == [new.id]


def test_without_its_key_its_entry_goes_and_the_key_is_free(session: Session, lab: Lab) -> None:
    old = stopped(session, JobStatus.FAILED, new_job(idempotency_key="k", key_scope=KeyScope.RETAINED))

    session.resurrect_jobs([old], "ann", without_key=True)

    assert lab.rows("JobKeys") == []
    [answer] = session.enqueue_jobs([new_job(idempotency_key="k")])
    assert answer.created


@pytest.mark.parametrize("scope", [KeyScope.RETAINED, KeyScope.WINDOW])
def test_its_own_entry_stays_as_it_is(session: Session, lab: Lab, scope: KeyScope) -> None:
    window = DAY if scope is KeyScope.WINDOW else None
    job = new_job(idempotency_key="k", key_scope=scope, key_window_ms=window)
    old = stopped(session, JobStatus.CANCELLED, job)
    entries = lab.rows("JobKeys")

    session.resurrect_jobs([old], "ann")

    assert lab.rows("JobKeys") == entries
    [answer] = session.enqueue_jobs([new_job(idempotency_key="k")])
    assert (answer.id, answer.created, answer.status) == (old, False, JobStatus.PENDING)


def test_of_two_jobs_with_one_key_in_one_call_the_first_by_id_comes_back(session: Session, lab: Lab) -> None:
    first, second, third = (stopped(session, JobStatus.FAILED, new_job(idempotency_key="k")) for _ in range(3))

    answers = session.resurrect_jobs([third, second, first], "ann")

    assert answers == [
        RepairAnswer(third, "key_conflict", JobStatus.FAILED, first),
        RepairAnswer(second, "key_conflict", JobStatus.FAILED, first),
        RepairAnswer(first, "accepted", JobStatus.PENDING, queue=QUEUE),
    ]
    answers = session.resurrect_jobs([second, third], "ann", without_key=True)
    assert [answer.result for answer in answers] == ["accepted", "accepted"]


# ── the record of it ──────────────────────────────────────────────────────────────────────────────────────────────────
def test_the_audit_log_has_one_row_per_job_with_actor_reason_before_and_after(session: Session) -> None:
    """C48. The payload itself is not in it."""
    job_id = stopped(session, JobStatus.ZOMBIE, new_job(tags='"old"\n😀', priority=4, payload='{"secret":1}'))
    waiting = new_job()
    session.enqueue_jobs([waiting])

    session.resurrect_jobs(
        [job_id, waiting.id, new_id()], "anna", "“fixed”\nsee #7", edits=Edits(payload="{}", tags=None, priority=8)
    )

    [entry] = session.list_audit(job_id)
    assert session.list_audit(waiting.id) == []
    assert (entry.actor, entry.reason, entry.action) == ("anna", "“fixed”\nsee #7", "resurrect")
    assert entry.before is not None
    assert entry.after is not None
    assert "secret" not in entry.before + entry.after
    before = {
        "status": "Zombie", "queue": QUEUE, "type": "email.send.v1", "priority": 4, "tags": '"old"\n😀', "idempotency_key": None,
        "attempts": 1, "crashes": 1, "failure_reason": FailureReason.ZOMBIE, "payload_hash": payload_hash('{"secret":1}'),
        "payload_size": 12,
    }  # fmt: skip
    assert msgspec.json.decode(entry.before) == before
    assert msgspec.json.decode(entry.after) == before | {
        "status": "Pending", "priority": 8, "tags": None, "attempts": 0, "crashes": 0, "failure_reason": None,
        "payload_hash": payload_hash("{}"), "payload_size": 2,
    }  # fmt: skip


def test_the_record_of_a_key_that_was_given_up_names_it(session: Session) -> None:
    job_id = stopped(session, JobStatus.FAILED, new_job(idempotency_key='k "1"'))
    session.resurrect_jobs([job_id], "ann", without_key=True)

    [entry] = session.list_audit(job_id)
    keys = [msgspec.json.decode(text or "")["idempotency_key"] for text in (entry.before, entry.after)]
    assert keys == ['k "1"', None]


def test_a_repeat_answers_what_its_first_try_did_even_if_the_job_failed_again(session: Session, lab: Lab) -> None:
    """Design §3.10: the answer of the first try was lost; meanwhile the job ran, and stands in the DLQ again."""
    first, held_key = (
        stopped(session, JobStatus.FAILED),
        stopped(session, JobStatus.FAILED, new_job(idempotency_key="k")),
    )
    holder_of_key = new_job(idempotency_key="k", delay_ms=DAY)
    session.enqueue_jobs([holder_of_key])
    request = new_id()
    session.resurrect_jobs([first, held_key], "ann", request=request)
    holder = Holder(session)
    held = holder.take_one()
    failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.TIMEOUT)
    session.archive_failed(holder.worker, [failure])
    session.cancel_jobs([holder_of_key.id], "ann")
    before = lab.snapshot("JobsDLQ", "JobsHot")

    again = session.resurrect_jobs([first], "ann", request=request)

    assert again == [RepairAnswer(first, "accepted", JobStatus.FAILED)]
    assert lab.snapshot("JobsDLQ", "JobsHot") == before
    assert len(session.list_audit(first)) == 1
    # What the first try refused is tried anew; another request is another order.
    assert session.resurrect_jobs([held_key], "ann", request=request)[0].result == "accepted"
    assert session.resurrect_jobs([first], "ann", request=new_id())[0].result == "accepted"


def test_the_totals_never_shrink(session: Session) -> None:
    """G16: the reference took a resurrected failure back out of its lifetime totals."""
    ids = fail(session, new_jobs(3))

    def totals() -> tuple[int, int]:
        [view] = [queue for queue in session.list_queues() if queue.name == QUEUE]
        return view.failed_total, view.succeeded_total

    session.resurrect_jobs(ids, "ann")
    assert totals() == (3, 0)
    holder = Holder(session)
    holder.succeed(holder.take(3))
    assert totals() == (3, 3)


@pytest.mark.parametrize(
    ("actor", "edits", "message"),
    [
        ("", None, "actor"),
        (" \n", None, "actor"),
        ("ann", Edits(payload='"é"'), "payload"),
        ("ann", Edits(tags="nul\0"), "tags"),
        ("ann", Edits(priority=-1), "priority"),
        ("ann", Edits(priority=1_000_001), "priority"),
    ],
)
def test_an_order_that_cannot_be_meant_is_refused(
    session: Session, lab: Lab, actor: str, edits: Edits | None, message: str
) -> None:
    job_id = stopped(session, JobStatus.FAILED)

    with pytest.raises(StoreRefused, match=message):
        session.resurrect_jobs([job_id], actor, edits=edits)
    assert lab.where(job_id) == [Pillar.DLQ]
