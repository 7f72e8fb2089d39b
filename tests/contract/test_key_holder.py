"""GetKeyHolder: the live job behind an idempotency key, however many live jobs there are."""

from datetime import timedelta

import pytest

from chokaq.lifecycle.states import JobStatus, KeyScope
from chokaq.store.protocol import Session
from chokaq.store.repairs import KeyHolder
from tests.support.holder import Holder
from tests.support.jobs import new_job, new_jobs
from tests.support.stopped import fail


def test_nobody_holds_a_key_that_is_unknown_or_whose_job_has_ended(session: Session) -> None:
    fail(session, [new_job(idempotency_key="ended")])
    assert session.get_key_holder("ended") is None
    assert session.get_key_holder("unknown") is None
    assert session.get_key_holder("x" * 400) is None


def test_the_holder_is_found_behind_any_number_of_younger_jobs(session: Session) -> None:
    oldest = new_job(idempotency_key="k")
    session.enqueue_jobs([oldest])
    session.enqueue_jobs(new_jobs(600))
    assert session.get_key_holder("k") == KeyHolder(oldest.id, JobStatus.PENDING)


def test_the_state_of_the_holder_is_told(session: Session) -> None:
    job = new_job(idempotency_key="k")
    session.enqueue_jobs([job])
    Holder(session).take_one()
    assert session.get_key_holder("k") == KeyHolder(job.id, JobStatus.PROCESSING)


@pytest.mark.parametrize("key", ["Größe", "ключ", "50% [sure]_", 'it\'s "quoted" \\ 😀'])
def test_keys_are_compared_to_the_letter(session: Session, key: str) -> None:
    job = new_job(idempotency_key=key)
    session.enqueue_jobs([job])
    assert session.get_key_holder(key) == KeyHolder(job.id, JobStatus.PENDING)
    assert session.get_key_holder(key.swapcase() + "?") is None


@pytest.mark.parametrize("scope", [KeyScope.RETAINED, KeyScope.WINDOW])
def test_a_kept_key_has_a_holder_only_while_its_job_lives(session: Session, scope: KeyScope) -> None:
    window = round(timedelta(hours=1) / timedelta(milliseconds=1)) if scope == KeyScope.WINDOW else None
    job = new_job(idempotency_key="k", key_scope=scope, key_window_ms=window)
    session.enqueue_jobs([job])
    assert session.get_key_holder("k") == KeyHolder(job.id, JobStatus.PENDING)
    holder = Holder(session)
    holder.succeed([holder.take_one()])
    assert session.get_key_holder("k") is None
