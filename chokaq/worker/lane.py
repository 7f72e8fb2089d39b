"""A lane: one thread with one session, so that the event loop never waits for the store.

Whatever a lane is asked to do it repeats until the outcome is known: an outage of minutes delays work, it neither fails a job
nor ends the child.
"""

import asyncio
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import structlog

from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import (
    SchemaMismatch,
    StoreConflict,
    StoreError,
    StoreMisconfigured,
    StoreRefused,
    StoreUnavailable,
)
from chokaq.store.protocol import Session, Store
from chokaq.worker.counts import Counts
from chokaq.worker.tally import LaneTally

T = TypeVar("T")

_log = structlog.get_logger("chokaq")
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
"""Between the tries of an outage, jittered: the work resumes within seconds of the store's return."""
_LONGEST_REST = 10.0
"""After a try that took long: a store that is there but overloaded must not be kept so by the tries themselves."""
_CONFLICTS = 5
"""A row that stands there already is a race so many times (the store itself has tried several times for each), then a refusal."""
_BAD_VALUES = (ValueError, TypeError, OverflowError)
"""Raised by a driver or codec for a value it cannot send: as final as the store's own refusal."""


class LaneClosed(Exception):
    """The lane was closed while a call waited for the store."""


class Lane(ABC):
    """Base of the three lanes. Start it, await its readiness, close it."""

    def __init__(self, name: str, store: Store, counts: Counts) -> None:
        """`name`: claim, settle or pulse. Call it on the running loop, after the fork."""
        self.name = name
        self._store = store
        self._counts = counts
        self._loop = asyncio.get_running_loop()
        self._session: Session | None = None
        self._closing = threading.Event()
        self.tally: LaneTally | None = None
        """What is counted of its calls; None: nothing. Set before it is started."""
        self._down_since: float | None = None
        self._asked_at: float | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._main, name=f"chokaq-{name}", daemon=True)

    async def start(self) -> None:
        """Start the thread and wait until its session is open and warm; an unavailable store is waited for.

        Raises StoreMisconfigured, SchemaMismatch or StoreRefused: what no waiting mends.
        """
        self._thread.start()
        await self._ready

    @property
    def ended(self) -> "asyncio.Future[None]":
        """Done when the thread has ended; carries the exception when it was a defect."""
        return self._ended

    async def close(self) -> None:
        """Finish the call under way, close the session and end the thread. A call that waits for the store is given up."""
        self._closing.set()
        self._wake()
        if self._thread.is_alive():
            await asyncio.wait((self._ended,))

    def unanswered_for(self, now: float) -> float:
        """Seconds, at `now` (time.monotonic()), that the call under way has had no answer, repeats included; 0 without one."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else now - asked_at

    # ── for the lanes ─────────────────────────────────────────────────────────────────────────────────────────────────
    @abstractmethod
    def _work(self) -> None:
        """Serve until closed; runs in the thread."""

    @abstractmethod
    def _warm(self, session: Session) -> None:
        """Call every procedure of this lane with an empty set, so that the first real call is not the slow one."""

    @abstractmethod
    def _wake(self) -> None:
        """Make a waiting `_work` notice that the lane is closing."""

    def _tell(self, callback: Callable[..., None], *args: Any) -> None:
        """Run a callback on the loop; dropped when the loop has gone. One that raises ends the child: it is a defect."""
        try:
            self._loop.call_soon_threadsafe(self.safely, callback, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def safely(self, callback: Callable[..., None], *args: Any) -> None:
        """Run a callback on the loop; one that raises ends the lane, and with it the child."""
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 - the loop would only log it, and the child would wait for ever
            _settle_future(self._ended, error)

    def _until_known(self, what: str, call: Callable[[Session], T], *, booting: bool = False) -> T:
        """Call the store, again and again until it answers. Raises StoreRefused, LaneClosed; booting: every lasting error."""
        tries = conflicts = 0
        self._asked_at = time.monotonic()
        while True:
            tried_at = time.monotonic()
            try:
                answer = call(self._connect())
            except StoreRefused:
                self._refused()
                raise
            except _BAD_VALUES as error:
                self._refused()
                raise StoreRefused(f"{what}: {type(error).__name__}: {error}") from error
            except (SchemaMismatch, StoreMisconfigured, ImportError) as error:
                if booting:
                    raise error if isinstance(error, StoreError) else StoreMisconfigured(str(error)) from error
                self._failed(what, error, tries)
            except StoreConflict as error:
                conflicts += 1
                self._failed(what, error, tries)
                if conflicts >= _CONFLICTS:
                    self._answered()
                    raise StoreRefused(str(error)) from error
            except Exception as error:  # noqa: BLE001 - a defect below must not cost what this lane still has to write
                self._failed(what, error, tries)
            else:
                self._answered()
                if self.tally is not None:
                    self.tally.answered(what, tried_at)
                return answer
            tries += 1
            if self.tally is not None:
                self.tally.failed(tried_at)
            if self._closing.wait(_pause(tries, time.monotonic() - tried_at)):
                raise LaneClosed(f"the {self.name} lane was closed during {what}")

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _connect(self) -> Session:
        if self._session is None:
            self._session = self._store.session()
        return self._session

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except Exception as error:  # noqa: BLE001 - it is thrown away whatever it says
                _log.debug("session_close_failed", lane=self.name, error=str(error))

    def _refused(self) -> None:
        self._counts.store_errors += 1
        self._asked_at = None
        if self.tally is not None:
            self.tally.back()

    def _failed(self, what: str, error: Exception, tries: int) -> None:
        self._counts.store_errors += 1
        sql.repeated(getattr(error, "number", ""))
        passing = isinstance(error, StoreUnavailable)
        # A deadlock victim's connection is sound, so the first repeat goes over the same one; after that a new one is tried.
        if tries > 0 or not passing:
            self._disconnect()
        if tries == 0 and passing:
            return
        if self._down_since is None:
            self._down_since = time.monotonic()
            _log.warning(
                "store_unavailable",
                lane=self.name,
                call=what,
                error=f"{type(error).__name__}: {error}",
                exc_info=None if isinstance(error, StoreError) else error,
            )

    def _answered(self) -> None:
        self._asked_at = None
        if self.tally is not None:
            self.tally.back()
        if self._down_since is not None:
            _log.warning("store_available", lane=self.name, seconds=round(time.monotonic() - self._down_since, 1))
            self._down_since = None

    def _main(self) -> None:
        failure: BaseException | None = None
        try:
            self._until_known("open", self._warm, booting=True)
            self._tell(_settle_future, self._ready, None)
            self._work()
        except LaneClosed:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the loop, which ends the child
            failure = error
        finally:
            self._disconnect()
            self._tell(self._finish, failure)

    def _finish(self, failure: BaseException | None) -> None:
        if not self._ready.done():
            self._ready.set_exception(failure or LaneClosed(f"the {self.name} lane was closed while it opened"))
            failure = None
        _settle_future(self._ended, failure)


class CallLane(Lane):
    """The claim lane: runs one call after the other and answers each to the coroutine that asked."""

    def __init__(self, name: str, store: Store, counts: Counts) -> None:
        super().__init__(name, store, counts)
        self._calls: SimpleQueue[tuple[str, Callable[[Session], Any], asyncio.Future[Any]] | None] = SimpleQueue()

    def call(self, what: str, call: Callable[[Session], T]) -> "asyncio.Future[T]":
        """Run `call` in the lane until its outcome is known; `what` names it in logs. The future may raise StoreRefused."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._calls.put((what, call, future))
        return future

    def _warm(self, session: Session) -> None:
        """Nothing but the connection: the child's first calls are its registration and a fetch of size zero."""

    def _wake(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            what, call, future = item
            try:
                answer = self._until_known(what, call)
            except StoreRefused as error:
                self._tell(_settle_future, future, error)
            else:
                self._tell(_settle_future, future, None, answer)


def _settle_future(future: "asyncio.Future[Any]", failure: BaseException | None, answer: Any = None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(answer)
    else:
        future.set_exception(failure)


def _pause(tries: int, took: float) -> float:
    """Seconds to wait after so many tries, the last of which took so long: twice that, when it is more than usual."""
    usual = min(_FIRST_PAUSE * 2.0 ** min(tries - 1, 10), _LONGEST_PAUSE)
    rest = min(2.0 * took, _LONGEST_REST) if tries > 1 else 0.0
    return max(usual, rest) * random.uniform(0.5, 1.0)
