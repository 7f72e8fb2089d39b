"""What a resurrection would risk, in words."""

from datetime import timedelta
from typing import Any

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.operations import OperationError, resurrection_risks, show_stopped
from chokaq.store.records import Attempt, AttemptError, AuditEntry
from tests.support.fake_repairs import NOW, FakeRepairs
from tests.support.ids import new_id


def risks(fake: FakeRepairs, status: JobStatus = JobStatus.FAILED, **fields: Any) -> list[str]:
    """Of one stopped job, as `dlq show` finds them."""
    return show_stopped(fake.session, fake.stopped(status, **fields), NOW).risks


def test_a_job_that_never_started_risks_nothing(fake: FakeRepairs) -> None:
    assert risks(fake, JobStatus.CANCELLED, attempt_count=0, failure_reason=FailureReason.CANCELLED) == []


@pytest.mark.parametrize(
    ("status", "fields", "told"),
    [
        (JobStatus.ZOMBIE, {"failure_reason": FailureReason.ZOMBIE, "crash_count": 1}, "whether its effects happened"),
        (JobStatus.ZOMBIE, {"failure_reason": FailureReason.ZOMBIE, "crash_count": 1}, "Its process died once"),
        (JobStatus.ZOMBIE, {"failure_reason": FailureReason.POISON, "crash_count": 3}, "Poison: its process died 3 t"),
        (JobStatus.FAILED, {"attempt_count": 2}, "It was started 2 times: what it did before"),
        (JobStatus.FAILED, {"attempt_count": 1}, "It was started once"),
        (JobStatus.FAILED, {"failure_reason": FailureReason.FATAL_ERROR}, "FatalError: it will most likely stop again"),
        (JobStatus.FAILED, {"failure_reason": FailureReason.TIMEOUT}, "Timeout: it will run as long again"),
        (JobStatus.FAILED, {"due_at": NOW - timedelta(days=9)}, "It was due 9 days ago"),
        (JobStatus.FAILED, {"due_at": NOW - timedelta(days=1)}, "It was due 1 day ago"),
        (JobStatus.FAILED, {"idempotency_key": "k"}, "It takes its key 'k' back"),
        (JobStatus.DROPPED, {"due_at": NOW - timedelta(days=9)}, "It was dropped: it never runs again"),
    ],
)
def test_every_risk_is_named(fake: FakeRepairs, status: JobStatus, fields: dict[str, Any], told: str) -> None:
    assert any(risk.startswith(told) or told in risk for risk in risks(fake, status, **fields)), told


def test_a_dropped_job_has_no_other_risk(fake: FakeRepairs) -> None:
    assert len(risks(fake, JobStatus.DROPPED, idempotency_key="k", crash_count=2)) == 1


def test_a_young_job_is_not_called_old(fake: FakeRepairs) -> None:
    assert not any("was due" in risk for risk in risks(fake, due_at=NOW - timedelta(hours=23)))


def test_the_live_job_that_holds_the_key_is_named(fake: FakeRepairs) -> None:
    holder = fake.add(idempotency_key="k", status=JobStatus.PROCESSING)
    fake.add(idempotency_key="other")
    found = risks(fake, idempotency_key="k")
    assert any(f"is held by the live job {holder} (Processing)" in risk for risk in found)


def test_without_a_key_nobody_holds_it(fake: FakeRepairs) -> None:
    fake.add()
    assert not any("key" in risk for risk in risks(fake))
    assert resurrection_risks(fake.jobs[fake.stopped(attempt_count=0)], NOW) == []


def test_a_stopped_job_is_shown_with_attempts_traces_and_audit(fake: FakeRepairs) -> None:
    job = fake.stopped()
    error = AttemptError("ValueError", "no", "Traceback …")
    reason = FailureReason.TRANSIENT
    fake.attempts = [
        Attempt(job_id=each, lease=1, at=NOW, worker_id=None, reason=reason, error=error) for each in (job, new_id())
    ]
    fake.audit = [
        AuditEntry(id=1, at=NOW, actor="anna", action="EditJob", target=job, reason="r", before="{}", after="{}")
    ]
    found = show_stopped(fake.session, job.lower(), NOW)
    assert (found.job.payload, found.attempts[0].error.trace) == ('{"n":1}', "Traceback …")
    assert (len(found.attempts), [entry.actor for entry in found.audit]) == (1, ["anna"])


def test_a_job_that_did_not_stop_is_shown_elsewhere(fake: FakeRepairs) -> None:
    job = fake.add()
    with pytest.raises(OperationError, match=f"is Pending and stands in the pillar hot, not in the DLQ: .*show {job}"):
        show_stopped(fake.session, job, NOW)
