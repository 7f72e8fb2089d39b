"""ChokaQ: what an application holds. Registrations, and everything that goes to the store on its behalf."""

import asyncio
import concurrent.futures
import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import msgspec

from chokaq.config import load_settings
from chokaq.config.settings import Policy, Settings
from chokaq.jobs.enqueue import Enqueue, Options
from chokaq.jobs.errors import JobNotFound
from chokaq.jobs.figures import NOT_COUNTED, Counted, Uncounted
from chokaq.jobs.ids import is_id, new_id
from chokaq.jobs.profile import Profile, Registrar
from chokaq.jobs.tracing import with_trace
from chokaq.lifecycle.failures import cut
from chokaq.observe.metrics.sink import Sink
from chokaq.observe.redact import Redactor
from chokaq.observe.tracer import tracing
from chokaq.store.batching import chunks, enqueue_folded
from chokaq.store.client import ClientLane, tell_duplicates
from chokaq.store.protocol import Session, Store
from chokaq.store.records import CancelAnswer, Enqueued, JobView, NewJob

if TYPE_CHECKING:
    import svcs

    from chokaq.observe.tracing import Tracing
    from chokaq.store.several import SeveralLanes

WAIT_MIN, WAIT_MAX = 0.01, 1.0
DEFAULT_ACTOR = "application"
MAX_ACTOR, MAX_REASON = 100, 1_000


