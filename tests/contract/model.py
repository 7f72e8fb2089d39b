"""What the store should do, as a plain Python model with exact expectations. Durations only; due times are observed."""

from dataclasses import dataclass, field

import msgspec

from chokaq.lifecycle.states import Answer, DeathCause, FailureReason, JobStatus
from chokaq.store.records import CrashPolicy, Held
from chokaq.store.repairs import Edits

STOPPED = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE)
"""What an operator may bring back, drop or edit in the DLQ."""

LATER = 3_600_000
"""A delay no test run reaches: such a job is not ready until it is aged."""


@dataclass
class ModelJob:
    """One job as it should stand."""

    id: str
    priority: int
    payload: str
    key: str | None
    ready: bool
    status: JobStatus = JobStatus.PENDING
    lease: int = 0
    attempts: int = 0
    crashes: int = 0
    worker: str | None = None
    reason: FailureReason | None = None
    cancel_requested: bool = False
    silent: bool = False
    ended: int = 0
    """How often it has stopped or succeeded: each time is counted, once and for ever."""
    due: int = 0
    """Observed after each step that sets it, in milliseconds."""
    tags: str | None = None
    outcomes: dict[int, tuple[str, Answer]] = field(default_factory=dict)
    """Lease → the holder write that ended it and its answer, for repeats."""
    crashed_leases: set[int] = field(default_factory=set)
    """Leases under which its owner died: they have a JobAttempts row that no holder wrote."""
    revived_leases: set[int] = field(default_factory=set)
    """Leases it was resurrected under: what the DLQ row showed of them is gone."""

    @property
    def live(self) -> bool:
        """Whether it stands in Hot."""
        return not self.status.is_final

    def held_by(self, held: Held) -> bool:
        """Whether this is the lease it is held under."""
        return self.lease == held.lease and self.status in (JobStatus.FETCHED, JobStatus.PROCESSING)

    def end(self, status: JobStatus, reason: FailureReason | None) -> None:
        """To Archive or DLQ."""
        self.status, self.reason, self.silent = status, reason, False
        self.ended += 1

    def wait(self, *, ready: bool) -> None:
        """Back to Pending."""
        self.status, self.ready, self.worker, self.silent = JobStatus.PENDING, ready, None, False

    def crash(self, policy: CrashPolicy) -> None:
        """The crash policy, in its order (design §4)."""
        spent = self.crashes + 1 >= policy.crash_limit
        self.crashes += 1
        self.crashed_leases.add(self.lease)
        if self.cancel_requested:
            self.end(JobStatus.CANCELLED, FailureReason.CANCELLED)
        elif spent:
            self.end(JobStatus.ZOMBIE, FailureReason.POISON)
        elif policy.on_crash == "dead_letter" or self.attempts >= policy.max_attempts:
            self.end(JobStatus.ZOMBIE, FailureReason.ZOMBIE)
        else:
            self.wait(ready=False)

    def refund(self) -> None:
        """Handed back: uncharged, due as before, unless its cancellation was asked for."""
        if self.cancel_requested:
            self.end(JobStatus.CANCELLED, FailureReason.CANCELLED)
            return
        if self.status is JobStatus.PROCESSING:
            self.attempts -= 1
        self.wait(ready=True)


