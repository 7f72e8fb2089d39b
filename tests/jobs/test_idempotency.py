"""The idempotency middleware by itself: which key a job has, and what it does with the store's answer."""

import asyncio
import math
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from chokaq import CancelReason, ChokaQ, FatalError, JobContext, RegistrationError, Snooze, idempotent
from chokaq.config.settings import IdempotencySettings, Settings
from chokaq.jobs.errors import EnqueueError
from chokaq.jobs.idempotency import Idempotent
from chokaq.jobs.registry import Next
from chokaq.jobs.runkeys import HeldKey
from chokaq.store.claims import ClaimAnswer, Claiming
from chokaq.testing import Inbox, run_job

CLAIMED = ClaimAnswer(Claiming.CLAIMED)


class Keys:
    """A store's side that answers what a test tells it to."""

    least_ttl = 0.0

    def __init__(self, answer: ClaimAnswer = CLAIMED, **settings: Any) -> None:
        self.answer = answer
        self.settings = IdempotencySettings(**settings)
        self.asked: list[HeldKey] = []

    async def claim(self, ctx: JobContext, held: HeldKey) -> ClaimAnswer:
        self.asked.append(held)
        return self.answer


class Pay(msgspec.Struct):
    order: Any = "7"


class Shop:
    """An application with one job type behind the middleware."""

    def __init__(self, layer: Idempotent, returns: object = None) -> None:
        self.app = ChokaQ()
        self.ran = 0
        self.app.job("Pay.v1", Pay, middleware=[layer])

        @self.app.handler(Pay)
        async def pay(_job: Pay) -> object:
            self.ran += 1
            return returns

    async def run(self, keys: Keys | None, order: Any = "7") -> None:
        def prepare(ctx: JobContext) -> None:
            ctx.keys = keys

        await run_job(self.app, Pay(order), prepare=prepare)


async def key_of(layer: Idempotent, order: Any) -> str:
    keys = Keys()
    await Shop(layer).run(keys, order)
    [held] = keys.asked
    return held.claim.key


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_key_is_a_field_or_what_a_function_makes_of_the_job_within_the_type() -> None:
    assert await key_of(idempotent(key="order"), "7") == "pay.v1:7"
    assert await key_of(idempotent(key="order"), 7) == "pay.v1:7"
    assert await key_of(idempotent(key=lambda job: f"order {job.order} "), 7) == "pay.v1:order 7"
    one = uuid.UUID(int=1)
    assert await key_of(idempotent(key=lambda _job: one), 7) == f"pay.v1:{one}"
    assert await key_of(idempotent(key="order", scope="till"), "7") == "till:7"


async def test_a_key_too_long_for_the_store_is_hashed_and_stays_the_same_key() -> None:
    layer = idempotent(key="order")
    long, other = await key_of(layer, "x" * 5_000), await key_of(layer, "x" * 5_001)
    assert long == await key_of(layer, "x" * 5_000)
    assert long != other
    assert long.startswith("sha256:")
    assert len(long) == 71
    assert (await key_of(layer, "é" * 200)).startswith("pay.v1:é")
    assert (await key_of(layer, "😀" * 200)).startswith("sha256:")


async def test_a_job_without_a_key_simply_runs() -> None:
    keys, shop = Keys(ClaimAnswer(Claiming.DONE)), Shop(idempotent(key=lambda _job: None))
    await shop.run(keys)
    assert (shop.ran, keys.asked) == (1, [])


@pytest.mark.parametrize(
    ("order", "error"),
    [(" ", EnqueueError), (True, TypeError), (1.5, TypeError), ([1], TypeError), ("a\x07", EnqueueError)],
)
async def test_what_cannot_be_a_key_fails_the_job_for_good_before_it_runs(order: Any, error: type[Exception]) -> None:
    keys, shop = Keys(), Shop(idempotent(key="order"))
    with pytest.raises(error):
        await shop.run(keys, order)
    assert (shop.ran, keys.asked) == (0, [])


async def test_a_field_that_the_job_does_not_have_is_named() -> None:
    with pytest.raises(FatalError, match=r"a job of Pay\.v1 has no field 'number'"):
        await Shop(idempotent(key="number")).run(Keys())


