"""A model of a fleet of children over one database, for simpy: polling, doorbell, batching, caps, an outage. No product code.

What is modelled: every child has a claim lane and a settle lane that call the database one call at a time; the database serves
`servers` calls at once, each for a measured base time plus a measured time per job; idle children poll with back-off and jitter;
starts and archives travel in the sets that piled up during the previous call. What is not: network jitter, lock waits between
calls, the price of a full log.
"""

import random
from collections import deque
from collections.abc import Generator
from typing import Any, NamedTuple

import msgspec
import simpy

from bench.figures import percentile

Event = Generator[Any, Any, None]
MOST_PER_CALL = 1_000


class Cost(msgspec.Struct, frozen=True):
    """Seconds of database time of one call."""

    base: float
    per_job: float

    def of(self, jobs: int) -> float:
        """A call that carries so many jobs."""
        return self.base + self.per_job * jobs


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a store; see `bench/points.json` and docs/performance.md."""

    name: str
    servers: int = 1
    """Calls the database serves at once: its cores, or 1 for a single writer."""
    poll: Cost
    """A fetch that finds nothing."""
    fetch: Cost
    start: Cost
    archive: Cost
    trip: float = 0.0002
    """Seconds on the wire and in the driver, per call; the database is free meanwhile."""
    child: float = 0.00006
    """Seconds of a child's own CPU per job."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Settings to try."""

    poll_min: float = 0.05
    poll_max: float = 1.0
    prefetch: int = 20
    max_workers: int = 10


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The scene."""

    children: int
    rate: float
    """Jobs per second for the whole fleet."""
    handler: float = 0.05
    """Seconds a handler takes, on average (exponential)."""
    seconds: float = 30.0
    backlog: int = 0
    """Jobs that wait at the beginning."""
    doorbell: float = 0.0
    """Share of the jobs that ring a child of their own host."""
    cap: int | None = None
    """Leases the whole fleet may hold: fetches of a capped queue go one at a time, and nothing is fetched ahead."""
    outage: tuple[float, float] | None = None
    """The database is away from this second, for so many seconds."""


class Result(NamedTuple):
    """What came of it."""

    completed: int
    per_second: float
    calls_per_second: float
    polls_per_second: float
    """Fetches that found nothing."""
    load: float
    """Share of the database's time that is used."""
    pickup_p50: float
    """Seconds from due to the handler's start."""
    pickup_p99: float
    backlog: int
    """Jobs left waiting at the end."""
    recovered: float | None
    """Seconds from the end of the outage until the backlog it had left was gone; None: not within the time."""


class World:
    """One run."""

    def __init__(self, measured: Measured, choice: Choice, fleet: Fleet, seed: int = 1) -> None:
        self.measured, self.choice, self.fleet = measured, choice, fleet
        self.env = simpy.Environment()
        self.random = random.Random(seed)
        self.database = simpy.Resource(self.env, measured.servers)
        self.ticket = simpy.Resource(self.env, 1)
        self.waiting: deque[float] = deque([0.0] * fleet.backlog)
        self.resting: dict[simpy.Event, None] = {}
        self.leases = 0
        self.busy = 0.0
        self.calls = self.polls = self.completed = 0
        self.lags: list[float] = []
        self.outage_backlog = 0
        self.recovered: float | None = None

    def run(self) -> Result:
        """To the end of its time."""
        self.env.process(self._arrivals())
        if self.fleet.outage is not None:
            self.env.process(self._watch_recovery())
        for _ in range(self.fleet.children):
            Child(self)
        self.env.run(until=self.fleet.seconds)
        seconds = self.fleet.seconds
        lags = self.lags or [float("nan")]
        return Result(
            completed=self.completed,
            per_second=self.completed / seconds,
            calls_per_second=self.calls / seconds,
            polls_per_second=self.polls / seconds,
            load=self.busy / (seconds * self.measured.servers),
            pickup_p50=percentile(lags, 0.5),
            pickup_p99=percentile(lags, 0.99),
            backlog=len(self.waiting),
            recovered=self.recovered,
        )

    def call(self, seconds: float) -> Event:
        """One call of the database; during an outage it is tried again, with growing pauses, as a lane does."""
        tries = 0
        while self._is_away():
            tries += 1
            yield self.env.timeout(min(0.05 * 2.0 ** min(tries - 1, 10), 2.0) * self.random.uniform(0.5, 1.0))
        yield self.env.timeout(self.measured.trip)
        with self.database.request() as turn:
            yield turn
            yield self.env.timeout(seconds)
        self.busy += seconds
        self.calls += 1

    def _is_away(self) -> bool:
        outage = self.fleet.outage
        return outage is not None and outage[0] <= self.env.now < sum(outage)

    def _arrivals(self) -> Event:
        while self.fleet.rate > 0:
            yield self.env.timeout(self.random.expovariate(self.fleet.rate))
            if self._is_away():
                # Clients cannot enqueue either: what they hold back arrives when the database returns.
                self.outage_backlog += 1
                continue
            self.waiting.append(self.env.now)
            if self.resting and self.random.random() < self.fleet.doorbell:
                bell = self.random.choice(list(self.resting)) if len(self.resting) < 50 else next(iter(self.resting))
                del self.resting[bell]
                bell.succeed()

    def _watch_recovery(self) -> Event:
        assert self.fleet.outage is not None
        back = sum(self.fleet.outage)
        yield self.env.timeout(back)
        self.waiting.extend([self.env.now] * self.outage_backlog)
        limit = max(10, int(self.fleet.rate * 0.1))
        while len(self.waiting) > limit:
            yield self.env.timeout(0.05)
        self.recovered = self.env.now - back


