"""The fan-out: one question per second asks the database what changed, and whoever looks at something of it is told.

Each Deck process asks for itself, so any number of replicas works; it asks nothing while nobody looks.
"""

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
import structlog

from chokaq.deck.changes import TICKING, Difference, difference
from chokaq.deck.lanes import Lanes
from chokaq.observe.log import tell_repeats
from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.looking import EVER, MAX_WATCHED, Changes

log = structlog.get_logger("chokaq")

Told = Callable[[], Awaitable[None] | None]
"""Called in the event loop, without arguments: read again what you show. An exception is logged and changes nothing."""

INTERVAL = 1.0
"""Seconds between two questions."""
PATIENCE = 1.0
"""Seconds that a request waits for a question at most."""
OVERLAP = 60
"""Seconds of sign-outs that are read again: one may have been under way when it was asked last."""
TICK = 5.0
"""Seconds after which what changes by itself is told without a change."""


class State(msgspec.Struct, frozen=True):
    """How fresh what the pages show is."""

    stale_since: datetime | None = None
    """When the database was last heard; None: it answers."""
    problem: str | None = None
    """Why it does not, in words (no secrets)."""


class Subscription:
    """One listener. Close it when the page goes (`client.on_delete(subscription.close)`)."""

    def __init__(self, live: "Live", topic: str, told: Told, watch: Sequence[str]) -> None:
        self.topic = topic
        self.watched: tuple[str, ...] = ()
        self.due = True
        """Something that concerns it changed. True at first: what changed between its reading and its subscribing."""
        self._live = live
        self._told = told
        self._task: asyncio.Task[None] | None = None
        self._told_at = -1e9
        self.watch(watch)

    def watch(self, job_ids: Sequence[str]) -> None:
        """The jobs now visible on this page: it is told when one of them changes (progress, status, lease).

        At most 500 are watched by a process, job pages first, then the lists in the order in which they came.
        """
        own = (self.topic.removeprefix("job:"),) if self.topic.startswith("job:") else ()
        self.watched = (*own, *job_ids)[:MAX_WATCHED]

    def close(self) -> None:
        """Tell it nothing more; harmless when closed."""
        self._live.forget(self)

    def deliver(self, now: float, apart: float) -> None:
        """Tell it, unless it is still busy with the time before, or that is less than `apart` seconds ago: it stays due."""
        if not self.due or (self._task is not None and not self._task.done()) or now - self._told_at < apart:
            return
        self.due, self._told_at = False, now
        self._task = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        try:
            answer = self._told()
            if inspect.isawaitable(answer):
                await answer
        except StoreError as error:
            # The next look says since when, and everybody is told again when it is over.
            log.debug("deck_page_unread", topic=self.topic, problem=str(error))
        except Exception:
            log.exception("deck_page_failed", topic=self.topic)


