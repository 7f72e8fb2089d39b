"""The judge is judged: forged evidence of every fault a scenario could hide, and an innocent history that it lets pass."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from tests.chaos.evidence import Evidence, Rules, Standing
from tests.chaos.ledger import Execution
from tests.chaos.verifier import Verdict, judge
from tests.chaos.workload import Job
from tests.support.jobs import new_job

DEAD, LIVE, DRAINED = "worker-dead", "worker-live", "worker-drained"
PIDS = {DEAD: 11, LIVE: 12, DRAINED: 13}
NOW = 1_000_000


class Forger:
    """Builds evidence step by step; times are milliseconds and run on by themselves."""

    def __init__(self) -> None:
        self.accepted: dict[str, Job] = {}
        self.answered: dict[str, str] = {}
        self.cancels: dict[str, str] = {}
        self.standings: dict[str, list[Standing]] = {}
        self.attempts: list[dict[str, Any]] = []
        self.executions: dict[tuple[str, int], Execution] = {}
        self.rules = Rules()
        self._time = NOW

    def tick(self) -> int:
        """A later instant."""
        self._time += 10
        return self._time

    def job(self, kind: str = "quick", **fields: Any) -> str:
        """An accepted job."""
        new = new_job(type_key=f"chaos.{kind}", **fields)
        self.accepted[new.id] = Job(new=new, kind=kind, key=new.idempotency_key)
        return new.id

    def run(self, job: str, lease: int, attempt: int, how: str | None = "ok", worker: str = LIVE) -> Execution:
        """An execution; `how` None: cut short."""
        began = self.tick()
        execution = self.executions[job, lease] = Execution(
            job=job,
            lease=lease,
            attempt=attempt,
            worker=worker,
            pid=PIDS[worker],
            kind=self.accepted[job].kind,
            began_wall_ms=began,
            began_ns=began * 1_000_000,
            ended_ns=None if how is None else self.tick() * 1_000_000,
            how=how,
        )
        return execution

    def charge(self, job: str, lease: int, error: str, worker: str = LIVE) -> None:
        """A row of JobAttempts."""
        row = {"JobId": job, "LeaseNumber": lease, "AtUtc": self.tick(), "WorkerId": worker}
        self.attempts.append(row | {"ErrorType": error, "ErrorMessage": "forged"})

    def succeed(self, job: str, lease: int, attempts: int, crashes: int = 0) -> None:
        """A row of the archive."""
        self._stand(job, Pillar.ARCHIVE, lease, attempts, crashes, FinishedAtUtc=self.tick())

    def stop(
        self, job: str, status: JobStatus, reason: FailureReason, lease: int, attempts: int, crashes: int = 0
    ) -> None:
        """A row of the DLQ."""
        more = {"Status": int(status), "FailureReason": int(reason), "FailedAtUtc": self.tick()}
        self._stand(job, Pillar.DLQ, lease, attempts, crashes, **more)

    def wait(self, job: str, lease: int, attempts: int) -> None:
        """A row of Hot."""
        self._stand(job, Pillar.HOT, lease, attempts, 0, Status=0)

    def judge(self) -> Verdict:
        """The verdict."""
        return judge(
            Evidence(
                accepted=self.accepted,
                answered=self.answered,
                cancels=self.cancels,
                standings=self.standings,
                attempts=self.attempts,
                workers={
                    worker: {"Pid": pid, "EndedCause": "cause shutdown, signal 9" if worker == DRAINED else None}
                    for worker, pid in PIDS.items()
                },
                executions=self.executions,
                deaths={PIDS[DEAD]: NOW + 5, PIDS[DRAINED]: NOW + 5},
                wall_minus_mono_ms=0,
                rules=self.rules,
            )
        )

    def _stand(self, job: str, pillar: Pillar, lease: int, attempts: int, crashes: int, **more: int) -> None:
        row = {
            "Id": job,
            "LeaseNumber": lease,
            "AttemptCount": attempts,
            "CrashCount": crashes,
            "CreatedAtUtc": NOW,
            "DueAtUtc": NOW,
            "StartedAtUtc": self.tick(),
            **more,
        }
        self.standings.setdefault(job, []).append(Standing(pillar=pillar, row=row))


def innocent(forger: Forger) -> None:
    """One of everything that is allowed to happen."""
    plain = forger.job()
    forger.run(plain, 1, 1)
    forger.succeed(plain, 1, 1)
    crashed = forger.job("long")
    forger.run(crashed, 1, 1, None, DEAD)
    forger.charge(crashed, 1, "WorkerDied", DEAD)
    forger.run(crashed, 2, 2)
    forger.succeed(crashed, 2, 2, crashes=1)
    unheard = forger.job()
    forger.run(unheard, 1, 1, "ok", DEAD)
    forger.charge(unheard, 1, "WorkerDied", DEAD)
    forger.run(unheard, 2, 2)
    forger.succeed(unheard, 2, 2, crashes=1)
    put_off = forger.job("snooze")
    forger.run(put_off, 1, 1, "Snooze")
    forger.run(put_off, 2, 1, "cancelled:shutdown")
    forger.run(put_off, 3, 1, None, DRAINED)
    forger.run(put_off, 4, 1)
    forger.succeed(put_off, 4, 1)
    fatal = forger.job("fatal")
    forger.run(fatal, 1, 1, "FatalError")
    forger.charge(fatal, 1, "chokaq.lifecycle.errors.FatalError")
    forger.stop(fatal, JobStatus.FAILED, FailureReason.FATAL_ERROR, 1, 1)
    fragile = forger.job("fragile")
    forger.run(fragile, 1, 1, None, DEAD)
    forger.charge(fragile, 1, "WorkerDied", DEAD)
    forger.stop(fragile, JobStatus.ZOMBIE, FailureReason.ZOMBIE, 1, 1, crashes=1)
    cancelled = forger.job()
    forger.cancels[cancelled] = "cancelled"
    forger.stop(cancelled, JobStatus.CANCELLED, FailureReason.CANCELLED, 0, 0)
    first, second = (forger.job(idempotency_key="key", key_scope=KeyScope.RETAINED) for _ in range(2))
    del forger.accepted[second]
    forger.answered[second] = first
    forger.run(first, 1, 1)
    forger.succeed(first, 1, 1)


def test_a_history_within_the_rules_is_let_pass_and_counted() -> None:
    forger = Forger()
    innocent(forger)
    verdict = forger.judge()
    assert verdict.faults == []
    assert (verdict.jobs, verdict.crashed, verdict.handed_back, verdict.repeated) == (8, 3, 2, 1)
    assert len(verdict.rescue_ms) == 3


# Each forges one fault; the words are those by which the judge must name it.
def lost(forger: Forger) -> str:
    forger.job()
    return "lost"


def in_two_pillars(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1)
    forger.succeed(job, 1, 1)
    forger.wait(job, 1, 1)
    return "stands in"


def never_accepted(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1)
    forger.succeed(job, 1, 1)
    del forger.accepted[job]
    return "never accepted"


def not_ended(forger: Forger) -> str:
    forger.wait(forger.job(), 0, 0)
    return "did not end"


def never_ran(forger: Forger) -> str:
    forger.succeed(forger.job(), 1, 1)
    return "never ran"


def succeeded_under_another_lease(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1, None, DEAD)
    forger.charge(job, 1, "WorkerDied", DEAD)
    forger.run(job, 2, 2)
    forger.succeed(job, 1, 2, crashes=1)
    return "succeeded under lease 1"


def ran_twice_for_nothing(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1)
    forger.run(job, 2, 1)
    forger.succeed(job, 2, 1)
    return "nothing tells why"


def began_twice_under_one_lease(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1).times = 2
    forger.succeed(job, 1, 1)
    return "began 2 times"


def ran_in_two_places_at_once(forger: Forger) -> str:
    job = forger.job("flaky")
    first = forger.run(job, 1, 1, "ConnectionError")
    forger.charge(job, 1, "builtins.ConnectionError")
    forger.run(job, 2, 2)
    first.ended_ns = forger.tick() * 1_000_000
    forger.succeed(job, 2, 2)
    return "still running"


def taken_from_a_live_worker(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1, "cancelled:lost_lease")
    forger.charge(job, 1, "WorkerDied")
    forger.run(job, 2, 2)
    forger.succeed(job, 2, 2, crashes=1)
    return "did not die"


def attempt_not_counted(forger: Forger) -> str:
    job = forger.job("flaky")
    forger.run(job, 1, 1, "ConnectionError")
    forger.charge(job, 1, "ConnectionError")
    forger.run(job, 2, 2)
    forger.succeed(job, 2, 1)
    return "AttemptCount is 1"


def told_the_wrong_attempt(forger: Forger) -> str:
    job = forger.job("snooze")
    forger.run(job, 1, 1, "Snooze")
    forger.run(job, 2, 2)
    forger.succeed(job, 2, 1)
    return "ran as attempt 2"


def crash_not_counted(forger: Forger) -> str:
    job = forger.job()
    forger.charge(job, 1, "WorkerDied", DEAD)
    forger.run(job, 2, 2)
    forger.succeed(job, 2, 2)
    return "CrashCount is 0"


def charged_for_a_good_end(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1)
    forger.charge(job, 1, "ConnectionError")
    forger.run(job, 2, 2)
    forger.succeed(job, 2, 2)
    return "is charged for ConnectionError"


def wrong_reason(forger: Forger) -> str:
    job = forger.job("fatal")
    forger.run(job, 1, 1, "FatalError")
    forger.charge(job, 1, "FatalError")
    forger.stop(job, JobStatus.FAILED, FailureReason.TRANSIENT, 1, 1)
    return "ended Failed / Transient"


def given_up_too_early(forger: Forger) -> str:
    job = forger.job("exhausted")
    forger.run(job, 1, 1, "ConnectionError")
    forger.charge(job, 1, "ConnectionError")
    forger.stop(job, JobStatus.FAILED, FailureReason.TRANSIENT, 1, 1)
    return "given up after 1 of 2"


def zombie_that_had_tries_left(forger: Forger) -> str:
    job = forger.job()
    forger.run(job, 1, 1, None, DEAD)
    forger.charge(job, 1, "WorkerDied", DEAD)
    forger.stop(job, JobStatus.ZOMBIE, FailureReason.ZOMBIE, 1, 1, crashes=1)
    return "had to be tried again"


def zombie_called_poison(forger: Forger) -> str:
    job = forger.job("fragile")
    forger.run(job, 1, 1, None, DEAD)
    forger.charge(job, 1, "WorkerDied", DEAD)
    forger.stop(job, JobStatus.ZOMBIE, FailureReason.POISON, 1, 1, crashes=1)
    return "ended Zombie / Poison"


def cancelled_unasked(forger: Forger) -> str:
    forger.stop(forger.job(), JobStatus.CANCELLED, FailureReason.CANCELLED, 0, 0)
    return "the answer to its cancellation was None"


def ran_on_after_its_cancellation(forger: Forger) -> str:
    job = forger.job()
    forger.cancels[job] = "cancelled"
    forger.run(job, 1, 1)
    forger.succeed(job, 1, 1)
    return "succeeded after its cancellation"


def too_early(forger: Forger) -> str:
    job = forger.job(delay_ms=60_000)
    forger.run(job, 1, 1)
    forger.succeed(job, 1, 1)
    return "before it was due"


def one_key_two_jobs(forger: Forger) -> str:
    for _ in range(2):
        job = forger.job(idempotency_key="another", key_scope=KeyScope.RETAINED)
        forger.run(job, 1, 1)
        forger.succeed(job, 1, 1)
    return "created 2 jobs"


def one_key_two_live_jobs(forger: Forger) -> str:
    for _ in range(2):
        job = forger.job(idempotency_key="another")
        forger.run(job, 1, 1)
        forger.succeed(job, 1, 1)
    return "were live at once"


FAULTS: list[Callable[[Forger], str]] = [
    lost, in_two_pillars, never_accepted, not_ended, never_ran, succeeded_under_another_lease, ran_twice_for_nothing,
    began_twice_under_one_lease, ran_in_two_places_at_once, taken_from_a_live_worker, attempt_not_counted, told_the_wrong_attempt,
    crash_not_counted, charged_for_a_good_end, wrong_reason, given_up_too_early, zombie_that_had_tries_left, zombie_called_poison,
    cancelled_unasked, ran_on_after_its_cancellation, too_early, one_key_two_jobs, one_key_two_live_jobs,
]  # fmt: skip


@pytest.mark.parametrize("forge", FAULTS, ids=lambda forge: forge.__name__)
def test_the_judge_names_the_fault_among_innocent_jobs(forge: Callable[[Forger], str]) -> None:
    forger = Forger()
    innocent(forger)
    words = forge(forger)
    faults = forger.judge().faults
    assert any(words in fault for fault in faults), faults


def test_a_lease_lost_by_a_live_worker_passes_only_where_clocks_may_differ() -> None:
    forger = Forger()
    taken_from_a_live_worker(forger)
    assert forger.judge().faults != []
    forger.rules = msgspec.structs.replace(forger.rules, live_workers_may_lose_leases=True)
    assert forger.judge().faults == []
