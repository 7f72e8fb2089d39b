"""One scenario per store call: how to prepare, and the call that is killed. Deterministic ids, so that two runs can be compared."""

from collections.abc import Callable
from typing import Any

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.store.protocol import Session
from chokaq.store.records import (
    AttemptError,
    Beat,
    CrashPolicies,
    DeathNotice,
    Failure,
    Figures,
    Held,
    NewJob,
    QueueChange,
    Registration,
    Release,
    Retry,
    WorkerInfo,
)
from chokaq.store.repairs import Edits

QUEUE = "kill"
JOBS = 3
ERROR = AttemptError("ValueError", 'it said "no"\nand left', "trace")
POLICIES = CrashPolicies()


def ulid(number: int) -> str:
    """A well-formed id that every run of a scenario uses again."""
    return f"01J{number:023d}"


WORKER_ID, RESCUER_ID, NEWCOMER_ID = ulid(900_001), ulid(900_002), ulid(900_003)


def job(number: int, **fields: Any) -> NewJob:
    """A job of the scenarios' queue."""
    return NewJob(id=ulid(number), queue=QUEUE, type_key="kill.v1", payload=f'{{"number":{number}}}', **fields)


class Stage(msgspec.Struct):
    """What preparation leaves for the call."""

    worker: Registration
    rescuer: Registration
    held: list[Held]


def info(worker_id: str, queue: str = QUEUE) -> WorkerInfo:
    """A registration that tells nothing about this process, so that two runs compare equal."""
    return WorkerInfo(worker_id=worker_id, queue=queue, host="host", pid=1, version="0")


def prepare(session: Session, state: JobStatus | None) -> Stage:
    """A worker, a rescuer and, unless `state` is None, three jobs in that state (Pending, Fetched, Processing or Failed)."""
    worker = session.register_worker(info(WORKER_ID))
    rescuer = session.register_worker(info(RESCUER_ID, ""))
    held: list[Held] = []
    if state is not None:
        session.enqueue_jobs([job(number) for number in range(JOBS)])
        if state > JobStatus.PENDING:
            held = [Held(found.id, found.lease) for found in session.fetch_jobs(worker, 1, JOBS).jobs]
        if state > JobStatus.FETCHED:
            session.start_jobs(worker, held)
        if state > JobStatus.PROCESSING:
            session.archive_failed(worker, [Failure(h.id, h.lease, D, FailureReason.FATAL_ERROR, ERROR) for h in held])
    return Stage(worker, rescuer, held)


def resume(session: Session) -> Stage:
    """The same stage as another process sees it later: registering again answers the same slots."""
    held = [Held(ulid(number), 1) for number in range(JOBS)]
    worker = Registration(WORKER_ID, QUEUE, 1)
    return Stage(worker, Registration(RESCUER_ID, "", 2), held)


class Scenario(msgspec.Struct, frozen=True):
    """A store call on a stage."""

    state: JobStatus | None
    call: Callable[[Session, Stage], Any]
    after_crash: dict[bool, set[JobStatus]]
    """The jobs' states once the dead worker has been released: by whether the call had been committed."""


P, F, R, D = JobStatus.PENDING, JobStatus.FETCHED, JobStatus.PROCESSING, JobStatus.FAILED
ALL = [ulid(number) for number in range(JOBS)]
REQUEST = ulid(900_004)
EDITS = Edits(payload="[]", tags="new", priority=3)
KEYED = {"idempotency_key": "order-7", "key_scope": KeyScope.RETAINED}

