"""What a child counts: every job once, under its queue, type and end; and what its lanes, leases, keys and circuits do."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chokaq import idempotent
from chokaq.config.settings import IdempotencySettings, Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.circuit import Forced
from chokaq.lifecycle.errors import FatalError, Snooze
from chokaq.lifecycle.states import DeathCause
from chokaq.observe.metrics.catalogue import MOST_ATTEMPTS
from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.records import CrashPolicies, FetchedJob
from chokaq.worker.tally import Tally, _StoreClock, procedure
from tests.support.figures import Figures
from tests.support.holder import Holder
from tests.support.jobs import death

from .harness import KEY, QUEUE, House, Send, eventually, reached

JOB = (QUEUE, KEY)
Build = Callable[..., House]


class Counted(Figures):
    """Figures of one child."""

    def child(self, house: House) -> Any:
        return house.child(tally=Tally(self.recorder, QUEUE))

    def jobs(self, name: str, *more: str) -> float:
        return self.count(f"jobs_{name}", *JOB, *more)


@pytest.fixture
def figures(tmp_path: Path) -> Iterator[Counted]:
    made = Counted(tmp_path)
    sql.sink = made.recorder
    yield made
    sql.sink = None
    made.close()


async def test_a_success_is_counted_with_its_times(house: House, figures: Counted) -> None:
    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        await asyncio.sleep(0.02 if job.n else 0)

    house.enqueue(2)
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.succeeded == 2, "done")
    assert figures.jobs("completed") == 2
    for name in ("jobs_processing_seconds", "jobs_queue_lag_seconds"):
        assert figures.count(name, *JOB) == 2
    for name in ("jobs_pickup_seconds", "jobs_settle_delay_seconds"):
        assert figures.count(name, QUEUE) == 2
    assert 0.02 <= figures.total("jobs_processing_seconds", *JOB) < 10
    pickup, lag = figures.total("jobs_pickup_seconds", QUEUE), figures.total("jobs_queue_lag_seconds", *JOB)
    assert 0 <= pickup <= lag < 10
    assert figures.labels("jobs_dlq") == figures.labels("jobs_failed") == {}


async def test_failures_are_counted_by_error_and_the_last_one_as_a_dead_letter(build: Build, figures: Counted) -> None:
    house = build(policy=Policy(max_attempts=3, retry_base_delay=0.001, retry_jitter=0.0, circuit=False))

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise ConnectionError("down")

    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.failed == 1, "exhausted")
    assert figures.labels("jobs_failed") == {(*JOB, "ConnectionError"): 3}
    assert figures.labels("jobs_retried") == {(*JOB, "1"): 1, (*JOB, "2"): 1}
    assert figures.labels("jobs_dlq") == {(*JOB, "Transient"): 1}
    assert figures.count("jobs_processing_seconds", *JOB) == 3


async def test_attempts_beyond_the_last_label_are_counted_together(build: Build, figures: Counted) -> None:
    house = build(
        policy=Policy(max_attempts=MOST_ATTEMPTS + 5, retry_base_delay=0.001, retry_max_delay=0.001, circuit=False)
    )

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise ConnectionError("down")

    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.failed == 1, "exhausted")
    retried = {key[-1]: count for key, count in figures.labels("jobs_retried").items()}
    assert retried == {**{str(number): 1 for number in range(1, MOST_ATTEMPTS + 1)}, "other": 4}


@pytest.mark.parametrize(
    ("policy", "reason", "error"),
    [
        (Policy(execution_timeout=0.01), "Timeout", "ExecutionTimeout"),
        (Policy(execution_timeout=None), "FatalError", "chokaq.lifecycle.errors.FatalError"),
    ],
)
async def test_every_way_into_the_dlq_is_counted_by_its_reason(
    build: Build, figures: Counted, policy: Policy, reason: str, error: str
) -> None:
    house = build(policy=policy)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        if policy.execution_timeout is None:
            raise FatalError("no")
        await asyncio.sleep(60)

    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    assert figures.labels("jobs_dlq") == {(*JOB, reason): 1}
    assert figures.labels("jobs_failed") == {(*JOB, error): 1}


async def test_a_cancellation_is_a_dead_letter_and_no_failure(house: House, figures: Counted) -> None:
    begun = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        begun.set()
        await asyncio.sleep(60)

    (job,) = house.enqueue()
    async with figures.child(house) as child:
        await begun.wait()
        house.session.cancel_jobs([job], "me")
        await eventually(lambda: child.counts.failed == 1, "cancelled")
    assert figures.labels("jobs_dlq") == {(*JOB, "Cancelled"): 1}
    assert figures.labels("jobs_failed") == {}


@pytest.mark.parametrize(("cancelled", "reason"), [(True, "Cancelled"), (False, "RetryLifetimeExpired")])
async def test_what_ends_instead_of_being_retried_is_counted_by_how_it_ended(
    build: Build, figures: Counted, cancelled: bool, reason: str
) -> None:
    house = build(
        policy=Policy(max_job_age=86_400.0 if cancelled else 0.001, retry_base_delay=1.0, circuit=False), heartbeat=60.0
    )

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if cancelled:
            # Behind the back of the loop, which hears of it only by the answer to the retry.
            house.session.cancel_jobs([ctx.id], "me")
        raise ConnectionError("down")

    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.failed == 1, "ended")
    assert figures.labels("jobs_dlq") == {(*JOB, reason): 1}
    assert figures.labels("jobs_failed") == {(*JOB, "ConnectionError"): 1}
    assert figures.labels("jobs_retried") == {}


async def test_what_is_put_off_uncharged_is_counted_by_its_cause(build: Build, figures: Counted) -> None:
    house = build(policy=Policy(unknown_type_delay=60.0))

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise Snooze(60)

    house.enqueue(2)
    house.enqueue(1, type_key="unknown.v1")
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.released == 3, "all went back")
    assert figures.labels("jobs_released") == {(*JOB, "snooze"): 2, (QUEUE, "unknown.v1", "unknown_type"): 1}


async def test_what_a_drain_hands_back_is_counted_as_returned(build: Build, figures: Counted) -> None:
    house = build(max_workers=1, grace=0.1)
    begun = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        begun.set()
        await asyncio.sleep(60)

    house.enqueue(3)
    async with figures.child(house):
        await begun.wait()
    assert figures.labels("jobs_released") == {(*JOB, "returned"): 3}
    assert figures.count("jobs_processing_seconds", *JOB) == 1


async def test_a_circuit_that_opens_and_denies_is_counted(build: Build, figures: Counted) -> None:
    house = build(policy=Policy(max_attempts=1, circuit_failures=2, circuit_open=3600.0), max_workers=1, prefetch=20)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        raise ConnectionError("down")

    house.enqueue(12)
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.denied == 10, "denied")
        house.session.force_circuit(KEY, Forced.CLOSED, "me")
        await eventually(lambda: figures.count("circuits_events", KEY, "closed", "forced") == 1, "told")
    assert figures.labels("circuits_events") == {(KEY, "open", "opened"): 1, (KEY, "closed", "forced"): 1}
    assert figures.jobs("released", "circuit") == 10
    assert figures.labels("jobs_dlq") == {(*JOB, "Transient"): 2}


async def test_a_job_that_was_taken_away_is_a_conflict_and_a_lost_lease_once(build: Build, figures: Counted) -> None:
    house = build(heartbeat=60.0)
    begun, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        begun.set()
        await go.wait()

    house.enqueue()
    async with figures.child(house) as child:
        await begun.wait()
        other = Holder(house.session, QUEUE)
        house.session.release_worker(
            other.worker, death(child.slot.worker_id or "", DeathCause.SHUTDOWN, queue=QUEUE), CrashPolicies()
        )
        go.set()
        await eventually(lambda: child.counts.conflicts == 1, "stale")
    assert figures.labels("jobs_state_transition_conflicts") == {(*JOB, "ArchiveSucceeded"): 1}
    assert figures.labels("jobs_lease_losses") == {JOB: 1}
    assert figures.jobs("completed") == 0


async def test_a_lease_lost_under_a_running_handler_is_learnt_from_the_heartbeat(
    house: House, figures: Counted
) -> None:
    begun = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        begun.set()
        await asyncio.sleep(60)

    house.enqueue()
    async with figures.child(house) as child:
        await begun.wait()
        house.lab.execute("UPDATE JobsHot SET LeaseNumber = LeaseNumber + 1")
        await eventually(lambda: figures.jobs("lease_losses") == 1, "told")
        await eventually(lambda: not child.slot.running, "stopped")
        house.lab.execute("DELETE FROM JobsHot")
    assert figures.labels("jobs_state_transition_conflicts") == {(*JOB, "KeepAlive"): 1}


async def test_a_start_that_came_too_late_is_a_conflict_of_its_own(house: House, figures: Counted) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "start_jobs" and args[1]:
            house.lab.execute("UPDATE JobsHot SET LeaseNumber = LeaseNumber + 1 WHERE Status = 1")

    house.store.before = before
    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.conflicts == 1, "stale")
        house.lab.execute("DELETE FROM JobsHot")
    assert figures.labels("jobs_state_transition_conflicts") == {(*JOB, "StartJobs"): 1}
    assert figures.labels("jobs_lease_losses") == {JOB: 1}
    assert figures.count("jobs_processing_seconds", *JOB) == 0


@pytest.mark.parametrize("operation", ["start_jobs", "archive_succeeded"])
async def test_a_job_buried_with_a_storage_error_is_counted_by_that(
    house: House, figures: Counted, operation: str
) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    bad, *_ = house.enqueue(4)

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == operation and any(job.id == bad for job in args[1]):
            raise StoreRefused("no")

    house.store.before = before
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.succeeded == 3, "the others are done")
        await eventually(lambda: figures.jobs("dlq", "FatalError") == 1, "buried")
    assert figures.labels("jobs_dlq") == {(*JOB, "FatalError"): 1}
    assert figures.labels("jobs_failed") == {(*JOB, "StoreRefused"): 1}
    assert figures.jobs("completed") == 3


async def test_keys_are_counted_by_what_became_of_them(build: Build, figures: Counted) -> None:
    house = build(max_workers=4, policy=Policy(max_attempts=1, circuit=False))
    house.settings = msgspec.structs.replace(house.settings, idempotency=IdempotencySettings(busy_delay=0.1))
    house.app.bind(house.settings)
    house.app.middleware(idempotent(key="n"))
    gate, inside = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 7:
            raise ConnectionError("down")
        inside.set()
        await gate.wait()

    house.enqueue(1, payload='{"n":1}')
    async with figures.child(house) as child:
        await inside.wait()
        house.enqueue(1, payload='{"n":1}')
        house.enqueue(1, payload='{"n":7}')
        await eventually(lambda: child.counts.keys_busy >= 1, "put off")
        gate.set()
        await eventually(lambda: child.counts.keys_hit == 1, "skipped")
        await eventually(lambda: child.counts.keys_released == 1, "released")
    outcomes = {key[0]: count for key, count in figures.labels("idempotency_claims").items()}
    assert outcomes.pop("in_progress_duplicate") == child.counts.keys_busy
    assert outcomes == {"claimed": 2, "completed": 1, "completed_duplicate": 1, "released": 1}


async def test_round_trips_and_batches_are_counted_per_lane(build: Build, figures: Counted) -> None:
    house = build(max_workers=20)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    house.enqueue(20)
    async with figures.child(house) as child:
        await eventually(lambda: child.counts.succeeded == 20, "done")
        beats = figures.count("lane_round_trips", QUEUE, "pulse", "KeepAlive")
        await eventually(lambda: figures.count("lane_round_trips", QUEUE, "pulse", "KeepAlive") > beats, "a beat")
    calls = {key[1:]: count for key, count in figures.labels("lane_round_trips").items()}
    assert set(calls) >= {
        ("claim", "RegisterWorker"), ("claim", "FetchJobs"), ("settle", "StartJobs"), ("settle", "ArchiveSucceeded"),
        ("pulse", "KeepAlive"),
    }  # fmt: skip
    assert {lane for lane, _ in calls} == {"claim", "settle", "pulse"}
    assert not {"open", "Open", "Leave", "LEAVE"} & {call for _, call in calls}
    # The last one was under way when the child came to rest.
    assert calls["claim", "FetchJobs"] - child.counts.fetches in {0, 1}
    for (lane, call), count in calls.items():
        assert figures.count("lane_round_trip_seconds", lane, call) == count
    assert figures.total("lane_batch_jobs", "claim", "FetchJobs") == 20
    assert figures.total("lane_batch_jobs", "settle", "StartJobs") == 20
    assert figures.total("lane_batch_jobs", "settle", "ArchiveSucceeded") == 20


async def test_an_outage_is_counted_in_seconds_while_it_lasts_and_by_its_errors(house: House, figures: Counted) -> None:
    away = threading.Event()
    away.set()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "start_jobs" and args[1] and away.is_set():
            error = StoreUnavailable("away")
            error.number = "1205"
            raise error

    house.store.before = before
    house.enqueue()
    async with figures.child(house) as child:
        await eventually(lambda: figures.count("store_outage_seconds", "settle") > 0.1, "counted while it lasts")
        assert child.counts.succeeded == 0
        away.clear()
        await eventually(lambda: child.counts.succeeded == 1, "done")
    after = figures.count("store_outage_seconds", "settle")
    assert 0.1 < after < 20
    assert figures.count("store_outage_seconds", "claim") == 0
    assert figures.count("sql_retries", "1205") >= 2
    assert figures.count("lane_round_trips", QUEUE, "settle", "StartJobs") == 1


async def test_a_refusal_ends_an_outage(build: Build, figures: Counted) -> None:
    lane = Tally(figures.recorder, QUEUE).lane("claim")
    lane.failed(0.0)
    first = figures.count("store_outage_seconds", "claim")
    lane.back()
    second = figures.count("store_outage_seconds", "claim")
    assert second >= first > 0
    lane.back()
    lane.answered("fetch_jobs", 0.0)
    assert figures.count("store_outage_seconds", "claim") == second


async def test_renewals_that_fail_are_counted_per_job_and_try(house: House, figures: Counted) -> None:
    begun, failed = asyncio.Event(), threading.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 1:
            begun.set()
        await asyncio.sleep(60)

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "keep_alive" and len(args[1]) == 2 and not failed.is_set():
            failed.set()
            raise StoreUnavailable("away")

    house.enqueue(2)
    async with figures.child(house) as child:
        await begun.wait()
        house.store.before = before
        await reached(failed)
        await eventually(lambda: figures.jobs("heartbeat_failures") == 2, "counted")
        child.engine._desk.stop_handlers()


async def test_the_childs_state_is_shown_several_times_a_second(build: Build, figures: Counted) -> None:
    house = build(max_workers=2)
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    house.enqueue(5)
    async with figures.child(house):
        await eventually(lambda: figures.count("child_running_jobs", QUEUE) == 2, "running")
        await eventually(lambda: figures.count("child_buffered_jobs", QUEUE) == 3, "buffered")
        assert figures.count("child_capacity", QUEUE) == 2
        assert figures.count("child_memory_bytes", QUEUE) > 10_000_000
        assert figures.count("loop_lag_seconds", QUEUE) >= 1
        go.set()


async def test_without_a_tally_a_claim_carries_nothing(house: House) -> None:
    seen: list[object] = []

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        seen.extend((claim.figures, claim.ended_at) for claim in child.engine._claims.values())

    house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert seen == [(None, 0.0)]


# ── what the database's clock shows ───────────────────────────────────────────────────────────────────────────────────
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def job(*, due: float, age: float, created: float | None = None) -> FetchedJob:
    """One that became due `due` seconds after noon and is `age` seconds old; created when it was due, unless told."""
    return FetchedJob(
        id="0" * 26,
        type_key=KEY,
        payload="{}",
        lease=1,
        priority=10,
        attempt_count=0,
        crash_count=0,
        created_at=NOON + timedelta(seconds=due if created is None else created),
        due_at=NOON + timedelta(seconds=due),
        age_ms=round(age * 1000),
    )


def test_a_job_that_was_never_put_off_tells_the_time() -> None:
    # The other was retried: it is an hour old, and due again since a moment.
    assert _StoreClock().read([job(due=99, age=3600, created=-3500), job(due=50, age=50)]) == NOON + timedelta(
        seconds=100
    )


def test_of_jobs_that_were_put_off_none_tells_a_time_too_early() -> None:
    told = _StoreClock().read([job(due=99, age=3600, created=0), job(due=90, age=20, created=0)])
    assert told == NOON + timedelta(seconds=110)


def test_what_an_earlier_job_told_of_the_clock_is_remembered() -> None:
    clock = _StoreClock()
    first = clock.read([job(due=50, age=50)])
    second = clock.read([job(due=99, age=3600, created=0)])
    assert timedelta(0) <= second - first < timedelta(seconds=30)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("fetch_jobs", "FetchJobs"),
        ("START", "StartJobs"),
        ("FAIL", "ArchiveFailed"),
        ("bury", "ArchiveFailed"),
        ("keep_alive", "KeepAlive"),
    ],
)
def test_calls_are_named_as_their_procedures(call: str, name: str) -> None:
    assert procedure(call) == name
