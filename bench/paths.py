"""The code that every job passes through, as functions of a number of jobs: for micro-benchmarks and instruction counts.

As a program (`python -m bench.paths NAME COUNT`) it runs one path and nothing else.
"""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvloop

from bench.application import QUEUE, TYPE, Noop, app
from chokaq.config.settings import QueueSettings, Settings
from chokaq.jobs.codec import encode
from chokaq.jobs.dispatch import Dispatcher
from chokaq.jobs.enqueue import Enqueue, compose
from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import Answer
from chokaq.observe.metrics import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.values import ValueFile
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import FetchedJob, Held, NewJob, Registration, WorkerInfo
from chokaq.store.sqlite.clock import from_ms
from chokaq.supervisor.board import Board
from chokaq.worker.claims import Claim, Operation
from chokaq.worker.counts import Counts
from chokaq.worker.desk import Desk
from chokaq.worker.runner import Runners
from chokaq.worker.settler import Piles, Settler
from chokaq.worker.tally import Tally

SET = 100
"""Jobs that travel together."""
LIMIT = 1_000_000
COUNTED = "BENCH_COUNTED"
"""Environment variable: the program runs under callgrind with counting switched off, since imports take a minute there."""


def worker(count: int) -> None:
    """From a fetched row to a settled claim, inside a child: buffer, limiter, start, decode, handler, outcome, answer."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(count))


def counted(count: int) -> None:
    """The same with metrics: what they cost is the difference."""
    with tempfile.TemporaryDirectory() as folder:
        figures = ValueFile(Path(folder) / "figures.db")
        tally = Tally(Recorder(figures, MetricsSettings()), QUEUE)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_work(count, tally))
        figures.close()


def application(count: int) -> None:
    """From an object to the row a store accepts: encode, check, mint an id."""
    for number in range(count):
        compose(app.registry, Enqueue(Noop(number)), LIMIT)


def documents(count: int) -> None:
    """What travels to a T-SQL server for a job's life, and one answer back: enqueue, start, archive."""
    from chokaq.store.sqlserver import documents as made
    from chokaq.store.sqlserver.worker import answers

    for first in range(0, count, SET):
        jobs = new_jobs(min(SET, count - first), first)
        made.new_jobs(jobs)
        held = [Held(job.id, 1) for job in jobs]
        for _ in range(2):
            made.leases(held)
            answers(held, [(job.id, 1, 1) for job in jobs])


def sqlite(count: int) -> None:
    """A job's life in the embedded store: enqueue, fetch, start, archive, in sets of a hundred."""
    with tempfile.TemporaryDirectory() as folder:
        session = open_store(DatabaseSettings(url=f"sqlite:///{Path(folder) / 'path.db'}")).session()
        info = WorkerInfo(worker_id=new_id(), queue=QUEUE, host="bench", pid=1, version="0")
        registered = session.register_worker(info)
        for request, first in enumerate(range(0, count, SET), 1):
            session.enqueue_jobs(new_jobs(min(SET, count - first), first))
            fetched = session.fetch_jobs(registered, request, SET).jobs
            held = [Held(job.id, job.lease) for job in fetched]
            session.start_jobs(registered, held)
            session.archive_succeeded(registered, held)
        session.close()


PATHS: dict[str, Callable[[int], None]] = {
    "worker": worker,
    "counted": counted,
    "application": application,
    "documents": documents,
    "sqlite": sqlite,
}


def new_jobs(count: int, first: int = 0) -> list[NewJob]:
    """Jobs as a client sends them."""
    return [
        NewJob(id=new_id(), queue=QUEUE, type_key=TYPE, payload=encode(Noop(number)))
        for number in range(first, first + count)
    ]


def fetched_jobs(count: int, first: int = 0) -> list[FetchedJob]:
    """Jobs as a fetch brings them."""
    at = from_ms(0)
    return [
        FetchedJob(
            id=f"01J{number:023d}",
            type_key=TYPE,
            payload=encode(Noop(number)),
            lease=1,
            priority=10,
            attempt_count=0,
            crash_count=0,
            created_at=at,
            due_at=at,
            age_ms=0,
        )
        for number in range(first, first + count)
    ]


class _InstantLane:
    """A settle lane whose store answers at once: on the loop's next turn, everything that piled up in one set."""

    def __init__(self, settler: Settler) -> None:
        self._told = settler.lane._told  # the loop's side of the lane this one stands in for
        self._loop = asyncio.get_running_loop()

    def put(self, piles: Piles) -> None:
        self._loop.call_soon(self._answer, piles)

    def safely(self, callback: Callable[[], None]) -> None:
        callback()

    def _answer(self, piles: Piles) -> None:
        for operation, claims in zip(Operation, piles, strict=True):
            if claims:
                self._told(operation, claims, [Answer.APPLIED] * len(claims), None)


async def _work(count: int, tally: Tally | None = None) -> None:
    queue = QueueSettings(name=QUEUE, max_workers=SET)
    registered = Registration(new_id(), QUEUE, 1)
    app.bind(Settings(queues={QUEUE: queue}))
    board = Board(1)
    taken = board.take()
    assert taken is not None
    counts, claims = Counts(), dict[str, Claim]()
    slot = board.slot(taken)
    executor = ThreadPoolExecutor(1)
    dispatcher = Dispatcher(app, executor)
    settler = Settler(open_store(DatabaseSettings(url="sqlite:///unused.db")), registered, claims, counts)
    settler.lane = _InstantLane(settler)  # type: ignore[assignment]
    runners = Runners(QUEUE, registered.worker_id, settler, slot, counts)
    desk = Desk(
        queue=queue,
        app=app,
        dispatcher=dispatcher,
        claims=claims,
        settler=settler,
        runners=runners,
        slot=slot,
        counts=counts,
    )
    desk.tally = settler.tally = tally
    done = asyncio.Event()

    def settled(_operation: Operation) -> None:
        desk.pump()
        if desk.is_empty():
            done.set()

    settler.after_set = settled
    async with asyncio.TaskGroup() as group:
        runners.spawn = lambda index: group.create_task(runners.run(index))
        for first in range(0, count, SET):
            done.clear()
            desk.receive(fetched_jobs(min(SET, count - first), first))
            desk.pump()
            await done.wait()
        runners.close()
    executor.shutdown()
    if counts.succeeded != count:
        raise RuntimeError(f"{counts.succeeded} of {count} jobs were settled")


def main(arguments: list[str]) -> Any:
    """Run one path; under callgrind, which counts from here on only."""
    name, count = arguments
    # Imports done, and out of the collector's sight as in a child: otherwise a good part of what is counted is the two of them.
    PATHS[name](SET)
    gc.collect()
    gc.freeze()
    if os.environ.get(COUNTED):
        subprocess.run(["callgrind_control", "-i", "on", str(os.getpid())], check=True, stdout=subprocess.DEVNULL)
    PATHS[name](int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
