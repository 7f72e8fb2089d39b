"""Design §3.3: every write by a holder matches (Id, lease number, expected status), or it changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Failure, Figures, Held, Registration, Release, Retry
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import ERROR, new_job, new_jobs
from tests.support.lab import Lab

Write = Callable[[Session, Registration, list[Held]], list[Answer]]


@dataclass(frozen=True)
class Operation:
    """One holder write, and the states it is allowed from."""

    name: str
    call: Write
    allowed: frozenset[str]

    def __str__(self) -> str:
        return self.name


def _failed(status: JobStatus, reason: FailureReason) -> Write:
    return lambda s, w, held: s.archive_failed(w, [Failure(h.id, h.lease, status, reason, ERROR) for h in held])


OPERATIONS = [
    Operation("start", lambda s, w, held: s.start_jobs(w, held), frozenset({"fetched"})),
    Operation(
        "keep_alive",
        lambda s, w, held: s.keep_alive(w, [Beat(h.id, h.lease, 50, "half") for h in held], Figures())[0],
        frozenset({"fetched", "processing"}),
    ),
    Operation("succeed", lambda s, w, held: s.archive_succeeded(w, held), frozenset({"processing"})),
    Operation(
        "retry",
        lambda s, w, held: s.reschedule_for_retry(w, [Retry(h.id, h.lease, 5_000, ERROR) for h in held]),
        frozenset({"processing"}),
    ),
    Operation("fail", _failed(JobStatus.FAILED, FailureReason.FATAL_ERROR), frozenset({"fetched", "processing"})),
    Operation(
        "end_cancelled", _failed(JobStatus.CANCELLED, FailureReason.CANCELLED), frozenset({"fetched", "processing"})
    ),
    Operation(
        "release",
        lambda s, w, held: s.release_jobs(w, [Release(h.id, h.lease) for h in held]),
        frozenset({"fetched", "processing"}),
    ),
    Operation(
        "snooze",
        lambda s, w, held: s.release_jobs(w, [Release(h.id, h.lease, 5_000) for h in held]),
        frozenset({"fetched", "processing"}),
    ),
]
ENDINGS = [operation for operation in OPERATIONS if operation.name not in ("start", "keep_alive")]
RETURNING = {"release", "snooze", "retry"}
each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)


def held_in(state: str, holder: Holder) -> Held:
    """One job under `holder`'s lease in that state."""
    holder.session.enqueue_jobs([new_job()])
    return holder.claim_one() if state == "fetched" else holder.take_one()


@each_operation
@pytest.mark.parametrize("state", ["fetched", "processing"])
@pytest.mark.parametrize("off", [-1, 1, 1000])
def test_a_wrong_lease_is_stale_and_changes_nothing(
    session: Session, lab: Lab, operation: Operation, state: str, off: int
) -> None:
    holder = Holder(session)
    held = held_in(state, holder)
    before = lab.snapshot()

    answers = operation.call(session, holder.worker, [Held(held.id, held.lease + off)])

    assert answers == [Answer.STALE]
    assert lab.snapshot() == before


@each_operation
def test_an_unknown_job_is_stale(session: Session, lab: Lab, operation: Operation) -> None:
    holder = Holder(session)
    before = lab.snapshot()

    assert operation.call(session, holder.worker, [Held(new_id(), 1)]) == [Answer.STALE]
    assert lab.snapshot() == before


@each_operation
def test_a_job_nobody_holds_is_stale(session: Session, lab: Lab, operation: Operation) -> None:
    job = new_job()
    session.enqueue_jobs([job])
    holder = Holder(session)
    before = lab.snapshot()

    for lease in (0, 1):
        answers = operation.call(session, holder.worker, [Held(job.id, lease)])
        # A job that was never claimed shows lease 0 in Pending, which is what a release of lease 0 would have left.
        assert answers == [Answer.STALE] or (lease == 0 and operation.name in ("release", "snooze"))
    assert lab.snapshot() == before


@each_operation
@pytest.mark.parametrize("state", ["fetched", "processing"])
def test_the_right_lease_in_the_wrong_state_is_stale(
    session: Session, lab: Lab, operation: Operation, state: str
) -> None:
    holder = Holder(session)
    held = held_in(state, holder)
    before = lab.snapshot()

    [answer] = operation.call(session, holder.worker, [held])

    if state in operation.allowed:
        assert answer is Answer.APPLIED
    elif operation.name == "start":
        assert answer is Answer.APPLIED, "Processing under this lease is what a start asks for"
        assert lab.snapshot() == before
    else:
        assert answer is Answer.STALE
        assert lab.snapshot() == before


