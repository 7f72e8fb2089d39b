"""The store fails, stalls or refuses: nothing is lost, nothing repeated, and no handler is blamed."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from chokaq.jobs.context import JobContext
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus, Pillar
from chokaq.store.errors import SchemaMismatch, StoreMisconfigured, StoreRefused, StoreUnavailable
from chokaq.worker import reach
from chokaq.worker.lane import _pause
from chokaq.worker.status import ExitCode

from .harness import House, Running, Send, eventually, reached


class Trouble:
    """Raises `error` the first `times` times an operation is called with jobs."""

    def __init__(self, operation: str, times: int, error: Exception) -> None:
        self.operation, self.left, self.error = operation, times, error
        self.spent = threading.Event()

    def __call__(self, name: str, args: tuple[object, ...]) -> None:
        busy = name in ("fetch_jobs", "register_worker") or bool(args[1])
        if name == self.operation and busy and self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.spent.set()
            raise self.error


def counting(house: House) -> list[int]:
    ran: list[int] = []

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        ran.append(job.n)
        if job.n == 9:
            raise ConnectionError("once") if ran.count(9) == 1 else asyncio.CancelledError
        await asyncio.sleep(0)

    return ran


WRITES = ["register_worker", "fetch_jobs", "start_jobs", "archive_succeeded", "reschedule_for_retry", "keep_alive"]


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_c11_an_answer_that_is_lost_is_asked_for_again(house: House, operation: str, moment: str) -> None:
    trouble = Trouble(operation, 3, StoreUnavailable("the connection was cut"))
    setattr(house.store, moment, trouble)
    ran: list[int] = []

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        ran.append(job.n)
        if job.n == 9 and ran.count(9) == 1:
            raise ConnectionError("once")
        if job.n == 0:
            # Something is held until the trouble has come.
            await reached(trouble.spent)

    ids = house.enqueue(20)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 20 and trouble.spent.is_set(), "all done")
    assert sorted(ran) == sorted([*range(20), 9])
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}
    assert child.counts.conflicts == 0
    assert child.counts.store_errors == 3


async def test_c11_a_repeated_fetch_carries_the_same_number_and_size(house: House) -> None:
    asked: list[tuple[object, object]] = []

    def before(name: str, args: tuple[object, ...]) -> None:
        if name == "fetch_jobs":
            asked.append((args[1], args[2]))
            if args[2] and len(asked) < 5:
                raise StoreUnavailable("cut")

    house.store.before = before
    ran = counting(house)
    house.enqueue(3)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 3, "done")
    assert asked[:1] == [(1, 0)]
    assert len(set(asked[1:5])) == 1
    assert asked[5][0] == 3
    assert sorted(ran) == [0, 1, 2]


async def test_c30_an_outage_neither_fails_a_job_nor_ends_the_child(house: House) -> None:
    down = threading.Event()

    def before(_name: str, _args: tuple[object, ...]) -> None:
        if down.is_set():
            raise StoreUnavailable("restarting")

    def connect() -> None:
        if down.is_set():
            raise StoreUnavailable("refused")

    house.store.before, house.store.connect = before, connect
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await go.wait()

    ids = house.enqueue(30)
    async with house.child() as child:
        await inside.wait()
        down.set()
        go.set()
        await eventually(lambda: child.counts.store_errors > 12, "all lanes try and try")
        down.clear()
        await eventually(lambda: child.counts.succeeded == 30, "resumed")
    assert {house.view(job).attempt_count for job in ids} == {1}
    assert house.store.sessions > 3


@given(tries=st.integers(1, 10**6), took=st.floats(0.0, 0.5))
def test_c30_however_long_the_store_was_away_a_lane_asks_again_within_seconds(tries: int, took: float) -> None:
    """An outage of minutes must not have made it slow: the pauses grow to two seconds and no further."""
    assert 0.0 < _pause(tries, took) <= 2.0


@given(tries=st.integers(2, 10**6), took=st.floats(1.0, 3600.0))
def test_tries_that_take_long_rest_as_long_so_that_an_overloaded_server_recovers(tries: int, took: float) -> None:
    assert min(took, 5.0) <= _pause(tries, took) <= 10.0


@pytest.mark.parametrize("how", ["refuses", "hangs"])
async def test_c30_the_board_tells_that_the_store_does_not_answer(
    house: House, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 0.2)
    back = threading.Event()
    back.set()

    def before(_name: str, _args: tuple[object, ...]) -> None:
        if how == "hangs":
            back.wait(20)
        elif not back.is_set():
            raise StoreUnavailable("restarting")

    house.store.before = before
    async with house.child() as child:
        assert child.slot.reaches is True
        back.clear()
        await eventually(lambda: child.slot.reaches is False, "not reached")
        back.set()
        await eventually(lambda: child.slot.reaches is True, "reached again")


async def test_c30_a_child_that_cannot_boot_for_want_of_a_store_says_so(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 0.1)
    back = threading.Event()

    def connect() -> None:
        if not back.is_set():
            raise StoreUnavailable("not there yet")

    house.store.connect = connect
    child = Running(house)
    await eventually(lambda: child.slot.reaches is False, "not reached")
    assert not child.slot.is_ready.is_set()
    back.set()
    await child.ready()
    await eventually(lambda: child.slot.reaches is True, "reached")
    assert await child.drain() is ExitCode.DONE


async def test_a_set_the_store_refuses_is_split_until_the_bad_job_is_alone(house: House) -> None:
    release = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await release.wait()

    ids = house.enqueue(10)

    def before(name: str, args: tuple[object, ...]) -> None:
        if name == "archive_succeeded" and ids[6] in [held.id for held in args[1]]:  # type: ignore[attr-defined]
            raise StoreRefused("a value the table cannot hold")

    house.store.before = before
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 10, "all run")
        release.set()
        await eventually(lambda: child.counts.completed == 10, "all settled")
    bad = house.view(ids[6])
    assert (bad.status, bad.failure_reason) == (JobStatus.FAILED, FailureReason.FATAL_ERROR)
    assert bad.error_type == "StoreRefused"
    assert "cannot hold" in (bad.error_message or "")
    assert [house.stands(job) for job in ids].count(Pillar.ARCHIVE) == 9


async def test_a_job_whose_start_is_refused_is_buried_and_its_slot_given_back(build: Callable[..., House]) -> None:
    house = build(max_workers=1)
    ran = counting(house)
    ids = house.enqueue(3)

    def before(name: str, args: tuple[object, ...]) -> None:
        if name == "start_jobs" and ids[0] in [held.id for held in args[1]]:  # type: ignore[attr-defined]
            raise ValueError("the driver cannot send this")

    house.store.before = before
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 2, "the others ran")
        await eventually(lambda: house.stands(ids[0]) is Pillar.DLQ, "buried")
    assert sorted(ran) == [1, 2]


async def test_a_job_that_cannot_even_be_buried_is_left_to_its_lease(house: House) -> None:
    counting(house)
    (job,) = house.enqueue()

    def before(name: str, args: tuple[object, ...]) -> None:
        if name in ("archive_succeeded", "archive_failed") and args[1]:
            raise StoreRefused("no")

    house.store.before = before
    async with house.child() as child:
        await eventually(lambda: bool(child.counts.store_errors), "refused")
        assert await child.drain() is ExitCode.DONE
    assert house.lab.row(job)["Status"] == 2


async def test_progress_the_store_refuses_costs_no_lease(house: House) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx) -> None:  # type: ignore[no-untyped-def]
        ctx.progress(5, "note")
        inside.set()
        await go.wait()

    def before(name: str, args: tuple[object, ...]) -> None:
        if name == "keep_alive" and any(beat.note for beat in args[1]):  # type: ignore[attr-defined]
            raise StoreRefused("the note")

    house.store.before = before
    (job,) = house.enqueue()
    async with house.child():
        await inside.wait()
        house.lab.age(job, "HeartbeatUtc", 60_000)
        aged = house.lab.row(job)["HeartbeatUtc"]
        await eventually(lambda: house.lab.row(job)["HeartbeatUtc"] > aged, "renewed")
        go.set()


async def test_a_defect_below_a_lane_is_an_outage_not_a_verdict(house: House) -> None:
    trouble = Trouble("archive_succeeded", 4, KeyError("a bug"))
    house.store.before = trouble
    counting(house)
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert house.stands(job) is Pillar.ARCHIVE


async def test_a_schema_that_changes_under_a_running_child_is_waited_out(house: House) -> None:
    trouble = Trouble("start_jobs", 3, SchemaMismatch("version 9 is newer than this program"))
    counting(house)
    async with house.child() as child:
        house.store.before = trouble
        house.enqueue()
        await eventually(lambda: child.counts.succeeded == 1, "done")


async def test_a_store_that_is_away_at_boot_is_waited_for(house: House) -> None:
    refusals = [StoreUnavailable("not yet")] * 4

    def connect() -> None:
        if refusals:
            raise refusals.pop()

    house.store.connect = connect
    counting(house)
    house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")


@pytest.mark.parametrize("error", [StoreMisconfigured("wrong password"), SchemaMismatch("apply the schema")])
async def test_what_no_waiting_mends_ends_the_boot(house: House, error: Exception) -> None:
    def connect() -> None:
        raise error

    house.store.connect = connect
    counting(house)
    with pytest.raises(type(error), match=str(error)):
        async with house.child():
            pass


async def test_settling_goes_in_sets_while_the_store_is_slow(build: Callable[..., House]) -> None:
    house = build(max_workers=50)
    counting(house)
    async with house.child() as child:
        house.enqueue(200, payload='{"n":1}')
        await eventually(lambda: child.counts.succeeded == 200, "done")
    sizes = [len(jobs) for (jobs,) in house.store.named("archive_succeeded")]
    assert sum(sizes) == 200
    assert len(sizes) < 150


async def test_a_defect_in_the_child_itself_ends_it_instead_of_leaving_it_deaf(house: House) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    async def serve() -> None:
        async with house.child() as child:
            await inside.wait()
            child.engine._fetcher._deliver = lambda _fetch: {}["a bug"]  # type: ignore[assignment]
            await child.task

    house.enqueue()
    with pytest.raises(ExceptionGroup) as caught:
        await serve()
    assert caught.group_contains(KeyError)


@pytest.mark.parametrize("cancels", [True, False])
async def test_handlers_whose_lease_cannot_be_renewed_are_cancelled_when_the_queue_says_so(
    build: Callable[..., House], cancels: bool
) -> None:
    house = build(heartbeat_failure_threshold=3, cancel_on_heartbeat_failure=cancels)
    inside, go, away = asyncio.Event(), asyncio.Event(), True
    refused, reasons = list[str](), list[CancelReason | None]()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        inside.set()
        try:
            await go.wait()
        finally:
            reasons.append(ctx.cancel_reason)

    def before(name: str, _args: object) -> None:
        if inside.is_set() and away:
            refused.append(name)
            raise StoreUnavailable("gone")

    (job,) = house.enqueue()
    with capture_logs() as logs:
        async with house.child() as child:
            house.store.before = before
            await inside.wait()
            told = "heartbeat_threshold_reached" if cancels else "heartbeat_degraded"
            await eventually(lambda: any(log["event"] == told for log in logs), "reported")
            if cancels:
                await eventually(lambda: bool(reasons), "cancelled")
            go.set()
            await eventually(lambda: bool(reasons), "ended")
            assert house.lab.row(job)["Status"] == JobStatus.PROCESSING
            away = False
            await eventually(lambda: child.counts.completed == 1, "settled")
    view = house.view(job)
    missed = [log["failures"] for log in logs if log["event"] == "heartbeat_failed"]
    assert missed == sorted(set(missed)), "one line for each renewal that was missed"
    assert missed
    assert ("job_heartbeat_lost" in [log["event"] for log in logs]) is cancels
    if cancels:
        assert reasons == [CancelReason.HEARTBEAT]
        assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.HEARTBEAT_FAILURE)
    else:
        assert reasons == [None]
        assert view.status is JobStatus.SUCCEEDED
