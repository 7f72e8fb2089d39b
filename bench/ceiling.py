"""The bare ceiling: the store's own procedures in a loop on one connection. No event loop, no threads, no handler, no decoding.

It carries the same sets as a worker does: pass it the batch sizes that a counted run of the worker showed.
"""

import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import orjson

from bench.application import QUEUE
from bench.target import Target
from chokaq.jobs.ids import new_id

Lease = tuple[str, int]


class Sizes(NamedTuple):
    """Jobs per call."""

    fetch: int
    start: int
    archive: int

    @classmethod
    def of(cls, fetch: float, start: float, archive: float) -> "Sizes":
        """From averages: at least 1 each."""
        return cls(*(max(1, round(size)) for size in (fetch, start, archive)))


class Ceiling(ABC):
    """The three procedures, bare."""

    @abstractmethod
    def fetch(self, size: int) -> list[Lease]:
        """Claim; what was claimed."""

    @abstractmethod
    def start(self, jobs: list[Lease]) -> None:
        """Start."""

    @abstractmethod
    def archive(self, jobs: list[Lease]) -> None:
        """Archive."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def drain(self, sizes: Sizes) -> float:
        """Work off the queue; completed jobs per second."""
        fetched: list[Lease] = []
        started: list[Lease] = []
        done = 0
        began = time.perf_counter()
        while True:
            found = self.fetch(sizes.fetch)
            fetched += found
            # The last ones go in smaller sets.
            done += self._settle(fetched, started, sizes, rest=not found)
            if not found and not fetched and not started:
                return done / (time.perf_counter() - began)

    def _settle(self, fetched: list[Lease], started: list[Lease], sizes: Sizes, *, rest: bool) -> int:
        done = 0
        while len(fetched) >= sizes.start or (rest and fetched):
            jobs, fetched[:] = fetched[: sizes.start], fetched[sizes.start :]
            self.start(jobs)
            started += jobs
        while len(started) >= sizes.archive or (rest and started):
            jobs, started[:] = started[: sizes.archive], started[sizes.archive :]
            self.archive(jobs)
            done += len(jobs)
        return done


def open_ceiling(target: Target) -> Ceiling:
    """The ceiling of a target; registers a worker there."""
    from bench.target_sqlite import SqliteTarget

    return SqliteCeiling(target) if isinstance(target, SqliteTarget) else SqlServerCeiling(target)


class SqliteCeiling(Ceiling):
    """The embedded statements, under the same lock and in the same transactions as the store runs them."""

    def __init__(self, target: Target) -> None:
        from bench.target_sqlite import SqliteTarget
        from chokaq.store.sqlite.connection import connect, lock_path
        from chokaq.store.sqlite.flock import FileLock
        from chokaq.store.sqlite.statements import load

        assert isinstance(target, SqliteTarget)
        self._worker = _register(target)
        self._connection = connect(target.path, 60.0)
        self._lock = FileLock(lock_path(target.path), 60.0)
        self._fetch, self._start, self._succeed = load("FetchJobs"), load("StartJobs"), load("ArchiveSucceeded")
        self._request = 0

    def fetch(self, size: int) -> list[Lease]:
        self._request += 1
        key: dict[str, Any] = {
            "queue": QUEUE,
            "worker": self._worker.worker_id,
            "request": self._request,
            "size": size,
            "now": _now_ms(),
        }
        sql, run = self._fetch, self._connection.execute
        run(sql["state"], key).fetchone()
        self._begin()
        run(sql["state"], key).fetchone()
        run(sql["raise"], key)
        jobs, row_ids = run(sql["ready"], key).fetchone()
        run(sql["claim"], key | {"rows": row_ids})
        run(sql["state"], key).fetchone()
        self._commit()
        return [(row[1], row[4]) for row in orjson.loads(jobs)]

    def start(self, jobs: list[Lease]) -> None:
        self._begin()
        self._connection.execute(self._start["start"], {"jobs": _document(jobs), "now": _now_ms()})
        self._commit()

    def archive(self, jobs: list[Lease]) -> None:
        from chokaq.store.sqlite.counters import Tally

        sql, run, now = self._succeed, self._connection.execute, _now_ms()
        self._begin()
        tally = Tally()
        for queue, rows, durations, lags in run(sql["match"], {"jobs": _document(jobs), "now": now}).fetchall():
            moving = {"rows": rows, "now": now}
            run(sql["move"], moving)
            run(sql["leave_hot"], moving)
            tally.successes(queue, orjson.loads(durations), orjson.loads(lags))
        tally.write(self._connection, self._worker.slot, now)
        self._commit()

    def close(self) -> None:
        self._connection.close()
        self._lock.close()

    def _begin(self) -> None:
        self._lock.acquire()
        self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self._lock.release()


class SqlServerCeiling(Ceiling):
    """EXEC over one connection, with a prepared cursor per procedure."""

    def __init__(self, target: Target) -> None:
        from chokaq.store.sqlserver.link import Link
        from chokaq.store.sqlserver.scripts import latest
        from chokaq.store.url import DatabaseUrl

        self._worker = _register(target)
        self._link = Link(target.settings, DatabaseUrl.parse(target.settings.url))
        self._link.open(latest())
        self._request = 0
        self.start([])
        self.archive([])

    def fetch(self, size: int) -> list[Lease]:
        self._request += 1
        _, _, *rest = self._link.call("FetchJobs", (self._worker.worker_id, QUEUE, self._request, size, -1))
        return [(row[0], row[3]) for row in rest[0]] if rest else []

    def start(self, jobs: list[Lease]) -> None:
        self._link.call("StartJobs", (self._worker.worker_id, _by_lease(jobs)))

    def archive(self, jobs: list[Lease]) -> None:
        self._link.call("ArchiveSucceeded", (self._worker.worker_id, self._worker.slot, _by_lease(jobs)))

    def close(self) -> None:
        self._link.close()


def _register(target: Target) -> Any:
    from chokaq.store.records import WorkerInfo

    session = target.store.session()
    try:
        info = WorkerInfo(worker_id=new_id(), queue=QUEUE, host="bench", pid=1, version="0")
        return session.register_worker(info)
    finally:
        session.close()


def _now_ms() -> int:
    return int(time.time() * 1000)


def _document(rows: Any) -> str:
    return orjson.dumps(rows).decode()


def _by_lease(jobs: list[Lease]) -> str:
    groups: dict[int, list[str]] = {}
    for job, lease in jobs:
        groups.setdefault(lease, []).append(job)
    return "".join([f"{lease}:{','.join(ids)};" for lease, ids in groups.items()])