@dataclass
class Model:
    """All jobs, and which of them holds which key."""

    jobs: dict[str, ModelJob] = field(default_factory=dict)
    ended_workers: set[str] = field(default_factory=set)
    succeeded: int = 0
    purged: int = 0
    """Endings of jobs that are gone."""

    def holder_of(self, key: str) -> ModelJob | None:
        """The live job of an active key."""
        return next((job for job in self.jobs.values() if job.key == key and job.live), None)

    def ready(self) -> list[ModelJob]:
        """What a fetch may claim, in the order it must."""
        waiting = [job for job in self.jobs.values() if job.status is JobStatus.PENDING and job.ready]
        return sorted(waiting, key=lambda job: (-job.priority, job.due, job.id))

    def held(self, worker: str) -> list[ModelJob]:
        """Jobs under a worker's leases."""
        return [
            job
            for job in self.jobs.values()
            if job.worker == worker and job.status in (JobStatus.FETCHED, JobStatus.PROCESSING)
        ]

    def start(self, held: Held) -> Answer:
        """Fetched → Processing."""
        job = self.jobs.get(held.id)
        if job is None:
            return Answer.STALE
        if job.held_by(held) and job.status is JobStatus.FETCHED:
            job.status, job.attempts, job.silent = JobStatus.PROCESSING, job.attempts + 1, False
            return Answer.APPLIED
        return Answer.APPLIED if job.held_by(held) else Answer.STALE

    def settle(self, held: Held, outcome: str) -> set[Answer]:
        """Succeed, fail, end cancelled, retry, release. One answer, save where two would both be true."""
        job = self.jobs.get(held.id)
        if job is None:
            return {Answer.STALE}
        from_fetched = outcome in ("fail", "end_cancelled", "release")
        if not job.held_by(held) or (job.status is JobStatus.FETCHED and not from_fetched):
            return self._late(job, held, outcome)
        answer = Answer.APPLIED
        if outcome == "succeed":
            job.end(JobStatus.SUCCEEDED, None)
            self.succeeded += 1
        elif outcome == "fail":
            job.end(JobStatus.FAILED, FailureReason.FATAL_ERROR)
        elif outcome == "end_cancelled":
            job.end(JobStatus.CANCELLED, FailureReason.CANCELLED)
        elif job.cancel_requested:
            job.end(JobStatus.CANCELLED, FailureReason.CANCELLED)
            answer = Answer.CANCELLED
        elif outcome == "retry":
            job.wait(ready=False)
        else:
            job.refund()
        job.outcomes[held.lease] = outcome, answer
        return {answer}

    def _late(self, job: ModelJob, held: Held, outcome: str) -> set[Answer]:
        """A repeat answers as its first call did, as long as the evidence lasts; anything else is stale."""
        mine, answer = job.outcomes.get(held.lease, (None, None))
        if job.status is JobStatus.DROPPED and job.lease == held.lease:
            # The row shows neither what was asked for nor that it waits.
            return {Answer.STALE}
        if held.lease in job.revived_leases:
            return {self._of_an_earlier_life(job, held, outcome)}
        here = job.lease == held.lease
        ended_cancelled = here and job.status is JobStatus.CANCELLED
        also = {Answer.CANCELLED} if ended_cancelled and outcome in ("retry", "release") else set()
        if mine == outcome and answer is Answer.CANCELLED:
            return {Answer.CANCELLED}
        if mine == outcome and outcome != "release":
            return {Answer.APPLIED} | also
        if outcome == "release" and here and job.status is JobStatus.PENDING:
            return {Answer.APPLIED} if mine == "release" else {Answer.STALE, Answer.APPLIED}
        # The job shows what is asked for, though somebody else did it: both answers are true.
        if outcome == "retry" and held.lease in job.crashed_leases:
            also.add(Answer.APPLIED)
        if outcome == "fail" and here and job.status is JobStatus.FAILED:
            also.add(Answer.APPLIED)
        if outcome == "end_cancelled" and ended_cancelled:
            also.add(Answer.APPLIED)
        return {Answer.STALE} | also

    @staticmethod
    def _of_an_earlier_life(job: ModelJob, held: Held, outcome: str) -> Answer:
        """What still tells of a lease under which the job was resurrected: its attempt, and where it stands now."""
        here = job.lease == held.lease
        if here and job.status is JobStatus.CANCELLED:
            # Cancelled again before anybody took it: it shows what it shows, whoever did it.
            if outcome == "end_cancelled":
                return Answer.APPLIED
            return Answer.CANCELLED if outcome in ("retry", "release") else Answer.STALE
        waits = outcome == "release" and here and job.status is JobStatus.PENDING
        mine, _ = job.outcomes.get(held.lease, (None, None))
        tried = outcome == "retry" and (mine == "retry" or held.lease in job.crashed_leases)
        return Answer.APPLIED if waits or tried else Answer.STALE

    def cancel(self, job_id: str) -> str:
        """What CancelJobs answers."""
        job = self.jobs[job_id]
        if not job.live:
            return "final"
        if job.status is JobStatus.PROCESSING:
            job.cancel_requested = True
            return "requested"
        job.cancel_requested = True
        job.end(JobStatus.CANCELLED, FailureReason.CANCELLED)
        return "cancelled"

    @property
    def stopped(self) -> int:
        """How often a job went to the DLQ."""
        return sum(job.ended for job in self.jobs.values()) + self.purged - self.succeeded

    def resurrect(self, job_id: str, without_key: bool) -> tuple[str, str | None]:
        """What ResurrectJobs answers, and who holds the key."""
        job = self.jobs[job_id]
        if job.status not in STOPPED:
            return "wrong_state", None
        holder = None if job.key is None or without_key else self.holder_of(job.key)
        if holder is not None:
            return "key_conflict", holder.id
        if without_key:
            job.key = None
        job.revived_leases.add(job.lease)
        job.attempts = job.crashes = 0
        job.reason, job.cancel_requested = None, False
        job.wait(ready=True)
        return "accepted", None

    def drop(self, job_id: str) -> str:
        """What DropJobs answers."""
        job = self.jobs[job_id]
        if job.status not in STOPPED:
            return "wrong_state"
        job.status = JobStatus.DROPPED
        return "accepted"

    def purge(self, job_id: str) -> str:
        """What PurgeJobs answers."""
        job = self.jobs[job_id]
        if job.live:
            return "wrong_state"
        self.purged += self.jobs.pop(job_id).ended
        return "accepted"

    def edit(self, job_id: str, edits: Edits) -> str:
        """What EditJob answers."""
        job = self.jobs[job_id]
        if job.status not in (JobStatus.PENDING, *STOPPED):
            return "wrong_state"
        self.change(job, edits)
        return "accepted"

    @staticmethod
    def change(job: ModelJob, edits: Edits) -> None:
        """Lay the edits over the job."""
        for name, value in msgspec.structs.asdict(edits).items():
            if value is not msgspec.UNSET:
                setattr(job, name, value)

    def die(self, worker: str, cause: DeathCause, culprits: list[Held], policy: CrashPolicy) -> None:
        """ReleaseWorker."""
        self.ended_workers.add(worker)
        for job in self.held(worker):
            if job.status is JobStatus.FETCHED:
                job.wait(ready=True)
            elif cause is DeathCause.CRASH:
                job.crash(policy)
            elif cause is DeathCause.LIMIT and Held(job.id, job.lease) in culprits and not job.cancel_requested:
                job.end(JobStatus.FAILED, FailureReason.TIMEOUT)
                job.crashed_leases.add(job.lease)
            else:
                job.refund()
