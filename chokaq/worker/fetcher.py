"""Keeps the buffer filled, and asks no more often than there is reason to.

One fetch at a time, numbered 1, 2, 3 …; the lane repeats a number until its answer is known. What ends a nap: the doorbell, room
in the buffer, the next due job, the end of the poll interval.

A ring that this child has no room for is passed on, and its bell stays down until it next rests with room: the ring goes to a
sibling that may be idle, and a host whose children are all full is rung no more.
"""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Protocol

import structlog

from chokaq.config.settings import QueueSettings
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import MAX_JOBS_PER_CALL, Session
from chokaq.store.records import Fetch, LiveQueue, Registration
from chokaq.worker.counts import Counts
from chokaq.worker.lane import CallLane

_log = structlog.get_logger("chokaq")
_SYNC = 1.0
"""A child that wants no jobs still asks this often (seconds), for cancellations and live settings."""
_QUICK_TRIES = 3
"""An empty answer while jobs wait (others hold them locked) is asked again at once so many times."""
_REFUSED_PAUSE = 5.0


class Room(Protocol):
    """How much a child could take; kept by the child."""

    def held(self) -> int:
        """Jobs buffered, being started or running."""
        ...

    def limit(self) -> int:
        """Handlers that may run at once."""
        ...

    def ahead(self) -> int:
        """Jobs to hold beyond those running."""
        ...

    def accepting(self) -> bool:
        """False once the child claims no more."""
        ...


class Fetcher:
    """The claim side of a child; `run()` is its task."""

    def __init__(
        self,
        *,
        lane: CallLane,
        worker: Registration,
        queue: QueueSettings,
        room: Room,
        counts: Counts,
        deliver: Callable[[Fetch], None],
    ) -> None:
        """`deliver` is called with each answer, on the loop."""
        self._lane = lane
        self._worker = worker
        self._queue = queue
        self._room = room
        self._counts = counts
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._live = LiveQueue()
        self._request = 0
        self._asked_at = -_SYNC
        self._polls = 0
        self._tries = 0
        self._nudged = False
        self._rung = False
        self._nap: asyncio.Future[None] | None = None
        self._idle_for_room = False
        self.claiming = False
        """True while a fetch that may claim jobs is under way."""
        self.pass_on: Callable[[], None] = lambda: None
        """Called with a ring this child has no room for: takes its bell down and rings for a sibling."""
        self.listen: Callable[[], bool] = lambda: True
        """Called before a rest with room: sees to it that the bell hangs; False when it had been down until now."""

    @property
    def is_capped(self) -> bool:
        """True when a fleet-wide cap applies: then nothing is fetched ahead."""
        return self._live.fleet_max_workers is not None or self._queue.fleet_max_workers is not None

    def ring(self) -> None:
        """A job was committed on this host: ask at once, if jobs are wanted."""
        if self._wanted():
            self._rung = True
            self._tries = 0
            self._wake()
        else:
            self.pass_on()

    def room_made(self) -> None:
        """A slot or a place in the buffer has become free."""
        if self._nap is not None and self._idle_for_room and self._wanted():
            self._wake()

    def lease_ended(self) -> None:
        """A transition was answered: under a fleet cap that is what makes room."""
        if self.is_capped and self._nap is not None and self._wanted():
            self._polls = self._tries = 0
            self._wake()

    def returned(self) -> None:
        """Jobs have gone back to the queue: a look tells when the first of them is due."""
        if self._nap is not None and self._wanted():
            self._wake()

    def nudge(self) -> None:
        """Something has changed: look again at once."""
        self._asked_at = -_SYNC
        self._wake()

    async def sync(self) -> None:
        """A fetch of size zero, now: warms the procedure and brings the live settings. Raises StoreRefused."""
        await self._call(0)

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            size = self._wanted()
            self._idle_for_room = size == 0
            if self._rung and size == 0:
                self._rung = False
                self.pass_on()
            idle = _SYNC - (self._loop.time() - self._asked_at)
            delay = idle if size == 0 and idle > 0 else await self._ask(size)
            # With the bell hung up just now: look once more, for what was committed meanwhile rang nobody here.
            if delay > 0 and (self._idle_for_room or self.listen()):
                await self._sleep(delay)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _wanted(self) -> int:
        """Jobs to ask for now. Refills when half the buffer is free or it is empty, so that calls stay few and large."""
        room, live = self._room, self._live
        limit = room.limit()
        if not room.accepting() or live.paused or not live.active or limit == 0:
            return 0
        ahead = 0 if self.is_capped else room.ahead()
        free = limit + ahead - room.held()
        return min(free, MAX_JOBS_PER_CALL) if free >= max(1, ahead // 2) else 0

    async def _ask(self, size: int) -> float:
        """One fetch; returns how long to rest after it, in seconds."""
        rung, self._rung = self._rung, False
        try:
            fetch = await self._call(size)
        except StoreRefused as error:
            _log.error("fetch_refused", queue=self._queue.name, error=str(error))
            return _REFUSED_PAUSE
        # A ring counts until all it may have stood for is claimed: should this child be full by then, a sibling hears of it.
        self._rung = self._rung or (rung and fetch.next_due_ms == 0)
        return self._rest(size, fetch, rung=rung)

    async def _call(self, size: int) -> Fetch:
        self._request += 1
        self.claiming = size > 0
        call = partial(_fetch, self._worker, self._request, size, self._queue.fleet_max_workers)
        try:
            fetch = await self._lane.call("fetch_jobs", call)
        finally:
            self.claiming = False
            self._asked_at = self._loop.time()
        self._counts.fetches += 1
        self._counts.fetched += len(fetch.jobs)
        if self._lane.tally is not None:
            self._lane.tally.batch("fetch_jobs", len(fetch.jobs))
        self._live = fetch.live
        self._deliver(fetch)
        return fetch

    def _rest(self, size: int, fetch: Fetch, *, rung: bool) -> float:
        if self._wanted() == 0:
            self._idle_for_room = True
            return _SYNC
        if size == 0:
            # Room was made while it asked for nothing but news.
            return 0.0
        if fetch.jobs:
            self._tries = 0
            if not rung:
                # What polling found was committed where nobody rings for us: look again soon. The next one that is rung for
                # needs no looking.
                self._polls = 0
            if len(fetch.jobs) >= size or fetch.next_due_ms == 0:
                return 0.0
        elif fetch.next_due_ms == 0 and self._tries < _QUICK_TRIES:
            self._tries += 1
            return random.uniform(0.002, 0.02)
        queue = self._queue
        poll = min(queue.poll_min * 2.0 ** min(self._polls, 30), queue.poll_max) * random.uniform(0.75, 1.0)
        self._polls += 1
        if fetch.next_due_ms:
            poll = min(poll, fetch.next_due_ms / 1000 + random.uniform(0.0, 0.005))
        return max(poll, 0.001)

    def _wake(self) -> None:
        if self._nap is None:
            # A fetch is under way: its answer may be older than what we were told of.
            self._nudged = True
        elif not self._nap.done():
            self._nap.set_result(None)

    async def _sleep(self, seconds: float) -> None:
        if self._nudged:
            self._nudged = False
            return
        self._nap = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._wake)
        try:
            await self._nap
        finally:
            timer.cancel()
            self._nap = None
            self._nudged = False


def _fetch(worker: Registration, request: int, size: int, cap: int | None, session: Session) -> Fetch:
    return session.fetch_jobs(worker, request, size, cap)