@pytest.mark.parametrize(
    "make",
    [
        lambda: idempotent(key=""),
        lambda: idempotent(key=5),  # type: ignore[arg-type]
        lambda: idempotent(key="a", ttl=0),
        lambda: idempotent(key="a", ttl=timedelta(seconds=-1)),
        lambda: idempotent(key="a", ttl=math.nan),
        lambda: idempotent(key="a", in_progress_ttl=math.inf),
        lambda: idempotent(key="a", in_progress_ttl="soon"),  # type: ignore[arg-type]
    ],
)
def test_options_that_cannot_be_meant_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(RegistrationError, match="idempotent"):
        make()


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_a_claimed_key_runs_the_handler_and_is_finished_once_that_has_returned() -> None:
    keys, shop = Keys(), Shop(idempotent(key="order"))
    await shop.run(keys)
    assert shop.ran == 1
    assert keys.asked[0].finished


async def test_a_completed_run_is_not_run_again() -> None:
    shop = Shop(idempotent(key="order"))
    await shop.run(Keys(ClaimAnswer(Claiming.DONE, "J" * 26)))
    assert shop.ran == 0


@pytest.mark.parametrize("state", [Claiming.BUSY, Claiming.STALE])
async def test_an_unfinished_run_puts_the_job_off(state: Claiming) -> None:
    shop = Shop(idempotent(key="order"))
    with pytest.raises(Snooze) as caught:
        await shop.run(Keys(ClaimAnswer(state, "J" * 26, 1_800_000), busy_delay=20.0))
    assert 16 <= caught.value.delay <= 24
    assert shop.ran == 0
    with pytest.raises(Snooze) as caught:
        await shop.run(Keys(ClaimAnswer(state, "J" * 26, 3_000), busy_delay=20.0))
    assert caught.value.delay == 3.0


async def test_a_run_that_raises_is_not_finished() -> None:
    app, keys = ChokaQ(), Keys()
    app.middleware(idempotent(key="order"))
    app.job("pay.v1", Pay)

    @app.handler(Pay)
    def pay(_job: Pay) -> None:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        await run_job(app, Pay(), prepare=lambda ctx: setattr(ctx, "keys", keys))
    assert not keys.asked[0].finished


async def test_outside_a_worker_the_job_simply_runs() -> None:
    shop = Shop(idempotent(key="order"))
    await shop.run(None)
    assert shop.ran == 1


# ── times to live ─────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("options", "settings", "wanted"),
    [
        ({}, {}, (1_800_000, 7 * 86_400_000)),
        ({}, {"in_progress_ttl": 60.0, "result_ttl": None}, (60_000, None)),
        ({"ttl": timedelta(minutes=1), "in_progress_ttl": 90}, {}, (90_000, 60_000)),
        ({"ttl": math.inf}, {}, (1_800_000, None)),
        ({"ttl": lambda job: 2.5 if job.order == "7" else None}, {}, (1_800_000, 2_500)),
        ({"ttl": lambda _job: None}, {"result_ttl": 30.0}, (1_800_000, 30_000)),
    ],
)
async def test_the_code_says_how_long_and_else_the_settings(
    options: dict[str, Any], settings: dict[str, Any], wanted: tuple[int, int | None]
) -> None:
    keys = Keys(**settings)
    await Shop(idempotent(key="order", **options)).run(keys)
    [held] = keys.asked
    assert (held.claim.ttl_ms, held.result_ttl_ms) == wanted


async def test_a_claim_lives_long_enough_to_be_renewed() -> None:
    keys = Keys()
    keys.least_ttl = 300.0
    await Shop(idempotent(key="order", in_progress_ttl=5)).run(keys)
    assert keys.asked[0].claim.ttl_ms == 300_000


@pytest.mark.parametrize("ttl", [5, 500, math.inf, -1, "soon"])
async def test_a_time_to_live_of_a_job_is_held_to_the_settings_bounds(ttl: Any) -> None:
    shop, keys = Shop(idempotent(key="order", ttl=lambda _job: ttl)), Keys(min_result_ttl=10.0, max_result_ttl=100.0)
    with pytest.raises(FatalError, match="ttl"):
        await shop.run(keys)
    assert (shop.ran, keys.asked) == (0, [])


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("returned", "kept"),
    [(None, None), ({"a": "é"}, '{"a":"\\u00e9"}'), (Pay("1"), '{"order":"1"}'), ([1, None], "[1,null]"), (0, "0")],
)
async def test_a_result_is_kept_when_it_was_asked_for(returned: object, kept: str | None) -> None:
    for keep in (True, False):
        keys = Keys()
        await Shop(idempotent(key="order", keep_result=keep), returned).run(keys)
        assert keys.asked[0].finished
        assert keys.asked[0].result == (kept if keep else None)


