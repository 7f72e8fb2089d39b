"""Timeouts, cancellations and lost leases: who asked a run to stop decides what becomes of its job."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus, Pillar
from chokaq.store.records import QueueChange

from .harness import QUEUE, House, Send, eventually, reached

SHORT = Policy(execution_timeout=0.03, retry_base_delay=0.001, retry_jitter=0.0)


async def test_a_handler_past_its_timeout_is_cancelled_and_stops(build: Callable[..., House]) -> None:
    house, reasons = build(policy=SHORT), list[CancelReason | None]()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancel_reason)

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    view = house.view(job)
    assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.TIMEOUT)
    assert view.error_type == "ExecutionTimeout"
    assert reasons == [CancelReason.TIMEOUT]
    assert child.counts.timeouts == 1


async def test_a_timeout_may_be_retried(build: Callable[..., House]) -> None:
    house = build(policy=Policy(execution_timeout=0.03, on_timeout="retry", retry_base_delay=0.001, retry_jitter=0.0))

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            await asyncio.Event().wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    assert [row["FailureReason"] for row in house.attempts(job)] == [FailureReason.TIMEOUT]


async def test_a_handler_that_returns_after_its_timeout_has_succeeded(build: Callable[..., House]) -> None:
    house = build(policy=SHORT)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    house.enqueue(3)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 3, "success wins")


@pytest.mark.parametrize("error", [TimeoutError("the mail server"), asyncio.CancelledError("the http client")])
async def test_a_handlers_own_timeout_or_cancellation_is_a_passing_failure(house: House, error: BaseException) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise error

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    assert [row["FailureReason"] for row in house.attempts(job)] == [FailureReason.TRANSIENT]


async def test_a_plain_function_past_its_timeout_is_told_and_waited_for(build: Callable[..., House]) -> None:
    house = build(policy=SHORT)

    @house.app.handler(Send)
    def handle(_job: Send, ctx: JobContext) -> None:
        deadline = time.monotonic() + 20
        while not ctx.cancelled:
            assert time.monotonic() < deadline
        raise RuntimeError("gave up")

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    view = house.view(job)
    assert view.failure_reason is FailureReason.TIMEOUT
    assert "gave up" in (view.error_message or "")


async def test_the_hard_deadline_stands_on_the_board(build: Callable[..., House]) -> None:
    house = build(policy=Policy(execution_timeout=100, hard_limit_grace=7))

    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    house.enqueue()
    now = time.monotonic()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    ((_, _, deadline),) = child.slot.begun
    assert 107 <= deadline - now < 127


async def test_the_operators_timeout_wins_over_the_policy(house: House) -> None:
    house.session.set_queue(QUEUE, QueueChange(execution_timeout_ms=30), "ops")

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await asyncio.Event().wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    assert house.view(job).failure_reason is FailureReason.TIMEOUT


async def test_c47_a_running_job_that_is_cancelled_stops_and_tells_who_did_it(house: House) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await inside.wait()
        assert house.session.cancel_jobs([job], "ann", "wrong list")[0].result == "requested"
        await eventually(lambda: child.counts.failed == 1, "stopped")
        # The limit for the handler that ignores it had been put on the board.
        assert child.slot.begun[-1][2] - time.monotonic() <= house.queue.policy.hard_limit_grace
    view = house.view(job)
    assert (view.status, view.failure_reason) == (JobStatus.CANCELLED, FailureReason.CANCELLED)
    assert view.error_message == "cancelled by ann: wrong list"


async def test_a_handler_that_returns_although_cancelled_has_succeeded(house: House) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    (job,) = house.enqueue()
    async with house.child() as child:
        await inside.wait()
        house.session.cancel_jobs([job], "ann")
        await eventually(lambda: child.counts.succeeded == 1, "success wins")
    assert house.stands(job) is Pillar.ARCHIVE


async def test_a_retry_of_a_cancelled_job_ends_it(house: House) -> None:
    inside, go = threading.Event(), threading.Event()

    @house.app.handler(Send)
    def handle(_job: Send) -> None:
        inside.set()
        go.wait(20)
        raise ConnectionError("down")

    (job,) = house.enqueue()
    async with house.child() as child:
        await reached(inside)
        house.session.cancel_jobs([job], "ann")
        go.set()
        await eventually(lambda: child.counts.completed == 1, "settled")
    assert house.view(job).status is JobStatus.CANCELLED


async def test_a_lost_lease_cancels_the_run_and_writes_nothing(house: House) -> None:
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
        house.lab.put(job, LeaseNumber=2)
        await eventually(lambda: child.counts.conflicts == 1, "noticed by a heartbeat")
    assert reasons == [CancelReason.LOST_LEASE]
    row = house.lab.row(job)
    assert (row["Status"], row["LeaseNumber"]) == (2, 2)
    assert child.counts.completed == 0


async def test_progress_travels_with_the_heartbeat(house: House) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        ctx.progress(40, "page 4 of 10")
        inside.set()
        await go.wait()

    (job,) = house.enqueue()
    async with house.child():
        await inside.wait()
        await eventually(lambda: house.view(job).progress == 40, "stored")
        assert house.view(job).note == "page 4 of 10"
        go.set()


async def test_leases_are_renewed_while_the_loop_stands_still(house: House) -> None:
    inside, renewed = asyncio.Event(), threading.Event()

    def after(name: str, args: tuple[object, ...]) -> None:
        if name == "keep_alive" and args[1] and inside.is_set():
            renewed.set()

    house.store.after = after

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        assert renewed.wait(20)

    house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    lags = [figures.loop_lag_ms for _, figures in house.store.named("keep_alive")]
    assert len(lags) >= 2
