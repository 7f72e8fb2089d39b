"""pgqueuer on asyncpg: one event loop per process, woken by NOTIFY.

Batch 50 with its concurrency at twice the batch, as its own rule asks; it is several times faster than with its default of 10.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers.kit import POSTGRES, Loop, Producer, Setup, database, has_table, sql
from bench.record import payload, work_async

DISTRIBUTION = "pgqueuer"
RECOVERY = "jobs whose heartbeat is older than 30 s are picked again"
_RUN = ["pgq", "run", "bench.peers.pgqueuer:serve"]
_BATCHED = [*_RUN, "--batch-size", "50", "--max-concurrent-tasks", "100"]
SETUPS = {
    "1p": Setup([_BATCHED], 60_000),
    "2p": Setup([_BATCHED, _BATCHED], 80_000),
    "default": Setup([_RUN], 40_000),
}


@asynccontextmanager
async def serve() -> AsyncIterator[PgQueuer]:
    """What its command line runs."""
    connection = await asyncpg.connect(database("pgqueuer"))
    queue = PgQueuer(AsyncpgDriver(connection))

    @queue.entrypoint("noop")
    async def noop(job: Job) -> None:
        await work_async(json.loads(job.payload or b"{}")["number"])

    try:
        yield queue
    finally:
        await connection.close()


def reset(_setup: str) -> None:
    """Its tables, empty."""
    if not has_table("pgqueuer", "pgqueuer"):
        place = {"PGHOST": "127.0.0.1", "PGPORT": os.environ[POSTGRES], "PGUSER": "bench", "PGDATABASE": "pgqueuer"}
        script = str(Path(sys.executable).with_name("pgq"))
        subprocess.run([script, "install"], check=True, env={**os.environ, **place}, stdout=subprocess.DEVNULL)
    sql("pgqueuer", "TRUNCATE pgqueuer, pgqueuer_log")


def producer() -> Producer:
    """One connection; sets go in one statement."""
    loop = Loop()
    connection = loop(asyncpg.connect(database("pgqueuer")))
    queries = Queries(AsyncpgDriver(connection))

    def one(number: int) -> None:
        loop(queries.enqueue("noop", json.dumps(payload(number)).encode()))

    def many(numbers: Sequence[int]) -> None:
        bodies: list[bytes | None] = [json.dumps(payload(number)).encode() for number in numbers]
        loop(queries.enqueue(["noop"] * len(bodies), bodies, [0] * len(bodies)))

    def close() -> None:
        loop(connection.close())
        loop.close()

    return Producer(one, many, close)


def unfinished() -> int:
    """Rows of its queue table: what is done moves to its log."""
    return int(sql("pgqueuer", "SELECT count(*) FROM pgqueuer")[0])
