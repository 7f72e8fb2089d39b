"""The client lane: batches that form by themselves, errors that reach only whom they concern."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chokaq import ChokaQ, JobStatus
from chokaq.jobs.ids import new_id
from chokaq.store.batching import chunks, enqueue_folded
from chokaq.store.client import ClientLane
from chokaq.store.doorbell import Doorbell
from chokaq.store.errors import KeyContention, StoreRefused, StoreUnavailable
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Enqueued, NewJob


class Wire:
    """A real store whose calls can be held and made to fail."""

    def __init__(self, options: DatabaseSettings) -> None:
        self.store = open_store(options)
        self.open = threading.Event()
        self.open.set()
        self.calling = threading.Semaphore(0)
        self.calls: list[int] = []
        self.sessions = 0
        self.fault: Callable[[Sequence[NewJob]], Exception | None] = lambda _jobs: None

    @property
    def identity(self) -> str:
        return self.store.identity

    def session(self) -> Any:
        self.sessions += 1
        return WiredSession(self)


class WiredSession:
    """A real session behind the wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._session = wire.store.session()

    def enqueue_jobs(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        self._wire.calls.append(len(jobs))
        self._wire.calling.release()
        assert self._wire.open.wait(30)
        if error := self._wire.fault(jobs):
            raise error
        return self._session.enqueue_jobs(jobs)

    def get_statuses(self, ids: Sequence[str]) -> Any:
        self._wire.calls.append(-len(ids))
        return self._session.get_statuses(ids)

    def close(self) -> None:
        self._session.close()


@pytest.fixture
def options(tmp_path: Path) -> DatabaseSettings:
    return DatabaseSettings(url=f"sqlite:///{tmp_path / 'lane.db'}", retries=2, retry_base_delay=0.001)


@pytest.fixture
def wire(options: DatabaseSettings) -> Wire:
    return Wire(options)


@pytest.fixture
def lane(wire: Wire, options: DatabaseSettings) -> Iterator[ClientLane]:
    lane = ClientLane(wire, options)  # type: ignore[arg-type]
    with contextlib.closing(lane):
        yield lane


def job(payload: str = "{}", key: str | None = None, queue: str = "q", **more: Any) -> NewJob:
    return NewJob(id=new_id(), queue=queue, type_key="x.v1", payload=payload, idempotency_key=key, **more)


# ── batching ──────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_what_piles_up_during_a_call_goes_out_with_the_next_one(wire: Wire, lane: ClientLane) -> None:
    wire.open.clear()
    first = asyncio.create_task(lane.enqueue([job()]))
    await asyncio.to_thread(wire.calling.acquire)
    rest = [asyncio.create_task(lane.enqueue([job()])) for _ in range(50)]
    while lane._thread is None or len(lane._thread._jobs) < 50:
        await asyncio.wait((asyncio.create_task(asyncio.to_thread(lambda: None)),))
    wire.open.set()
    answers = await asyncio.gather(first, *rest)
    assert wire.calls == [1, 50]
    assert wire.sessions == 1
    assert all(len(one) == 1 and one[0].created for one in answers)


def test_threads_and_loops_share_calls_and_each_gets_its_own_answers(wire: Wire, lane: ClientLane) -> None:
    start = threading.Barrier(6)
    ids: list[list[tuple[str, str]]] = []

    def in_thread() -> None:
        start.wait()
        mine = [job() for _ in range(50)]
        ids.append([(one.id, lane.enqueue_sync([one])[0].id) for one in mine])

    async def many() -> None:
        mine = [job() for _ in range(50)]
        answers = await asyncio.gather(*(lane.enqueue([one]) for one in mine))
        ids.append([(one.id, answer[0].id) for one, answer in zip(mine, answers, strict=True)])

    def in_loop() -> None:
        start.wait()
        asyncio.run(many())

    threads = [threading.Thread(target=target) for target in (in_thread, in_loop) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6
    assert all(asked == answered for pairs in ids for asked, answered in pairs)
    assert sum(wire.calls) == 300
    assert wire.sessions == 1


def test_a_caller_that_blocks_anyway_calls_by_itself_when_nothing_is_under_way(wire: Wire, lane: ClientLane) -> None:
    callers: list[threading.Thread] = []

    def note(_jobs: Sequence[NewJob]) -> None:
        callers.append(threading.current_thread())

    wire.fault = note
    lane.enqueue_sync([job()])
    wire.open.clear()
    others = [threading.Thread(target=lane.enqueue_sync, args=([job()],)) for _ in range(8)]
    for other in others[:4]:
        other.start()
    assert wire.calling.acquire(timeout=30)
    for other in others[4:]:
        other.start()
    wire.open.set()
    for other in others:
        other.join(30)
    assert callers[0] is threading.current_thread()
    assert sum(wire.calls) == 9
    assert wire.sessions == 1


def test_a_lane_that_closes_under_a_blocking_call_leaves_no_connection(wire: Wire, lane: ClientLane) -> None:
    wire.open.clear()
    caller = threading.Thread(target=lane.enqueue_sync, args=([job()],))
    caller.start()
    assert wire.calling.acquire(timeout=30)
    thread = lane._thread
    assert thread is not None
    closing = threading.Thread(target=lane.close)
    closing.start()
    wire.open.set()
    for one in (caller, closing):
        one.join(30)
        assert not one.is_alive()
    assert thread._session is None


async def test_a_call_carries_a_thousand_jobs_or_four_megabytes(wire: Wire, lane: ClientLane) -> None:
    answers = await lane.enqueue([job() for _ in range(2_500)])
    assert len(answers) == 2_500
    assert wire.calls == [1_000, 1_000, 500]
    wire.calls.clear()
    await lane.enqueue([job('"' + "x" * 900_000 + '"') for _ in range(9)])
    assert wire.calls == [4, 4, 1]
    assert [len(chunk) for chunk in chunks([])] == []


async def test_questions_about_states_share_a_call(wire: Wire, lane: ClientLane) -> None:
    (known,) = await lane.enqueue([job()])
    answers = await asyncio.gather(*(lane.status(one) for one in (known.id, new_id(), known.id)))
    assert answers == [JobStatus.PENDING, None, JobStatus.PENDING]
    assert -sum(call for call in wire.calls if call < 0) == 3


async def test_a_caller_who_went_away_before_the_call_costs_none(wire: Wire, lane: ClientLane) -> None:
    wire.open.clear()
    first = asyncio.create_task(lane.enqueue([job()]))
    await asyncio.to_thread(wire.calling.acquire)
    gone = asyncio.create_task(lane.enqueue([job()]))
    await asyncio.wait((gone,), timeout=0)
    gone.cancel()
    await asyncio.wait((gone,))
    last = asyncio.create_task(lane.enqueue([job()]))
    await asyncio.wait((last,), timeout=0)
    wire.open.set()
    await asyncio.gather(first, last)
    assert sum(wire.calls) == 2


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_equal_keys_of_one_call_become_one_job(wire: Wire, lane: ClientLane) -> None:
    first, same, other, free = await lane.enqueue([job("1", "k"), job("1", "k"), job("2", "k"), job("3")])
    assert [one.created for one in (first, same, other, free)] == [True, False, False, True]
    assert {first.id, same.id, other.id} == {first.id}
    assert [one.payload_differs for one in (first, same, other)] == [False, False, True]
    assert wire.calls == [2]


async def test_a_folded_job_is_compared_with_the_job_that_holds_the_key(lane: ClientLane, wire: Wire) -> None:
    (held,) = await lane.enqueue([job("held", "k")])
    wire.calls.clear()
    answers = await lane.enqueue([job("1", "k"), job("held", "k"), job("2", "k"), job("1", "k")])
    assert {one.id for one in answers} == {held.id}
    assert not any(one.created for one in answers)
    assert [one.payload_differs for one in answers] == [True, False, True, True]
    assert wire.calls == [1, 1]


def test_folding_ends_whatever_the_store_answers() -> None:
    def always_other(jobs: Sequence[NewJob]) -> list[Enqueued]:
        return [Enqueued("X", False, JobStatus.PENDING, payload_differs=True) for _ in jobs]

    answers = enqueue_folded(always_other, [job(str(number), "k") for number in range(50)])
    assert len(answers) == 50


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_a_refused_job_harms_nobody_else(wire: Wire, lane: ClientLane) -> None:
    wire.fault = lambda jobs: StoreRefused("no") if any(one.payload == "bad" for one in jobs) else None
    wire.open.clear()
    held = asyncio.create_task(lane.enqueue([job()]))
    await asyncio.to_thread(wire.calling.acquire)
    tasks = [asyncio.create_task(lane.enqueue([job("bad" if index == 3 else "{}")])) for index in range(10)]
    await asyncio.wait(tasks, timeout=0)
    wire.open.set()
    await held
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, StoreRefused) for result in results] == [index == 3 for index in range(10)]
    assert wire.sessions == 1


