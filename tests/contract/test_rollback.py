"""Design §3.1: a move is one transaction. Any step of it may fail; then nothing has happened, and it works when called again."""

from collections.abc import Callable

import pytest

from chokaq.lifecycle.states import DeathCause, FailureReason, JobStatus, KeyScope
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session
from chokaq.store.records import (
    Beat,
    CrashPolicies,
    CrashPolicy,
    Failure,
    Figures,
    Held,
    QueueChange,
    Release,
    Retry,
)
from chokaq.store.repairs import Edits
from tests.support.holder import Holder
from tests.support.jobs import ERROR, death, new_job, new_jobs
from tests.support.lab import Lab, Verb

Move = Callable[[Holder, list[Held]], object]

RETRYING = CrashPolicies(default=CrashPolicy(on_crash="retry"))
MINUTE = 60_000


def _failures(holder: Holder, held: list[Held]) -> object:
    failures = [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR) for h in held]
    return holder.session.archive_failed(holder.worker, failures)


def _retry(holder: Holder, held: list[Held], max_age_ms: int | None = None) -> object:
    retries = [Retry(h.id, h.lease, 5_000, ERROR, max_age_ms=max_age_ms) for h in held]
    return holder.session.reschedule_for_retry(holder.worker, retries)


def _snooze_too_long(holder: Holder, held: list[Held]) -> object:
    return holder.session.release_jobs(holder.worker, [Release(h.id, h.lease, 9_000, max_age_ms=1) for h in held])


def _cancel(holder: Holder, held: list[Held]) -> object:
    return holder.session.cancel_jobs([h.id for h in held], "ann", "enough")


def _die(policies: CrashPolicies, cause: DeathCause = DeathCause.CRASH) -> Move:
    def move(holder: Holder, held: list[Held]) -> object:
        culprits = held if cause is DeathCause.LIMIT else []
        return holder.session.release_worker(holder.worker, death(holder.id, cause, *culprits, signal=9), policies)

    return move


def _zombies(policies: CrashPolicies) -> Move:
    return lambda holder, held: holder.session.archive_zombies(holder.worker, "mail", MINUTE, policies)


