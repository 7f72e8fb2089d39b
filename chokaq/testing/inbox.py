"""An application on a store of its own, whose due jobs a test runs in its own process."""

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from chokaq.app import ChokaQ
from chokaq.config.settings import Settings
from chokaq.jobs.context import JobContext
from chokaq.jobs.dispatch import Dispatcher
from chokaq.jobs.ids import new_id
from chokaq.lifecycle.errors import Snooze
from chokaq.lifecycle.failures import Kind, Verdict, classify, describe
from chokaq.lifecycle.retry import backoff, exhausted, throttle
from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.observe.redact import Redactor
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Failure, FetchedJob, Held, Registration, Release, Retry, WorkerInfo
from chokaq.testing.keys import StoreKeys

PAGE = 100
_REASONS = {
    Kind.FATAL: FailureReason.FATAL_ERROR,
    Kind.THROTTLED: FailureReason.THROTTLED,
    Kind.TRANSIENT: FailureReason.TRANSIENT,
}


@dataclass
class Drained:
    """What became of the jobs that ran, by id."""

    succeeded: list[str] = field(default_factory=list)
    retried: dict[str, BaseException] = field(default_factory=dict)
    """Waiting for their next attempt, with the error of this one."""
    failed: dict[str, BaseException] = field(default_factory=dict)
    """In the DLQ, with the error."""
    snoozed: list[str] = field(default_factory=list)


class Inbox:
    """Points an application at a fresh SQLite file for the length of a `with` block, and runs what it enqueues there.

    ```python
    with Inbox(app) as inbox:
        app.enqueue_sync(SendEmail(to="user@example.com", template="welcome"))
        assert inbox.drain().failed == {}
    ```
    """

    def __init__(self, app: ChokaQ, settings: Settings | None = None) -> None:
        """`settings`: policies and limits to use; one database stands for all of theirs."""
        self._app = app
        self._base = settings or Settings()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="chokaq-"))
        database = DatabaseSettings(url=f"sqlite:///{Path(folder) / 'inbox.db'}")
        self._stack.enter_context(self._app.bound_to(self._base.only(database)))
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._stack.close()

    def drain(self) -> Drained:
        """Run all due jobs, and those that they enqueue, until none is due. Retries wait for their time: drain again later."""
        return asyncio.run(self.adrain())

    async def adrain(self) -> Drained:
        """As `drain`, inside an event loop."""
        drained = Drained()
        with closing(self._app.store.session()) as session, ThreadPoolExecutor(1) as executor:
            dispatcher = Dispatcher(self._app, executor)
            workers: dict[str, tuple[Registration, int]] = {}
            while True:
                queues = sorted(self._app.registry.queues | set(session.hot_queues()))
                ran = [await self._run_queue(session, dispatcher, queue, workers, drained) for queue in queues]
                if not any(ran):
                    return drained

    async def _run_queue(
        self,
        session: Session,
        dispatcher: Dispatcher,
        queue: str,
        workers: dict[str, tuple[Registration, int]],
        drained: Drained,
    ) -> bool:
        """Run one page of a queue's due jobs; False when there was none."""
        worker, request = workers.get(queue) or (_register(session, queue), 1)
        workers[queue] = worker, request + 1
        jobs = session.fetch_jobs(worker, request, PAGE).jobs
        for job in jobs:
            if session.start_jobs(worker, [Held(job.id, job.lease)]) == [Answer.APPLIED]:
                await self._run(session, dispatcher, worker, job, drained)
        return bool(jobs)

    async def _run(
        self, session: Session, dispatcher: Dispatcher, worker: Registration, job: FetchedJob, drained: Drained
    ) -> None:
        route = dispatcher.find(worker.queue, job.type_key)
        ctx = JobContext(job, worker.queue, worker.worker_id, None)
        ctx.keys = keys = StoreKeys(session, worker, self._app.settings.idempotency)
        failure: BaseException | None = None
        try:
            if route is None:
                raise NotImplementedError(f"{job.type_key} has no handler")
            await route.run(route.decode(job.payload), ctx)
        except Exception as error:  # noqa: BLE001 - a handler raises what it likes; the verdict is the policy's
            failure = error
        keys.close(ctx)
        if failure is None:
            session.archive_succeeded(worker, [Held(job.id, job.lease)])
            drained.succeeded.append(job.id)
        elif isinstance(failure, Snooze):
            session.release_jobs(worker, [Release(job.id, job.lease, delay_ms=round(failure.delay * 1000))])
            drained.snoozed.append(job.id)
        else:
            verdict = classify(failure) if route is None else route.classify(failure)
            self._fail(session, worker, job, failure, verdict=verdict, drained=drained)

    def _fail(
        self,
        session: Session,
        worker: Registration,
        job: FetchedJob,
        error: BaseException,
        *,
        verdict: Verdict,
        drained: Drained,
    ) -> None:
        policy = self._app.policy(worker.queue, job.type_key)
        words, attempts = describe(error, Redactor(self._app.settings.redact)), job.attempt_count + 1
        record = AttemptError(words.type, words.message, words.trace)
        reason = _REASONS[verdict.kind]
        if verdict.kind is Kind.FATAL or exhausted(attempts, policy.max_attempts):
            session.archive_failed(worker, [Failure(job.id, job.lease, JobStatus.FAILED, reason, record)])
            drained.failed[job.id] = error
            return
        if verdict.retry_after is not None:
            delay = throttle(verdict.retry_after, maximum=policy.retry_max_delay)
        else:
            delay = backoff(
                attempts,
                base=policy.retry_base_delay,
                multiplier=policy.retry_multiplier,
                maximum=policy.retry_max_delay,
            )
        session.reschedule_for_retry(worker, [Retry(job.id, job.lease, round(delay * 1000), record, reason)])
        drained.retried[job.id] = error


def _register(session: Session, queue: str) -> Registration:
    return session.register_worker(
        WorkerInfo(worker_id=new_id(), queue=queue, host="test", pid=os.getpid(), version="test", max_workers=1)
    )
