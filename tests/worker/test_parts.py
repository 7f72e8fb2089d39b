"""The small parts of a child: limiter, buffer, pace of suspects, foresight, timers, isolation."""

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from datetime import UTC, datetime

import pytest

from chokaq.config.settings import Policy
from chokaq.store.records import FetchedJob
from chokaq.worker.buffer import Buffer
from chokaq.worker.claims import Claim
from chokaq.worker.foresight import PATIENCE, Foresight
from chokaq.worker.isolation import isolated
from chokaq.worker.limiter import Limiter
from chokaq.worker.suspects import LATEST, SOONEST, Pace
from chokaq.worker.timers import Timers

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def claim(number: int = 0, crashes: int = 0) -> Claim:
    return Claim(FetchedJob(f"{number:026}", "t", "{}", 1, 10, 0, crashes, NOW, NOW, 0), Policy())


def test_a_limiter_never_admits_more_than_its_limit() -> None:
    limiter = Limiter(2)
    assert [limiter.acquire() for _ in range(3)] == [True, True, False]
    limiter.release()
    assert limiter.has_room


def test_a_lowered_limit_waits_for_what_runs() -> None:
    limiter = Limiter(3)
    for _ in range(3):
        limiter.acquire()
    limiter.resize(1)
    assert (limiter.has_room, limiter.active) == (False, 3)
    limiter.release()
    limiter.release()
    assert not limiter.acquire()
    limiter.release()
    assert limiter.acquire()


def test_a_raised_limit_admits_at_once() -> None:
    limiter = Limiter(0)
    assert not limiter.acquire()
    limiter.resize(1)
    assert limiter.acquire()


def test_a_slot_nobody_took_cannot_be_given_back() -> None:
    with pytest.raises(RuntimeError):
        Limiter(1).release()
    with pytest.raises(ValueError, match="negative"):
        Limiter(1).resize(-1)


def test_the_buffer_keeps_the_stores_order() -> None:
    buffer = Buffer()
    claims = [claim(n) for n in range(4)]
    for one in claims:
        buffer.push(one)
    assert [buffer.pop(suspects=True) for _ in range(5)] == [*claims, None]


def test_suspects_wait_in_a_line_of_their_own() -> None:
    buffer = Buffer()
    suspect, sound = claim(1, crashes=1), claim(2)
    buffer.push(suspect)
    buffer.push(sound)
    assert buffer.pop(suspects=False) is sound
    assert buffer.pop(suspects=False) is None
    assert buffer.pop(suspects=True) is suspect


def test_the_last_suspects_are_the_ones_that_leave() -> None:
    buffer = Buffer()
    suspects = [claim(n, crashes=1) for n in range(4)]
    for one in suspects:
        buffer.push(one)
    assert buffer.trim_suspects(1) == suspects[:0:-1]
    assert buffer.trim_suspects(3) == []
    assert (buffer.suspects, len(buffer)) == (1, 1)


def test_one_suspect_runs_from_its_start_to_its_end() -> None:
    pace = Pace()
    assert not pace.one_runs
    pace.began(5.0)
    assert pace.one_runs
    pace.ended(5.1)
    assert not pace.one_runs


def test_quick_suspects_come_back_soon_and_spread() -> None:
    pace = Pace()
    delays = [pace.delay_ms(100.0, 10) for _ in range(40)]
    assert delays[0] == SOONEST * 1000
    assert delays == sorted(delays)
    assert delays[-1] <= 700


def test_slow_suspects_come_back_late_but_never_later_than_the_bound() -> None:
    pace, now = Pace(), 0.0
    for _ in range(20):
        pace.began(now)
        now += 0.5
        pace.ended(now)
    assert 1_400 < pace.delay_ms(now, 2) < 1_600
    assert [pace.delay_ms(now, 2) for _ in range(1_000)][-1] == LATEST * 1000
    assert 1_400 < pace.delay_ms(now + 10, 2) < 1_600


def test_a_suspect_that_blocks_the_line_keeps_the_others_away() -> None:
    pace = Pace()
    pace.began(0.0)
    assert pace.delay_ms(0.0, 1) == SOONEST * 1000
    assert pace.delay_ms(60.0, 1) == LATEST * 1000


def test_the_buffer_is_full_as_long_as_it_is_soon_worked_off() -> None:
    foresight = Foresight(20)
    for turn in range(40):
        foresight.turn(turn * 2, PATIENCE, idle=False)
    assert foresight.ahead == 20


def test_behind_slow_handlers_a_child_holds_what_it_starts_within_a_second() -> None:
    foresight = Foresight(20)
    for turn in range(1, 5):
        foresight.turn(turn * 2, 0.0, idle=False)
    foresight.turn(10, 1.1, idle=False)
    assert foresight.ahead == 8
    for _ in range(4):
        foresight.turn(10, 0.0, idle=False)
    assert foresight.ahead == 0
    foresight.turn(15, 0.0, idle=False)
    assert foresight.ahead == 5
    foresight.turn(400, 0.0, idle=False)
    assert foresight.ahead == 20


