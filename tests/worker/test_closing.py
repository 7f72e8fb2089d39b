"""What an application's services do when they are closed holds no drained child beyond its grace."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from chokaq.worker.closing import close_services
from chokaq.worker.status import ExitCode

from .harness import House, Send


class Pool:
    """Something an application holds for the whole process."""


def served(house: House, close: Callable[[], object]) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    house.app.services.register_value(Pool, Pool(), on_registry_close=close)


async def test_a_closer_that_never_ends_is_cancelled_within_the_grace(build: Callable[..., House]) -> None:
    house = build(grace=1.0)
    ended: list[str] = []

    async def close() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")

    served(house, close)
    began = time.monotonic()
    with capture_logs() as logs:
        async with house.child() as child:
            assert await asyncio.wait_for(child.drain(), 20) == ExitCode.DONE
    assert time.monotonic() - began >= 0.5
    assert ended == ["cancelled"]
    assert [log["queue"] for log in logs if log["event"] == "services_close_overdue"] == ["emails"]
    assert house.left == []


async def test_a_closer_that_swallows_its_cancellation_is_left_behind(build: Callable[..., House]) -> None:
    house, go = build(grace=0.4), asyncio.Event()
    closing: list[asyncio.Task[object]] = []

    async def close() -> None:
        task = asyncio.current_task()
        assert task is not None
        closing.append(task)
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    served(house, close)
    async with house.child() as child:
        assert await asyncio.wait_for(child.drain(), 20) == ExitCode.DONE
    assert not closing[0].done()
    go.set()
    await asyncio.wait(closing)


async def test_a_closer_that_raises_is_told_and_the_child_ends_as_it_should(build: Callable[..., House]) -> None:
    house = build()

    async def close() -> None:
        raise OSError("pool is gone")

    served(house, close)
    with capture_logs() as logs:
        async with house.child() as child:
            assert await child.drain() == ExitCode.DONE
    assert not any(log["event"] == "services_close_overdue" for log in logs)


@pytest.fixture
def freed() -> Iterator[threading.Event]:
    """Ends what blocks, whatever becomes of the test."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_closer_that_holds_the_loop_costs_the_process(freed: threading.Event) -> None:
    left: list[int] = []

    async def close() -> None:
        assert freed.wait(20)

    def leave() -> None:
        left.append(1)
        freed.set()

    await close_services(close, "emails", 0.05, leave)
    assert left == [1]
