"""From (queue, type key) to running code: signatures, services, middleware, pipes, threads, cancellation."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any

import msgspec
import pytest

from chokaq import ChokaQ, JobContext, PayloadError, RegistrationError
from chokaq.jobs.dispatch import Dispatcher, Route
from chokaq.jobs.registry import Next
from chokaq.lifecycle.states import CancelReason
from chokaq.store.records import FetchedJob


class Mail(msgspec.Struct):
    to: str = "a"


class Database:
    """A service whose life is written down."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.thread = threading.get_ident()

    def open(self) -> None:
        self.log.append("open")

    def close(self) -> None:
        self.log.append("close")


class Clock:
    """A service nobody closes."""


@pytest.fixture
def app() -> ChokaQ:
    app = ChokaQ()
    app.job("mail.v1", Mail, queue="emails")
    return app


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def context(type_key: str = "mail.v1") -> JobContext:
    now = datetime.now(UTC)
    return JobContext(FetchedJob("J", type_key, '{"to":"a"}', 1, 10, 0, 0, now, now, 0), "emails", "W", None)


def route(app: ChokaQ, executor: ThreadPoolExecutor, queue: str = "emails", type_key: str = "mail.v1") -> Route:
    found = Dispatcher(app, executor).find(queue, type_key)
    assert found is not None
    return found


async def run(app: ChokaQ, executor: ThreadPoolExecutor, ctx: JobContext | None = None) -> None:
    found = route(app, executor)
    await found.run(found.decode('{"to":"b"}'), ctx or context())


