"""One line for what became of each job; the application's own lines inside a handler name their job."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from chokaq import idempotent
from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.errors import FatalError, Snooze, Throttled
from chokaq.lifecycle.states import Answer
from chokaq.observe.events import EVENTS
from chokaq.observe.levels import verbose
from chokaq.observe.running import job_fields
from chokaq.store.records import QueueChange
from chokaq.worker.claims import Operation
from chokaq.worker.lane import Lane
from chokaq.worker.telling import tell_settled

from .harness import KEY, QUEUE, House, Send, eventually

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = f'{{"traceparent":"00-{TRACE}-b7ad6b7169203331-01"}}'
QUICK = Policy(max_attempts=1, retry_base_delay=0.001, retry_jitter=0.0, execution_timeout=0.05)


@pytest.fixture
def debug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that logs at debug."""
    monkeypatch.setattr(verbose, "debug", True)


async def told(house: House, handle: Callable[..., Any], done: Callable[[Any], bool], **job: Any) -> list[Any]:
    """Every line about the job that `handle` runs, by the time its child has drained."""
    house.app.handler(Send)(handle)
    (job_id,) = house.enqueue(**job)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: done(child.counts), "settled")
    return [log for log in logs if log.get("job") == job_id]


@pytest.mark.parametrize(
    ("error", "event", "reason"),
    [
        (FatalError("no such mailbox; PWD=hunter2"), "job_fatal", None),
        (ConnectionError("away"), "job_exhausted", "Transient"),
        (Throttled(1), "job_exhausted", "Throttled"),
    ],
)
async def test_a_job_that_stops_is_told_with_its_error(
    build: Callable[..., House], error: Exception, event: str, reason: str | None
) -> None:
    house = build(policy=QUICK)

    async def handle(_job: Send) -> None:
        raise error

    found = await told(house, handle, lambda counts: counts.failed == 1, headers=HEADERS)
    [line] = [line for line in found if line["event"] == event]
    assert line["log_level"] == EVENTS[event].level
    assert (line["type"], line["queue"], line["attempt"], line["trace_id"]) == (KEY, QUEUE, 1, TRACE)
    assert line["error"].split(".")[-1] == type(error).__name__
    assert line.get("reason") == reason
    assert "hunter2" not in line["message"]
    assert len([line for line in found if line["event"].startswith("job_")]) == 1


async def test_a_retry_is_told_with_its_delay(build: Callable[..., House]) -> None:
    house = build(policy=Policy(retry_base_delay=0.002, retry_jitter=0.0, max_attempts=2))

    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("away")

    found = await told(house, handle, lambda counts: counts.succeeded == 1)
    [line] = found
    assert (line["event"], line["attempt"], line["delay"], line["message"]) == ("job_retried", 1, 0.002, "away")


async def test_a_throttled_job_is_told_apart(build: Callable[..., House]) -> None:
    house = build(policy=Policy(max_attempts=2))

    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise Throttled(0.02)

    [line] = await told(house, handle, lambda counts: counts.succeeded == 1)
    assert (line["event"], line["delay"]) == ("job_throttled", 0.02)


async def test_a_timeout_is_told(build: Callable[..., House]) -> None:
    async def handle(_job: Send) -> None:
        await asyncio.Event().wait()

    [line] = await told(build(policy=QUICK), handle, lambda counts: counts.failed == 1)
    assert (line["event"], line["error"]) == ("job_timed_out", "ExecutionTimeout")


async def test_a_cancellation_is_told_when_it_is_asked_for_and_when_it_is_done(house: House) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    (job,) = house.enqueue()
    with capture_logs() as logs:
        async with house.child() as child:
            await inside.wait()
            house.session.cancel_jobs([job], "anna", "not needed", request="R" * 26)
            await eventually(lambda: child.counts.failed == 1, "cancelled")
    mine = [log for log in logs if log.get("job") == job]
    assert [log["event"] for log in mine] == ["cancellation_requested", "job_cancelled"]
    assert {(log["actor"], log["why"]) for log in mine} == {("anna", "not needed")}
    assert mine[0]["running"]


async def test_successes_and_what_goes_back_are_told_at_debug_only(build: Callable[..., House]) -> None:
    async def handle(_job: Send) -> None: ...

    assert await told(build(), handle, lambda counts: counts.succeeded == 1) == []


def test_a_success_that_nobody_reads_is_not_even_looked_at() -> None:
    class Untouched:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    tell_settled(Operation.SUCCEED, [Untouched()], [Answer.APPLIED])  # type: ignore[list-item]


async def test_a_success_is_told_at_debug(house: House, debug: None) -> None:
    async def handle(_job: Send) -> None: ...

    [line] = await told(house, handle, lambda counts: counts.succeeded == 1)
    assert (line["event"], line["log_level"], line["attempt"]) == ("job_succeeded", "debug", 1)


async def test_a_snooze_is_told_at_debug(house: House, debug: None) -> None:
    async def handle(_job: Send) -> None:
        raise Snooze(60)

    found = await told(house, handle, lambda counts: counts.released == 1)
    assert [line["event"] for line in found] == ["handler_raised", "job_released"]
    assert found[1]["delay"] == 60


async def test_a_job_that_a_duplicate_makes_needless_is_told_at_debug(house: House, debug: None) -> None:
    house.app.middleware(idempotent(key=lambda _job: "same"))

    async def handle(_job: Send) -> None: ...

    house.app.handler(Send)(handle)
    house.enqueue(2)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: child.counts.succeeded >= 1, "one")
    assert child.counts.keys_missed == 1
    assert sum(log["event"] == "job_succeeded" for log in logs) == child.counts.succeeded


