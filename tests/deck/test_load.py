"""What an open Deck costs the store: calls counted, whatever the number of pages. The figures stand in docs/deck.md."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chokaq.config.load import Loaded
from chokaq.config.settings import Settings
from chokaq.deck import topics
from chokaq.deck.desk import Desk
from chokaq.deck.live import TICK
from chokaq.deck.shared import Shared
from chokaq.deck.shown import Search
from chokaq.lifecycle.states import Pillar
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from tests.support.jobs import QUEUE, TYPE, new_job, new_jobs

CHANGES = 3
Page = Callable[[Desk, str], tuple[str, Callable[[], Awaitable[Any]]]]


class Counting:
    """A store whose sessions count their calls."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.url = store.url

    def session(self) -> Any:
        """A session that counts."""
        session, calls = self._store.session(), self.calls

        class Counted:
            def __getattr__(self, name: str) -> Any:
                if name != "close":
                    calls[name] += 1
                return getattr(session, name)

        return Counted()


async def overview(desk: Desk) -> None:
    """What the first page reads."""
    await asyncio.gather(desk.reads.overview(), desk.reads.charts("hour"))


async def priorities(desk: Desk) -> None:
    """What the page of queues reads with one of them open."""
    await asyncio.gather(desk.reads.queues(), desk.reads.priorities(QUEUE))


async def history(desk: Desk) -> None:
    """What the page of circuits reads with one of them open."""
    await asyncio.gather(
        desk.reads.circuits(), desk.reads.circuit_timeline(TYPE), desk.reads.circuit_events(TYPE, tries=True)
    )


LIST = Search(pillar=Pillar.ARCHIVE)
EVERYWHERE = Search()
PAGES: dict[str, Page] = {
    "overview": lambda desk, _: (topics.OVERVIEW, lambda: overview(desk)),
    "queues": lambda desk, _: (topics.QUEUES, desk.reads.queues),
    "one pillar": lambda desk, _: (topics.job_list(LIST.pillar, None), lambda: desk.reads.jobs(LIST)),
    "all pillars": lambda desk, _: (topics.job_list(None, None), lambda: desk.reads.jobs(EVERYWHERE)),
    "job": lambda desk, job_id: (topics.job(job_id), lambda: desk.reads.job(job_id)),
    "workers": lambda desk, _: (topics.WORKERS, desk.reads.workers),
    "priorities": lambda desk, _: (topics.QUEUES, lambda: priorities(desk)),
    "circuits": lambda desk, _: (topics.CIRCUITS, desk.reads.circuits),
    "history": lambda desk, _: (topics.CIRCUITS, lambda: history(desk)),
    "audit": lambda desk, _: (topics.AUDIT, desk.reads.audit),
}
COST = {
    "overview": (0, 6), "queues": (0, 5), "one pillar": (0, 1), "all pillars": (0, 3), "job": (0, 4), "workers": (0, 2),
    "circuits": (0, 1), "audit": (0, 1), "priorities": (0, 6), "history": (0, 3),
}  # fmt: skip
"""Calls besides the question: in a second without a change, in one with a change that concerns the page (as docs/deck.md says)."""


class Open:
    """A desk with pages open, whose seconds the test lets pass."""

    def __init__(self, store: Store, options: DatabaseSettings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = Counting(store)
        self.now = 100.0
        self.desk = Desk(Loaded(Settings(database=options), {}), self.store)  # type: ignore[arg-type]
        monkeypatch.setattr(self.desk.live, "_clock", lambda: self.now)
        monkeypatch.setattr(self.desk.live, "_ticked", self.now)
        monkeypatch.setattr(self.desk.reads, "_shared", Shared(lambda: self.now))

    async def second(self) -> int:
        """Let one pass: the calls it took."""
        before = self.store.calls.total()
        self.now += 1.0
        await self.desk.live.look()
        tasks = [one._task for one in self.desk.live._subscriptions.values() if one._task is not None]
        await asyncio.gather(*tasks)
        return self.store.calls.total() - before


@pytest.mark.parametrize("pages", [1, 40])
@pytest.mark.parametrize("name", PAGES)
async def test_the_cost_of_open_pages_does_not_depend_on_their_number(
    store: Store,
    store_options: DatabaseSettings,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    pages: int,
) -> None:
    opened = Open(store, store_options, monkeypatch)
    job = new_job()
    session.enqueue_jobs([job, *new_jobs(3)])
    topic, read = PAGES[name](opened.desk, job.id)
    for _ in range(pages):

        async def told() -> None:
            await read()

        opened.desk.live.subscribe(topic, told)
    await opened.second()

    quiet = [await opened.second() for _ in range(int(TICK) - 2)]
    busy = []
    for number in range(CHANGES):
        session.cancel_jobs([job.id if number == 0 else new_job().id], "anna")
        session.set_queue("mail", _change(number), "anna")
        session.force_circuit("email.send.v1", _forced(number), "anna")
        session.register_worker(_worker())
        busy.append(await opened.second())
    await opened.desk.stop()

    at_rest, after_a_change = COST[name]
    assert quiet == [1 + at_rest] * len(quiet)
    assert max(busy) <= 1 + after_a_change, opened.store.calls
    assert busy[-1] == 1 + after_a_change, opened.store.calls
    assert opened.store.calls["read_changes"] == opened.desk.live.looks


def _change(number: int) -> Any:
    from chokaq.store.records import QueueChange

    return QueueChange(paused=bool(number % 2))


def _forced(number: int) -> Any:
    from chokaq.lifecycle.circuit import Forced

    return Forced.OPEN if number % 2 else Forced.CLOSED


def _worker() -> Any:
    from tests.support.jobs import worker_info

    return worker_info()
