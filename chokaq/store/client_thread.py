"""The thread behind a client: one connection; whatever piles up while a call is under way goes out with the next one.

A caller that may block and finds nothing under way makes its call itself: that spares two switches of threads.
"""

import asyncio
import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

from chokaq.lifecycle.states import JobStatus
from chokaq.observe.metrics.sink import sql
from chokaq.store.batching import enqueue_folded, weigh
from chokaq.store.errors import KeyContention, StoreRefused, StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import MAX_BYTES_PER_CALL, MAX_JOBS_PER_CALL, Session, Store
from chokaq.store.records import Enqueued, NewJob

MAX_RETRY_DELAY = 5.0
Operation = Callable[[Session], Any]
Accepted = Callable[[Sequence[NewJob], Sequence[Enqueued]], None]


class Work:
    """One caller's wish: rows for a call that carries those of others too, or (no rows) an operation of its own."""

    __slots__ = ("future", "loop", "operation", "rows", "weight")

    def __init__(
        self,
        future: "asyncio.Future[Any] | Future[Any]",
        loop: asyncio.AbstractEventLoop | None,
        *,
        rows: Sequence[Any] = (),
        operation: Operation | None = None,
    ) -> None:
        """`loop`: where an asyncio future belongs; None: `future` is a thread's."""
        self.future = future
        self.loop = loop
        self.rows = rows
        self.operation = operation
        self.weight = sum(weigh(row) if isinstance(row, NewJob) else 0 for row in rows)


