"""A child runs jobs and settles them by how their handlers end."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar

import pytest

from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.errors import FatalError, Throttled
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.records import QueueChange
from chokaq.worker.status import ExitCode

from .harness import QUEUE, House, Send, eventually, reached


async def test_jobs_run_once_and_are_archived(house: House) -> None:
    ran: list[int] = []
    done = asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        ran.append(job.n)
        if len(ran) == 50:
            done.set()

    ids = house.enqueue(50)
    async with house.child() as child:
        await done.wait()
        assert await child.drain() is ExitCode.DONE
    assert sorted(ran) == list(range(50))
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}
    assert child.counts.succeeded == child.counts.completed == 50


async def test_plain_functions_run_in_threads(house: House) -> None:
    loop_thread, seen = threading.get_ident(), set[int]()
    done = threading.Event()

    @house.app.handler(Send)
    def handle(_job: Send, ctx: JobContext) -> None:
        assert not ctx.cancelled
        seen.add(threading.get_ident())
        done.set()

    (job,) = house.enqueue()
    async with house.child():
        await reached(done)
    assert loop_thread not in seen
    assert house.view(job).status is JobStatus.SUCCEEDED


async def test_a_passing_failure_is_retried_until_it_passes(house: House) -> None:
    done = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt < 3:
            raise ConnectionError(f"attempt {ctx.attempt}")
        done.set()

    (job,) = house.enqueue()
    async with house.child() as child:
        await done.wait()
    assert house.view(job).status is JobStatus.SUCCEEDED
    assert [row["ErrorMessage"] for row in house.attempts(job)] == ["attempt 1", "attempt 2"]
    assert child.counts.retried == 2


async def test_spent_attempts_stop_the_job_as_transient(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise ConnectionError("down")

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "the job stopped")
    view = house.view(job)
    assert (view.status, view.failure_reason, view.attempt_count) == (JobStatus.FAILED, FailureReason.TRANSIENT, 3)
    assert len(house.attempts(job)) == 3


async def test_a_throttled_job_that_is_spent_says_so(build: Callable[..., House]) -> None:
    house = build(policy=Policy(max_attempts=1))

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise Throttled(5)

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "the job stopped")
    assert house.view(job).failure_reason is FailureReason.THROTTLED


async def test_a_fatal_failure_stops_at_once_and_alone(house: House) -> None:
    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 3:
            raise FatalError("no such address")

    ids = house.enqueue(8)
    async with house.child() as child:
        await eventually(lambda: child.counts.completed == 8, "all settled")
    stopped = house.view(ids[3])
    assert (stopped.failure_reason, stopped.error_message) == (FailureReason.FATAL_ERROR, "no such address")
    assert [house.stands(job) for job in ids].count(Pillar.ARCHIVE) == 7


async def test_c14_an_unreadable_payload_goes_to_the_dlq_alone(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    good = house.enqueue(5)
    (bad,) = house.enqueue(payload='{"n":"seven"}')
    async with house.child() as child:
        await eventually(lambda: child.counts.completed == 6, "all settled")
    assert {house.stands(job) for job in good} == {Pillar.ARCHIVE}
    assert house.view(bad).failure_reason is FailureReason.FATAL_ERROR


async def test_a_snoozed_job_waits_without_charge(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        ctx.snooze(3600)

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.released == 1, "handed back")
    view = house.view(job)
    assert (view.status, view.attempt_count) == (JobStatus.PENDING, 0)
    assert house.attempts(job) == []


async def test_a_job_of_an_unknown_type_is_handed_back_uncharged(house: House) -> None:
    (job,) = house.enqueue(type_key="invoice.print.v9")
    async with house.child() as child:
        await eventually(lambda: child.counts.released == 1, "handed back")
    row = house.lab.row(job)
    assert (row["Status"], row["AttemptCount"], row["IsReady"]) == (0, 0, 0)
    assert 25_000 < row["DueAtUtc"] - row["CreatedAtUtc"] < 60_000


async def test_a_type_that_stays_unknown_is_fatal(house: House) -> None:
    (job,) = house.enqueue(type_key="invoice.print.v9")
    house.lab.age(job, "AgeFromUtc", 901_000)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    view = house.view(job)
    assert (view.failure_reason, view.attempt_count) == (FailureReason.FATAL_ERROR, 0)
    assert "invoice.print.v9" in (view.error_message or "")


async def test_a_pipe_takes_every_type(house: House) -> None:
    seen: list[tuple[str, str]] = []

    @house.app.pipe(QUEUE)
    async def pipe(type_key: str, payload: str) -> None:
        seen.append((type_key, payload))

    house.enqueue(type_key="anything.v1", payload='{"a":1}')
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert seen == [("anything.v1", '{"a":1}')]


async def test_no_job_sees_another_jobs_context_variables(build: Callable[..., House]) -> None:
    house, seen = build(max_workers=1), list[str]()
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        seen.append(tenant.get())
        tenant.set(f"tenant {job.n}")
        await asyncio.sleep(0)
        assert tenant.get() == f"tenant {job.n}"

    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 5, "done")
    assert seen == ["nobody"] * 5


async def test_a_handler_that_exits_the_program_fails_its_job_only(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise SystemExit(3)

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    assert house.attempts(job)[0]["ErrorType"] == "SystemExit"


async def test_a_handler_that_cancels_its_own_task_harms_no_later_job(build: Callable[..., House]) -> None:
    house = build(max_workers=1)

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        if job.n == 0:
            task.cancel()

    ids = house.enqueue(4)
    async with house.child() as child:
        await eventually(lambda: child.counts.completed == 4, "all settled")
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}


async def test_the_board_shows_a_handler_from_before_it_begins_until_it_has_ended(house: House) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    (job,) = house.enqueue()
    async with house.child() as child:
        await inside.wait()
        assert [held.id for held in child.slot.running.values()] == [job]
        go.set()
        await eventually(lambda: child.counts.succeeded == 1, "done")
        assert child.slot.running == {}
        await eventually(lambda: bool(child.slot.pulses) and child.slot.pulses[-1]["completed"] == 1, "a pulse")
    assert child.slot.pulses[-1]["memory_kb"] > 0


async def test_no_more_handlers_run_at_once_than_the_queue_allows(build: Callable[..., House]) -> None:
    house = build(max_workers=3)
    free = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await free.wait()

    house.enqueue(20)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 3, "three run")
        await eventually(lambda: house.held() == 20, "the rest is buffered")
        free.set()
        await eventually(lambda: child.counts.succeeded == 20, "done")
    assert child.slot.most == 3


async def test_jobs_that_crashed_a_process_before_run_one_at_a_time(house: House) -> None:
    inside, most = 0, 0

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        nonlocal inside, most
        if ctx.priority == 7:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    suspects = house.enqueue(4, priority=7)
    for job in suspects:
        house.lab.put(job, CrashCount=1)
    house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 14, "done")
    assert most == 1


async def test_the_suspects_of_one_crash_are_through_within_seconds(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    for job in house.enqueue(50):
        house.lab.put(job, CrashCount=1)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 50, "done", seconds=8)
    assert child.counts.released > 0


async def test_suspects_that_wait_take_half_the_buffer_at_most_and_sound_jobs_pass_them(
    build: Callable[..., House],
) -> None:
    house, go = build(prefetch=4, max_workers=2), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.priority == 99:
            await go.wait()

    suspects = house.enqueue(12, priority=99)
    for job in suspects:
        house.lab.put(job, CrashCount=1)
    house.enqueue(20)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 20, "the sound ones are done")
        await eventually(lambda: house.held() == 3, "one suspect runs, two wait here")
        go.set()
        await eventually(lambda: child.counts.succeeded == 32, "done")
    assert child.slot.most == 2


@pytest.mark.parametrize("where", ["yaml", "override"])
async def test_under_a_fleet_cap_no_suspect_holds_a_lease_only_to_wait(build: Callable[..., House], where: str) -> None:
    house, go = build(max_workers=4, fleet_max_workers=3 if where == "yaml" else None), asyncio.Event()
    if where == "override":
        house.session.set_queue(QUEUE, QueueChange(fleet_max_workers=3), "ops")

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.priority == 99:
            await go.wait()

    for job in house.enqueue(6, priority=99):
        house.lab.put(job, CrashCount=1)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 5, "the sound ones pass")
        await eventually(lambda: house.held() == 1, "only the suspect that runs holds a lease")
        go.set()
        await eventually(lambda: child.counts.succeeded == 11, "done")


async def test_c29_no_connection_and_no_transaction_is_held_for_a_handler_that_runs(
    build: Callable[..., House],
) -> None:
    """Elsewhere each running job holds one, and a few hundred of them starve the server. Here: three lanes, however many run."""
    house = build(max_workers=50)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    ids = house.enqueue(50)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 50, "all of them run")
        assert house.store.sessions == 3
        # A stranger who takes no excuse finds every row and the whole file free, also while leases are renewed.
        with closing(house.lab.caller(autocommit=True)) as stranger:
            for _ in range(3):
                beats = len(house.store.named("keep_alive"))
                await eventually(lambda seen=beats: len(house.store.named("keep_alive")) > seen, "a heartbeat")  # type: ignore[misc]
                stranger.execute("BEGIN IMMEDIATE")
                changed = stranger.execute("UPDATE JobsHot SET Progress = 7 WHERE Status = 2").rowcount
                stranger.execute("COMMIT")
                assert changed == 50
        go.set()
        await eventually(lambda: child.counts.succeeded == 50, "all done")
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}


@pytest.mark.parametrize(
    "text",
    ["x" * 5_000_000, "😀" * 100_000, "a\0b", "half a pair: \udc80", "quote \" and ' and \\"],
    ids=["long", "astral", "nul", "half", "quotes"],
)
async def test_c45_whatever_a_handler_raises_is_recorded(house: House, text: str) -> None:
    """Also one whose text cannot even be asked for."""

    class Mute(FatalError):
        def __str__(self) -> str:
            raise RuntimeError(text)

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        raise FatalError(text) if job.n == 0 else Mute

    ids = house.enqueue(2)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 2, "both are recorded")
    for job in ids:
        assert house.view(job).failure_reason is FailureReason.FATAL_ERROR
        [attempt] = house.attempts(job)
        assert attempt["ErrorMessage"]
        assert len(attempt["ErrorMessage"]) <= 4_000
