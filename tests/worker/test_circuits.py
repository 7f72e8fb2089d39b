"""A child with circuits: what opens them, what becomes of the denied, who is tried, and what the fleet is told (G13, G14)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.errors import FatalError, Throttled
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.circuits import CircuitView
from chokaq.store.errors import StoreRefused
from chokaq.worker.listening import Listener

from .harness import KEY, QUEUE, House, Send, eventually

OTHER = "invoice.print.v1"
HOUR = 3_600.0


def quick(**fields: Any) -> Policy:
    """A policy whose retries come back at once and whose circuit, once open, stays open."""
    return Policy(**{"retry_base_delay": 0.001, "retry_jitter": 0.0, "max_attempts": 1, "circuit_open": HOUR, **fields})


def seen(house: House) -> list[CircuitView]:
    return house.session.list_circuits().circuits


class Mail:
    """A dependency that is down or up, behind the handler of every house here."""

    def __init__(self, house: House, error: Callable[[], Exception] = ConnectionError) -> None:
        self.down = True
        self.ran: list[int] = []
        self.running = self.most = 0
        self.gate: asyncio.Event | None = None

        @house.app.handler(Send)
        async def send(job: Send) -> None:
            self.ran.append(job.n)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                if self.gate is not None:
                    await self.gate.wait()
                if self.down:
                    raise error()
            finally:
                self.running -= 1


async def test_g13_an_open_circuit_sends_the_buffer_back_in_one_set_uncharged(build: Callable[..., House]) -> None:
    house = build(policy=quick(), max_workers=1, prefetch=60)
    mail = Mail(house)
    ids = house.enqueue(50)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied == 45, "all but five went back")
    assert len(mail.ran) == 5
    sets = [{release.id for release in args[0]} for args in house.store.named("release_jobs") if args[0]]
    assert set(ids[5:]) in sets
    for job in ids[5:]:
        row = house.lab.row(job)
        assert (row["Status"], row["AttemptCount"], row["IsReady"]) == (0, 0, 0)
        assert house.attempts(job) == []
    (queue,) = house.session.list_queues()
    assert (queue.retried_total, queue.failed_total) == (0, 5)
    assert child.counts.completed == 5, "the denied are no work done"


async def test_denied_jobs_ring_for_nobody_since_they_are_due_later(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[None] = []
    monkeypatch.setattr(Listener, "ring_others", lambda _self: rung.append(None))
    house = build(policy=quick(), max_workers=1, prefetch=60)
    Mail(house)
    house.enqueue(50)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied == 45, "all but five went back")
        house.enqueue(20)
        await eventually(lambda: child.counts.denied == 65, "another set went back")
        assert rung == []


async def test_a_denied_job_is_due_again_after_the_delay(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 5, "it is open")
        (job,) = house.enqueue()
        await eventually(lambda: child.counts.denied == 1, "denied")
    [release] = [r for args in house.store.named("release_jobs") for r in args[0] if r.id == job]
    assert (release.delay_ms, release.max_age_ms) == (5_000, 86_400_000)
    row = house.lab.row(job)
    assert 5_000 <= row["DueAtUtc"] - row["CreatedAtUtc"] < 20_000


async def test_g13_a_denied_job_that_is_too_old_ends_so(build: Callable[..., House]) -> None:
    house = build(policy=quick(max_job_age=60.0))
    Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 5, "it is open")
        (job,) = house.enqueue(delay_ms=HOUR * 1000)
        house.lab.age(job, "AgeFromUtc", 57_000 + int(HOUR * 1000))
        house.lab.age(job, "DueAtUtc", int(HOUR * 1000))
        await eventually(lambda: child.counts.failed == 6, "it ended")
    view = house.view(job)
    assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED)
    assert view.attempt_count == 0


async def test_one_probe_at_a_time_and_when_it_succeeds_all_run(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit_open=0.3, circuit_delay=0.05), max_workers=8)
    mail = Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 5, "it is open")
        mail.down, mail.most, mail.gate = False, 0, asyncio.Event()
        ids = house.enqueue(20)
        await eventually(lambda: mail.running == 1, "one is tried")
        denied = child.counts.denied
        await eventually(lambda: child.counts.denied > denied + 20, "the others are denied meanwhile")
        assert mail.most == 1
        mail.gate.set()
        await eventually(lambda: child.counts.succeeded == 20, "then all run")
    assert {house.stands(job) for job in ids} == {Pillar.ARCHIVE}
    assert {house.view(job).attempt_count for job in ids} == {1}


async def test_a_probe_that_fails_opens_it_again(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit_open=0.05, circuit_delay=0.02), max_workers=1)
    mail = Mail(house)
    house.enqueue(8)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 8, "tried one by one")
        assert len(mail.ran) == 8
        await eventually(lambda: [view.failures for view in seen(house)] == [8], "eight in a row")


async def test_g14_fatal_payloads_open_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    Mail(house, FatalError)
    house.enqueue(40)
    house.enqueue(10, payload='{"n":"seven"}')
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 50, "every one was tried")
        assert child.counts.denied == 0
    assert seen(house) == []


async def test_throttling_counts(build: Callable[..., House]) -> None:
    house = build(policy=quick(), max_workers=1)
    mail = Mail(house, lambda: Throttled(1))
    house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied == 5, "open")
    assert len(mail.ran) == 5


async def test_timeouts_count_for_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick(execution_timeout=0.01))
    mail = Mail(house)
    mail.gate = asyncio.Event()
    house.enqueue(15)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 15, "all ran into it")
        assert (child.counts.timeouts, child.counts.denied) == (15, 0)


async def test_snoozes_and_successes_count_for_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick())

    @house.app.handler(Send)
    async def handle(job: Send, ctx: JobContext) -> None:
        if job.n % 2:
            ctx.snooze(HOUR)

    house.enqueue(40)
    async with house.child() as child:
        await eventually(lambda: child.counts.completed == 40, "all settled")
        assert child.counts.denied == 0


async def test_g14_one_type_does_not_close_the_door_to_another(build: Callable[..., House]) -> None:
    house = build(policy=quick(), max_workers=1)
    Mail(house)

    house.app.job(OTHER, queue=QUEUE)(dict)

    @house.app.handler(OTHER)
    async def work(_job: dict[str, object]) -> None: ...

    house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied >= 1, "one is open")
        house.enqueue(20, type_key=OTHER, payload="{}")
        await eventually(lambda: child.counts.succeeded == 20, "the other runs")


async def test_g14_a_straggler_that_succeeds_closes_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick(), max_workers=6)
    go, inside = asyncio.Event(), asyncio.Event()

    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 0:
            inside.set()
            await go.wait()
        else:
            raise ConnectionError

    house.enqueue(1)
    async with house.child() as child:
        await inside.wait()
        house.enqueue(5, payload='{"n":1}')
        await eventually(lambda: child.counts.failed == 5, "open")
        go.set()
        await eventually(lambda: child.counts.succeeded == 1, "the straggler is done")
        house.enqueue(3, payload='{"n":1}')
        await eventually(lambda: child.counts.denied == 3, "still open")


async def test_a_probe_that_is_cancelled_or_loses_its_lease_leaves_its_place_to_the_next(
    build: Callable[..., House],
) -> None:
    house = build(policy=quick(circuit_open=0.05, circuit_delay=0.02))
    mail = Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 5, "open")
        mail.down, mail.gate = False, asyncio.Event()
        (first,) = house.enqueue(1)
        await eventually(lambda: mail.running == 1, "the first is tried")
        house.session.cancel_jobs([first], "ann")
        await eventually(lambda: child.counts.failed == 6, "cancelled")
        (second,) = house.enqueue(1)
        await eventually(lambda: mail.running == 1, "the second is tried")
        house.lab.put(second, LeaseNumber=77)
        await eventually(lambda: mail.running == 0, "lost")
        mail.gate.set()
        (third,) = house.enqueue(1)
        await eventually(lambda: child.counts.succeeded == 1, "the third closes it")
        house.lab.put(second, Status=0, WorkerId=None, HeartbeatUtc=None, IsReady=1)
        await eventually(lambda: child.counts.succeeded == 2, "and all run")
    assert house.view(first).status is JobStatus.CANCELLED
    assert house.stands(third) is Pillar.ARCHIVE


async def test_a_probe_whose_start_comes_to_nothing_leaves_its_place_to_the_next(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit_open=0.05, circuit_delay=0.02))
    mail = Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 5, "open")
        mail.down = False
        (first,) = house.enqueue(1, delay_ms=HOUR * 1000)

        def before(name: str, args: tuple[Any, ...]) -> None:
            if name == "start_jobs" and any(held.id == first for held in args[1]):
                house.store.before = lambda _name, _args: None
                house.session.cancel_jobs([first], "ann")

        house.store.before = before
        house.lab.age(first, "DueAtUtc", int(HOUR * 1000))
        await eventually(lambda: child.counts.conflicts == 1, "its start was stale")
        house.enqueue(1)
        await eventually(lambda: child.counts.succeeded == 1, "the next is tried")


async def test_a_circuit_that_is_switched_off_never_opens(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit=False))
    Mail(house)
    house.enqueue(50)
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 50, "every one was tried")
        assert child.counts.denied == 0


# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_an_order_reaches_a_running_child_and_its_buffer_goes_back(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit_delay=0.02), max_workers=1, prefetch=50)
    mail = Mail(house)
    mail.down, mail.gate = False, asyncio.Event()
    house.enqueue(30)
    async with house.child() as child:
        await eventually(lambda: house.held() == 30, "one runs, the rest is buffered")
        house.session.force_circuit(KEY.upper(), Forced.OPEN, "ann", "the provider is down")
        child.engine._fetcher.nudge()
        await eventually(lambda: child.counts.denied >= 29, "all of it went back")
        mail.gate.set()
        await eventually(lambda: child.counts.succeeded == 1, "what ran may end")
        assert len(mail.ran) == 1
        await eventually(lambda: [view.state for view in seen(house)] == [CircuitState.OPEN], "and is seen")

        house.session.force_circuit(KEY, Forced.NO, "ann")
        await eventually(lambda: child.counts.succeeded == 30, "taken back")


async def test_an_order_reaches_a_child_that_is_started_later_before_its_first_job(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    mail = Mail(house)
    house.session.force_circuit(KEY, Forced.OPEN, "ann")
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied == 5, "denied")
    assert mail.ran == []


async def test_forced_closed_runs_everything_whatever_fails_and_reaches_an_open_circuit(
    build: Callable[..., House],
) -> None:
    house = build(policy=quick(circuit_delay=0.02), max_workers=1)
    Mail(house)
    house.enqueue(30)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied > 0, "open by itself")
        house.session.force_circuit(KEY, Forced.CLOSED, "ann")
        await eventually(lambda: child.counts.failed == 30, "every one was tried")
        await eventually(lambda: [view.state for view in seen(house)] == [CircuitState.CLOSED], "and is seen")


async def test_an_order_about_one_type_leaves_the_others_alone(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    mail = Mail(house)
    mail.down = False
    house.session.force_circuit(OTHER, Forced.OPEN, "ann")
    house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 10, "all ran")
        assert child.counts.denied == 0


async def test_an_order_opens_even_a_circuit_that_is_switched_off(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit=False))
    mail = Mail(house)
    house.session.force_circuit(KEY, Forced.OPEN, "ann")
    house.enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.denied == 10, "denied")
    assert mail.ran == []


# ── what the fleet is told ────────────────────────────────────────────────────────────────────────────────────────────
async def test_g14_the_fleet_is_told_of_an_open_circuit(build: Callable[..., House]) -> None:
    house = build(policy=quick(circuit_open=120.0))
    Mail(house)
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: [view.state for view in seen(house)] == [CircuitState.OPEN], "told")
        [view] = seen(house)
        assert (view.type_key, view.worker_id, view.queue) == (KEY, child.slot.worker_id, QUEUE)
        assert (view.failures, view.last_error) == (5, "ConnectionError")
        assert view.next_probe_ms is not None
        assert 100_000 < view.next_probe_ms <= 120_000


async def test_a_child_without_failures_says_nothing_and_asks_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    mail = Mail(house)
    mail.down = False
    house.enqueue(200)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 200, "done")
        pulses = len(child.slot.pulses)
        await eventually(lambda: len(child.slot.pulses) > pulses + 2, "its board has turned")
    assert house.store.named("report_circuits") == []
    assert [name for name, _ in house.store.calls if name == "read_circuit_orders"] == []


async def test_news_that_the_store_refuses_cost_the_child_nothing(build: Callable[..., House]) -> None:
    house = build(policy=quick())
    mail = Mail(house)
    house.session.force_circuit(OTHER, Forced.OPEN, "ann")
    refused: list[str] = []

    def before(name: str, _args: tuple[Any, ...]) -> None:
        if name in ("report_circuits", "read_circuit_orders"):
            refused.append(name)
            raise StoreRefused("no permission")

    house.store.before = before
    house.enqueue(5)
    async with house.child() as child:
        await eventually(lambda: set(refused) == {"report_circuits", "read_circuit_orders"}, "both were tried")
        house.enqueue(3)
        await eventually(lambda: child.counts.denied == 3, "it works on")
    assert len(mail.ran) == 5


@pytest.mark.parametrize("failures", [1, 4])
async def test_a_row_of_failures_short_of_the_threshold_is_seen_and_ends_with_a_success(
    build: Callable[..., House], failures: int
) -> None:
    house = build(policy=quick())
    mail = Mail(house)
    house.enqueue(failures)
    async with house.child():
        await eventually(lambda: [view.failures for view in seen(house)] == [failures], "seen")
        assert seen(house)[0].state is CircuitState.CLOSED
        mail.down = False
        house.enqueue(1)
        await eventually(lambda: [view.failures for view in seen(house)] == [0], "over")