class Live:
    """What changed, told to who looks."""

    def __init__(
        self,
        lanes: Lanes,
        *,
        signed_out: Callable[[Mapping[str, int]], None] | None = None,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`lanes`: its own one, so that no slow read holds up the question.

        `signed_out`: told which sessions were ended, with the milliseconds they would still go on; None: that is not asked.
        """
        self._lanes = lanes
        self._interval = interval
        self._clock = clock
        self._subscriptions: dict[int, Subscription] = {}
        self._somebody = asyncio.Event()
        self._signed_out = signed_out
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._begun = -math.inf
        self._before: Changes | None = None
        self._state = State()
        self._heard = datetime.now(UTC)
        self._heard_at = clock()
        self._ticked = clock()
        self._on_change: list[Callable[[], None]] = []
        self.looks = 0
        """Questions asked so far."""

    @property
    def state(self) -> State:
        """Whether the database answers, as of the last question (or failed read)."""
        return self._state

    def now(self) -> datetime:
        """The database's clock, as of the last question and the time since; this host's before the first."""
        if self._before is None:
            return datetime.now(UTC)
        return self._before.now + timedelta(seconds=max(0.0, self._clock() - self._heard_at))

    def subscribe(self, topic: str, told: Told, *, watch: Sequence[str] = ()) -> Subscription:
        """Call `told` after a change that concerns the topic (see `topics`), at most once a second, never twice at a time.

        Told once soon after subscribing (what changed since you read), and whenever the database goes away or comes back.
        """
        subscription = Subscription(self, topic, told, watch)
        self._subscriptions[id(subscription)] = subscription
        self._somebody.set()
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Somebody closed a page."""
        self._subscriptions.pop(id(subscription), None)
        if not self._subscriptions:
            self._somebody.clear()

    def hint(self) -> None:
        """Something was changed by this process: everybody reads again, at once or, who just did, after the next question.

        Actions call it themselves.
        """
        self._mark(None)
        self._deliver()

    def on_change(self, forget: Callable[[], None]) -> None:
        """Call `forget` before anybody is told of a change: what was read before it is old."""
        self._on_change.append(forget)

    def failed(self, error: StoreError) -> None:
        """A read or an action found the database away: say so at once. A refusal of the store is none of that."""
        if not isinstance(error, StoreRefused):
            self._lost(str(error))

    # ── the loop ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def start(self) -> None:
        """Begin to ask. In the event loop; harmless when begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ask no more."""
        tasks = [task for task in (self._task, self._asking) if task is not None]
        self._task = self._asking = None
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            await self._somebody.wait()
            await asyncio.sleep(max(0.0, self._begun + self._interval - self._clock()))
            await self.look()

    async def look(self) -> None:
        """Ask once, and tell whom it concerns. Who wants it while it is asked waits for the same answer."""
        await asyncio.shield(self._ask())

    async def fresh(self) -> None:
        """Know what changed a moment ago: asks unless that is known, never more than once a second.

        While pages are open it is known. Waits for a second at most, and not at all while the database is away: then what was heard
        before holds on.
        """
        now = self._clock()
        known_for = 2 * self._interval if self._task is not None and self._somebody.is_set() else self._interval
        if self._before is not None and now - self._heard_at < known_for:
            return
        if self._asking is None or self._asking.done():
            if now - self._begun < self._interval:
                return
            self._ask()
        if self._asking is not None and self._state.stale_since is None:
            await asyncio.wait({self._asking}, timeout=PATIENCE)

    def _ask(self) -> "asyncio.Task[None]":
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._look())
        return self._asking

    async def _look(self) -> None:
        self.looks += 1
        tell_repeats()
        self._begun = self._clock()
        watched = self._watched()
        since = None
        if self._signed_out is not None:
            since = EVER if self._before is None else math.ceil(self._begun - self._heard_at) + OVERLAP
        try:
            changes = await self._lanes.run(lambda session: session.read_changes(watched, since))
        except StoreError as error:
            self._lost(str(error))
            return
        except Exception as error:
            log.exception("deck_look_failed")
            self._lost(f"reading what changed failed: {type(error).__name__}")
            return
        self._found(changes)

    def _found(self, changes: Changes) -> None:
        before, self._before = self._before, changes
        self._heard, self._heard_at = datetime.now(UTC), self._clock()
        if self._signed_out is not None:
            self._signed_out(changes.signed_out)
        if self._state.stale_since is not None:
            log.info("deck_database_back", stale_since=self._state.stale_since.isoformat())
            self._state, before = State(), None
        self._mark(None if before is None else difference(before, changes))
        self._deliver()

    def _lost(self, problem: str) -> None:
        if self._state.stale_since is None:
            log.warning("deck_database_away", problem=problem)
            self._state = State(self._heard, problem)
            self._mark(None)
        elif self._state.problem != problem:
            self._state = State(self._state.stale_since, problem)
        # Every time: who was told of something less than a second before has not heard of it yet.
        self._deliver()

    def _mark(self, found: Difference | None) -> None:
        """Who has to read again; None: everybody."""
        ticks = self._clock() - self._ticked >= TICK
        if ticks:
            self._ticked = self._clock()
        for subscription in self._subscriptions.values():
            subscription.due = (
                subscription.due
                or found is None
                or (ticks and subscription.topic in TICKING)
                or found.concerns(subscription.topic, subscription.watched)
            )

    def _deliver(self) -> None:
        if any(subscription.due for subscription in self._subscriptions.values()):
            for forget in self._on_change:
                forget()
        # A look comes a moment early or late: a little less than its distance still counts as one a second.
        now, apart = self._clock(), 0.9 * self._interval
        for subscription in list(self._subscriptions.values()):
            subscription.deliver(now, apart)

    def _watched(self) -> list[str]:
        """The ids to ask for: job pages first."""
        pages = sorted(self._subscriptions.values(), key=lambda one: not one.topic.startswith("job:"))
        ids = dict.fromkeys(job_id for subscription in pages for job_id in subscription.watched)
        return list(ids)[:MAX_WATCHED]
