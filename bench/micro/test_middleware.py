"""A handler behind 0, 1 and 5 layers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bench.application import QUEUE, Noop
from bench.paths import fetched_jobs
from chokaq.jobs.context import JobContext
from chokaq.jobs.middleware import compose

RUNS = 100


async def layer(_job: object, _ctx: JobContext, go_on: Callable[[], Awaitable[None]]) -> None:
    """Does nothing of its own."""
    await go_on()


async def handler(_job: object, _ctx: JobContext) -> None:
    """Does nothing."""


@pytest.mark.parametrize("layers", [0, 1, 5])
def test_a_hundred_runs(benchmark: Any, layers: int) -> None:
    runner = compose([layer] * layers, handler)
    context = JobContext(fetched_jobs(1)[0], QUEUE, "worker", 900.0)
    job = Noop(1)

    async def work() -> None:
        for _ in range(RUNS):
            await runner(job, context)

    with asyncio.Runner() as loop:
        benchmark(lambda: loop.run(work()))
