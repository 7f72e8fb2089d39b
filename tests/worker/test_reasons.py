"""Every reason to stop reaches every kind of handler; and jobs in every state are cancelled from another process (C47)."""

import asyncio
import threading
from collections.abc import Callable
from concurrent import futures
from datetime import timedelta

import pytest

from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus
from chokaq.store.errors import StoreUnavailable
from tests.support.processes import run_programs

from .harness import House, Running, Send, eventually, reached

Build = Callable[..., House]


class Watched:
    """A handler that runs until it is told to stop, and notes what it was told."""

    def __init__(self, house: House, *, sync: bool) -> None:
        self.inside = threading.Event()
        self.reasons: list[CancelReason | None] = []
        self._tick = threading.Event()
        house.app.handler(Send)(self._thread if sync else self._coroutine)

    def _thread(self, _job: Send, ctx: JobContext) -> None:
        assert ctx.cancel_reason is None
        self.inside.set()
        while not ctx.cancelled:
            self._tick.wait(0.002)
        self.reasons.append(ctx.cancel_reason)
        raise RuntimeError("stopped")

    async def _coroutine(self, _job: Send, ctx: JobContext) -> None:
        assert not ctx.cancelled
        self.inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.reasons.append(ctx.cancel_reason)


async def bring_about(reason: CancelReason, house: House, child: Running, job: str) -> None:
    """Give the running job that reason to stop."""
    match reason:
        case CancelReason.ADMIN:
            house.session.cancel_jobs([job], "ann")
        case CancelReason.LOST_LEASE:
            house.lab.put(job, LeaseNumber=2)
        case CancelReason.SHUTDOWN:
            child.engine.drain()
        case CancelReason.HEARTBEAT:

            def before(name: str, _args: tuple[object, ...]) -> None:
                if name == "keep_alive":
                    raise StoreUnavailable("gone")

            house.store.before = before
        case CancelReason.TIMEOUT:
            """Its time passes by itself."""


@pytest.mark.parametrize("sync", [False, True], ids=["coroutine", "function"])
@pytest.mark.parametrize("reason", CancelReason)
async def test_c47_every_reason_to_stop_reaches_the_handler(build: Build, reason: CancelReason, sync: bool) -> None:
    policy = Policy(execution_timeout=0.1 if reason is CancelReason.TIMEOUT else 600.0)
    house = build(policy=policy, grace=5.05, heartbeat_failure_threshold=2, cancel_on_heartbeat_failure=True)
    watched = Watched(house, sync=sync)
    (job,) = house.enqueue()
    async with house.child() as child:
        await reached(watched.inside)
        await bring_about(reason, house, child, job)
        await eventually(lambda: bool(watched.reasons), "told")
        house.store.before = lambda _name, _args: None
        await eventually(lambda: not child.slot.running, "ended")
        await child.drain()
    assert watched.reasons == [reason]
    row = house.lab.query("SELECT Status, FailureReason FROM JobsDLQ")
    if reason in {CancelReason.SHUTDOWN, CancelReason.LOST_LEASE}:
        assert row == []
        assert house.lab.row(job)["Status"] == (0 if reason is CancelReason.SHUTDOWN else 2)
    else:
        ends = {
            CancelReason.ADMIN: (JobStatus.CANCELLED, FailureReason.CANCELLED),
            CancelReason.TIMEOUT: (JobStatus.FAILED, FailureReason.TIMEOUT),
            CancelReason.HEARTBEAT: (JobStatus.FAILED, FailureReason.HEARTBEAT_FAILURE),
        }
        assert [(found["Status"], found["FailureReason"]) for found in row] == [ends[reason]]


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("the mail server"),
        asyncio.CancelledError("the http client"),
        futures.CancelledError("a future of its own"),
        BaseExceptionGroup("tasks", [asyncio.CancelledError(), TimeoutError()]),
    ],
    ids=["timeout", "cancelled", "future", "group"],
)
@pytest.mark.parametrize("sync", [False, True], ids=["coroutine", "function"])
async def test_g23_a_handlers_own_cancellation_or_timeout_is_a_passing_failure(
    house: House, error: BaseException, sync: bool
) -> None:
    """The reference took every cancellation that was no shutdown for its own timeout, and retried none."""

    def fail_once(ctx: JobContext) -> None:
        assert ctx.cancel_reason is None
        if ctx.attempt == 1:
            raise error

    if sync:

        @house.app.handler(Send)
        def work(_job: Send, ctx: JobContext) -> None:
            fail_once(ctx)

    else:

        @house.app.handler(Send)
        async def handle(_job: Send, ctx: JobContext) -> None:
            fail_once(ctx)

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    assert [row["FailureReason"] for row in house.attempts(job)] == [FailureReason.TRANSIENT]
    assert child.counts.timeouts == 0