@pytest.mark.parametrize("returned", [object(), math.nan, "x" * 100_001])
async def test_a_result_that_cannot_be_kept_does_not_make_the_run_a_failure(returned: object) -> None:
    keys = Keys()
    with capture_logs() as logs:
        await Shop(idempotent(key="order", keep_result=True), returned).run(keys)
    assert keys.asked[0].finished
    assert keys.asked[0].result is None
    assert [log["event"] for log in logs] == ["result_not_kept"]


async def test_the_result_is_seen_through_layers_between_and_from_threads() -> None:
    app, keys = ChokaQ(), Keys()
    app.middleware(idempotent(key="order", keep_result=True))

    @app.middleware
    async def between(_job: Any, _ctx: JobContext, go_on: Next) -> None:
        await go_on()

    app.job("pay.v1", Pay)

    @app.handler(Pay)
    def pay(_job: Pay) -> str:
        return "receipt"

    await run_job(app, Pay(), prepare=lambda ctx: setattr(ctx, "keys", keys))
    assert keys.asked[0].result == '"receipt"'


# ── per type, and in an inbox ─────────────────────────────────────────────────────────────────────────────────────────
async def test_layers_of_one_type_stand_inside_those_of_the_application_and_nobody_else_has_them() -> None:
    app, seen = ChokaQ(), list[str]()

    def layer(name: str) -> Any:
        async def run(_job: Any, ctx: JobContext, go_on: Next) -> None:
            seen.append(f"{name} {ctx.type_key}")
            await go_on()

        return run

    app.middleware(layer("all"))
    app.job("a.v1", dict, middleware=[layer("first"), layer("second")])
    app.job("b.v1", dict)

    @app.handler("a.v1")
    async def a(_job: dict[str, Any]) -> None: ...

    @app.handler("b.v1")
    async def b(_job: dict[str, Any]) -> None: ...

    await run_job(app, "a.v1")
    await run_job(app, "b.v1")
    assert seen == ["all a.v1", "first a.v1", "second a.v1", "all b.v1"]


def test_a_layer_of_a_type_must_be_a_coroutine_function() -> None:
    def plain(_job: Any, _ctx: JobContext, go_on: Next) -> Any:
        return go_on()

    with pytest.raises(RegistrationError, match="async def"):
        ChokaQ().job("a.v1", dict, middleware=[plain])


def test_an_inbox_skips_duplicates_and_runs_again_what_failed() -> None:
    app, ran = ChokaQ(), list[Any]()
    app.job("pay.v1", Pay, middleware=[idempotent(key="order", keep_result=True)])

    @app.handler(Pay)
    async def pay(job: Pay) -> int:
        ran.append(job.order)
        if job.order == "bad" and ran.count("bad") == 1:
            raise FatalError("no")
        return 5

    with Inbox(app, Settings()) as inbox:
        jobs = app.enqueue_many_sync([Pay("1"), Pay("bad"), Pay("1"), Pay("2"), Pay("bad")])
        drained = inbox.drain()
        assert ran == ["1", "bad", "2", "bad"]
        assert set(drained.failed) == {jobs[1].id}
        assert len(drained.succeeded) == 4
        session = app.store.session()
        assert [(view.key, view.result) for view in session.list_claims(jobs[0].id)] == [("pay.v1:1", "5")]
        session.close()


async def test_time_spent_waiting_for_the_store_is_no_timeout_of_the_handler() -> None:
    class Away(Keys):
        async def claim(self, ctx: JobContext, held: HeldKey) -> ClaimAnswer:
            self.asked.append(held)
            raise asyncio.CancelledError

    def prepared(reason: CancelReason) -> Callable[[JobContext], None]:
        def prepare(ctx: JobContext) -> None:
            ctx.keys = Away()
            ctx.request_cancel(reason)

        return prepare

    shop = Shop(idempotent(key="order"))
    with pytest.raises(Snooze):
        await run_job(shop.app, Pay(), prepare=prepared(CancelReason.TIMEOUT))
    with pytest.raises(asyncio.CancelledError):
        await run_job(shop.app, Pay(), prepare=prepared(CancelReason.ADMIN))
    assert shop.ran == 0
