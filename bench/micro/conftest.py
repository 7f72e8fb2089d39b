"""Stores to measure: SQLite always, SQL Server when a URL is given in CHOKAQ_TEST_SQLSERVER."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.application import QUEUE
from bench.paths import new_jobs
from bench.target import URL_VARIABLE, Target, open_target
from chokaq.jobs.ids import new_id
from chokaq.store.records import Held, WorkerInfo

STORES = ["sqlite", "sqlserver"] if os.environ.get(URL_VARIABLE) else ["sqlite"]


class Bench:
    """A session, a registered worker, and jobs in whatever state a call needs."""

    def __init__(self, target: Target) -> None:
        target.prepare()
        self.session = target.store.session()
        info = WorkerInfo(worker_id=new_id(), queue=QUEUE, host="bench", pid=1, version="0")
        self.worker = self.session.register_worker(info)
        self.request = 0

    def pending(self, count: int) -> None:
        """So many waiting jobs more."""
        self.session.enqueue_jobs(new_jobs(count))

    def fetched(self, count: int) -> list[Held]:
        """So many jobs, claimed."""
        self.pending(count)
        self.request += 1
        return [Held(job.id, job.lease) for job in self.session.fetch_jobs(self.worker, self.request, count).jobs]

    def started(self, count: int) -> list[Held]:
        """So many jobs, processing."""
        held = self.fetched(count)
        self.session.start_jobs(self.worker, held)
        return held


@pytest.fixture(params=STORES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """One store, empty."""
    target = open_target(request.param, os.environ.get(URL_VARIABLE), tmp_path)
    made = Bench(target)
    yield made
    made.session.close()
    target.close()
