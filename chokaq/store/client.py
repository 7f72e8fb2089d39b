"""The client lane: how an application's enqueues and questions reach the store.

One thread and one connection per process, whatever number of tasks, threads and event loops call. Batching is self-clocking: a
call carries all that piled up while the previous one was under way; alone, a caller waits for nobody.
"""

import asyncio
import atexit
import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog

from chokaq.lifecycle.states import JobStatus
from chokaq.observe.levels import verbose
from chokaq.store.batching import chunks
from chokaq.store.client_thread import ClientThread, Operation, Work
from chokaq.store.doorbell import Doorbell
from chokaq.store.errors import StoreError
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Enqueued, NewJob

_log = structlog.get_logger("chokaq")
_T = TypeVar("_T")
EXIT_SECONDS = 2.0
"""How long the end of the interpreter waits for a call that is still under way."""

SOON = 60.0
"""A job due within so many seconds is rung for: whoever answers learns when it is due and is there in time."""

FORK_SECONDS = 2.0
"""How long a fork waits for a call that is under way."""


class ClientLane:
    """Calls a store from any thread and any event loop. Opens its connection with the first call, and anew after a fork.

    Passing errors are retried `options.retries` times inside a call, then StoreUnavailable reaches the caller; a job the store
    refuses harms no other caller's job. Every method raises StoreError and its kinds.
    """

    def __init__(self, store: Store, options: DatabaseSettings) -> None:
        self._store = store
        self._options = options
        self._lock = threading.Lock()
        self._thread: ClientThread | None = None
        self._bell = Doorbell(store.identity)
        self._held: ClientThread | None = None
        _lanes[id(self)] = self

    # ── enqueue ───────────────────────────────────────────────────────────────────────────────────────────────────────
    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept jobs durably; one answer per job, in order. Every thousand jobs (4 MB) is a transaction of its own."""
        answers: list[Enqueued] = []
        for chunk in chunks(jobs):
            with _accounted(answers, jobs):
                answers += await self._ask(rows=chunk)
        return answers

    def enqueue_sync(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """As `enqueue`, for threads: blocks until the store has answered."""
        answers: list[Enqueued] = []
        for chunk in chunks(jobs):
            with _accounted(answers, jobs):
                answers += self._ask_sync(rows=chunk)
        return answers

    # ── everything else ───────────────────────────────────────────────────────────────────────────────────────────────
    async def status(self, job_id: str) -> JobStatus | None:
        """The state of a job; many waiters share a call."""
        answer: list[JobStatus | None] = await self._ask(rows=[job_id])
        return answer[0]

    def status_sync(self, job_id: str) -> JobStatus | None:
        """As `status`, for threads."""
        answer: list[JobStatus | None] = self._ask_sync(rows=[job_id])
        return answer[0]

    async def find(
        self, job_id: str, operation: Callable[[Session], _T], found: Callable[[_T], bool] | None = None
    ) -> _T:
        """Run an operation about a job: here, since there is one database (see `SeveralLanes.find`)."""
        del job_id, found
        return await self.call(operation)

    def find_sync(
        self, job_id: str, operation: Callable[[Session], _T], found: Callable[[_T], bool] | None = None
    ) -> _T:
        """As `find`, for threads."""
        del job_id, found
        return self.call_sync(operation)

    def enqueue_in(self, cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue on the caller's own cursor; see `Store.enqueue_in`."""
        return self._store.enqueue_in(cursor, jobs)

    async def call(self, operation: Callable[[Session], _T]) -> _T:
        """Run an operation on the lane's connection, in its thread."""
        answer: _T = await self._ask(operation=operation)
        return answer

    def call_sync(self, operation: Callable[[Session], _T]) -> _T:
        """As `call`, for threads."""
        answer: _T = self._ask_sync(operation=operation)
        return answer

    def ring(self, *queues: str) -> None:
        """Wake an idle child of each queue on this host, if there is one. Never blocks, never raises."""
        for queue in queues:
            self._bell.ring(queue)

    def close(self, timeout: float | None = None) -> None:
        """Finish what is under way and close the connection. A later call opens a new one."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.finish(timeout)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _ask(self, *, rows: Sequence[Any] = (), operation: Operation | None = None) -> Any:
        loop = asyncio.get_running_loop()
        work = Work(loop.create_future(), loop, rows=rows, operation=operation)
        self._put(work)
        return await work.future  # type: ignore[misc]

    def _ask_sync(self, *, rows: Sequence[Any] = (), operation: Operation | None = None) -> Any:
        future: Future[Any] = Future()
        work = Work(future, None, rows=rows, operation=operation)
        with self._lock:
            thread = self._running()
        if not thread.try_here(work):
            self._put(work)
        return future.result()

    def _put(self, work: Work) -> None:
        with self._lock:
            self._running().put(work)

    def _running(self) -> ClientThread:
        """The thread, started when there is none; called with the lock held."""
        if self._thread is None:
            self._thread = ClientThread(self._store, self._options, self._ring_for)
        return self._thread

    def _ring_for(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> None:
        """After a commit: ring where new jobs are due already."""
        tell_duplicates(jobs, answers)
        self.ring(*due_queues(jobs, answers))


def tell_duplicates(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> None:
    """One line at debug for each enqueue that found the holder of its idempotency key."""
    if verbose.debug:
        for job, answer in zip(jobs, answers, strict=True):
            if not answer.created:
                _log.debug("duplicate_enqueued", job=answer.id, type=job.type_key, queue=job.queue)


def due_queues(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> set[str]:
    """The queues in which these enqueues created jobs that are due now, or before an idle child may ask the next time."""
    soon = datetime.now(UTC) + timedelta(seconds=SOON)
    return {
        job.queue
        for job, answer in zip(jobs, answers, strict=True)
        if answer.created and (job.due_at <= soon if job.due_at is not None else job.delay_ms <= SOON * 1_000)
    }


@contextlib.contextmanager
def _accounted(answers: list[Enqueued], jobs: Sequence[NewJob]) -> Any:
    """A failure in the middle of a long list says how far it came."""
    try:
        yield
    except StoreError as error:
        if answers:
            error.accepted = {job.id: answer for job, answer in zip(jobs, answers, strict=False)}
            error.add_note(f"the first {len(answers):,} of {len(jobs):,} jobs had been accepted")
        raise


# ── forks and the end ─────────────────────────────────────────────────────────────────────────────────────────────────
_lanes: "weakref.WeakValueDictionary[int, ClientLane]" = weakref.WeakValueDictionary()


def _alive() -> list[ClientLane]:
    """All lanes of this process; safe while another thread makes one."""
    return [lane for reference in _lanes.valuerefs() if (lane := reference()) is not None]


def _hold_all() -> None:
    """Before a fork: keep the lanes out of their databases, whose libraries' locks a child would inherit in a locked state."""
    for lane in _alive():
        thread = lane._thread
        lane._held = thread if thread is not None and thread.hold(FORK_SECONDS) else None


def _release_all() -> None:
    """After a fork, in the parent."""
    for lane in _alive():
        held, lane._held = lane._held, None
        if held is not None:
            held.release()


def _forget_all() -> None:
    """After a fork, in the child: the threads are not there, the connections are the parent's. Start without either."""
    for lane in _alive():
        if lane._thread is not None:
            # Closing the parent's connection here, if only by garbage collection, would end it for the parent: keep it for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(lane._thread))
        lane._thread = lane._held = None
        lane._lock = threading.Lock()


def _close_all() -> None:
    for lane in _alive():
        lane.close(EXIT_SECONDS)


os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_forget_all)
atexit.register(_close_all)
