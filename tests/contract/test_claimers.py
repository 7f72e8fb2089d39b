"""From 1 to 64 claimers on one queue (C34, C27): each job is claimed exactly once, and nobody is refused or sees a deadlock.

This is the logic. A claimer asks again when the store was away for an instant, as a lane does: the engine at hand now and then ends
a session among 64 with an internal error. How many jobs per second they complete together `python -m bench claimers` measures; what
only the locks of a real SQL Server can prove stands in docs/unproven.md.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.store.errors import StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import Failure, Held, Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, new_jobs
from tests.support.lab import Lab
from tests.support.processes import run_programs
from tests.support.stores import Sessions
from tests.support.together import together

CLAIMERS = [1, 2, 4, 8, 16, 32, 64]
TRIES = 5


class Patient:
    """A session whose operations are tried again while the store is away. What it refuses, and what it answers, still shows."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._session, name)

        def ask(*args: Any, **options: Any) -> Any:
            for _ in range(TRIES):
                with suppress(StoreUnavailable):
                    return operation(*args, **options)
            return operation(*args, **options)

        return ask


def claimers_on(sessions: Sessions, count: int) -> list[Holder]:
    """`count` workers, each on a session of its own."""
    return [Holder(cast("Session", Patient(one))) for one in sessions.many(count)]


def waits(holder: Holder) -> bool:
    """Jobs wait that this claim did not bring: others had them for an instant."""
    return holder.fetch(0).next_due_ms is not None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("claimers", CLAIMERS)
def test_each_job_is_claimed_exactly_once(session: Session, sessions: Sessions, lab: Lab, claimers: int) -> None:
    """C34: all start at one instant and take small bites, until nothing waits."""
    jobs = new_jobs(max(60, 4 * claimers))
    session.enqueue_jobs(jobs)
    holders = claimers_on(sessions, claimers)

    def work(holder: Holder) -> list[Held]:
        done: list[Held] = []
        while True:
            held = holder.take(3)
            holder.succeed(held)
            done += held
            if not held and not waits(holder):
                return done

    served = [held for part in together([partial(work, holder) for holder in holders], 240) for held in part]

    assert Counter(served) == Counter(Held(job.id, 1) for job in jobs)
    archived = lab.rows("JobsArchive")
    assert {row["Id"] for row in archived} == {job.id for job in jobs}
    assert {(row["LeaseNumber"], row["AttemptCount"]) for row in archived} == {(1, 1)}
    assert lab.count("JobsHot") == lab.count("JobsDLQ") == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("claimers", [8, 64])
def test_no_outcome_of_theirs_deadlocks_with_another(
    session: Session, sessions: Sessions, lab: Lab, claimers: int
) -> None:
    """C27: every claimer takes every way a job can go, over the same rows; the ledger of runs must then add up exactly."""
    jobs = new_jobs(4 * claimers)
    session.enqueue_jobs(jobs)
    holders = claimers_on(sessions, claimers)

    def work(holder: Holder) -> list[Held]:
        runs: list[Held] = []
        while True:
            held = holder.take(4)
            runs += held
            one, two = held[:1], held[1:2]
            if one and one[0].lease < 3:
                answers = holder.session.reschedule_for_retry(
                    holder.worker, [Retry(*job, 0, ERROR) for job in fields(one)]
                )
                assert answers == [Answer.APPLIED]
            else:
                holder.succeed(one)
            if two and two[0].lease < 3:
                answers = holder.session.release_jobs(holder.worker, [Release(*job) for job in fields(two)])
                assert answers == [Answer.APPLIED]
            else:
                holder.succeed(two)
            holder.succeed(held[2:3])
            failures = [Failure(*job, JobStatus.FAILED, FailureReason.FATAL_ERROR) for job in fields(held[3:])]
            assert holder.session.archive_failed(holder.worker, failures) == [Answer.APPLIED] * len(failures)
            if not held and not waits(holder):
                return runs

    runs = Counter(run for part in together([partial(work, holder) for holder in holders], 240) for run in part)

    assert set(runs.values()) == {1}, "a lease was given out twice"
    last = {row["Id"]: row["LeaseNumber"] for table in ("JobsArchive", "JobsDLQ") for row in lab.rows(table)}
    assert set(last) == {job.id for job in jobs}
    assert set(runs) == {Held(job_id, lease) for job_id, most in last.items() for lease in range(1, most + 1)}
    assert lab.count("JobsHot") == 0


def fields(held: list[Held]) -> list[tuple[str, int]]:
    """(id, lease) of each."""
    return [(job.id, job.lease) for job in held]


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_eight_processes_claim_each_job_exactly_once(
    session: Session, store_options: DatabaseSettings, lab: Lab
) -> None:
    """C34 with real processes; each reports every lease it had."""
    jobs = new_jobs(160)
    session.enqueue_jobs(jobs)

    reports = run_programs("claim_all", 8, store_options, timeout=240, queue=jobs[0].queue, size=3)

    served = Counter(job_id for report in reports for job_id in report["served"])
    assert served == Counter(job.id for job in jobs)
    assert lab.count("JobsArchive") == 160