async def test_an_unknown_type_is_told(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    (job,) = house.enqueue(type_key="nobody.v1")
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: child.counts.released == 1, "handed back")
    [line] = [log for log in logs if log.get("job") == job]
    assert (line["event"], line["type"]) == ("unknown_type", "nobody.v1")


async def test_denied_jobs_are_told_at_debug_and_the_circuit_at_once(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    house = build(policy=Policy(max_attempts=1, circuit_failures=1, circuit_open=60.0), max_workers=1, prefetch=10)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise ConnectionError

    house.enqueue(3)
    monkeypatch.setattr(verbose, "debug", True)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: child.counts.denied == 2, "denied")
    names = [log["event"] for log in logs]
    assert names.count("circuit_rejected") == 2
    assert [log["failures"] for log in logs if log["event"] == "circuit_opened"] == [1]


async def test_a_drain_that_takes_too_long_is_told_and_so_is_the_end(build: Callable[..., House], debug: None) -> None:
    house = build(grace=0.2)
    inside = asyncio.Event()

    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    house.app.handler(Send)(handle)
    (job,) = house.enqueue()
    with capture_logs() as logs:
        async with house.child() as child:
            await inside.wait()
            await child.drain()
    names = [log["event"] for log in logs]
    order = ["worker_started", "draining", "drain_timed_out", "handler_saw_shutdown", "handler_raised"]
    assert [name for name in names if name != "buffered_job_released"] == [
        *order,
        "job_rescheduled_by_shutdown",
        "worker_stopped",
    ]
    assert [log["released"] for log in logs if log["event"] == "worker_stopped"] == [1]
    assert house.view(job).attempt_count == 0


async def test_a_changed_capacity_is_told(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    with capture_logs() as logs:
        async with house.child():
            house.session.set_queue(QUEUE, QueueChange(max_workers=3), "anna", None)
            await eventually(lambda: any(log["event"] == "capacity_changed" for log in logs), "told")
    [line] = [log for log in logs if log["event"] == "capacity_changed"]
    assert (line["capacity"], line["before"]) == (3, house.queue.max_workers)


async def test_a_job_that_was_cancelled_in_the_buffer_is_not_started_and_that_is_told(
    build: Callable[..., House],
) -> None:
    house = build(max_workers=1)
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    first, second = house.enqueue(2)
    with capture_logs() as logs:
        async with house.child() as child:
            await inside.wait()
            await eventually(lambda: child.engine._desk is not None and len(child.engine._desk.buffer) == 1, "buffered")
            house.lab.execute("UPDATE {JobsHot} SET LeaseNumber = LeaseNumber + 1 WHERE Id = ?", second)
            go.set()
            await eventually(lambda: child.counts.conflicts == 1, "refused")
            house.lab.execute("UPDATE {JobsHot} SET LeaseNumber = LeaseNumber - 1 WHERE Id = ?", second)
            house.session.cancel_jobs([second], "anna", None, request="R" * 26)
    lines = [log for log in logs if log["event"] == "lease_rejected"]
    assert [(line["job"], line["type"]) for line in lines] == [(second, KEY)]
    assert house.view(first).status.label == "Succeeded"


@pytest.fixture
def own() -> Iterator[list[dict[str, Any]]]:
    """What an application logs, through structlog and through the standard library."""
    seen: list[dict[str, Any]] = []

    def keep(_logger: object, _method: str, event: dict[str, Any]) -> str:
        seen.append(dict(event))
        raise structlog.DropEvent

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append({"event": record.getMessage(), **job_fields()})

    handler, logger = Handler(), logging.getLogger("shop")
    structlog.configure(processors=[job_fields, keep])
    logger.addHandler(handler)
    yield seen
    logger.removeHandler(handler)
    structlog.reset_defaults()


@pytest.mark.parametrize("sync", [False, True])
async def test_lines_of_the_application_name_the_job_in_coroutines_tasks_and_threads(
    house: House, own: list[dict[str, Any]], sync: bool
) -> None:
    def speak(where: str) -> None:
        structlog.get_logger("shop").info(f"{where} structlog")
        logging.getLogger("shop").warning("%s stdlib", where)

    async def handle(_job: Send) -> None:
        speak("handler")
        await asyncio.sleep(0)
        await asyncio.create_task(asyncio.to_thread(speak, "task"))

    def plain(_job: Send) -> None:
        speak("handler")

    house.app.handler(Send)(plain if sync else handle)
    ids = house.enqueue(2, headers=HEADERS)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 2, "done")
    mine = [line for line in own if line["event"].split(" ")[0] in ("handler", "task")]
    for job in ids:
        of_job = [line for line in mine if line.get("job") == job]
        assert sorted(line["event"] for line in of_job) == (
            ["handler stdlib", "handler structlog"]
            if sync
            else ["handler stdlib", "handler structlog", "task stdlib", "task structlog"]
        )
        assert {(line["type"], line["queue"], line["attempt"], line["trace_id"]) for line in of_job} == {
            (KEY, QUEUE, 1, TRACE)
        }
    assert len(mine) == len([line for line in mine if line.get("job") in ids])
    others = [line for line in own if line["event"] in ("worker_started", "draining", "worker_stopped")]
    assert len(others) == 3
    assert not any("job" in line for line in others), "what the worker itself says is about no job"


async def test_a_lane_that_ends_unasked_ends_the_child_and_is_told(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    with capture_logs() as logs, pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the child ends inside
        async with house.child() as child:
            lane: Lane = child.engine._claim_lane
            lane._ended.set_result(None)
            await child.task
    assert caught.group_contains(RuntimeError, match="claim lane ended")
    names = [log["event"] for log in logs]
    assert "loop_stopped_unexpectedly" in names
    assert [log["task"] for log in logs if log["event"] == "task_failed"] == ["watch-claim"]
