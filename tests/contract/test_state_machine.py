"""Hypothesis drives enqueue, fetch, start, settle, expire, crash, cancel and repair against a plain model (model.py)."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from msgspec import UNSET

from chokaq.lifecycle.states import Answer, DeathCause, FailureReason, JobStatus
from chokaq.store.hashing import payload_hash
from chokaq.store.protocol import Session
from chokaq.store.records import (
    Beat,
    CrashPolicies,
    CrashPolicy,
    Failure,
    Figures,
    Held,
    Release,
    Retry,
)
from chokaq.store.repairs import Edits, RepairAnswer
from tests.contract.model import LATER, Model, ModelJob
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, death, new_job
from tests.support.lab import Lab

TIMEOUT = 600_000
POLICIES = st.sampled_from(
    [CrashPolicy(), CrashPolicy(on_crash="retry"), CrashPolicy(on_crash="retry", crash_limit=2, max_attempts=2)]
)
EDITS = st.builds(
    Edits,
    payload=st.sampled_from([UNSET, "1", "3"]),
    tags=st.sampled_from([UNSET, None, "t"]),
    priority=st.sampled_from([UNSET, 0, 50]),
)
OUTCOMES = st.sampled_from(["succeed", "fail", "end_cancelled", "retry", "release"])


class JobLife(RuleBasedStateMachine):
    """Two workers and an operator; every answer and every row must be what the model says."""

    session: Session
    lab: Lab
    leases: Bundle[Held] = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.lab.clean()
        self.model = Model()
        self.workers = [Holder(self.session), Holder(self.session)]
        self.by = Holder(self.session, "")

    # ── clients and operators ─────────────────────────────────────────────────────────────────────────────────────────
    @rule(
        wanted=st.lists(
            st.tuples(
                st.sampled_from([0, 10, 10, 50]),
                st.sampled_from([None, None, "a", "b"]),
                st.booleans(),
                st.sampled_from(["1", "2"]),
            ),
            max_size=5,
        )
    )
    def enqueue(self, wanted: list[tuple[int, str | None, bool, str]]) -> None:
        jobs = [
            new_job(priority=priority, idempotency_key=key, delay_ms=LATER if later else 0, payload=payload)
            for priority, key, later, payload in wanted
        ]
        answers = self.session.enqueue_jobs(jobs)
        for job, answer in zip(jobs, answers, strict=True):
            other = self.model.holder_of(job.idempotency_key) if job.idempotency_key else None
            if other is None:
                assert (answer.id, answer.created, answer.status) == (job.id, True, JobStatus.PENDING)
                self.model.jobs[job.id] = ModelJob(
                    job.id, job.priority, job.payload, job.idempotency_key, job.delay_ms == 0
                )
            else:
                assert (answer.id, answer.created, answer.status) == (other.id, False, other.status)
                assert answer.payload_differs == (other.payload != job.payload)
        self.observe_due()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.model.jobs:
            job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
            [answer] = self.session.cancel_jobs([job_id], "ann", "enough")
            assert answer.result == self.model.cancel(job_id)

    @rule(data=st.data(), edits=EDITS, without_key=st.booleans())
    def resurrect(self, data: st.DataObject, edits: Edits, without_key: bool) -> None:
        if self.model.jobs:
            job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
            [answer] = self.session.resurrect_jobs([job_id], "ann", edits=edits, without_key=without_key)
            expected, holder = self.model.resurrect(job_id, without_key)
            if expected == "accepted":
                self.model.change(self.model.jobs[job_id], edits)
            queue = QUEUE if expected == "accepted" else None
            assert answer == RepairAnswer(job_id, expected, self.model.jobs[job_id].status, holder, queue)
            self.observe_due()

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        if self.model.jobs:
            job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
            [answer] = self.session.drop_jobs([job_id], "ann")
            assert answer == RepairAnswer(job_id, self.model.drop(job_id), self.model.jobs[job_id].status)

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        if self.model.jobs:
            job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
            [answer] = self.session.purge_jobs([job_id], "ann")
            expected, left = self.model.purge(job_id), self.model.jobs.get(job_id)
            assert answer == RepairAnswer(job_id, expected, None if left is None else left.status)

    @rule(data=st.data(), edits=EDITS.filter(lambda edits: not edits.is_empty))
    def edit(self, data: st.DataObject, edits: Edits) -> None:
        if self.model.jobs:
            job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
            answer = self.session.edit_job(job_id, edits, "ann")
            assert answer == RepairAnswer(job_id, self.model.edit(job_id, edits), self.model.jobs[job_id].status)

    @rule(data=st.data())
    def its_time_comes(self, data: st.DataObject) -> None:
        waiting = sorted(
            job.id for job in self.model.jobs.values() if job.status is JobStatus.PENDING and not job.ready
        )
        if waiting:
            job = self.model.jobs[data.draw(st.sampled_from(waiting))]
            self.lab.age(job.id, "DueAtUtc", 2 * LATER)
            job.ready = True
            self.observe_due()

    # ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────
    @rule(target=leases, number=st.integers(0, 1), size=st.integers(0, 4))
    def fetch(self, number: int, size: int) -> Any:
        holder = self.workers[number]
        expected = self.model.ready()[:size]
        fetch = holder.fetch(size)
        assert [job.id for job in fetch.jobs] == [job.id for job in expected]
        for fetched, job in zip(fetch.jobs, expected, strict=True):
            job.status, job.lease, job.worker = JobStatus.FETCHED, job.lease + 1, holder.id
            assert (fetched.lease, fetched.attempt_count, fetched.crash_count, fetched.payload) == (
                job.lease, job.attempts, job.crashes, job.payload
            )  # fmt: skip
        again = self.session.fetch_jobs(holder.worker, holder.request, size)
        assert [(job.id, job.lease) for job in again.jobs] == [(job.id, job.lease) for job in expected]
        told = {job.id for job in self.model.held(holder.id) if job.cancel_requested}
        assert {cancellation.id for cancellation in fetch.cancellations} == told
        return multiple(*(Held(job.id, job.lease) for job in expected))

    @rule(held=leases, number=st.integers(0, 1))
    def start(self, held: Held, number: int) -> None:
        [answer] = self.session.start_jobs(self.workers[number].worker, [held])
        assert answer is self.model.start(held)

    @rule(held=leases)
    def beat(self, held: Held) -> None:
        job = self.model.jobs.get(held.id)
        answers, _ = self.session.keep_alive(self.workers[0].worker, [Beat(held.id, held.lease)], Figures())
        is_held = job is not None and job.held_by(held)
        assert answers == [Answer.APPLIED if is_held else Answer.STALE]
        if job is not None and is_held:
            job.silent = False

    @rule(held=leases, outcome=OUTCOMES, twice=st.booleans())
    def settle(self, held: Held, outcome: str, twice: bool) -> None:
        """Also late and stale ones: the bundle keeps every lease ever given."""
        for _ in range(2 if twice else 1):
            answer = self.write(held, outcome)
            expected = self.model.settle(held, outcome)
            assert answer in expected, f"{outcome} of {held}: {answer!r}, expected {expected!r}"
        self.observe_due()

    def write(self, held: Held, outcome: str) -> Answer:
        worker = self.workers[0].worker
        if outcome == "succeed":
            return self.session.archive_succeeded(worker, [held])[0]
        if outcome == "retry":
            return self.session.reschedule_for_retry(worker, [Retry(held.id, held.lease, LATER, ERROR)])[0]
        if outcome == "release":
            return self.session.release_jobs(worker, [Release(held.id, held.lease)])[0]
        cancelled = outcome == "end_cancelled"
        status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        reason = FailureReason.CANCELLED if cancelled else FailureReason.FATAL_ERROR
        return self.session.archive_failed(worker, [Failure(held.id, held.lease, status, reason)])[0]

    # ── death and rescue ──────────────────────────────────────────────────────────────────────────────────────────────
    @rule(number=st.integers(0, 1), cause=st.sampled_from(list(DeathCause)), policy=POLICIES, data=st.data())
    def die(self, number: int, cause: DeathCause, policy: CrashPolicy, data: st.DataObject) -> None:
        dead = self.workers[number]
        mine = [Held(job.id, job.lease) for job in self.model.held(dead.id)]
        culprits = data.draw(st.lists(st.sampled_from(mine), unique=True)) if mine else []
        before = {job.id: job.status for job in self.model.jobs.values()}
        notice = death(dead.id, cause, *culprits, signal=9)
        policies = CrashPolicies(default=_slow(policy))
        released = self.session.release_worker(self.by.worker, notice, policies)
        self.model.die(dead.id, cause, culprits, policy)
        moved = [job for job in self.model.jobs.values() if job.status is not before[job.id]]
        assert released.done
        assert released.pending == sum(job.status is JobStatus.PENDING for job in moved)
        assert released.cancelled == sum(job.status is JobStatus.CANCELLED for job in moved)
        assert released.poisoned == sum(job.reason is FailureReason.POISON for job in moved)
        assert released.zombies == sum(job.reason is FailureReason.ZOMBIE for job in moved)
        assert released.failed == sum(job.status is JobStatus.FAILED for job in moved)
        assert dead.fetch(4).retired
        self.workers[number] = Holder(self.session)
        self.observe_due()

    @rule(data=st.data())
    def fall_silent(self, data: st.DataObject) -> None:
        held = sorted(job.id for worker in self.workers for job in self.model.held(worker.id) if not job.silent)
        for job_id in data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []:
            self.lab.age(job_id, "HeartbeatUtc", 2 * TIMEOUT)
            self.model.jobs[job_id].silent = True

    @rule(policy=POLICIES)
    def rescue(self, policy: CrashPolicy) -> None:
        silent = [job for job in self.model.jobs.values() if job.silent]
        back = self.session.recover_abandoned(self.by.worker, QUEUE, TIMEOUT)
        self.session.archive_zombies(self.by.worker, QUEUE, TIMEOUT, CrashPolicies(default=_slow(policy)))
        assert back.pending == sum(job.status is JobStatus.FETCHED for job in silent)
        for job in silent:
            if job.status is JobStatus.FETCHED:
                job.wait(ready=True)
            else:
                job.crash(policy)
        self.observe_due()

    # ── what must hold after every step ───────────────────────────────────────────────────────────────────────────────
    @invariant()
    def every_row_is_what_the_model_says(self) -> None:
        self.lab.check_invariants()
        rows = {row["Id"]: row for row in self.lab.rows("JobsHot")}
        rows |= {row["Id"]: {**row, "Status": 3} for row in self.lab.rows("JobsArchive")}
        rows |= {row["Id"]: row for row in self.lab.rows("JobsDLQ")}
        assert {key: _facts(row) for key, row in rows.items()} == {
            job.id: (
                job.status.value,
                job.lease,
                job.attempts,
                job.crashes,
                job.reason,
                job.priority,
                job.payload,
                payload_hash(job.payload),
                job.tags,
                job.key,
            )
            for job in self.model.jobs.values()
        }

    @invariant()
    def the_counters_equal_what_happened(self) -> None:
        """For ever: neither a resurrection nor a purge takes one back."""
        for view in self.session.list_queues():
            assert (view.succeeded_total, view.failed_total) == (self.model.succeeded, self.model.stopped)

    def observe_due(self) -> None:
        """Due times are the database's; the model takes them over after each step and orders by them."""
        for row in self.lab.rows("JobsHot"):
            self.model.jobs[row["Id"]].due = row["DueAtUtc"]


def _facts(row: dict[str, Any]) -> tuple[Any, ...]:
    names = "Status LeaseNumber AttemptCount CrashCount FailureReason Priority Payload PayloadHash Tags IdempotencyKey"
    return tuple(row.get(name) for name in names.split())


def _slow(policy: CrashPolicy) -> CrashPolicy:
    """The same policy with a backoff that no test run reaches."""
    return CrashPolicy(
        on_crash=policy.on_crash,
        crash_limit=policy.crash_limit,
        max_attempts=policy.max_attempts,
        backoff_ms=(LATER,),
        max_age_ms=None,
    )


def test_whatever_happens_in_whatever_order_the_store_agrees_with_the_model(session: Session, lab: Lab) -> None:
    """Design §3 as a whole: rules 1, 3, 4, 6, 7, 8 and 10 under every interleaving hypothesis can think of."""

    class Life(JobLife):
        pass

    Life.session, Life.lab = session, lab
    few = lab.kind == "sqlserver"
    run_state_machine_as_test(
        Life, settings=settings(max_examples=15 if few else 60, stateful_step_count=25 if few else 40, deadline=None)
    )
