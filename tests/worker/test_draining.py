"""A child comes to rest without losing, repeating or charging anything."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from chokaq.jobs.context import JobContext
from chokaq.lifecycle.errors import FatalError
from chokaq.lifecycle.states import CancelReason, DeathCause, FailureReason, JobStatus, Pillar
from chokaq.store.records import CrashPolicies, DeathNotice, QueueChange
from chokaq.worker.listening import Listener
from chokaq.worker.status import ExitCode

from .harness import QUEUE, House, Send, Slot, eventually, reached


async def test_c24_a_drain_lets_handlers_end_and_hands_back_the_rest(build: Callable[..., House]) -> None:
    house = build(max_workers=2)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    ids = house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 2 and house.held() == 10, "two run, eight wait")
        child.engine.drain()
        child.engine.drain()
        assert child.slot.is_draining
        await eventually(lambda: house.held() == 2, "the buffer is handed back")
        go.set()
        assert await child.drain() is ExitCode.DONE
    views = [house.view(job) for job in ids]
    assert [view.status for view in views].count(JobStatus.SUCCEEDED) == 2
    assert {view.attempt_count for view in views if view.status is JobStatus.PENDING} == {0}


async def test_a_child_that_drains_says_so_with_its_next_heartbeat(build: Callable[..., House]) -> None:
    """Who counts replicas must not count those that leave."""
    house = build(max_workers=1, heartbeat=0.1)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    house.enqueue(1)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 1, "it runs")
        assert house.session.get_scale_recommendation(QUEUE).live == 1
        child.engine.drain()
        await eventually(lambda: house.session.get_scale_recommendation(QUEUE).live == 0, "it leaves")
        assert house.session.get_scale_recommendation(QUEUE).running == 1
        go.set()
        assert await child.drain() is ExitCode.DONE


async def test_an_idle_child_drains_at_once(house: House) -> None:
    async with house.child() as child:
        assert await child.drain() is ExitCode.DONE


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "full"])
async def test_a_child_that_an_operator_drains_asks_for_its_replacement_and_works_on(
    build: Callable[..., House], busy: bool
) -> None:
    """A full child is told as well: by the fetch of size zero that it makes every second."""
    house = build(max_workers=1, prefetch=0)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    ids = house.enqueue(2) if busy else []
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == int(busy), "it is busy" if busy else "it is idle")
        assert child.slot.asked_replacement == 0
        assert child.slot.worker_id is not None
        assert house.session.drain_worker(child.slot.worker_id, "ann").result == "accepted"
        await eventually(lambda: child.slot.asked_replacement == 1, "it was told")
        go.set()
        ids += house.enqueue(1)
        await eventually(lambda: all(house.stands(job) is Pillar.ARCHIVE for job in ids), "it works on")
        assert not child.slot.is_draining
        assert child.slot.asked_replacement == 1


async def test_c26_near_the_end_of_the_grace_handlers_are_cancelled_and_their_jobs_refunded(
    build: Callable[..., House],
) -> None:
    house, reasons = build(grace=5.0), list[CancelReason | None]()

    @house.app.handler(Send)
    async def handle(job: Send, ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            reasons.append(ctx.cancel_reason)
            if job.n == 1:
                return
            if job.n == 2:
                raise FatalError("its own verdict") from None
            raise

    ids = house.enqueue(3)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 3, "all run")
        assert await child.drain() is ExitCode.DONE
    assert reasons == [CancelReason.SHUTDOWN] * 3
    back, done, fatal = (house.view(job) for job in ids)
    assert (back.status, back.attempt_count) == (JobStatus.PENDING, 0)
    assert done.status is JobStatus.SUCCEEDED
    assert fatal.failure_reason is FailureReason.FATAL_ERROR


async def test_a_drain_without_hurry_lets_handlers_outlast_the_grace_until_the_hurry_comes(
    build: Callable[..., House],
) -> None:
    house, go = build(grace=5.0), asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        await (go.wait() if job.n == 0 else asyncio.Event().wait())

    ids = house.enqueue(2)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 2, "both run")
        child.engine.drain(hurry=False)
        assert child.slot.is_draining
        beats = len(house.store.named("keep_alive"))
        await eventually(
            lambda: len(house.store.named("keep_alive")) > beats + 2, "the grace before the cancelling is over"
        )
        assert len(child.slot.running) == 2
        go.set()
        await eventually(lambda: house.stands(ids[0]) is Pillar.ARCHIVE, "one ends in its own time")
        child.engine.drain(hurry=False)
        assert len(child.slot.running) == 1
        assert await child.drain() is ExitCode.DONE
    assert (house.view(ids[1]).status, house.view(ids[1]).attempt_count) == (JobStatus.PENDING, 0)


async def test_a_plain_function_keeps_its_lease_until_it_ends(build: Callable[..., House]) -> None:
    """C24: leases are renewed while draining."""
    house = build(grace=5.0)
    inside, go = threading.Event(), threading.Event()

    @house.app.handler(Send)
    def handle(_job: Send) -> None:
        inside.set()
        assert go.wait(20)

    (job,) = house.enqueue()
    async with house.child() as child:
        await reached(inside)
        child.engine.drain()
        beats = len(house.store.named("keep_alive"))
        await eventually(lambda: len(house.store.named("keep_alive")) > beats + 2, "still renewed")
        assert house.lab.row(job)["Status"] == 2
        go.set()
        assert await child.drain() is ExitCode.DONE
    assert house.stands(job) is Pillar.ARCHIVE


async def test_c25_cancellation_works_until_the_last_job_has_ended(house: House) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await inside.wait()
        child.engine.drain()
        house.session.cancel_jobs([job], "ann")
        assert await child.drain() is ExitCode.DONE
    assert house.view(job).status is JobStatus.CANCELLED


async def test_a_draining_child_still_asks_for_cancellations(house: House) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    house.enqueue()
    async with house.child() as child:
        await inside.wait()
        child.engine.drain()
        asked = len(house.store.named("fetch_jobs"))
        await eventually(lambda: len(house.store.named("fetch_jobs")) >= asked + 3, "asked once a second")
        assert {size for _, size, _ in house.store.named("fetch_jobs")[asked + 1 :]} == {0}
        go.set()


async def test_nothing_is_claimed_after_a_drain_began(house: House) -> None:
    """C24."""
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    house.enqueue()
    async with house.child() as child:
        await inside.wait()
        child.engine.drain()
        (late,) = house.enqueue()
        go.set()
    assert house.view(late).status is JobStatus.PENDING


async def test_a_pause_hands_back_the_buffer_and_lets_running_jobs_end(build: Callable[..., House]) -> None:
    house = build(max_workers=1)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: house.held() == 5, "one runs, four wait")
        house.session.set_queue(QUEUE, QueueChange(paused=True), "ops")
        await eventually(lambda: house.held() == 1, "the four are handed back")
        go.set()
        await eventually(lambda: child.counts.succeeded == 1, "the one ends")
        house.session.set_queue(QUEUE, QueueChange(paused=False), "ops")
        await eventually(lambda: child.counts.succeeded == 5, "resumed")


async def test_what_goes_back_to_be_claimed_at_once_rings_for_others(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[None] = []
    monkeypatch.setattr(Listener, "ring_others", lambda _self: rung.append(None))
    house = build(max_workers=1)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    house.enqueue(5)
    async with house.child():
        await eventually(lambda: house.held() == 5, "one runs, four wait")
        rung.clear()
        house.session.set_queue(QUEUE, QueueChange(paused=True), "ops")
        await eventually(lambda: bool(rung), "others hear of the four")
        go.set()


async def test_the_number_of_workers_changes_while_jobs_run(build: Callable[..., House]) -> None:
    house, gate = build(max_workers=1), asyncio.Semaphore(0)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await gate.acquire()

    house.enqueue(30)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 1, "one runs")
        house.session.set_queue(QUEUE, QueueChange(max_workers=4), "ops")
        await eventually(lambda: len(child.slot.running) == 4, "four run")
        house.session.set_queue(QUEUE, QueueChange(max_workers=2), "ops")
        seen = len(house.store.named("fetch_jobs"))
        await eventually(lambda: len(house.store.named("fetch_jobs")) > seen + 1, "the child has been told")
        assert len(child.slot.running) == 4
        for _ in range(3):
            gate.release()
        await eventually(lambda: child.counts.succeeded == 3, "three ended")
        await eventually(lambda: len(child.slot.running) == 2, "two run")
        for _ in range(27):
            gate.release()
        await eventually(lambda: child.counts.succeeded == 30, "done")


async def test_a_worker_that_was_taken_for_dead_comes_to_rest_and_says_so(house: House) -> None:
    inside, reasons = asyncio.Event(), list[CancelReason | None]()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancel_reason)

    (job,) = house.enqueue()
    async with house.child() as child:
        await inside.wait()
        assert child.slot.worker_id is not None
        notice = DeathNotice(worker_id=child.slot.worker_id, queue=QUEUE, cause=DeathCause.SHUTDOWN.value)
        by = house.session.register_worker(child.engine._info)
        house.session.release_worker(by, notice, CrashPolicies())
        house.enqueue()
        assert await child.task is ExitCode.RETIRED
    assert reasons == [CancelReason.LOST_LEASE]
    assert house.view(job).status is JobStatus.PENDING
    assert house.held() == 0


async def test_an_orphan_drains_and_releases_its_own_worker(house: House) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    (job,) = house.enqueue()
    running = house.child(parent_pid=-1)
    async with running as child:
        await inside.wait()
        go.set()
        assert await child.task is ExitCode.ORPHANED
    assert house.stands(job) is Pillar.ARCHIVE
    (worker,) = house.lab.rows("Workers")
    assert "shutdown" in worker["EndedCause"]


async def test_an_orphan_whose_handlers_will_not_end_hands_their_jobs_back_and_leaves(
    build: Callable[..., House],
) -> None:
    house = build(grace=2.0)
    inside, go = threading.Event(), threading.Event()

    @house.app.handler(Send)
    def handle(_job: Send) -> None:
        inside.set()
        assert go.wait(20)

    def left(code: int) -> None:
        house.left.append(code)
        go.set()

    (job,) = house.enqueue()
    async with house.child(parent_pid=-1, leave=left) as child:
        await reached(inside)
        assert await child.task is ExitCode.ORPHANED
    assert ExitCode.ORPHANED in house.left
    assert (house.view(job).status, house.view(job).attempt_count) == (JobStatus.PENDING, 0)


async def test_a_raised_number_of_workers_stays_within_what_the_board_can_show(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slot, "runners", 5)
    house, go, inside = build(max_workers=1), threading.Event(), list[int]()

    @house.app.handler(Send)
    def handle(job: Send) -> None:
        inside.append(job.n)
        assert go.wait(20)

    house.enqueue(30)
    async with house.child() as child:
        house.session.set_queue(QUEUE, QueueChange(max_workers=9), "ops")
        await eventually(lambda: len(inside) == 5, "five run")
        assert child.engine._desk is not None
        assert child.engine._desk.limiter.limit == 5
        assert child.engine._executor._max_workers == 5
        go.set()
        await eventually(lambda: child.counts.succeeded == 30, "done")
