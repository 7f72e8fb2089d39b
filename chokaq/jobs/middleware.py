"""The onion: middleware around a handler, composed once per route."""

from collections.abc import Awaitable, Callable, Sequence

from chokaq.jobs.context import JobContext
from chokaq.jobs.handlers import check_returned
from chokaq.jobs.registry import Middleware

Runner = Callable[[object, JobContext], Awaitable[object]]
"""Runs one job: (job, context) → awaitable."""


def compose(layers: Sequence[Middleware], inner: Runner) -> Runner:
    """`inner` wrapped in `layers`, the first outermost; `inner` itself when there are none."""
    if layers:
        inner = _noting(inner)
    for layer in reversed(layers):
        inner = _wrap(layer, inner)
    return inner


def _noting(inner: Runner) -> Runner:
    """`inner`, its result noted in the context for those layers that keep it."""

    async def run(job: object, ctx: JobContext) -> None:
        if (result := await inner(job, ctx)) is not None:
            check_returned(result)
            ctx.returned = result

    return run


def _wrap(layer: Middleware, inner: Runner) -> Runner:
    async def run(job: object, ctx: JobContext) -> None:
        async def go_on() -> None:
            if (result := await inner(job, ctx)) is not None:
                check_returned(result)

        await layer(job, ctx, go_on)

    return run