async def test_passing_errors_are_retried_on_a_new_connection(wire: Wire, lane: ClientLane) -> None:
    faults = [StoreUnavailable("gone"), KeyContention("lost the race")]
    wire.fault = lambda _jobs: faults.pop(0) if faults else None
    (answer,) = await lane.enqueue([job()])
    assert answer.created
    assert wire.calls == [1, 1, 1]
    assert wire.sessions == 3


async def test_an_ambiguous_commit_is_settled_by_the_repeat(wire: Wire, lane: ClientLane) -> None:
    faults = [StoreUnavailable("the answer was lost")]

    def commit_first(jobs: Sequence[NewJob]) -> Exception | None:
        if not faults:
            return None
        with contextlib.closing(wire.store.session()) as session:
            session.enqueue_jobs(jobs)
        return faults.pop()

    wire.fault = commit_first
    (answer,) = await lane.enqueue([job(key="k")])
    assert answer.created
    assert answer.status is JobStatus.PENDING


async def test_an_outage_reaches_every_caller_with_an_error_of_its_own(wire: Wire, lane: ClientLane) -> None:
    wire.fault = lambda _jobs: StoreUnavailable("the server is away")
    results = await asyncio.gather(*(lane.enqueue([job()]) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(result, StoreUnavailable) and str(result) == "the server is away" for result in results)
    assert len({id(result) for result in results}) == 5
    wire.fault = lambda _jobs: None
    assert (await lane.enqueue([job()]))[0].created


def test_an_error_in_the_middle_of_a_long_list_says_how_far_it_came(wire: Wire, lane: ClientLane) -> None:
    wire.fault = lambda jobs: StoreRefused("full") if len(jobs) < 1_000 else None
    with pytest.raises(StoreRefused) as raised:
        lane.enqueue_sync([job() for _ in range(1_500)])
    assert raised.value.__notes__ == ["the first 1,000 of 1,500 jobs had been accepted"]


# ── doorbell and end ──────────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_bell_is_rung_for_new_jobs_that_are_due(wire: Wire, lane: ClientLane) -> None:
    doorbell = Doorbell(wire.identity)
    bells = {queue: doorbell.listen(queue) for queue in ("now", "later", "again")}
    try:
        await lane.enqueue([job(queue="again", key="k")])
        assert bells["again"].drain() == 1
        await lane.enqueue([job(queue="now"), job(queue="now"), job(queue="later", delay_ms=61_000)])
        await lane.enqueue([job(queue="again", key="k")])
        assert {queue: bell.drain() for queue, bell in bells.items()} == {"now": 1, "later": 0, "again": 0}
        lane.ring("later")
        assert bells["later"].drain() == 1
    finally:
        for bell in bells.values():
            bell.close()


async def test_a_closed_lane_opens_again_with_the_next_call(wire: Wire, lane: ClientLane) -> None:
    await lane.enqueue([job()])
    lane.close()
    lane.close()
    await lane.enqueue([job()])
    assert wire.sessions == 2


def test_close_finishes_what_is_under_way(wire: Wire, lane: ClientLane) -> None:
    wire.open.clear()
    answers: list[Enqueued] = []
    caller = threading.Thread(target=lambda: answers.extend(lane.enqueue_sync([job()])))
    caller.start()
    wire.calling.acquire()
    closer = threading.Thread(target=lane.close)
    closer.start()
    wire.open.set()
    closer.join()
    caller.join()
    assert [answer.created for answer in answers] == [True]


def test_an_application_that_never_used_its_store_has_nothing_to_close() -> None:
    app = ChokaQ()
    app.close()
    assert app._lane is None
