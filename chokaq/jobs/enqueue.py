"""From a job object to the checked row that a store accepts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypedDict

from chokaq.jobs import envelope
from chokaq.jobs.codec import convert, encode
from chokaq.jobs.envelope import Scope
from chokaq.jobs.errors import EnqueueError, UnknownJobType
from chokaq.jobs.ids import new_id
from chokaq.jobs.registry import DEFAULT_PRIORITY, Registration, Registry
from chokaq.store.records import NewJob


class Options(TypedDict, total=False):
    """What may be said about a job when it is enqueued."""

    priority: int | None
    """0 … 1,000,000, higher is served first; None: the registration's, 10 unless it says otherwise."""
    delay: float | timedelta | None
    """Not before this long from now, by the database's clock; seconds or a timedelta, at most ten years."""
    at: datetime | None
    """Not before this instant; aware. Either `delay` or `at`."""
    tags: str | Iterable[str] | None
    """Text to find jobs by, at most 1,000 characters; several are joined by commas."""
    created_by: str | None
    """Who asked for it, at most 100 characters."""
    idempotency_key: str | None
    """While the key answers, another enqueue with it yields this job; trimmed, at most 255 characters."""
    scope: Scope | None
    """How long the key answers: "active" (until the job succeeds or stops), "retained" (as long as it is stored), a Window."""
    headers: Mapping[str, str] | None
    """Texts for the handler beside the payload (trace context), at most 4,000 bytes of JSON."""
    queue: str | None
    """None: the registration's."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """One item of `enqueue_many` with options of its own; see Options."""

    job: object
    """The job; or a type key, and `payload` the job or plain data for it."""
    payload: object = None
    priority: int | None = None
    delay: float | timedelta | None = None
    at: datetime | None = None
    tags: str | Iterable[str] | None = None
    created_by: str | None = None
    idempotency_key: str | None = None
    scope: Scope | None = None
    headers: Mapping[str, str] | None = None
    queue: str | None = None


def compose(registry: Registry, item: Enqueue, max_payload_bytes: int) -> NewJob:
    """The row of one job, with a new id. Raises UnknownJobType, PayloadError, PayloadTooLarge or EnqueueError."""
    known, type_key, job = _resolve(registry, item)
    queue = item.queue if item.queue is not None else (known.queue if known else "")
    priority = item.priority if item.priority is not None else (known.priority if known else DEFAULT_PRIORITY)
    if item.delay is not None and item.at is not None:
        raise EnqueueError("give either `delay` or `at`, not both")
    if item.scope is not None and item.idempotency_key is None:
        raise EnqueueError("`scope` says how long an idempotency key answers; give `idempotency_key` as well")
    key = envelope.check_key(item.idempotency_key)
    wanted = item.scope if item.scope is not None or known is None else known.scope
    scope, window = envelope.check_scope(None if key is None else wanted)
    return NewJob(
        id=new_id(),
        queue=envelope.check_name("queue", queue),
        type_key=type_key,
        payload=envelope.check_payload(encode(job), type_key, max_payload_bytes),
        priority=envelope.check_priority(priority),
        delay_ms=envelope.check_delay(item.delay),
        due_at=envelope.check_instant(item.at),
        tags=envelope.check_tags(item.tags),
        created_by=envelope.check_text("created_by", item.created_by, envelope.MAX_CREATED_BY),
        headers=envelope.check_headers(item.headers),
        idempotency_key=key,
        key_scope=scope,
        key_window_ms=window,
    )


def _resolve(registry: Registry, item: Enqueue) -> tuple[Registration | None, str, object]:
    """The registration (None in a pipe), the type key to store, and the job object."""
    job = item.job
    if isinstance(job, str):
        return _resolve_key(registry, job, {} if item.payload is None else item.payload, item.queue)
    if item.payload is not None:
        raise EnqueueError(
            f"a payload is given beside a job; enqueue the {type(job).__name__} alone, or name its type key"
        )
    known = registry.find_contract(type(job))
    if isinstance(job, dict):
        raise UnknownJobType('a plain dict does not tell its type: write enqueue("the.type.key", {…})')
    if known is None:
        raise UnknownJobType(
            f"{type(job).__module__}.{type(job).__qualname__} is not registered with this application: put "
            '@app.job("its.type.key.v1", queue=…) on the class, or include the profile that does'
        )
    return known, known.type_key, job


def _resolve_key(
    registry: Registry, type_key: str, payload: Any, queue: str | None
) -> tuple[Registration | None, str, object]:
    known = registry.find(type_key)
    if known is None:
        if queue is not None and queue in registry.pipes:
            return None, envelope.check_name("type key", type_key), payload
        some = ", ".join(sorted(job.type_key for job in islice(registry.jobs, 20))) or "none"
        raise UnknownJobType(
            f"type key {type_key[:80]!r} is not registered with this application (registered: {some}): add "
            f'app.job("{type_key[:80]}", …), or name the pipe queue it goes to'
        )
    if known.contract is dict and not isinstance(payload, dict):
        raise EnqueueError(f"{known.type_key} takes a dict, not {type(payload).__name__}")
    if known.contract is not dict and (known.is_plain or type(payload) is not known.contract):
        payload = convert(known.contract, payload, known.type_key)
    return known, known.type_key, payload