class ChokaQ(Registrar):
    """An application's jobs. Create one per process at import time; it opens nothing until it is used, and survives forks.

    Methods that reach the store come as a coroutine and, with `_sync`, for threads; both may be called from any thread or loop.
    They raise StoreUnavailable when the store stays away for longer than the retries last, SchemaMismatch and StoreMisconfigured
    when it is not what it should be, and what they say themselves.
    """

    def __init__(self, settings: Settings | str | Path | None = None) -> None:
        """`settings`: Settings, or the path of a YAML file; None: searched when first needed (see load_settings)."""
        super().__init__()
        self._services: svcs.Registry | None = None
        self._given = settings
        self._settings: Settings | None = settings if isinstance(settings, Settings) else None
        self._lane: tuple[Store, ClientLane | SeveralLanes] | None = None
        self._tracing: Tracing | None = None
        """Records spans of enqueues; known once the lane is open."""
        self._sink: Sink | None = None
        self._lock = threading.RLock()

    # ── settings and store ────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def settings(self) -> Settings:
        """The settings, read when first asked for. Raises ConfigError listing everything that is wrong with them."""
        if self._settings is None:
            with self._lock:
                if self._settings is None:
                    self._settings = load_settings(None if self._given is None else Path(str(self._given)))
        return self._settings

    @property
    def store(self) -> Store:
        """The place where the jobs live (of several databases the default one); holds no connection."""
        return self._opened()[0]

    @property
    def services(self) -> "svcs.Registry":
        """Where the parameters of handlers come from; register factories and values here."""
        if self._services is None:
            # Imported late: svcs brings the web frameworks it finds along, half a second that commands need not spend.
            import svcs

            with self._lock:
                if self._services is None:
                    self._services = svcs.Registry()
        return self._services

    def bind(self, settings: Settings) -> None:
        """Use these settings from now on. A worker binds its own, so that its handlers enqueue into the same store."""
        self.close()
        with self._lock:
            self._settings, self._lane = settings, None

    @contextlib.contextmanager
    def bound_to(self, settings: Settings) -> Iterator[None]:
        """Use other settings inside a `with` block (for tests)."""
        before = self._settings
        self.bind(settings)
        try:
            yield
        finally:
            self.close()
            with self._lock:
                self._settings, self._lane = before, None

    def count_with(self, sink: Sink | None) -> None:
        """Count enqueues there from now on; None: nowhere. See chokaq.observe.metrics.instrument, which calls this."""
        self._sink = sink

    def policy(self, queue: str, type_key: str) -> Policy:
        """The policy of a type in a queue: YAML of the type, then the registration's, then YAML of the queue, then defaults."""
        settings = self.settings
        known = self.registry.find(type_key)
        if known is None or not known.policy:
            return settings.policy(queue, type_key)
        fields = {**known.policy, **settings.types.get(type_key.lower(), {})}
        return msgspec.structs.replace(settings.policy(queue, type_key), **fields)

    def include(self, profile: Profile) -> None:
        """Add a profile's registrations. Raises RegistrationError when one of them is taken. Nothing can be added to it later."""
        self.registry.include(profile.registry)
        profile.close()

    def mount_deck(self, asgi_app: Any, path: str = "/chokaq") -> None:
        """Put The Deck, the web dashboard, into a FastAPI or Starlette application, below `path`. Once per process.

        Access is that of `deck:` in chokaq.yaml; without users, token or proxy header The Deck answers under loopback names only.
        Edited payloads are checked against this application's contracts. Raises DeckNotInstalled without the extra `chokaq[deck]`.
        """
        from chokaq.deck.mount import mount_deck

        mount_deck(self, asgi_app, path)

    # ── enqueue ───────────────────────────────────────────────────────────────────────────────────────────────────────
    async def enqueue(self, job: object, payload: object = None, /, **options: Unpack[Options]) -> Enqueued:
        """Accept a job durably; the answer comes after the commit.

        `job`: an object of a registered contract; or a type key, with the job or plain data for it as `payload`. The answer says
        the id, whether the job was created or an existing one holds its idempotency key, that job's state, and whether its payload
        differs. Concurrent calls share round trips. Raises UnknownJobType, PayloadError, PayloadTooLarge and EnqueueError before
        anything is stored.
        """
        with self._call("enqueue") as call:
            rows = self._compose(call, [Enqueue(job, payload, **options)])
            return call.answered(await self._accept(rows, many=False))[0]

    def enqueue_sync(self, job: object, payload: object = None, /, **options: Unpack[Options]) -> Enqueued:
        """As `enqueue`, for threads."""
        with self._call("enqueue") as call:
            rows = self._compose(call, [Enqueue(job, payload, **options)])
            return call.answered(self._accept_sync(rows, many=False))[0]

    async def enqueue_many(self, jobs: Iterable[object]) -> list[Enqueued]:
        """Accept many jobs: one answer each, in order; one round trip and one transaction per thousand (or 4 MB).

        Items are jobs, or `Enqueue(job, …)` with options of their own. All are checked before the first is sent; of items with an
        equal idempotency key the first one wins. A failure between two transactions carries a note that says how far it came.
        With several databases each gets the jobs of its queues, whatever becomes of the others: transactions and keys are its own.
        """
        with self._call("enqueue_many") as call:
            rows = self._compose(call, jobs)
            return call.answered(await self._accept(rows, many=True))

    def enqueue_many_sync(self, jobs: Iterable[object]) -> list[Enqueued]:
        """As `enqueue_many`, for threads."""
        with self._call("enqueue_many") as call:
            rows = self._compose(call, jobs)
            return call.answered(self._accept_sync(rows, many=True))

    def enqueue_in(self, cursor: Any, job: object, payload: object = None, /, **options: Unpack[Options]) -> Enqueued:
        """Enqueue on the caller's own cursor (pyodbc or sqlite3): visible with the commit, gone with the rollback.

        Blocks, and is not retried: the transaction is the caller's. A cursor in autocommit is refused; so is one on another
        database than the queue's, as far as its driver tells (with SQL Server by the database's name, not the server's). Call
        `ring(queue)` after the commit when a worker on this host should start at once instead of at its next poll.

        After any error, and above all after a timeout on the client's side (pyodbc's `connection.timeout`, a call that was
        cancelled or abandoned), it is not known whether the job stands in the open transaction: roll back, on that connection,
        before anything else. Never commit, and never call again inside that transaction: the job might be accepted twice. When
        the rollback fails, or the connection is broken, close it: the server then rolls back by itself. Then begin anew. When it
        was the commit that got no answer, only an idempotency key keeps the second try from being a second job.
        """
        with self._call("enqueue_in") as call:
            rows = self._compose(call, [Enqueue(job, payload, **options)])
            return call.answered(self._accept_in(cursor, rows, many=False))[0]

    def enqueue_many_in(self, cursor: Any, jobs: Iterable[object]) -> list[Enqueued]:
        """As `enqueue_in`, for many jobs (see `enqueue_many`), all in the caller's transaction, thus in one database."""
        with self._call("enqueue_many_in") as call:
            rows = self._compose(call, jobs)
            return call.answered(self._accept_in(cursor, rows, many=True))

    def ring(self, *queues: str) -> None:
        """Wake an idle worker of each queue on this host. Never blocks, never raises."""
        self._client.ring(*queues)

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────────────
    async def get(self, job_id: str) -> JobView | None:
        """The job with payload, headers and progress note, from whichever pillar; None when there is no such job.

        An id does not tell the database: with several they are asked one after the other, first where this process enqueued or
        found the job, and None means that all have answered. (`cancel` and `wait` likewise.)
        """
        return await self._client.find(job_id, _get(job_id))

    def get_sync(self, job_id: str) -> JobView | None:
        """As `get`, for threads."""
        return self._client.find_sync(job_id, _get(job_id))

    async def cancel(self, job_id: str, *, reason: str | None = None, actor: str | None = None) -> CancelAnswer:
        """Cancel a job: at once while it waits; a running one is told, and ends Cancelled unless it succeeds first.

        `actor` (cut to 100 characters) and `reason` (1,000) go to the audit log. The answer's `result` is cancelled, requested,
        final or unknown (also for a job that another database login enqueued: operators cancel those).
        """
        return await self._client.find(job_id, _cancel(job_id, reason, actor), _is_known)

    def cancel_sync(self, job_id: str, *, reason: str | None = None, actor: str | None = None) -> CancelAnswer:
        """As `cancel`, for threads."""
        return self._client.find_sync(job_id, _cancel(job_id, reason, actor), _is_known)

    async def wait(self, job_id: str, timeout: float | timedelta | None = None) -> JobView:  # noqa: ASYNC109 - polls
        """The job once it has succeeded or stopped. `timeout`: seconds or a timedelta; None: as long as it takes.

        Raises TimeoutError, and JobNotFound when no pillar holds the job.
        """
        for pause in _pauses(job_id, timeout):
            status = await self._client.status(job_id) if is_id(job_id) else None
            if status is None:
                raise JobNotFound(f"there is no job {job_id}")
            if status.is_final:
                return _found(job_id, await self.get(job_id))
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: _pauses ends by raising")

    def wait_sync(self, job_id: str, timeout: float | timedelta | None = None) -> JobView:
        """As `wait`, for threads."""
        for pause in _pauses(job_id, timeout):
            status = self._client.status_sync(job_id) if is_id(job_id) else None
            if status is None:
                raise JobNotFound(f"there is no job {job_id}")
            if status.is_final:
                return _found(job_id, self.get_sync(job_id))
            time.sleep(pause)
        raise AssertionError("unreachable: _pauses ends by raising")

    # ── end ───────────────────────────────────────────────────────────────────────────────────────────────────────────
    def close(self) -> None:
        """Finish what is under way and close the connection; harmless when repeated. A later call opens a new one."""
        with self._lock:
            lane = self._lane
        if lane is not None:
            lane[1].close()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        # In a thread of its own: the loop's executor may be full of threads that never end.
        closed: concurrent.futures.Future[None] = concurrent.futures.Future()

        def work() -> None:
            try:
                self.close()
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                closed.set_exception(error)
            else:
                closed.set_result(None)

        threading.Thread(target=work, name="chokaq-close", daemon=True).start()
        await asyncio.wrap_future(closed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        await self.aclose()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _opened(self) -> "tuple[Store, ClientLane | SeveralLanes]":
        lane = self._lane
        if lane is None:
            with self._lock:
                lane = self._lane
                if lane is None:
                    settings = self.settings
                    traces, redactor = settings.tracing, Redactor(settings.redact)
                    self._tracing = tracing(traces.enabled, traces.relation, redactor)
                    lane = self._lane = _open(settings)
        return lane

    @property
    def _client(self) -> "ClientLane | SeveralLanes":
        return self._opened()[1]

    def _call(self, method: str) -> Uncounted:
        return NOT_COUNTED if self._sink is None else Counted(self._sink, method)

    def _compose(self, call: Uncounted, jobs: Iterable[object]) -> list[NewJob]:
        return call.compose(self.registry, jobs, self.settings.envelope.max_payload_bytes)

    async def _accept(self, jobs: list[NewJob], *, many: bool) -> list[Enqueued]:
        client = self._client
        if self._tracing is None:
            return await client.enqueue(jobs)
        with self._tracing.sending(jobs, many=many) as sending:
            answers = await client.enqueue(with_trace(jobs, sending))
            sending.answered(answers)
        return answers

    def _accept_sync(self, jobs: list[NewJob], *, many: bool) -> list[Enqueued]:
        client = self._client
        if self._tracing is None:
            return client.enqueue_sync(jobs)
        with self._tracing.sending(jobs, many=many) as sending:
            answers = client.enqueue_sync(with_trace(jobs, sending))
            sending.answered(answers)
        return answers

    def _accept_in(self, cursor: Any, jobs: list[NewJob], *, many: bool) -> list[Enqueued]:
        client = self._client
        if self._tracing is None:
            return _enqueue_in(client, cursor, jobs)
        with self._tracing.sending(jobs, many=many) as sending:
            answers = _enqueue_in(client, cursor, with_trace(jobs, sending))
            sending.answered(answers)
        return answers


def _enqueue_in(client: "ClientLane | SeveralLanes", cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
    answers: list[Enqueued] = []
    for chunk in chunks(jobs):
        answers += enqueue_folded(lambda unique: client.enqueue_in(cursor, unique), chunk)
    tell_duplicates(jobs, answers)
    return answers


def _open(settings: Settings) -> "tuple[Store, ClientLane | SeveralLanes]":
    """The default database's store, and the way to it, or to all of them."""
    if settings.several:
        from chokaq.store.several import SeveralLanes

        lanes = SeveralLanes(settings.databases, settings.database_name)
        return lanes.store(settings.default_database), lanes
    from chokaq.store.open import open_store

    store = open_store(settings.database)
    return store, ClientLane(store, settings.database)


def _get(job_id: str) -> Callable[[Session], JobView | None]:
    return lambda session: session.get_job(job_id) if is_id(job_id) else None


def _cancel(job_id: str, reason: str | None, actor: str | None) -> Callable[[Session], CancelAnswer]:
    who = cut(actor or DEFAULT_ACTOR, MAX_ACTOR)
    why = None if reason is None else cut(reason, MAX_REASON)
    request = new_id()

    def operation(session: Session) -> CancelAnswer:
        if not is_id(job_id):
            return CancelAnswer(job_id, "unknown")
        return session.cancel_jobs([job_id], who, why, own_only=True, request=request)[0]

    return operation


def _is_known(answer: CancelAnswer) -> bool:
    return answer.result != "unknown"


def _found(job_id: str, view: JobView | None) -> JobView:
    if view is None:
        raise JobNotFound(f"job {job_id} has ended and was purged")
    return view


def _pauses(job_id: str, timeout: float | timedelta | None) -> Iterator[float]:
    """Seconds to pause between two looks: growing, jittered, never past the timeout; then TimeoutError."""
    limit = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    deadline = None if limit is None else time.monotonic() + limit
    pause = WAIT_MIN
    while True:
        rest = None if deadline is None else deadline - time.monotonic()
        yield (
            pause * random.uniform(0.75, 1.25)
            if rest is None
            else min(pause * random.uniform(0.75, 1.25), max(rest, 0.0))
        )
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError(f"job {job_id} has not ended within {limit:g} s")
        pause = min(pause * 1.5, WAIT_MAX)
