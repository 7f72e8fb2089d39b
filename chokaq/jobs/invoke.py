"""Calling a handler: on the loop or in the thread pool, with the services it asks for."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import svcs

from chokaq.jobs.context import JobContext
from chokaq.jobs.handlers import Plan, Service, check_returned
from chokaq.jobs.middleware import Runner

Call = Callable[..., Any]


def invoker(plan: Plan, services: svcs.Registry, executor: Executor, *, pipe: bool) -> Runner:
    """How a route runs its handler. The cheapest form that the signature allows: a plain coroutine handler is called as it is."""
    call = _call(plan, pipe=pipe)
    if not plan.services:
        if plan.is_sync:
            return lambda job, ctx: _in_thread(executor, call, job, ctx, {})
        return call
    return (_sync_scope if plan.is_sync else _async_scope)(plan, call, services, executor)


def _call(plan: Plan, *, pipe: bool) -> Call:
    """The handler as (job, ctx, **services), whatever its own parameters are."""
    function, name = plan.function, plan.context_name
    if pipe:
        if name is None:
            return lambda payload, ctx, **found: function(ctx.type_key, payload, **found)
        if plan.context_positional:
            return lambda payload, ctx, **found: function(ctx.type_key, payload, ctx, **found)
        return lambda payload, ctx, **found: function(ctx.type_key, payload, **{name: ctx}, **found)
    if name is None:
        return lambda job, _ctx, **found: function(job, **found)
    if plan.context_positional:
        return function
    return lambda job, ctx, **found: function(job, **{name: ctx}, **found)


def _async_scope(plan: Plan, call: Call, services: svcs.Registry, _executor: Executor) -> Runner:
    async def run(job: object, ctx: JobContext) -> object:
        async with svcs.Container(services) as container:
            if (result := await call(job, ctx, **await _find_async(container, services, plan.services))) is not None:
                check_returned(result)
            return result

    return run


def _sync_scope(plan: Plan, call: Call, services: svcs.Registry, executor: Executor) -> Runner:
    """A plain function's services are made, used and closed in its own thread, unless one of them needs the event loop."""

    def in_one_thread(job: object, ctx: JobContext) -> Any:
        with svcs.Container(services) as container:
            found = {
                wanted.name: container.get(wanted.type)
                for wanted in plan.services
                if not wanted.optional or wanted.type in services
            }
            return call(job, ctx, **found)

    async def run(job: object, ctx: JobContext) -> object:
        if not any(_needs_loop(services, wanted.type) for wanted in plan.services):
            return await _in_thread(executor, in_one_thread, job, ctx, {})
        async with svcs.Container(services) as container:
            return await _in_thread(executor, call, job, ctx, await _find_async(container, services, plan.services))

    return run


async def _find_async(
    container: svcs.Container, services: svcs.Registry, wanted: tuple[Service, ...]
) -> dict[str, Any]:
    return {
        service.name: await container.aget(service.type)
        for service in wanted
        if not service.optional or service.type in services
    }


def _needs_loop(services: svcs.Registry, wanted: Any) -> bool:
    """True when the factory of a service is a coroutine function or an async generator."""
    if wanted not in services:
        return False
    factory = services.get_registered_service_for(wanted).factory
    origin = inspect.unwrap(factory)
    return (
        inspect.iscoroutinefunction(factory)
        or inspect.isasyncgenfunction(origin)
        or inspect.iscoroutinefunction(origin)
    )


def _guarded(call: Call, job: object, ctx: JobContext, found: dict[str, Any]) -> object:
    try:
        result = call(job, ctx, **found)
    except StopIteration as error:
        # A future cannot carry it: the loop would wait for ever.
        raise RuntimeError("the handler raised StopIteration") from error
    if result is not None:
        check_returned(result)
    return result


async def _in_thread(executor: Executor, call: Call, job: object, ctx: JobContext, found: dict[str, Any]) -> object:
    """Run a plain function in the pool. A cancellation waits for it: a thread cannot be stopped, and while it runs, the job does.

    Cancelled before it began: CancelledError. Otherwise its own outcome stands, success included; the function learns of the
    cancellation from `ctx.cancelled`.
    """
    work = executor.submit(contextvars.copy_context().run, _guarded, call, job, ctx, found)
    waiting = asyncio.wrap_future(work)
    while not waiting.done():
        try:
            await asyncio.wait((waiting,))
        except asyncio.CancelledError:
            if work.cancel():
                raise
    return waiting.result()
