"""Enqueue, one job and a thousand jobs a call, against the store's bare insert of the same rows."""

import argparse
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from bench.application import QUEUE, TYPE, Noop, app
from bench.fill import client
from bench.output import note, say, table
from bench.record import payload
from bench.stage import Stage, medians, spreads
from bench.target import Target
from chokaq.jobs.ids import new_id
from chokaq.store.hashing import payload_hash
from chokaq.store.records import NewJob

THOUSAND = 1_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--singles", type=int, default=500, help="calls of one job per repeat")
    parser.add_argument("--thousands", type=int, default=5, help="calls of a thousand jobs per repeat")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """The three ways (application, store, bare insert) in turn, again and again."""
    target = stage.target()
    runs = []
    for turn in range(stage.repeat):
        note(f"run {turn + 1}/{stage.repeat}")
        target.prepare()
        with stage.noise.around():
            runs.append(_once(target, options.singles, options.thousands))
    figures: dict[str, float] = {name: medians(runs, name).median for name in runs[0]}
    for kind in ("single", "thousand"):
        for way in ("app", "store"):
            name = f"{way}_{kind}_share"
            shares = [{name: run[f"{way}_{kind}"] / run[f"bare_{kind}"]} for run in runs]
            figures[name] = medians(shares, name).median
    say(f"enqueue, {stage.kind}: jobs per second\n")
    rows = []
    for kind in ("single", "thousand"):
        cells = [medians(runs, f"{way}_{kind}") for way in ("app", "store", "bare")]
        rows.append(
            (
                kind,
                *cells,
                f"{100 * figures[f'app_{kind}_share']:.0f} %",
                f"{100 * figures[f'store_{kind}_share']:.0f} %",
            )
        )
    say(table(("a call", "app.enqueue", "session.enqueue_jobs", "bare insert", "app/bare", "store/bare"), rows))
    say(f"\n{stage.noise}")
    return stage.result(
        single_share=figures["app_single_share"],
        thousand_share=figures["app_thousand_share"],
        **figures,
        spread=spreads(runs, *runs[0]),
    )


def _once(target: Target, singles: int, thousands: int) -> dict[str, float]:
    session, bare = target.store.session(), open_bare(target)
    try:
        with client(target):
            ways: dict[str, Callable[[int], object]] = {
                "app": lambda count: (
                    app.enqueue_sync(Noop(0)) if count == 1 else app.enqueue_many_sync([Noop(n) for n in range(count)])
                ),
                "store": lambda count: session.enqueue_jobs(_jobs(count)),
                "bare": lambda count: bare.insert(_jobs(count)),
            }
            for call in ways.values():
                call(1)
                call(THOUSAND)
            return {
                f"{way}_{name}": rate
                for name, count, calls in (("single", 1, singles), ("thousand", THOUSAND, thousands))
                for way, rate in _rates(ways, count, calls).items()
            }
    finally:
        bare.close()
        session.close()


def _rates(ways: dict[str, Callable[[int], object]], count: int, calls: int) -> dict[str, float]:
    """Jobs per second of each way, over all its calls. The ways take turns call by call: a busy neighbour slows all alike."""
    seconds = dict.fromkeys(ways, 0.0)
    for _ in range(calls):
        for way, call in ways.items():
            began = time.perf_counter()
            call(count)
            seconds[way] += time.perf_counter() - began
    return {way: calls * count / spent for way, spent in seconds.items()}


def _jobs(count: int) -> list[NewJob]:
    return [
        NewJob(id=new_id(), queue=QUEUE, type_key=TYPE, payload=json.dumps(payload(number))) for number in range(count)
    ]


class Bare(ABC):
    """The same rows, inserted with nothing around."""

    @abstractmethod
    def insert(self, jobs: Sequence[NewJob]) -> None:
        """One durable transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


def open_bare(target: Target) -> Bare:
    """The bare insert of a target."""
    from bench.target_sqlite import SqliteTarget

    return SqliteBare(target) if isinstance(target, SqliteTarget) else SqlServerBare(target)


class SqliteBare(Bare):
    """executemany under the writers' lock."""

    def __init__(self, target: Target) -> None:
        from bench.target_sqlite import SqliteTarget
        from chokaq.store.sqlite.connection import connect, lock_path
        from chokaq.store.sqlite.flock import FileLock

        assert isinstance(target, SqliteTarget)
        self._connection = connect(target.path, 60.0)
        self._lock = FileLock(lock_path(target.path), 60.0)

    def insert(self, jobs: Sequence[NewJob]) -> None:
        now = int(time.time() * 1000)
        rows = [
            (job.id, job.queue, job.type_key, job.priority, now, now, now, payload_hash(job.payload), job.payload)
            for job in jobs
        ]
        self._lock.acquire()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT INTO JobsHot (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount,"
            " CreatedAtUtc, AgeFromUtc, KeyScope, PayloadHash, Payload) VALUES (?, ?, ?, 0, 1, ?, ?, 0, 0, 0, ?, ?, 0, ?, ?)",
            rows,
        )
        self._connection.execute("COMMIT")
        self._lock.release()

    def close(self) -> None:
        self._connection.close()
        self._lock.close()


class SqlServerBare(Bare):
    """One INSERT from one document: the fastest set-based form, without checks, keys and answers."""

    def __init__(self, target: Target) -> None:
        from chokaq.store.sqlserver.connecting import connect
        from chokaq.store.url import DatabaseUrl

        self._connection = connect(target.settings, DatabaseUrl.parse(target.settings.url))
        self._cursor = self._connection.cursor()
        self._cursor.setinputsizes([(-9, 0, 0)])
        self._sql = (
            f"INSERT INTO {target.settings.schema}.JobsHot (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber,"
            " AttemptCount, CrashCount, CreatedAtUtc, AgeFromUtc, KeyScope, PayloadHash, Payload)"
            " SELECT j.i, j.q, j.t, 0, 1, j.p, SYSUTCDATETIME(), 0, 0, 0, SYSUTCDATETIME(), SYSUTCDATETIME(), 0, j.h, j.b"
            " FROM OPENJSON(?) WITH (i char(26) '$.i', q varchar(255) '$.q', t varchar(255) '$.t', p int '$.p',"
            " h char(32) '$.h', b varchar(max) '$.b') j"
        )

    def insert(self, jobs: Sequence[NewJob]) -> None:
        rows = [
            {
                "i": job.id,
                "q": job.queue,
                "t": job.type_key,
                "p": job.priority,
                "h": payload_hash(job.payload),
                "b": job.payload,
            }
            for job in jobs
        ]
        self._cursor.execute(self._sql, json.dumps(rows))

    def close(self) -> None:
        self._connection.close()