class Child:
    """One child: a claim lane, a settle lane, and a limit of handlers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.buffer: deque[float] = deque()
        self.active = 0
        self.starting: list[float] = []
        self.archiving = 0
        self.work: simpy.Event | None = None
        """Wakes the settle lane."""
        self.nap: simpy.Event | None = None
        """Wakes the claim lane: room was made, or the bell rang."""
        self.wants = False
        world.env.process(self._claim())
        world.env.process(self._settle())

    def _free(self) -> int:
        choice, cap = self.world.choice, self.world.fleet.cap
        ahead = 0 if cap is not None else choice.prefetch
        free = choice.max_workers + ahead - len(self.buffer) - self.active
        return min(free, MOST_PER_CALL) if free >= max(1, ahead // 2) else 0

    def _claim(self) -> Event:
        world, choice = self.world, self.world.choice
        # Children boot at their own times.
        yield world.env.timeout(world.random.uniform(0.0, choice.poll_max))
        polls = 0
        while True:
            size = self._free()
            if size == 0:
                yield from self._rest(1.0, for_room=True)
                continue
            got, asked_full = yield from self._fetch(size)
            if got:
                polls = 0
                self._pump()
                if asked_full:
                    continue
            interval = min(choice.poll_min * 2.0 ** min(polls, 30), choice.poll_max)
            polls += 1
            yield from self._rest(interval * world.random.uniform(0.75, 1.0), for_room=False)

    def _fetch(self, size: int) -> Generator[Any, Any, tuple[int, bool]]:
        world, cap = self.world, self.world.fleet.cap
        if not world.waiting:
            world.polls += 1
            yield from world.call(world.measured.poll.of(0))
            if not world.waiting:
                return 0, False
        ticket = None
        if cap is not None:
            ticket = world.ticket.request()
            yield ticket
            size = min(size, cap - world.leases)
        taken = [world.waiting.popleft() for _ in range(max(0, min(size, len(world.waiting))))]
        world.leases += len(taken)
        yield from world.call(world.measured.fetch.of(len(taken)))
        if ticket is not None:
            world.ticket.release(ticket)
        self.buffer.extend(taken)
        return len(taken), bool(taken) and len(taken) >= size

    def _rest(self, seconds: float, *, for_room: bool) -> Event:
        self.wants = for_room
        self.nap = nap = self.world.env.event()
        if not for_room:
            self.world.resting[nap] = None
        yield nap | self.world.env.timeout(seconds)
        self.world.resting.pop(nap, None)
        self.nap = None

    def _pump(self) -> None:
        while self.buffer and self.active < self.world.choice.max_workers:
            self.active += 1
            self.starting.append(self.buffer.popleft())
        if self.starting or self.archiving:
            self._wake_settler()
        if self.nap is not None and self.wants and not self.nap.triggered and self._free():
            self.nap.succeed()

    def _wake_settler(self) -> None:
        if self.work is not None and not self.work.triggered:
            self.work.succeed()

    def _settle(self) -> Event:
        world = self.world
        while True:
            if not self.starting and not self.archiving:
                self.work = world.env.event()
                yield self.work
                self.work = None
            if self.starting:
                started, self.starting = self.starting[:MOST_PER_CALL], self.starting[MOST_PER_CALL:]
                yield from world.call(world.measured.start.of(len(started)))
                for due in started:
                    world.lags.append(world.env.now - due)
                    world.env.process(self._handle())
            if self.archiving:
                done = min(self.archiving, MOST_PER_CALL)
                self.archiving -= done
                yield from world.call(world.measured.archive.of(done))
                world.completed += done
                world.leases -= done

    def _handle(self) -> Event:
        world = self.world
        pause = world.random.expovariate(1 / world.fleet.handler) if world.fleet.handler else 0.0
        yield world.env.timeout(pause + world.measured.child)
        self.active -= 1
        self.archiving += 1
        self._pump()
        self._wake_settler()


def simulate(measured: Measured, choice: Choice, fleet: Fleet, seed: int = 1) -> Result:
    """One run of the model."""
    return World(measured, choice, fleet, seed).run()