def test_the_buffer_grows_to_what_is_started_within_a_quarter_of_a_second() -> None:
    foresight = Foresight(20, 500)
    foresight.turn(90, 0.0, idle=False)
    assert foresight.ahead == 90
    foresight.turn(5_000, 0.0, idle=False)
    assert foresight.ahead == 500


def test_a_pause_in_a_quick_stream_hands_nothing_back_and_slow_handlers_do() -> None:
    foresight = Foresight(20, 500)
    foresight.turn(5_000, 0.0, idle=False)
    for _ in range(4):
        foresight.turn(5_001, 0.9, idle=False)
    assert (foresight.ahead, foresight.keep) == (20, 500)
    foresight.turn(5_001, 1.1, idle=False)
    assert (foresight.ahead, foresight.keep) == (0, 0)


def test_after_a_rest_jobs_are_taken_for_quick_ones_again() -> None:
    foresight = Foresight(20)
    foresight.turn(10, 5.0, idle=False)
    foresight.turn(10, 0.0, idle=True)
    assert foresight.ahead == 20


def test_the_oldest_claim_tells_how_long_the_buffer_has_waited() -> None:
    buffer = Buffer()
    assert buffer.waited(50.0) == 0.0
    job = claim().job
    claims = [Claim(job, Policy(), None, since) for since in (40.0, 45.0, 48.0)]
    for one in claims:
        buffer.push(one)
    assert buffer.waited(50.0) == 10.0
    assert buffer.trim_sound(1) == [claims[2], claims[1]]
    assert buffer.trim_sound(5) == []


async def test_deadlines_fire_in_order_and_never_early() -> None:
    loop = asyncio.get_running_loop()
    fired: list[tuple[str, float]] = []
    done = asyncio.Event()
    claims = {claim(n): name for n, name in enumerate(("late", "early", "middle"))}

    def expired(one: Claim) -> None:
        fired.append((claims[one], loop.time()))
        if len(fired) == 3:
            done.set()

    timers = Timers(expired)
    start = loop.time()
    for one, delay in zip(claims, (0.06, 0.02, 0.04), strict=True):
        timers.set(one, start, delay)
    await done.wait()
    assert [name for name, _ in fired] == ["early", "middle", "late"]
    assert all(at - start >= delay - 0.002 for (_, at), delay in zip(fired, (0.02, 0.04, 0.06), strict=True))
    timers.close()


async def test_a_cleared_deadline_does_not_fire() -> None:
    done = asyncio.Event()
    fired: list[Claim] = []
    timers = Timers(lambda one: (fired.append(one), done.set()))  # type: ignore[func-returns-value]
    first, second = claim(1), claim(2)
    now = asyncio.get_running_loop().time()
    timers.set(first, now, 0.01)
    timers.set(second, now, 0.02)
    Timers.clear(first)
    Timers.clear(first)
    await done.wait()
    assert fired == [second]
    timers.close()


async def test_many_deadlines_share_few_buckets() -> None:
    timers = Timers(lambda _one: None)
    for number in range(10_000):
        timers.set(claim(number), 100.0 + number / 1e6, 900.0)
    assert len(timers._buckets) <= 2
    timers.close()


async def test_deadlines_that_were_cleared_do_not_pile_up_until_they_would_have_come() -> None:
    """C19: with a timeout of a day they would be a day's worth of jobs. Those that still count are met."""
    met: list[Claim] = []
    done = asyncio.Event()
    timers = Timers(lambda one: (met.append(one), done.set()))  # type: ignore[func-returns-value]
    now = asyncio.get_running_loop().time()
    lasting = [claim(number) for number in range(40)]
    for number, one in enumerate(lasting):
        timers.set(one, now + number, 900.0)
    for number in range(20_000):
        passing = claim(number)
        timers.set(passing, now + number, 86_400.0)
        Timers.clear(passing)
    assert len(timers._buckets) == len(timers._order) < 200
    last = claim(99)
    timers.set(last, now, 0.02)
    await asyncio.wait_for(done.wait(), 10)
    assert met == [last]
    assert all(one.timer is not None and one in one.timer for one in lasting)
    assert {id(one.timer) for one in lasting} <= {id(bucket) for bucket in timers._buckets.values()}
    timers.close()


variable: ContextVar[int] = ContextVar("variable", default=0)


async def test_an_isolated_coroutine_answers_raises_and_is_cancelled_like_any_other() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 7

    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cancelled"
        return "never"

    assert await isolated(answer(), lambda: None) == 7
    with pytest.raises(KeyError):
        await isolated(fail(), lambda: None)
    task = asyncio.create_task(_await(isolated(wait(), lambda: None)))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "cancelled"


async def test_what_an_isolated_coroutine_sets_stays_inside() -> None:
    async def inner() -> None:
        variable.set(5)
        await asyncio.sleep(0)
        assert variable.get() == 5
        assert await asyncio.create_task(_get()) == 5

    await isolated(inner(), lambda: None)
    assert variable.get() == 0


async def test_timeouts_and_task_groups_work_inside() -> None:
    async def inner() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_get())
        return f"done {task.result()}"

    assert await isolated(inner(), lambda: None) == "done 0"


async def _get() -> int:
    return variable.get()


async def _await(awaitable: Awaitable[object]) -> object:
    return await awaitable