# ── finding and decoding ──────────────────────────────────────────────────────────────────────────────────────────────
def test_types_without_handler_or_registration_are_unknown(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    dispatcher = Dispatcher(app, executor)
    assert dispatcher.find("emails", "mail.v1") is None
    assert dispatcher.find("emails", "other.v1") is None


def test_a_stored_key_is_found_in_any_case_and_any_queue(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    app.handler(Mail)(lambda job: None)
    dispatcher = Dispatcher(app, executor)
    found = dispatcher.find("other", "MAIL.V1")
    assert found is not None
    assert (found.type_key, found.is_sync) == ("mail.v1", True)
    assert found.decode('{"to":"x","new":1}') == Mail("x")
    with pytest.raises(PayloadError, match=r"mail\.v1 does not fit Mail"):
        found.decode("[]")


def test_a_contract_that_cannot_be_decoded_is_found_before_the_first_job(executor: ThreadPoolExecutor) -> None:
    class Odd(msgspec.Struct):
        lock: threading.Event

    app = ChokaQ()
    app.job("odd.v1", Odd)
    app.handler(Odd)(lambda job: None)
    Odd.__annotations__["lock"] = "NoSuchName"
    with pytest.raises(RegistrationError, match=r"contract Odd of 'odd\.v1' cannot be decoded"):
        Dispatcher(app, executor)


# ── signatures ────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_context_is_optional_and_found_by_type_or_place(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    seen: list[Any] = []

    async def job_only(job: Mail) -> None:
        seen.append(job)

    async def unannotated(job, ctx) -> None:  # type: ignore[no-untyped-def]
        seen.append(ctx)

    async def after_a_service(job: Mail, clock: Clock, /, *, where: JobContext) -> None: ...

    async def keyword_only(job: Mail, *, clock: Clock, where: JobContext, more: int = 5, **_rest: Any) -> None:
        seen.append((type(clock), where, more))

    app.services.register_factory(Clock, Clock)
    ctx = context()
    for handler in (job_only, unannotated, keyword_only):
        app.registry._handlers[Mail] = handler
        await run(app, executor, ctx)
    assert seen == [Mail("b"), ctx, (Clock, ctx, 5)]
    app.registry._handlers[Mail] = after_a_service
    with pytest.raises(RegistrationError, match="passable by name"):
        Dispatcher(app, executor)


async def test_partials_methods_and_objects_are_handlers_too(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    seen: list[str] = []

    class Sender:
        async def __call__(self, job: Mail, ctx: JobContext, clock: Clock) -> None:
            seen.append("object")

        def send(self, job: Mail, ctx: JobContext) -> None:
            seen.append("method")

    async def with_host(host: str, job: Mail, ctx: JobContext) -> None:
        seen.append(host)

    app.services.register_factory(Clock, Clock)
    for handler in (Sender(), Sender().send, partial(with_host, "partial")):
        app.registry._handlers[Mail] = handler
        await run(app, executor)
    assert seen == ["object", "method", "partial"]


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (lambda: None, "must take the job as its first parameter"),
        (lambda job, ctx, other: None, "parameter `other` needs a type"),
        (lambda *, job: None, "must take the job"),
    ],
)
def test_a_handler_that_cannot_be_called_is_found_at_boot(
    app: ChokaQ, executor: ThreadPoolExecutor, handler: Any, says: str
) -> None:
    app.handler(Mail)(handler)
    with pytest.raises(RegistrationError, match=says):
        Dispatcher(app, executor)


def test_an_annotation_that_means_nothing_is_found_at_boot(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    async def handler(job: Mail, ctx: JobContext, thing: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821

    app.handler(Mail)(handler)
    with pytest.raises(
        RegistrationError, match=r"handler .*handler has an annotation that cannot be resolved: .*Missing"
    ):
        Dispatcher(app, executor)


# ── services ──────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_services_live_for_one_job(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    log: list[str] = []

    async def database() -> AsyncIterator[Database]:
        made = Database(log)
        made.open()
        yield made
        made.close()

    @app.handler(Mail)
    async def send(job: Mail, ctx: JobContext, database: Database) -> None:
        log.append("work")

    app.services.register_factory(Database, database)
    await run(app, executor)
    await run(app, executor)
    assert log == ["open", "work", "close"] * 2


async def test_services_are_closed_when_the_handler_fails_or_is_cancelled(
    app: ChokaQ, executor: ThreadPoolExecutor
) -> None:
    log: list[str] = []
    started = asyncio.Event()

    @contextmanager
    def database() -> Iterator[Database]:
        try:
            yield Database(log)
        finally:
            log.append("close")

    @app.handler(Mail)
    async def send(job: Mail, database: Database) -> None:
        started.set()
        await asyncio.Event().wait()

    app.services.register_factory(Database, database)
    task = asyncio.create_task(run(app, executor))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["close"]


async def test_an_error_while_closing_is_logged_and_the_job_stands(
    app: ChokaQ, executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    def database() -> Iterator[Database]:
        yield Database([])
        raise OSError("the connection is gone")

    @app.handler(Mail)
    async def send(job: Mail, database: Database) -> None: ...

    app.services.register_factory(Database, database)
    with caplog.at_level(logging.WARNING):
        await run(app, executor)
    assert "Container clean up failed" in caplog.text


async def test_a_plain_function_gets_its_services_in_its_own_thread(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    log: list[str] = []
    seen: list[tuple[int, int]] = []

    def database() -> Iterator[Database]:
        yield Database(log)
        log.append(f"closed by {threading.get_ident()}")

    @app.handler(Mail)
    def send(job: Mail, ctx: JobContext, database: Database) -> None:
        seen.append((database.thread, threading.get_ident()))

    app.services.register_factory(Database, database)
    await run(app, executor)
    ((made_in, used_in),) = seen
    assert made_in == used_in != threading.get_ident()
    assert log == [f"closed by {used_in}"]


async def test_a_plain_function_may_use_services_that_need_the_loop(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    log: list[str] = []

    async def database() -> AsyncIterator[Database]:
        log.append("open")
        yield Database(log)
        log.append("close")

    @app.handler(Mail)
    def send(job: Mail, database: Database) -> None:
        log.append("work")

    app.services.register_factory(Database, database)
    await run(app, executor)
    assert log == ["open", "work", "close"]


async def test_a_service_with_a_default_may_be_missing(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    seen: list[Any] = []

    @app.handler(Mail)
    async def send(job: Mail, clock: Clock | None = None) -> None:
        seen.append(clock)

    await run(app, executor)
    assert seen == [None]


# ── middleware ────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_first_middleware_is_the_outermost(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    log: list[str] = []

    @app.middleware
    async def outer(job: Any, ctx: JobContext, go_on: Next) -> None:
        log.append(f"outer {job.to} {ctx.id}")
        await go_on()
        log.append("outer end")

    @app.middleware
    async def inner(job: Any, ctx: JobContext, go_on: Next) -> None:
        log.append("inner")
        await go_on()
        log.append("inner end")

    @app.handler(Mail)
    def send(job: Mail, ctx: JobContext) -> None:
        log.append("work")

    await run(app, executor)
    assert log == ["outer b J", "inner", "work", "inner end", "outer end"]


async def test_middleware_may_end_a_job(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    @app.middleware
    async def stop(job: Any, ctx: JobContext, go_on: Next) -> None: ...

    @app.handler(Mail)
    async def send(job: Mail) -> None:
        raise AssertionError("not reached")

    await run(app, executor)


async def test_a_handlers_exception_comes_out_as_it_was_raised(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    error = LookupError("mine")
    seen: list[BaseException] = []

    @app.middleware
    async def watch(job: Any, ctx: JobContext, go_on: Next) -> None:
        try:
            await go_on()
        except LookupError as caught:
            seen.append(caught)
            raise

    @app.handler(Mail)
    def send(job: Mail) -> None:
        raise error

    with pytest.raises(LookupError) as raised:
        await run(app, executor)
    assert raised.value is error
    assert seen == [error]


# ── pipes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_a_pipe_takes_every_type_of_its_queue_as_text(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    seen: list[Any] = []

    @app.pipe("stream")
    async def take(type_key: str, payload: str, ctx: JobContext, clock: Clock) -> None:
        seen.append((type_key, payload, ctx.id, type(clock)))

    @app.middleware
    async def watch(job: Any, ctx: JobContext, go_on: Next) -> None:
        seen.append(job)
        await go_on()

    app.services.register_factory(Clock, Clock)
    found = route(app, executor, "stream", "whatever.v1")
    text = found.decode('{"broken":')
    await found.run(text, context("whatever.v1"))
    assert seen == ['{"broken":', ("whatever.v1", '{"broken":', "J", Clock)]
    assert Dispatcher(app, executor).find("emails", "whatever.v1") is None


@pytest.mark.parametrize(
    "take",
    [
        lambda type_key, payload: None,
        lambda type_key, payload, ctx: None,
        lambda type_key, payload, *, ctx: None,
    ],
)
async def test_a_pipe_may_be_plain_and_leave_the_context_out(
    app: ChokaQ, executor: ThreadPoolExecutor, take: Any
) -> None:
    app.pipe("stream")(take)
    found = route(app, executor, "stream", "x.v1")
    assert found.is_sync
    await found.run("{}", context("x.v1"))


# ── threads ───────────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_a_plain_function_sees_the_callers_context_variables(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    seen: list[str] = []

    @app.handler(Mail)
    def send(job: Mail) -> None:
        seen.append(tenant.get())

    tenant.set("blue")
    await run(app, executor)
    assert seen == ["blue"]


async def test_a_cancelled_run_lasts_as_long_as_its_thread(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    started, seen = threading.Event(), threading.Event()
    ctx = context()

    @app.handler(Mail)
    def send(job: Mail, ctx: JobContext) -> None:
        started.set()
        assert seen.wait(30)
        raise InterruptedError(f"stopped: {ctx.cancel_reason}")

    task = asyncio.create_task(run(app, executor, ctx))
    await asyncio.to_thread(started.wait)
    for _ in range(3):
        ctx.request_cancel(CancelReason.TIMEOUT)
        task.cancel()
        await asyncio.wait((task,), timeout=0)
        await asyncio.wait((asyncio.create_task(asyncio.to_thread(lambda: None)),))
        assert not task.done()
    seen.set()
    with pytest.raises(InterruptedError, match="stopped: timeout"):
        await task


async def test_a_success_stands_although_the_run_was_cancelled(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    started, go = threading.Event(), threading.Event()

    @app.handler(Mail)
    def send(job: Mail) -> None:
        started.set()
        assert go.wait(30)

    task = asyncio.create_task(run(app, executor))
    await asyncio.to_thread(started.wait)
    task.cancel()
    await asyncio.wait((task,), timeout=0)
    go.set()
    await task


async def test_a_run_cancelled_before_its_thread_began_is_cancelled(app: ChokaQ) -> None:
    hold = threading.Event()

    @app.handler(Mail)
    def send(job: Mail) -> None:
        raise AssertionError("not reached")

    with ThreadPoolExecutor(1) as executor:
        executor.submit(hold.wait)
        task = asyncio.create_task(run(app, executor))
        await asyncio.wait((task,), timeout=0)
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            hold.set()


async def test_stop_iteration_does_not_hang_the_loop(app: ChokaQ, executor: ThreadPoolExecutor) -> None:
    @app.handler(Mail)
    def send(job: Mail) -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run(app, executor)


def passed_on(function: Any) -> Any:
    """A wrapper that hides a coroutine function, as a careless decorator does."""

    @wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


async def work(_job: Mail) -> None:
    raise AssertionError("nobody awaits it")


async def not_awaited(job: Mail) -> Any:
    return work(job)


def steps(_job: Mail) -> Iterator[int]:
    yield 1


async def async_steps(_job: Mail) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("handler", [passed_on(work), not_awaited, passed_on(steps), passed_on(async_steps)])
async def test_a_handler_that_returns_work_undone_does_not_succeed(
    app: ChokaQ, executor: ThreadPoolExecutor, handler: Any, layers: int
) -> None:
    async def layer(_job: Any, _ctx: JobContext, go_on: Next) -> None:
        await go_on()

    for _ in range(layers):
        app.middleware(layer)
    app.handler(Mail)(handler)
    found = Dispatcher(app, executor).find("emails", "mail.v1")
    assert found is not None
    with pytest.raises(TypeError, match="its work was not done"):
        await found.run(Mail(), context())


class Steps:
    """A callable object that is a generator function."""

    def __call__(self, _job: Mail) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize("handler", [steps, async_steps, partial(steps), Steps()])
def test_a_generator_function_is_refused_as_a_handler(app: ChokaQ, handler: Any) -> None:
    with pytest.raises(RegistrationError, match="is a generator"):
        app.handler(Mail)(handler)
    with pytest.raises(RegistrationError, match="is a generator"):
        app.pipe("stream")(handler)
