"""The fan-out: told after a change, not otherwise, not too often; one question at a time; away and back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chokaq.deck import topics
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import TICK, Live
from chokaq.lifecycle.states import Pillar
from chokaq.store.errors import StoreUnavailable
from chokaq.store.looking import MAX_WATCHED
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Beat, Figures, QueueChange
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job


class Clock:
    """Settable."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Flaky:
    """A store that can be taken away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.asked: list[int] = []
        self.since: list[int | None] = []

    def session(self) -> Any:
        """A session that fails while the store is away."""
        session, outer = self._store.session(), self

        class Guarded:
            def read_changes(self, watched: Any = (), signed_out_since: int | None = None) -> Any:
                outer.asked.append(len(watched))
                outer.since.append(signed_out_since)
                if outer.away:
                    raise StoreUnavailable("the server does not answer")
                return session.read_changes(watched, signed_out_since)

            def close(self) -> None:
                session.close()

        return Guarded()


class Listener:
    """Counts how often it is told."""

    def __init__(self, live: Live, topic: str, **options: Any) -> None:
        self.told = 0
        self.subscription = live.subscribe(topic, self, **options)

    def __call__(self) -> None:
        self.told += 1


class Bench:
    """A fan-out whose looks the test takes."""

    def __init__(self, store: Store) -> None:
        self.store = Flaky(store)
        self.clock = Clock()
        self.lanes = Lanes(self.store, 1)  # type: ignore[arg-type]
        self.live = Live(self.lanes, clock=self.clock)

    async def look(self, seconds: float = 1.0) -> None:
        """The next question, and what it tells."""
        self.clock.now += seconds
        await self.live.look()
        await settle()


async def settle() -> None:
    """Let what was begun end."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def bench(store: Store) -> AsyncIterator[Bench]:
    """Over the store under test."""
    bench = Bench(store)
    yield bench
    await bench.live.stop()
    bench.lanes.close()


async def test_told_once_after_subscribing_and_then_only_after_a_change(bench: Bench, session: Session) -> None:
    queues, audit = Listener(bench.live, topics.QUEUES), Listener(bench.live, topics.AUDIT)
    await bench.look()
    await bench.look()
    assert (queues.told, audit.told) == (1, 1)

    session.enqueue_jobs([new_job()])
    await bench.look()
    assert (queues.told, audit.told) == (2, 1)

    session.set_queue(QUEUE, QueueChange(paused=True), "anna")
    await bench.look()
    assert (queues.told, audit.told) == (3, 2)


async def test_what_grows_by_itself_is_told_every_few_seconds(bench: Bench) -> None:
    overview, audit = Listener(bench.live, topics.OVERVIEW), Listener(bench.live, topics.AUDIT)
    await bench.look()
    for _ in range(int(TICK) * 2):
        await bench.look()

    assert overview.told == 3
    assert audit.told == 1


async def test_a_job_page_is_told_of_progress(bench: Bench, session: Session) -> None:
    job = new_job()
    session.enqueue_jobs([job])
    holder = Holder(session)
    [held] = holder.take(1)
    page = Listener(bench.live, topics.job(job.id))
    other = Listener(bench.live, topics.job_list(Pillar.ARCHIVE, None))
    await bench.look()

    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 40)], Figures())
    await bench.look()

    assert (page.told, other.told) == (2, 1)


async def test_nobody_is_told_twice_at_a_time_or_twice_a_second(bench: Bench, session: Session) -> None:
    entered, free = 0, asyncio.Event()

    async def slow() -> None:
        nonlocal entered
        entered += 1
        await free.wait()

    bench.live.subscribe(topics.QUEUES, slow)
    quick = Listener(bench.live, topics.QUEUES)
    await bench.look()
    for _ in range(3):
        session.enqueue_jobs([new_job()])
        await bench.look()
    bench.live.hint()
    bench.live.hint()
    await settle()

    assert entered == 1
    assert quick.told == 4
    free.set()
    await settle()
    await bench.look()
    assert entered == 2
    assert quick.told == 5


async def test_a_change_of_our_own_is_told_without_a_question(bench: Bench) -> None:
    page = Listener(bench.live, topics.AUDIT)
    await bench.look()
    bench.clock.now += 1.0
    bench.live.hint()
    await settle()

    assert page.told == 2
    assert bench.live.looks == 1


async def test_away_is_told_at_once_and_so_is_the_return(bench: Bench) -> None:
    page = Listener(bench.live, topics.CIRCUITS)
    await bench.look()
    assert bench.live.state.stale_since is None

    bench.store.away = True
    await bench.look()
    first = bench.live.state
    await bench.look()
    assert page.told == 2
    assert first.stale_since is not None
    assert bench.live.state.stale_since == first.stale_since
    assert first.problem == "the server does not answer"

    bench.store.away = False
    await bench.look()
    assert page.told == 3
    assert bench.live.state.stale_since is None
    assert bench.live.state.problem is None


async def test_a_page_told_just_before_the_database_went_away_hears_of_it_a_second_later(bench: Bench) -> None:
    listener = Listener(bench.live, topics.QUEUES)
    await bench.look()
    assert listener.told == 1
    bench.store.away = True
    await bench.look(0.5)
    assert listener.told == 1
    assert bench.live.state.stale_since is not None
    await bench.look()
    assert listener.told == 2
    await bench.look()
    assert listener.told == 2


async def test_a_page_that_fails_harms_no_other(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise KeyError("a defect")

    bench.live.subscribe(topics.AUDIT, broken)
    page = Listener(bench.live, topics.AUDIT)
    await bench.look()

    assert page.told == 1


async def test_at_most_500_jobs_are_asked_for_the_job_pages_first(bench: Bench) -> None:
    listed = Listener(bench.live, topics.job_list(Pillar.HOT, None), watch=[f"{n:026d}" for n in range(600)])
    page = Listener(bench.live, topics.job("9" * 26))

    watched = bench.live._watched()

    assert len(watched) == MAX_WATCHED
    assert watched[0] == "9" * 26
    listed.subscription.close()
    assert bench.live._watched() == ["9" * 26]
    page.subscription.close()
    page.subscription.close()
    assert bench.live._watched() == []


async def test_it_asks_once_a_second_while_somebody_looks_and_nothing_while_nobody_does(store: Store) -> None:
    flaky = Flaky(store)
    lanes = Lanes(flaky, 1)  # type: ignore[arg-type]
    live = Live(lanes, interval=0.02)
    told = asyncio.Event()
    live.start()
    try:
        await settle()
        assert flaky.asked == []
        subscription = live.subscribe(topics.AUDIT, told.set)
        await asyncio.wait_for(told.wait(), 10)
        subscription.close()
        asked = len(flaky.asked)
        assert asked >= 1
        looks = live.looks
        await live.stop()
        assert live.looks - looks <= 1
    finally:
        await live.stop()
        lanes.close()


async def test_two_decks_are_each_told(store: Store, session: Session) -> None:
    benches = [Bench(store), Bench(store)]
    pages = [Listener(one.live, topics.job_list(Pillar.HOT, None)) for one in benches]
    for one in benches:
        await one.look()
    session.enqueue_jobs([new_job()])
    for one in benches:
        await one.look()
        one.lanes.close()

    assert [page.told for page in pages] == [2, 2]
