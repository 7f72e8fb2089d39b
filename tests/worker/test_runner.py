"""The runners: who gets a started claim, and when another runner is needed."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from chokaq.config.settings import Policy
from chokaq.store.records import FetchedJob
from chokaq.worker.claims import Claim
from chokaq.worker.counts import Counts
from chokaq.worker.runner import Runners

from .harness import Slot, eventually

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Gate:
    """A route whose handlers wait until the gate is open."""

    def __init__(self) -> None:
        self.inside = 0
        self.opened = asyncio.Event()

    def decode(self, payload: str) -> object:
        return payload

    async def run(self, _message: object, _ctx: object) -> None:
        self.inside += 1
        try:
            await self.opened.wait()
        finally:
            self.inside -= 1


class Settled:
    """A settler that counts."""

    def __init__(self) -> None:
        self.count = 0

    def settle(self, _claim: Claim, _outcome: object) -> None:
        self.count += 1

    def forget(self, _claim: Claim) -> None:
        raise AssertionError("no claim was lost")


def claims(route: Any, first: int, count: int) -> list[Claim]:
    jobs = [FetchedJob(f"{n:026}", "t", "{}", 1, 10, 0, 0, NOW, NOW, 0) for n in range(first, first + count)]
    return [Claim(job, Policy(), route) for job in jobs]


async def test_a_set_larger_than_the_parked_runners_runs_at_once_all_of_it() -> None:
    settled, tasks = Settled(), list[asyncio.Task[None]]()
    runners = Runners("q", "W" * 26, settled, Slot(), Counts())  # type: ignore[arg-type]
    runners.spawn = lambda index: tasks.append(asyncio.create_task(runners.run(index)))
    try:
        before, now = Gate(), Gate()
        for claim in claims(before, 0, 10):
            runners.submit(claim)
        await eventually(lambda: before.inside == 10, "ten run")
        before.opened.set()
        await eventually(lambda: settled.count == 10, "ten runners are parked")

        for claim in claims(now, 100, 15):
            runners.submit(claim)
        await eventually(lambda: now.inside == 15, "fifteen run", seconds=5)
        assert len(tasks) == 15

        now.opened.set()
        await eventually(lambda: settled.count == 25, "all have ended")
        for claim in claims(now, 200, 15):
            runners.submit(claim)
        await eventually(lambda: settled.count == 40, "all have ended again")
        assert len(tasks) == 15
    finally:
        runners.aborted = True
        runners.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_handlers_that_do_not_wait_share_a_runner_and_those_that_wait_get_one_each() -> None:
    settled, tasks = Settled(), list[asyncio.Task[None]]()
    runners = Runners("q", "W" * 26, settled, Slot(), Counts())  # type: ignore[arg-type]
    runners.spawn = lambda index: tasks.append(asyncio.create_task(runners.run(index)))
    shut, opened = Gate(), Gate()
    opened.opened.set()
    try:
        for claim in claims(opened, 0, 50):
            runners.submit(claim)
        await eventually(lambda: settled.count == 50, "all have ended")
        assert len(tasks) == 1

        for claim in [*claims(shut, 100, 3), *claims(opened, 200, 5)]:
            runners.submit(claim)
        await eventually(lambda: settled.count == 55, "those behind the waiting ones have ended")
        assert shut.inside == 3
        shut.opened.set()
        await eventually(lambda: settled.count == 58, "all have ended")
    finally:
        runners.aborted = True
        runners.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