@each_operation
@pytest.mark.parametrize("before_it", ["fetched", "processing"])
def test_a_holder_that_lost_its_lease_changes_nothing(
    session: Session, lab: Lab, operation: Operation, before_it: str
) -> None:
    """C6, C12: the job was handed back and runs under the next lease; whatever the first holder says is stale."""
    first, second = Holder(session), Holder(session)
    held = held_in(before_it, first)
    session.release_jobs(first.worker, [Release(held.id, held.lease)])
    mine = second.take_one()
    assert mine.lease == held.lease + 1
    before = lab.snapshot()

    assert operation.call(session, first.worker, [held]) == [Answer.STALE]
    assert lab.snapshot() == before
    second.succeed([mine])


@pytest.mark.parametrize("end", ENDINGS, ids=str)
@pytest.mark.parametrize("late", OPERATIONS, ids=str)
def test_the_first_outcome_stands_whatever_comes_late(
    session: Session, lab: Lab, end: Operation, late: Operation
) -> None:
    """C6, C7, C9: finalise exactly once. A repeat of the outcome itself answers applied and changes nothing either."""
    holder = Holder(session)
    held = held_in("processing", holder)
    assert end.call(session, holder.worker, [held]) == [Answer.APPLIED]
    before = lab.snapshot()

    [answer] = late.call(session, holder.worker, [held])

    assert lab.snapshot() == before
    if end.name == late.name:
        assert answer is Answer.APPLIED
    elif not {end.name, late.name} <= RETURNING:
        # A job that ended Cancelled answers a late return to Pending with CANCELLED or STALE: both are true.
        also = {Answer.CANCELLED} if end.name == "end_cancelled" and late.name in RETURNING else set()
        assert answer in {Answer.STALE} | also


@pytest.mark.parametrize("operation", [op for op in OPERATIONS if op.name != "keep_alive"], ids=str)
def test_every_holder_write_may_be_repeated(session: Session, lab: Lab, operation: Operation) -> None:
    """Design §3.10, C11: an ambiguous commit is settled by asking again; nothing is counted or charged twice."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(5))
    held = holder.claim(5) if operation.name == "start" else holder.take(5)
    first = operation.call(session, holder.worker, held)
    before = lab.snapshot()

    again = operation.call(session, holder.worker, held)

    assert first == again == [Answer.APPLIED] * 5
    assert lab.snapshot() == before


def test_a_repeated_retry_is_known_by_its_attempt_even_after_the_job_went_on(session: Session, lab: Lab) -> None:
    """Design §3.10: the evidence for a repeated reschedule is its JobAttempts row (id, lease)."""
    holder = Holder(session)
    held = held_in("processing", holder)
    retry = Retry(held.id, held.lease, 0, ERROR)
    assert session.reschedule_for_retry(holder.worker, [retry]) == [Answer.APPLIED]
    following = holder.take_one()
    before = lab.snapshot()

    assert session.reschedule_for_retry(holder.worker, [retry]) == [Answer.APPLIED]

    assert lab.snapshot() == before
    holder.succeed([following])
    assert session.reschedule_for_retry(holder.worker, [retry]) == [Answer.APPLIED]
    assert session.archive_succeeded(holder.worker, [held]) == [Answer.STALE]


@pytest.mark.parametrize("delay", [None, 5_000])
def test_a_retry_without_its_attempt_row_was_never_applied(session: Session, lab: Lab, delay: int | None) -> None:
    """The same rule from its other side: a hand-back leaves the job in Pending under this lease, but charged nothing."""
    holder = Holder(session)
    held = held_in("processing", holder)
    session.release_jobs(holder.worker, [Release(held.id, held.lease, delay)])
    before = lab.snapshot()

    assert session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, ERROR)]) == [Answer.STALE]
    assert lab.snapshot() == before


@each_operation
def test_one_call_answers_each_job_in_the_order_of_the_input(session: Session, lab: Lab, operation: Operation) -> None:
    """C14 in the store: one stale job never harms its batch."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(6))
    held = holder.claim(6) if operation.name == "start" else holder.take(6)
    asked = [held[4], Held(held[1].id, 99), held[0], Held(new_id(), 1), held[5], Held(held[3].id, 0), held[2]]

    answers = operation.call(session, holder.worker, asked)

    assert [answer.name for answer in answers] == [
        "APPLIED", "STALE", "APPLIED", "STALE", "APPLIED", "STALE", "APPLIED"
    ]  # fmt: skip
    for untouched in (held[1], held[3]):
        assert lab.row(untouched.id)["Status"] == (1 if operation.name == "start" else 2)


@each_operation
def test_an_empty_set_answers_an_empty_list(session: Session, operation: Operation) -> None:
    """A lane warms its procedures with an empty document."""
    assert operation.call(session, Holder(session).worker, []) == []


@each_operation
def test_a_thousand_jobs_go_in_one_call(session: Session, operation: Operation) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(1000))
    held = holder.claim(1000) if operation.name == "start" else holder.take(1000)
    assert len(held) == 1000

    assert operation.call(session, holder.worker, held[::-1]) == [Answer.APPLIED] * 1000