PROCESSING: list[tuple[str, Move, list[tuple[str, Verb]]]] = [
    (
        "succeed",
        lambda holder, held: holder.session.archive_succeeded(holder.worker, held),
        [("JobsArchive", "INSERT"), ("JobsHot", "DELETE"), ("MetricBuckets", "INSERT")],
    ),
    (
        "fail",
        _failures,
        [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("JobAttempts", "INSERT"), ("MetricBuckets", "INSERT")],
    ),
    ("retry", _retry, [("JobAttempts", "INSERT"), ("JobsHot", "UPDATE"), ("MetricBuckets", "INSERT")]),
    (
        "retry_too_late",
        lambda holder, held: _retry(holder, held, 1),
        [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("JobAttempts", "INSERT"), ("MetricBuckets", "INSERT")],
    ),
    ("snooze_too_long", _snooze_too_long, [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("MetricBuckets", "INSERT")]),
    ("request_cancel", _cancel, [("CancelRequests", "INSERT"), ("JobsHot", "UPDATE"), ("AuditLog", "INSERT")]),
    (
        "crash_to_dlq",
        _die(CrashPolicies()),
        [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("JobAttempts", "INSERT"), ("MetricBuckets", "INSERT")],
    ),
    ("crash_to_retry", _die(RETRYING), [("JobsHot", "UPDATE"), ("JobAttempts", "INSERT"), ("MetricBuckets", "INSERT")]),
    ("limit", _die(CrashPolicies(), DeathCause.LIMIT), [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE")]),
    ("shutdown", _die(CrashPolicies(), DeathCause.SHUTDOWN), [("JobsHot", "UPDATE")]),
    (
        "zombies_to_dlq",
        _zombies(CrashPolicies()),
        [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("JobAttempts", "INSERT"), ("MetricBuckets", "INSERT")],
    ),
    ("zombies_to_retry", _zombies(RETRYING), [("JobsHot", "UPDATE"), ("JobAttempts", "INSERT")]),
]
FETCHED: list[tuple[str, Move, list[tuple[str, Verb]]]] = [
    ("start", lambda holder, held: holder.session.start_jobs(holder.worker, held), [("JobsHot", "UPDATE")]),
    (
        "cancel",
        _cancel,
        [("JobsDLQ", "INSERT"), ("JobsHot", "DELETE"), ("AuditLog", "INSERT"), ("MetricBuckets", "INSERT")],
    ),
    (
        "abandoned",
        lambda holder, held: holder.session.recover_abandoned(holder.worker, "mail", MINUTE),
        [("JobsHot", "UPDATE")],
    ),
]
CASES = [
    pytest.param(state, move, table, verb, id=f"{name}-{verb.lower()}-{table}")
    for state, moves in (("processing", PROCESSING), ("fetched", FETCHED))
    for name, move, steps in moves
    for table, verb in steps
]


@pytest.mark.parametrize(("state", "move", "table", "verb"), CASES)
def test_a_move_that_cannot_take_one_of_its_steps_has_not_happened(
    session: Session, lab: Lab, state: str, move: Move, table: str, verb: Verb
) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    held = holder.claim(3) if state == "fetched" else holder.take(3)
    lab.age_all("JobsHot", "HeartbeatUtc", 10 * MINUTE)
    before = lab.snapshot()

    with lab.broken(table, verb), pytest.raises(StoreError):
        move(holder, held)

    assert lab.snapshot() == before
    lab.check_invariants()
    # The session lives on, and the repeat does the whole move.
    move(holder, held)
    assert lab.snapshot() != before
    after = lab.snapshot()
    move(holder, held)
    assert lab.snapshot() == after


def _stopped(session: Session) -> list[str]:
    """Three failed jobs, each with a key, a note and an attempt."""
    session.enqueue_jobs([new_job(idempotency_key=f"k{n}", key_scope=KeyScope.RETAINED) for n in range(3)])
    holder = Holder(session)
    held = holder.take(3)
    session.keep_alive(holder.worker, [Beat(h.id, h.lease, 5, "note") for h in held], Figures())
    _failures(holder, held)
    return [h.id for h in held]


REQUEST = "01J00000000000000000000001"
EDITS = Edits(payload="[]", tags="new", priority=3)
Repair = Callable[[Session, list[str]], object]
REPAIRS: list[tuple[str, Repair, list[tuple[str, Verb]]]] = [
    (
        "resurrect",
        lambda session, ids: session.resurrect_jobs(ids, "ann", edits=EDITS),
        [("JobsHot", "INSERT"), ("JobsDLQ", "DELETE"), ("AuditLog", "INSERT")],
    ),
    (
        "resurrect_without_key",
        lambda session, ids: session.resurrect_jobs(ids, "ann", without_key=True),
        [("JobsHot", "INSERT"), ("JobsDLQ", "DELETE"), ("JobKeys", "DELETE"), ("AuditLog", "INSERT")],
    ),
    ("drop", lambda session, ids: session.drop_jobs(ids, "ann"), [("JobsDLQ", "UPDATE"), ("AuditLog", "INSERT")]),
    (
        "purge",
        lambda session, ids: session.purge_jobs(ids, "ann"),
        [
            ("JobsDLQ", "DELETE"),
            ("JobKeys", "DELETE"),
            ("JobNotes", "DELETE"),
            ("JobAttempts", "DELETE"),
            ("AuditLog", "INSERT"),
        ],
    ),
    (
        "edit",
        lambda session, ids: session.edit_job(ids[0], EDITS, "ann", request=REQUEST),
        [("JobsDLQ", "UPDATE"), ("AuditLog", "INSERT")],
    ),
]


@pytest.mark.parametrize(
    ("repair", "table", "verb"),
    [
        pytest.param(repair, table, verb, id=f"{name}-{verb.lower()}-{table}")
        for name, repair, steps in REPAIRS
        for table, verb in steps
    ],
)
def test_a_repair_that_cannot_take_one_of_its_steps_has_not_happened(
    session: Session, lab: Lab, repair: Repair, table: str, verb: Verb
) -> None:
    """C28, C48: nothing is repaired without its audit row, and no audit row stands without its repair."""
    ids = _stopped(session)
    before = lab.snapshot()

    with lab.broken(table, verb), pytest.raises(StoreError):
        repair(session, ids)

    assert lab.snapshot() == before
    lab.check_invariants()
    # The session lives on, and the repeat does the whole of it.
    repair(session, ids)
    after = lab.snapshot()
    assert after != before
    repair(session, ids)
    assert lab.snapshot() == after


@pytest.mark.parametrize(("table", "verb"), [("JobsHot", "UPDATE"), ("AuditLog", "INSERT")])
def test_an_edit_of_a_waiting_job_without_its_audit_row_has_not_happened(
    session: Session, lab: Lab, table: str, verb: Verb
) -> None:
    [answer] = session.enqueue_jobs([new_job()])
    before = lab.snapshot()

    with lab.broken(table, verb), pytest.raises(StoreError):
        session.edit_job(answer.id, EDITS, "ann")

    assert lab.snapshot() == before
    assert session.edit_job(answer.id, EDITS, "ann").result == "accepted"


@pytest.mark.parametrize(("table", "verb"), [("Workers", "UPDATE"), ("AuditLog", "INSERT")])
def test_a_worker_is_not_drained_without_the_audit_row(session: Session, lab: Lab, table: str, verb: Verb) -> None:
    holder = Holder(session)
    before = lab.snapshot("Workers", "AuditLog")

    with lab.broken(table, verb), pytest.raises(StoreError):
        session.drain_worker(holder.id, "ann")

    assert lab.snapshot("Workers", "AuditLog") == before
    assert session.drain_worker(holder.id, "ann").result == "accepted"


@pytest.mark.parametrize("table", ["JobsHot", "JobKeys"])
def test_an_enqueue_that_fails_halfway_leaves_neither_job_nor_key(session: Session, lab: Lab, table: str) -> None:
    jobs = [new_job(), new_job(idempotency_key="k", key_scope=KeyScope.RETAINED), new_job()]

    with lab.broken(table), pytest.raises(StoreError):
        session.enqueue_jobs(jobs)

    assert lab.count("JobsHot") == lab.count("JobKeys") == 0
    assert [answer.created for answer in session.enqueue_jobs(jobs)] == [True] * 3


def test_a_claim_that_fails_leaves_the_jobs_waiting(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    before = lab.snapshot("JobsHot", "Workers")

    for table in ("JobsHot", "Workers"):
        with lab.broken(table, "UPDATE"), pytest.raises(StoreError):
            session.fetch_jobs(holder.worker, 1, 2)
        assert lab.snapshot("JobsHot", "Workers") == before

    assert len(session.fetch_jobs(holder.worker, 1, 2).jobs) == 2


def test_a_setting_without_its_audit_row_is_not_set(session: Session, lab: Lab) -> None:
    """C48."""
    session.set_queue("mail", QueueChange(max_workers=3), "ann")
    before = lab.snapshot()

    with lab.broken("AuditLog"), pytest.raises(StoreError):
        session.set_queue("mail", QueueChange(max_workers=9), "ann")

    assert lab.snapshot() == before


@pytest.mark.parametrize("table", ["JobsArchive", "JobKeys", "JobNotes", "JobAttempts"])
def test_a_purge_that_fails_halfway_keeps_the_job_whole(session: Session, lab: Lab, table: str) -> None:
    session.enqueue_jobs([new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)])
    holder = Holder(session)
    held = holder.take_one()
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 5, "note")], Figures())
    session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, ERROR)])
    holder.succeed([holder.take_one()])
    lab.age(held.id, "FinishedAtUtc", MINUTE, "JobsArchive")
    before = lab.snapshot()

    with lab.broken(table, "DELETE"), pytest.raises(StoreError):
        session.purge_archive("mail", 1_000)

    assert lab.snapshot() == before
    assert session.purge_archive("mail", 1_000) == 1


def test_a_roll_up_that_fails_halfway_counts_nothing_twice(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(4))
    holder = Holder(session)
    holder.succeed(holder.take(4))
    lab.age_all("MetricBuckets", "StartUtc", 3 * 60 * MINUTE)
    before = lab.snapshot()

    steps: list[tuple[str, Verb]] = [("MetricBuckets", "DELETE"), ("MetricBuckets", "INSERT")]
    for table, verb in steps:
        with lab.broken(table, verb), pytest.raises(StoreError):
            session.roll_up()
        assert lab.snapshot() == before
    with lab.broken("QueueTotals", "INSERT"), lab.broken("QueueTotals", "UPDATE"), pytest.raises(StoreError):
        session.roll_up()
    assert lab.snapshot() == before

    session.roll_up()
    assert [queue.succeeded_total for queue in session.list_queues() if queue.name == "mail"] == [4]
