"""Enqueueing by hand: a type key and a raw JSON payload, without the application's code."""

from collections.abc import Mapping
from datetime import datetime

from chokaq.jobs import envelope
from chokaq.jobs.envelope import Scope
from chokaq.jobs.errors import EnqueueError
from chokaq.jobs.ids import new_id
from chokaq.operations.connect import doorbell
from chokaq.operations.edits import ascii_json
from chokaq.operations.errors import OperationError
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Enqueued, NewJob

DEFAULT_PRIORITY = 10


def raw_job(
    type_key: str,
    payload: str,
    *,
    queue: str,
    max_payload_bytes: int,
    priority: int = DEFAULT_PRIORITY,
    delay: float | None = None,
    at: datetime | None = None,
    key: str | None = None,
    scope: Scope | None = None,
    tags: str | None = None,
    created_by: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> NewJob:
    """A checked job with a new id. `payload`: JSON text, kept as it is; `delay`: seconds. Raises OperationError."""
    text = ascii_json(payload)
    if delay is not None and at is not None:
        raise OperationError("give either a delay or an instant, not both")
    if scope is not None and key is None:
        raise OperationError("a scope says how long an idempotency key answers: give a key as well")
    try:
        key_scope, window = envelope.check_scope(scope)
        return NewJob(
            id=new_id(),
            queue=envelope.check_name("queue", queue),
            type_key=envelope.check_name("type key", type_key),
            payload=envelope.check_payload(text, type_key, max_payload_bytes),
            priority=envelope.check_priority(priority),
            delay_ms=envelope.check_delay(delay),
            due_at=envelope.check_instant(at),
            tags=envelope.check_tags(tags),
            created_by=envelope.check_text("created_by", created_by, envelope.MAX_CREATED_BY),
            headers=envelope.check_headers(headers),
            idempotency_key=envelope.check_key(key),
            key_scope=key_scope,
            key_window_ms=window,
        )
    except EnqueueError as error:
        raise OperationError(str(error)) from None


def enqueue_job(store: Store, session: Session, job: NewJob) -> Enqueued:
    """Accept the job durably and wake an idle worker on this host."""
    answer = session.enqueue_jobs([job])[0]
    if answer.created:
        doorbell(store)(job.queue)
    return answer
