"""Run one handler, with its middleware and services, without a store."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Unpack

from chokaq.app import ChokaQ
from chokaq.config.settings import EnvelopeSettings
from chokaq.jobs.context import JobContext
from chokaq.jobs.dispatch import Dispatcher, Route
from chokaq.jobs.enqueue import Enqueue, Options, compose
from chokaq.jobs.errors import RegistrationError
from chokaq.store.records import FetchedJob, NewJob

WORKER = "TEST"


async def run_job(
    app: ChokaQ,
    job: object,
    payload: object = None,
    /,
    *,
    attempt: int = 1,
    timeout: float | None = None,  # noqa: ASYNC109 - told to the handler, not kept by us
    prepare: Callable[[JobContext], None] | None = None,
    **options: Unpack[Options],
) -> JobContext:
    """Run a job's handler as a worker would: through its JSON payload, middleware and services. Nothing is stored.

    `job`, `payload`, `options`: as for `app.enqueue`, checked in the same way. `attempt`: number of the execution, from 1.
    `timeout`: seconds to the deadline the handler sees. `prepare`: gets the context before the handler starts, for example to
    call `request_cancel`. Returns the context, whose `take_progress()` tells what was reported. Raises what the handler raises,
    RegistrationError when there is none, and what `app.enqueue` raises.
    """
    new = compose(app.registry, Enqueue(job, payload, **options), EnvelopeSettings().max_payload_bytes)
    with ThreadPoolExecutor(1) as executor:
        route = find_route(Dispatcher(app, executor), new.queue, new.type_key)
        ctx = JobContext(_fetched(new, attempt), new.queue, WORKER, timeout)
        if prepare is not None:
            prepare(ctx)
        await route.run(route.decode(new.payload), ctx)
    return ctx


def run_job_sync(app: ChokaQ, job: object, payload: object = None, /, **options: Unpack[Options]) -> JobContext:
    """As `run_job`, for tests without an event loop."""
    return asyncio.run(run_job(app, job, payload, **options))


def find_route(dispatcher: Dispatcher, queue: str, type_key: str) -> Route:
    """The route of a type key. Raises RegistrationError when it has no handler."""
    route = dispatcher.find(queue, type_key)
    if route is None:
        raise RegistrationError(f"{type_key} has no handler: add @app.handler(…), or @app.pipe({queue!r})")
    return route


def _fetched(job: NewJob, attempt: int) -> FetchedJob:
    now = datetime.now(UTC)
    return FetchedJob(
        id=job.id,
        type_key=job.type_key,
        payload=job.payload,
        lease=attempt,
        priority=job.priority,
        attempt_count=attempt - 1,
        crash_count=0,
        created_at=now,
        due_at=job.due_at or now,
        age_ms=0,
        tags=job.tags,
        created_by=job.created_by,
        headers=job.headers,
    )