class ClientThread:
    """Takes work from any thread. Used by ClientLane, which never puts work in after `finish`."""

    def __init__(self, store: Store, options: DatabaseSettings, accepted: Accepted) -> None:
        """`accepted` is called in this thread after every commit, before the callers are told."""
        self._store = store
        self._options = options
        self._accepted = accepted
        self._calling = threading.Lock()
        self._alone = threading.Lock()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._jobs: deque[Work] = deque()
        self._ids: deque[Work] = deque()
        self._operations: deque[Work] = deque()
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._run, name="chokaq-client", daemon=True)
        self._thread.start()

    # ── from any thread ───────────────────────────────────────────────────────────────────────────────────────────────
    def put(self, work: Work) -> None:
        """Queue one piece of work; its future gets the result or the error."""
        pile = self._operations if work.operation else self._jobs if isinstance(work.rows[0], NewJob) else self._ids
        with self._changed:
            pile.append(work)
            self._changed.notify()

    def try_here(self, work: Work) -> bool:
        """Do one piece of work in the calling thread, when nobody else is at it; False: `put` it."""
        if self._busy() or not self._alone.acquire(blocking=False):
            return False
        try:
            if work.operation is not None:
                self._operate(work)
            elif isinstance(work.rows[0], NewJob):
                self._enqueue([work])
            else:
                self._look([work])
        finally:
            self._alone.release()
            if self._ending.is_set():
                # The thread may have closed the connection before this call opened it again.
                self._drop_session()
        return True

    def finish(self, timeout: float | None) -> None:
        """Do what is queued, without pauses between retries, close the connection and end; waits for it up to `timeout` s."""
        with self._changed:
            self._ending.set()
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def hold(self, timeout: float) -> bool:
        """Keep the thread out of the store until `release`; False when a call is still under way after `timeout` s."""
        return self._calling.acquire(timeout=timeout)

    def release(self) -> None:
        """Let it go on, after a `hold` that answered True."""
        self._calling.release()

    # ── the thread ────────────────────────────────────────────────────────────────────────────────────────────────────
    def _run(self) -> None:
        try:
            while self._wait():
                if works := self._take(self._jobs):
                    self._enqueue(works)
                if works := self._take(self._ids):
                    self._look(works)
                with self._changed:
                    operations, self._operations = self._operations, deque()
                for work in operations:
                    self._operate(work)
        finally:
            self._drop_session()

    def _wait(self) -> bool:
        with self._changed:
            while not (self._jobs or self._ids or self._operations):
                if self._ending.is_set():
                    return False
                self._changed.wait()
        return True

    def _busy(self) -> bool:
        return self._calling.locked() or bool(self._jobs or self._ids or self._operations)

    def _take(self, pile: deque[Work]) -> list[Work]:
        """As much of a pile as one call may carry, without the work whose caller has gone away."""
        works: list[Work] = []
        rows = weight = 0
        with self._changed:
            while pile:
                work = pile[0]
                rows, weight = rows + len(work.rows), weight + work.weight
                if works and (rows > MAX_JOBS_PER_CALL or weight > MAX_BYTES_PER_CALL):
                    break
                pile.popleft()
                if not work.future.cancelled():
                    works.append(work)
        return works

    def _enqueue(self, works: list[Work]) -> None:
        jobs: list[NewJob] = [job for work in works for job in work.rows]
        try:
            answers: list[Enqueued] = self._call(lambda session: enqueue_folded(session.enqueue_jobs, jobs))
        except StoreRefused as error:
            if len(works) == 1:
                _fail(works, error)
                return
            # One bad job is no reason to refuse its neighbours: halve until it is alone.
            half = len(works) // 2
            self._enqueue(works[:half])
            self._enqueue(works[half:])
        except BaseException as error:  # noqa: BLE001 - the callers get it
            _fail(works, error)
        else:
            # The jobs are accepted, whatever becomes of the bell: nothing here may cost a caller its answer.
            with contextlib.suppress(Exception):
                self._accepted(jobs, answers)
            _succeed(works, answers)

    def _look(self, works: list[Work]) -> None:
        ids: list[str] = [job_id for work in works for job_id in work.rows]
        try:
            statuses: list[JobStatus | None] = self._call(lambda session: session.get_statuses(ids))
        except BaseException as error:  # noqa: BLE001 - the callers get it
            _fail(works, error)
        else:
            _succeed(works, statuses)

    def _operate(self, work: Work) -> None:
        if work.operation is None or work.future.cancelled():
            return
        try:
            answer = self._call(work.operation)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            _fail([work], error)
        else:
            _deliver([(work, answer, None)])

    def _call(self, operation: Operation) -> Any:
        """Run an operation on the connection; a passing error is retried, with a growing, jittered pause in between."""
        tries = self._options.retries + 1
        for number in range(1, tries + 1):
            try:
                with self._calling:
                    if self._session is None:
                        self._session = self._store.session()
                    return operation(self._session)
            except (StoreUnavailable, KeyContention) as error:
                # Whatever state the connection is in after a failure, a new one is in a known state.
                self._drop_session()
                if number == tries or self._ending.is_set():
                    raise
                sql.repeated(error.number)
                ceiling = min(self._options.retry_base_delay * 2 ** (number - 1), MAX_RETRY_DELAY)
                self._ending.wait(ceiling * random.uniform(0.5, 1.0))
                error.__traceback__ = None
            except StoreRefused:
                raise
            except BaseException:
                self._drop_session()
                raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _drop_session(self) -> None:
        with self._calling:
            session, self._session = self._session, None
            if session is not None:
                with contextlib.suppress(Exception):
                    session.close()


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────
Outcome = tuple[Work, Any, BaseException | None]


def _succeed(works: Sequence[Work], answers: Sequence[Any]) -> None:
    outcomes: list[Outcome] = []
    start = 0
    for work in works:
        outcomes.append((work, answers[start : start + len(work.rows)], None))
        start += len(work.rows)
    _deliver(outcomes)


def _fail(works: Sequence[Work], error: BaseException) -> None:
    _deliver([(work, None, error if index == 0 else _copy(error)) for index, work in enumerate(works)])


def _copy(error: BaseException) -> BaseException:
    """An exception of its own for every caller: one that is raised in several tasks piles up their tracebacks."""
    try:
        copied = type(error)(*error.args)
    except Exception:  # noqa: BLE001 - an exception with a constructor of its own is shared
        return error
    copied.__cause__ = error.__cause__
    return copied


def _deliver(outcomes: Sequence[Outcome]) -> None:
    """Give every caller its answer: threads at once, each event loop by one wake-up."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for outcome in outcomes:
        loop = outcome[0].loop
        if loop is None:
            _settle([outcome])
        else:
            by_loop.setdefault(loop, []).append(outcome)
    for loop, group in by_loop.items():
        # A closed loop has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, group)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for work, answer, error in outcomes:
        # A caller may go away at any moment.
        with contextlib.suppress(asyncio.InvalidStateError, InvalidStateError):
            if error is not None:
                work.future.set_exception(error)
            else:
                work.future.set_result(answer)
