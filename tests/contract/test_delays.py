"""A job that is to wait waits exactly as long as was asked for, to the millisecond, by the database's clock."""

import pytest

from chokaq.lifecycle.states import Answer, FailureReason
from chokaq.store.protocol import Session
from chokaq.store.records import Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, new_job
from tests.support.lab import Lab


@pytest.mark.parametrize("delay_ms", [0, 1, 999, 1_234, 60_007, 3_599_999, 400 * 86_400_000 + 1])
def test_a_throttled_job_is_due_exactly_when_it_was_asked_to_be(session: Session, lab: Lab, delay_ms: int) -> None:
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()

    retry = Retry(held.id, held.lease, delay_ms, ERROR, FailureReason.THROTTLED)
    assert session.reschedule_for_retry(holder.worker, [retry]) == [Answer.APPLIED]

    # The attempt's row and the new due time were written by one statement's clock.
    [attempt] = lab.rows("JobAttempts")
    row = lab.row(held.id)
    assert row["DueAtUtc"] - attempt["AtUtc"] == delay_ms
    assert attempt["FailureReason"] == FailureReason.THROTTLED
    assert row["IsReady"] == (delay_ms == 0)


def test_a_job_that_waits_is_not_claimed_a_moment_early_and_one_that_was_snoozed_is_not_charged(
    session: Session, lab: Lab
) -> None:
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    release = Release(held.id, held.lease, 3_600_000)
    assert session.release_jobs(holder.worker, [release]) == [Answer.APPLIED]
    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"], row["StartedAtUtc"]) == (0, 0, None)
    assert lab.rows("JobAttempts") == []

    lab.age(held.id, "DueAtUtc", 3_540_000)
    early = holder.fetch(1)
    assert early.jobs == []
    assert early.next_due_ms is not None
    assert 0 < early.next_due_ms <= 60_000

    lab.age(held.id, "DueAtUtc", 60_000)
    again = holder.take_one()
    assert (again.id, lab.row(held.id)["AttemptCount"]) == (held.id, 1)
