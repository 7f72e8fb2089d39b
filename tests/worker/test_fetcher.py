"""When a child asks for jobs, for how many, and how long it rests in between."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chokaq.config.settings import Policy, QueueSettings
from chokaq.jobs.context import JobContext
from chokaq.store.doorbell import Doorbell
from chokaq.store.records import Fetch, FetchedJob, LiveQueue, QueueChange, Registration
from chokaq.worker.counts import Counts
from chokaq.worker.fetcher import Fetcher

from .harness import QUEUE, House, Running, Send, eventually

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def answer(jobs: int = 0, due: int | None = None, **live: Any) -> Fetch:
    """What the store says: so many jobs, the next one due in `due` ms."""
    job = FetchedJob("J" * 26, "t", "{}", 1, 10, 0, 0, NOW, NOW, 0)
    return Fetch(False, [job] * jobs, LiveQueue(**live), [], due)


class Room:
    def __init__(self, limit: int = 4) -> None:
        self.most, self.busy, self.open, self.further = limit, 0, True, 10

    def held(self) -> int:
        return self.busy

    def limit(self) -> int:
        return self.most

    def ahead(self) -> int:
        return self.further

    def accepting(self) -> bool:
        return self.open


class Script:
    """A fetcher whose store answers from a list and whose naps pass at once; ends when the list does."""

    tally = None

    def __init__(self, answers: list[Fetch], queue: QueueSettings | None = None, room: Room | None = None) -> None:
        self.answers, self.room = answers, room or Room()
        self.sizes: list[int] = []
        self.naps: list[float] = []
        self.queue = queue or QueueSettings(name="q", prefetch=10)
        self.room.further = self.queue.buffer_size
        self.fetcher = Fetcher(
            lane=self,  # type: ignore[arg-type]
            worker=Registration("W" * 26, "q", 1),
            queue=self.queue,
            room=self.room,
            counts=Counts(),
            deliver=lambda fetch: setattr(self.room, "busy", self.room.busy + len(fetch.jobs)),
        )

    def call(self, _what: str, call: Callable[[Any], Fetch]) -> "asyncio.Future[Fetch]":
        future: asyncio.Future[Fetch] = asyncio.get_running_loop().create_future()
        future.set_result(call(self))
        return future

    def fetch_jobs(self, _worker: Registration, request: int, size: int, _cap: int | None) -> Fetch:
        if not self.answers:
            raise EOFError
        assert request == len(self.sizes) + 1
        self.sizes.append(size)
        return self.answers.pop(0)

    async def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def nap(seconds: float) -> None:
            self.naps.append(seconds)
            self.fetcher._asked_at -= seconds

        monkeypatch.setattr(self.fetcher, "_sleep", nap)
        with pytest.raises(EOFError):
            await self.fetcher.run()


async def test_an_idle_child_asks_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer()] * 40)
    await script.play(monkeypatch)
    assert 0.03 < script.naps[0] <= 0.05
    assert all(0.7 < nap <= 1.0 for nap in script.naps[6:])
    # Idle: at most two calls a second.
    assert len(script.naps[6:]) / sum(script.naps[6:]) <= 2


async def test_work_brings_it_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer()] * 10 + [answer(1)] + [answer()] * 2)
    await script.play(monkeypatch)
    assert script.naps[10] <= 0.05


async def test_jobs_that_were_rung_for_call_for_no_further_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer()] * 10 + [answer(1)] + [answer()] * 2)
    naps = 0

    async def nap(seconds: float) -> None:
        nonlocal naps
        naps += 1
        script.naps.append(seconds)
        script.fetcher._asked_at -= seconds
        if naps == 10:
            script.fetcher.ring()

    monkeypatch.setattr(script.fetcher, "_sleep", nap)
    with pytest.raises(EOFError):
        await script.fetcher.run()
    assert script.naps[10] > 0.7


async def test_a_full_answer_is_followed_by_the_next_question_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(5, due=0), answer(3, due=0), answer()])
    await script.play(monkeypatch)
    assert script.sizes == [14, 9, 6]
    assert len(script.naps) == 1


async def test_the_next_due_job_ends_the_nap(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer()] * 8 + [answer(due=120), answer(due=3_600_000)])
    await script.play(monkeypatch)
    assert 0.12 <= script.naps[8] < 0.13
    assert script.naps[9] <= 1.0


async def test_an_empty_answer_while_jobs_wait_is_asked_again_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(due=0)] * 6)
    await script.play(monkeypatch)
    assert all(nap <= 0.02 for nap in script.naps[:3])
    assert all(nap > 0.03 for nap in script.naps[3:])


async def test_a_full_child_asks_for_nothing_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(14)] + [answer()] * 4)
    await script.play(monkeypatch)
    assert script.sizes == [14, 0, 0, 0, 0]
    assert all(0.9 < nap <= 1.0 for nap in script.naps)


async def test_the_buffer_is_refilled_when_half_of_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([])
    script.room.busy = 10
    assert script.fetcher._wanted() == 0
    script.room.busy = 9
    assert script.fetcher._wanted() == 5


async def test_a_closed_child_asks_for_nothing() -> None:
    script = Script([])
    script.room.open = False
    assert script.fetcher._wanted() == 0


@pytest.mark.parametrize("live", [{"paused": True}, {"active": False}])
async def test_a_paused_queue_is_only_watched(monkeypatch: pytest.MonkeyPatch, live: dict[str, bool]) -> None:
    script = Script([answer(due=0, **live)] * 3)
    await script.play(monkeypatch)
    assert script.sizes == [14, 0, 0]
    assert min(script.naps) > 0.9


@pytest.mark.parametrize("where", ["yaml", "override"])
async def test_nothing_is_fetched_ahead_under_a_fleet_cap(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    queue = QueueSettings(name="q", fleet_max_workers=6 if where == "yaml" else None)
    script = Script([answer(fleet_max_workers=6 if where == "override" else None)] * 2, queue)
    await script.play(monkeypatch)
    assert script.sizes[1] == 4


async def test_no_prefetch_means_no_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(3), answer(1), answer()], QueueSettings(name="q", prefetch=0))
    await script.play(monkeypatch)
    assert script.sizes == [4, 1, 0]


async def test_more_than_a_thousand_are_never_asked_for() -> None:
    script = Script([], QueueSettings(name="q", prefetch=5_000), Room(3_000))
    assert script.fetcher._wanted() == 1_000


async def test_the_doorbell_wakes_an_idle_child(build: Callable[..., House]) -> None:
    house = build(poll_min=3_600.0, poll_max=3_600.0)
    done = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        done.set()

    async with house.child():
        await eventually(lambda: len(house.store.named("fetch_jobs")) == 2, "it has looked and rests")
        house.enqueue()
        Doorbell(house.store.identity).ring(QUEUE)
        await asyncio.wait_for(done.wait(), 10)


async def test_a_ring_during_a_fetch_is_not_lost(build: Callable[..., House]) -> None:
    house = build(poll_min=3_600.0, poll_max=3_600.0)
    done = asyncio.Event()
    asked = threading.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        done.set()

    def after(name: str, args: tuple[Any, ...]) -> None:
        # The answer is on its way and knows nothing of the job that is committed now.
        if name == "fetch_jobs" and args[2] and not asked.is_set():
            asked.set()
            house.enqueue()
            Doorbell(house.store.identity).ring(QUEUE)

    house.store.after = after
    async with house.child():
        await asyncio.wait_for(done.wait(), 10)


def passing(script: Script) -> list[int]:
    """Notes, for each ring passed on, how many fetches had been answered by then."""
    passed: list[int] = []
    script.fetcher.pass_on = lambda: passed.append(len(script.sizes))
    return passed


@pytest.mark.parametrize("why", ["full", "draining"])
async def test_a_child_without_room_passes_a_ring_on(why: str) -> None:
    script = Script([])
    passed = passing(script)
    script.room.busy, script.room.open = (14, True) if why == "full" else (0, False)
    script.fetcher.ring()
    assert passed == [0]


async def test_a_ring_for_more_jobs_than_fit_is_passed_on_once_the_child_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script([answer(5, due=0), answer(9, due=0), answer(due=0), answer(due=0)])
    passed = passing(script)
    script.fetcher.ring()
    await script.play(monkeypatch)
    assert script.sizes == [14, 9, 0, 0]
    assert passed == [2]


async def test_a_ring_whose_jobs_are_all_claimed_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(14), answer(), answer()])
    passed = passing(script)
    script.fetcher.ring()
    await script.play(monkeypatch)
    assert passed == []


async def test_a_child_that_was_not_rung_passes_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(14, due=0), answer(due=0)])
    passed = passing(script)
    await script.play(monkeypatch)
    assert passed == []


async def test_before_it_rests_a_child_hangs_its_bell_and_looks_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer()] * 4)
    hanging = iter([False, True, True, True])
    script.fetcher.listen = lambda: next(hanging)
    await script.play(monkeypatch)
    assert len(script.naps) == 3


async def test_a_full_childs_rings_reach_an_idle_sibling(build: Callable[..., House]) -> None:
    house = build(max_workers=1, prefetch=0, poll_min=3_600.0, poll_max=3_600.0)
    go = asyncio.Event()
    ran: list[str] = []

    @house.app.handler(Send)
    async def handle(job: Send, ctx: JobContext) -> None:
        ran.append(ctx.worker_id)
        if job.n == 0:
            await go.wait()

    async with house.child() as busy:
        house.enqueue()
        Doorbell(house.store.identity).ring(QUEUE)
        await eventually(lambda: len(ran) == 1, "the first child is full")
        async with house.child() as idle:
            await eventually(lambda: len(house.store.named("fetch_jobs")) >= 5, "the second has looked and rests")
            for n in range(1, 9):
                house.enqueue(payload=f'{{"n":{n}}}')
                Doorbell(house.store.identity).ring(QUEUE)
                await eventually(lambda n=n: idle.counts.succeeded == n, f"job {n} runs in the second child")  # type: ignore[misc]
            assert set(ran[1:]) == {idle.slot.worker_id}
            go.set()
            await eventually(lambda: busy.counts.succeeded == 1, "the first child rests")
            await idle.drain()
        # The bell of the first hangs again.
        house.enqueue(payload='{"n":9}')
        await eventually(lambda: _rung(house, busy), "job 9 runs in the first child")


def _rung(house: House, child: Running) -> bool:
    Doorbell(house.store.identity).ring(QUEUE)
    return child.counts.succeeded == 2


async def test_what_a_draining_child_hands_back_an_idle_sibling_takes_at_once(build: Callable[..., House]) -> None:
    house = build(max_workers=1, poll_min=3_600.0, poll_max=3_600.0)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 0:
            await go.wait()

    house.enqueue(6)
    async with house.child() as leaving:
        await eventually(lambda: house.held() == 6, "it holds all of them")
        async with house.child() as staying:
            leaving.engine.drain()
            await eventually(lambda: staying.counts.succeeded == 5, "the buffered ones run elsewhere")
            go.set()


async def test_what_waits_behind_slow_handlers_goes_to_an_idle_sibling(build: Callable[..., House]) -> None:
    house = build(max_workers=2, poll_min=3_600.0, poll_max=3_600.0)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n < 2:
            await go.wait()

    house.enqueue(12)
    async with house.child() as slow:
        await eventually(lambda: len(slow.slot.running) == 2, "two run")
        async with house.child() as idle:
            await eventually(lambda: idle.counts.succeeded == 10, "the others run in the second child")
            assert house.held() == 2
            go.set()
            await eventually(lambda: slow.counts.succeeded == 2, "done")


async def test_a_retry_is_seen_as_soon_as_it_is_due(build: Callable[..., House]) -> None:
    house = build(poll_min=3_600.0, poll_max=3_600.0, policy=Policy(retry_base_delay=0.05, retry_jitter=0.0))

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt < 3:
            raise ConnectionError("not yet")

    house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "the third attempt")


async def test_a_scheduled_job_runs_when_it_is_due(build: Callable[..., House]) -> None:
    house = build(poll_min=3_600.0, poll_max=3_600.0)
    done = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        done.set()

    house.enqueue(delay_ms=150)
    async with house.child():
        await asyncio.wait_for(done.wait(), 10)


async def test_c41_a_fleet_cap_holds_for_one_child(build: Callable[..., House]) -> None:
    house = build(max_workers=8)
    house.session.set_queue(QUEUE, QueueChange(fleet_max_workers=2), "ops")
    most = 0

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        nonlocal most
        most = max(most, house.held())
        await asyncio.sleep(0)

    house.enqueue(12)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 12, "done")
    assert 1 <= most <= 2


async def test_room_made_while_it_asks_for_nothing_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(14), answer(), answer()])

    def fetch_jobs(worker: Registration, request: int, size: int, cap: int | None) -> Fetch:
        found = Script.fetch_jobs(script, worker, request, size, cap)
        if size == 0:
            script.room.busy = 0
        return found

    monkeypatch.setattr(script, "fetch_jobs", fetch_jobs)
    await script.play(monkeypatch)
    assert script.sizes == [14, 0, 14]
    assert len(script.naps) == 2
