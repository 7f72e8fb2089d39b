"""Jobs of one key in a running child: one does the work, the others are skipped or put off, and no work is lost (G15)."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from chokaq import idempotent
from chokaq.config.settings import IdempotencySettings, Policy
from chokaq.jobs.context import JobContext
from chokaq.jobs.errors import RegistrationError
from chokaq.jobs.registry import Next
from chokaq.lifecycle.errors import FatalError
from chokaq.lifecycle.states import DeathCause, FailureReason, JobStatus, Pillar
from chokaq.store.claims import Claiming, Completion, RunClaim
from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.records import CrashPolicies, CrashPolicy, Held
from tests.support.holder import Holder
from tests.support.jobs import death

from .harness import KEY, QUEUE, House, Running, Send, eventually, reached

HOUR = 3_600_000
DB_KEY = f"{KEY}:0"
SAME = '{"n":0}'
Build = Callable[..., House]


def once(house: House, *, busy_delay: float = 0.01, **options: Any) -> House:
    """The house with the middleware on, whose duplicates look again soon."""
    house.settings = msgspec.structs.replace(house.settings, idempotency=IdempotencySettings(busy_delay=busy_delay))
    house.app.bind(house.settings)
    house.app.middleware(idempotent(key="n", **options))
    return house


def keys(house: House) -> list[tuple[str, str]]:
    return sorted((row["JobId"], row["State"]) for row in house.lab.rows("RunClaims"))


class Work:
    """A handler that notes who ran, and waits at a gate when told to."""

    def __init__(self, house: House, *, gated: bool = False) -> None:
        self.ran: list[str] = []
        self.inside = asyncio.Event()
        self.gate = asyncio.Event()
        if not gated:
            self.gate.set()

        @house.app.handler(Send)
        async def handle(_job: Send, ctx: JobContext) -> None:
            self.ran.append(ctx.id)
            self.inside.set()
            await self.gate.wait()


async def test_a_duplicate_of_a_completed_run_succeeds_without_running(build: Build) -> None:
    house = once(build(max_workers=1))
    work = Work(house)
    first, second = house.enqueue(2, payload=SAME)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: child.counts.succeeded == 2, "both are done")
    assert work.ran == [first]
    assert {house.stands(job) for job in (first, second)} == {Pillar.ARCHIVE}
    assert (child.counts.keys_missed, child.counts.keys_hit) == (1, 1)
    assert keys(house) == [(first, "done")]
    skipped = [log for log in logs if log["event"] == "duplicate_skipped"]
    assert [(log["job"], log["completed_by"]) for log in skipped] == [(second, first)]


async def test_g15_duplicates_of_an_unfinished_run_wait_outside_uncharged_and_none_is_archived(house: House) -> None:
    once(house, busy_delay=3600)
    work = Work(house, gated=True)
    ids = house.enqueue(6, payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.released == 5, "five are put off")
        (holder,) = work.ran
        assert len(child.slot.running) == 1, "no slot is taken by one that waits"
        waiting = [house.lab.row(job) for job in ids if job != holder]
        assert [(row["Status"], row["AttemptCount"], row["IsReady"]) for row in waiting] == [(0, 0, 0)] * 5
        # Not later than the holder's claim can be expected to end, were its process to die now.
        limit = house.settings.idempotency.in_progress_ttl * 1000
        assert all(row["DueAtUtc"] - row["CreatedAtUtc"] <= limit + 60_000 for row in waiting)
        assert child.counts.keys_busy == 5
        assert child.counts.succeeded == 0
        work.gate.set()
        await eventually(lambda: child.counts.succeeded == 1, "the first is done")
        house.lab.execute("UPDATE JobsHot SET DueAtUtc = CreatedAtUtc, IsReady = 1")
        await eventually(lambda: child.counts.succeeded == 6, "then the others are skipped")
    assert work.ran == [holder]
    assert {house.view(job).attempt_count for job in ids} == {1}


async def test_g15_when_the_first_run_fails_for_good_its_duplicate_does_the_work(house: House) -> None:
    """The defect: the duplicate was archived as done while the first still ran, and then nobody did the work."""
    once(house)
    ran: list[str] = []
    inside, go = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        ran.append(ctx.id)
        if len(ran) == 1:
            inside.set()
            await go.wait()
            raise FatalError("the first cannot")

    house.enqueue(2, payload=SAME)
    async with house.child() as child:
        await inside.wait()
        await eventually(lambda: child.counts.keys_busy >= 2, "the duplicate looked more than once")
        go.set()
        await eventually(lambda: child.counts.succeeded == 1, "the duplicate has done it")
    first, second = ran
    assert first != second
    assert house.view(first).status is JobStatus.FAILED
    assert house.view(second).status is JobStatus.SUCCEEDED
    assert keys(house) == [(second, "done")]
    assert child.counts.keys_released == 1


async def test_g15_a_job_that_failed_runs_again_under_its_own_key(house: House) -> None:
    once(house)
    ran: list[int] = []

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        ran.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError("down")

    (job,) = house.enqueue(payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert ran == [1, 2, 3]
    assert (child.counts.keys_missed, child.counts.keys_released, child.counts.keys_hit) == (3, 2, 0)
    assert keys(house) == [(job, "done")]


async def test_a_snoozed_run_gives_its_key_up(build: Build) -> None:
    house = once(build(max_workers=1))
    ran: list[str] = []

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        ran.append(ctx.id)
        if len(ran) == 1:
            ctx.snooze(3600)

    first, second = house.enqueue(2, payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "the second did not wait for an hour")
    assert ran == [first, second]


@pytest.mark.parametrize("how", ["timeout", "admin", "shutdown", "lost_lease", "heartbeat"])
@pytest.mark.parametrize("sync", [False, True])
async def test_g15_a_run_that_was_stopped_gives_its_key_up_whatever_stopped_it(
    build: Build, how: str, sync: bool
) -> None:
    """The defect: the release went with the cancelled token, so the claim stayed for half an hour and the rerun was skipped."""
    policy = Policy(execution_timeout=0.3 if how == "timeout" else None)
    house = once(build(grace=5.05, policy=policy, heartbeat_failure_threshold=2, cancel_on_heartbeat_failure=True))
    inside, away, stopped = threading.Event(), threading.Event(), threading.Event()

    if sync:

        @house.app.handler(Send)
        def work(_job: Send, ctx: JobContext) -> None:
            inside.set()
            while not ctx.cancelled:
                stopped.wait(0.002)
            raise RuntimeError("stopped")

    else:

        @house.app.handler(Send)
        async def handle(_job: Send) -> None:
            inside.set()
            await asyncio.Event().wait()

    def before(name: str, _args: tuple[object, ...]) -> None:
        if away.is_set() and name == "keep_alive":
            raise StoreUnavailable("gone")

    house.store.before = before
    (job,) = house.enqueue(payload=SAME)
    async with house.child() as child:
        await reached(inside)
        assert keys(house) == [(job, "running")]
        if how == "admin":
            house.session.cancel_jobs([job], "ann")
        elif how == "lost_lease":
            house.lab.put(job, LeaseNumber=2)
        elif how == "heartbeat":
            away.set()
            await eventually(lambda: child.counts.failed == 1, "stopped")
            away.clear()
        elif how == "shutdown":
            await child.drain()
        await eventually(lambda: keys(house) == [], "given up")
        await child.drain()
    assert child.counts.keys_released == child.counts.keys_missed >= 1
    assert child.counts.keys_lost == 0


async def test_g15_a_key_whose_process_died_lets_its_own_job_in_at_once(house: House) -> None:
    once(house)
    work = Work(house)
    (job,) = house.enqueue(payload=SAME)
    dead = Holder(house.session, QUEUE)
    held = dead.take_one()
    assert claim(house, dead, held) is Claiming.CLAIMED
    end(house, dead, on_crash="retry")
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert work.ran == [job]
    assert keys(house) == [(job, "done")]


async def test_g15_a_duplicate_waits_for_a_run_that_died_only_until_its_claim_expires(house: House) -> None:
    once(house)
    work = Work(house)
    first, second = house.enqueue(2, payload=SAME)
    dead = Holder(house.session, QUEUE)
    held = dead.take(1)[0]
    claim(house, dead, held)
    end(house, dead, on_crash="dead_letter")
    async with house.child() as child:
        await eventually(lambda: child.counts.keys_busy >= 3, "put off, again and again")
        assert work.ran == []
        house.lab.age_all("RunClaims", "ExpiresAtUtc", HOUR)
        await eventually(lambda: child.counts.succeeded == 1, "then it runs")
    assert work.ran == [second if held.id == first else first]
    assert child.counts.keys_hit == 0


async def test_a_run_that_completed_and_died_before_it_was_archived_is_not_repeated(house: House) -> None:
    once(house)
    work = Work(house)
    (job,) = house.enqueue(payload=SAME)
    dead = Holder(house.session, QUEUE)
    held = dead.take_one()
    claim(house, dead, held)
    house.session.complete_runs(dead.worker, [Completion(DB_KEY, held.id, held.lease, HOUR)])
    end(house, dead, on_crash="retry")
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert work.ran == []
    assert house.stands(job) is Pillar.ARCHIVE


def claim(house: House, holder: Holder, held: Held) -> Claiming:
    return house.session.claim_runs(holder.worker, [RunClaim(DB_KEY, held.id, held.lease, 1_800_000)])[0].state


def end(house: House, holder: Holder, *, on_crash: str) -> None:
    """The process of a holder dies."""
    policies = CrashPolicies(default=CrashPolicy(on_crash=on_crash, backoff_ms=(0,)))
    notice = death(holder.id, DeathCause.CRASH, signal=9, queue=QUEUE)
    house.session.release_worker(Holder(house.session, "").worker, notice, policies)


async def test_markers_and_releases_are_stored_before_the_jobs_they_belong_to(build: Build) -> None:
    """A process that dies in between leaves a marker without a success, which the rerun finds; never the other way round."""
    house = once(build(max_workers=1))

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("down")

    house.enqueue(payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    writes = {"claim_runs", "release_claims", "complete_runs", "reschedule_for_retry", "archive_succeeded"}
    assert [name for name, args in house.store.calls if name in writes and args[1]] == [
        "claim_runs",
        "release_claims",
        "reschedule_for_retry",
        "claim_runs",
        "complete_runs",
        "archive_succeeded",
    ]


async def test_a_claim_is_renewed_with_the_lease(house: House) -> None:
    once(house)
    work = Work(house, gated=True)
    house.enqueue(payload=SAME)
    async with house.child():
        await work.inside.wait()
        house.lab.age_all("RunClaims", "ExpiresAtUtc", HOUR)
        aged = house.lab.rows("RunClaims")[0]["ExpiresAtUtc"]
        await eventually(lambda: house.lab.rows("RunClaims")[0]["ExpiresAtUtc"] >= aged + HOUR - 60_000, "renewed")
        work.gate.set()


async def test_nothing_is_renewed_while_nothing_is_claimed_and_nothing_asked_for_without_the_middleware(
    house: House,
) -> None:
    Work(house)
    house.enqueue(3)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 3, "done")
        await eventually(lambda: len(house.store.named("keep_alive")) > 2, "some heartbeats")
    called = {name for name, _ in house.store.calls}
    assert not called & {"claim_runs", "renew_claims", "complete_runs", "release_claims"}


async def test_a_run_whose_key_was_taken_over_meanwhile_has_succeeded_all_the_same(house: House) -> None:
    once(house)
    work = Work(house, gated=True)
    (job,) = house.enqueue(payload=SAME)
    other = "0" * 26
    with capture_logs() as logs:
        async with house.child() as child:
            await work.inside.wait()
            house.lab.execute("UPDATE RunClaims SET JobId = ?", other)
            await eventually(lambda: any(log["event"] == "run_key_lost" for log in logs), "noticed by a renewal")
            work.gate.set()
            await eventually(lambda: child.counts.succeeded == 1, "done")
    assert house.stands(job) is Pillar.ARCHIVE
    assert keys(house) == [(other, "running")]
    assert child.counts.keys_lost == 1


@pytest.mark.parametrize("how", ["timeout", "admin"])
async def test_g15_a_claim_that_is_granted_after_its_run_was_stopped_does_not_stay(build: Build, how: str) -> None:
    """The answer comes when nobody waits for it any more."""
    house = once(build(policy=Policy(execution_timeout=0.05 if how == "timeout" else None)), busy_delay=3600)
    work = Work(house)
    asked, answer = threading.Event(), threading.Event()

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "claim_runs" and args[1]:
            asked.set()
            assert answer.wait(20)

    house.store.before = before
    (job,) = house.enqueue(payload=SAME)
    async with house.child() as child:
        await reached(asked)
        if how == "admin":
            house.session.cancel_jobs([job], "ann")
        await eventually(lambda: not child.slot.running, "the handler's slot is free, the store has not answered")
        assert child.counts.completed == 0
        house.store.before = lambda _name, _args: None
        answer.set()
        await eventually(lambda: child.counts.completed == 1, "settled")
        assert child.counts.keys_missed == child.counts.keys_released == 1
        await child.drain()
    assert keys(house) == []
    assert work.ran == []
    view = house.view(job)
    # The work had not begun: waiting for the store is no timeout of its handler.
    assert view.status is (JobStatus.CANCELLED if how == "admin" else JobStatus.PENDING)
    assert view.attempt_count == (1 if how == "admin" else 0)


@pytest.mark.parametrize("operation", ["claim_runs", "renew_claims", "complete_runs", "release_claims"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_c11_an_answer_about_keys_that_is_lost_is_asked_for_again(
    house: House, operation: str, moment: str
) -> None:
    once(house)
    spent, left = threading.Event(), [3]
    ran: list[int] = []

    def trouble(name: str, args: tuple[Any, ...]) -> None:
        if name == operation and args[1]:
            if left[0]:
                left[0] -= 1
                raise StoreUnavailable("the connection was cut")
            spent.set()

    setattr(house.store, moment, trouble)

    @house.app.handler(Send)
    async def handle(job: Send, ctx: JobContext) -> None:
        ran.append(job.n)
        if job.n == 1 and ctx.attempt == 1:
            raise ConnectionError("once")
        if job.n == 0 and operation == "renew_claims":
            await reached(spent)

    house.enqueue(3)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 3, "done")
    assert sorted(ran) == [0, 1, 1, 2]
    assert (child.counts.keys_missed, child.counts.keys_hit, child.counts.keys_lost) == (4, 0, 0)
    assert [state for _, state in keys(house)] == ["done"] * 3


async def test_a_key_the_store_refuses_fails_its_own_job_only(build: Build) -> None:
    house = once(build(policy=Policy(max_attempts=1)))
    work = Work(house)
    go = threading.Event()

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "claim_runs" and args[1]:
            assert go.wait(20)
            if any(claim.key.endswith(":3") for claim in args[1]):
                raise StoreRefused("a key the table cannot hold")

    house.store.before = before
    ids = house.enqueue(8)
    async with house.child() as child:
        await eventually(lambda: len(child.slot.running) == 8, "all ask, most of them in one set")
        go.set()
        await eventually(lambda: child.counts.completed == 8, "all settled")
    assert sorted(work.ran) == sorted(job for job in ids if job != ids[3])
    view = house.view(ids[3])
    assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.TRANSIENT)
    assert "cannot hold" in (view.error_message or "")


async def test_a_marker_the_store_refuses_costs_no_success(house: House) -> None:
    once(house)
    Work(house)

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "complete_runs" and any(done.key.endswith(":1") for done in args[1]):
            raise StoreRefused("no")

    house.store.before = before
    ids = house.enqueue(4)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 4, "done")
    assert sorted(state for _, state in keys(house)) == ["done"] * 3 + ["running"]
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}


async def test_claims_travel_in_sets(build: Build) -> None:
    house = once(build(max_workers=60))
    Work(house)
    house.enqueue(60)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 60, "done")
    sizes = [len(claims) for (claims,) in house.store.named("claim_runs") if claims]
    assert sum(sizes) == 60
    assert len(sizes) < 40
    assert len([done for (done,) in house.store.named("complete_runs") if done]) < 40


async def test_what_the_handler_returned_is_kept_when_it_was_asked_for(house: House) -> None:
    once(house, keep_result=True)

    @house.app.handler(Send)
    def handle(job: Send) -> object:
        return {"receipt": job.n, "name": "é"}

    (job,) = house.enqueue(payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    [view] = house.session.list_claims(job)
    assert (view.key, view.state, view.result) == (DB_KEY, "done", '{"receipt":0,"name":"\\u00e9"}')


async def test_a_layer_around_it_that_fails_repeats_itself_but_not_the_work(house: House) -> None:
    order: list[str] = []

    @house.app.middleware
    async def outer(_job: Any, ctx: JobContext, go_on: Next) -> None:
        await go_on()
        order.append("outer")
        if ctx.attempt == 1:
            raise ConnectionError("after the work")

    once(house)

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        order.append("work")

    house.enqueue(payload=SAME)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert order == ["work", "outer", "outer"]


async def test_a_time_to_live_beyond_the_settings_bounds_is_refused_before_anything_runs(house: House) -> None:
    house.settings = msgspec.structs.replace(house.settings, idempotency=IdempotencySettings(max_result_ttl=60.0))
    house.app.middleware(idempotent(key="n", ttl=timedelta(hours=1)))
    Work(house)
    with pytest.raises(RegistrationError, match=r"3600 s is above idempotency.max_result_ttl \(60 s\)"):
        await Running(house).ready()


async def test_an_outage_while_keys_are_held_neither_fails_nor_repeats_a_run(house: House) -> None:
    """C30."""
    once(house)
    work, down = Work(house, gated=True), threading.Event()

    def before(_name: str, _args: tuple[object, ...]) -> None:
        if down.is_set():
            raise StoreUnavailable("restarting")

    house.store.before = before
    ids = house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: len(work.ran) == 5, "all run")
        down.set()
        work.gate.set()
        await eventually(
            lambda: child.counts.store_errors > 12 and not child.slot.running, "handlers end, nothing is stored"
        )
        down.clear()
        await eventually(lambda: child.counts.succeeded == 5, "done")
    assert sorted(work.ran) == sorted(ids)
    assert [state for _, state in keys(house)] == ["done"] * 5