SCENARIOS: dict[str, Scenario] = {
    "enqueue_jobs": Scenario(
        None, lambda s, st: s.enqueue_jobs([job(0), job(1, **KEYED), job(2, delay_ms=0)]), {False: set(), True: {P}}
    ),
    "register_worker": Scenario(P, lambda s, st: s.register_worker(info(NEWCOMER_ID)), {False: {P}, True: {P}}),
    "fetch_jobs": Scenario(P, lambda s, st: s.fetch_jobs(st.worker, 1, JOBS), {False: {P}, True: {P}}),
    "fetch_jobs_capped": Scenario(P, lambda s, st: s.fetch_jobs(st.worker, 1, JOBS, JOBS), {False: {P}, True: {P}}),
    "start_jobs": Scenario(F, lambda s, st: s.start_jobs(st.worker, st.held), {False: {P}, True: {JobStatus.ZOMBIE}}),
    "keep_alive": Scenario(
        R,
        lambda s, st: s.keep_alive(st.worker, [Beat(h.id, h.lease, 50, "half") for h in st.held], Figures(3, 0, 1, 2)),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.ZOMBIE}},
    ),
    "archive_succeeded": Scenario(
        R,
        lambda s, st: s.archive_succeeded(st.worker, st.held),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.SUCCEEDED}},
    ),
    "reschedule_for_retry": Scenario(
        R,
        lambda s, st: s.reschedule_for_retry(
            st.worker, [Retry(h.id, h.lease, 86_400_000, ERROR, FailureReason.TRANSIENT) for h in st.held]
        ),
        {False: {JobStatus.ZOMBIE}, True: {P}},
    ),
    "archive_failed": Scenario(
        R,
        lambda s, st: s.archive_failed(
            st.worker, [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR) for h in st.held]
        ),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.FAILED}},
    ),
    "release_jobs": Scenario(
        R,
        lambda s, st: s.release_jobs(st.worker, [Release(h.id, h.lease, 86_400_000) for h in st.held]),
        {False: {JobStatus.ZOMBIE}, True: {P}},
    ),
    "release_worker": Scenario(
        R,
        lambda s, st: s.release_worker(
            st.rescuer, DeathNotice(worker_id=WORKER_ID, queue=QUEUE, cause="crash", signal=9), POLICIES
        ),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.ZOMBIE}},
    ),
    "recover_abandoned": Scenario(
        F, lambda s, st: s.recover_abandoned(st.rescuer, QUEUE, -60_000), {False: {P}, True: {P}}
    ),
    "archive_zombies": Scenario(
        R,
        lambda s, st: s.archive_zombies(st.rescuer, QUEUE, -60_000, POLICIES),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.ZOMBIE}},
    ),
    "cancel_jobs_waiting": Scenario(
        P,
        lambda s, st: s.cancel_jobs([ulid(n) for n in range(JOBS)], "operator", "enough"),
        {False: {P}, True: {JobStatus.CANCELLED}},
    ),
    "cancel_jobs_running": Scenario(
        R,
        lambda s, st: s.cancel_jobs([ulid(n) for n in range(JOBS)], "operator", "enough"),
        {False: {JobStatus.ZOMBIE}, True: {JobStatus.CANCELLED}},
    ),
    "set_queue": Scenario(
        P, lambda s, st: s.set_queue(QUEUE, QueueChange(paused=True), "operator", "lunch"), {False: {P}, True: {P}}
    ),
    "resurrect_jobs": Scenario(
        D,
        lambda s, st: s.resurrect_jobs(ALL, "operator", "mended", edits=EDITS, request=REQUEST),
        {False: {D}, True: {P}},
    ),
    "resurrect_jobs_without_key": Scenario(
        D, lambda s, st: s.resurrect_jobs(ALL, "operator", without_key=True), {False: {D}, True: {P}}
    ),
    "drop_jobs": Scenario(
        D, lambda s, st: s.drop_jobs(ALL, "operator", "useless"), {False: {D}, True: {JobStatus.DROPPED}}
    ),
    "purge_jobs": Scenario(D, lambda s, st: s.purge_jobs(ALL, "operator", "secret"), {False: {D}, True: set()}),
    "edit_job_waiting": Scenario(
        P, lambda s, st: s.edit_job(ALL[0], EDITS, "operator", request=REQUEST), {False: {P}, True: {P}}
    ),
    "edit_job_stopped": Scenario(
        D, lambda s, st: s.edit_job(ALL[0], EDITS, "operator", request=REQUEST), {False: {D}, True: {D}}
    ),
    "drain_worker": Scenario(P, lambda s, st: s.drain_worker(WORKER_ID, "operator", "leaks"), {False: {P}, True: {P}}),
    "take_leadership": Scenario(P, lambda s, st: s.take_leadership(st.rescuer, 60_000), {False: {P}, True: {P}}),
}