async def test_g23_a_timeout_scope_of_the_handler_inside_ours_is_its_own(house: House) -> None:
    """`asyncio.timeout` cancels the very task that the worker cancels."""

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    [attempt] = house.attempts(job)
    assert (attempt["FailureReason"], attempt["ErrorType"]) == (FailureReason.TRANSIENT, "TimeoutError")


async def test_a_timed_out_run_that_may_be_retried_is_charged_and_waits_by_the_backoff(build: Build) -> None:
    house = build(policy=Policy(execution_timeout=0.05, on_timeout="retry", retry_base_delay=60.0, retry_jitter=0.0))
    Watched(house, sync=False)
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.retried == 1, "waits")
    row, [attempt] = house.lab.row(job), house.attempts(job)
    assert (row["Status"], row["AttemptCount"]) == (0, 1)
    assert row["DueAtUtc"] - attempt["AtUtc"] == 60_000
    assert (attempt["FailureReason"], attempt["ErrorType"]) == (FailureReason.TIMEOUT, "ExecutionTimeout")


async def test_a_snooze_is_not_charged_however_often(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        snoozes.append(ctx.attempt)
        if len(snoozes) < 6:
            ctx.snooze(timedelta(milliseconds=1))

    snoozes: list[int] = []
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done at last")
    assert snoozes == [1] * 6, "more often than it has attempts"
    assert house.view(job).attempt_count == 1
    assert house.attempts(job) == []


@pytest.mark.processes
@pytest.mark.parametrize("draining", [False, True])
async def test_c47_jobs_in_every_state_are_cancelled_from_another_process(build: Build, draining: bool) -> None:
    """C25 when the child is draining: it still hears of them."""
    house = build(max_workers=1, prefetch=1)
    watched = Watched(house, sync=False)
    (processing,) = house.enqueue()
    (later,) = house.enqueue(delay_ms=3_600_000)
    async with house.child() as child:
        await reached(watched.inside)
        (fetched,) = house.enqueue()
        await eventually(lambda: house.lab.row(fetched)["Status"] == 1, "buffered")
        (waiting,) = house.enqueue()
        if draining:
            child.engine.drain()
        ids = [processing, fetched, waiting, later]
        [report] = await asyncio.to_thread(run_programs, "cancel_jobs", 1, house.settings.database, ids=ids)
        await eventually(lambda: child.counts.failed == 1, "the running one has stopped")
        await child.drain()
    assert report == {processing: "requested", fetched: "cancelled", waiting: "cancelled", later: "cancelled"}
    assert watched.reasons == [CancelReason.ADMIN]
    assert {held.id for _, held, _ in child.slot.begun} == {processing}, "none of the others ran"
    views = [house.view(job) for job in ids]
    assert {view.status for view in views} == {JobStatus.CANCELLED}
    assert views[0].error_message == "cancelled by ann 0: wrong list"
    assert {entry.target for entry in house.session.list_audit() if entry.actor == "ann 0"} == set(ids)
