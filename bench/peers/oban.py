"""oban-py, the open-source edition, on psycopg: one event loop per process, woken by NOTIFY; fifty jobs at once."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from oban import Job, Oban, worker
from psycopg_pool import AsyncConnectionPool

from bench.peers.kit import Loop, Producer, Setup, database, has_table, sql
from bench.record import payload, work_async

DISTRIBUTION = "oban"
RECOVERY = "its lifeline rescues, once a minute, jobs executing for more than five minutes"
_WORKER = [
    "oban", "start", "--dsn", database("oban"), "--log-level", "warning", "--cron-modules", "bench.peers.oban",
    "--queues", "default:50",
]  # fmt: skip
"""`--cron-modules` is how its command line is told which modules define workers."""
SETUPS = {"1p": Setup([_WORKER], 20_000), "2p": Setup([_WORKER, _WORKER], 20_000)}


@worker(queue="default")
class Noop:
    """The job."""

    async def process(self, job: Job) -> None:
        """Run it."""
        await work_async(job.args["number"])


def reset(_setup: str) -> None:
    """Its tables, empty."""
    if not has_table("oban", "oban_jobs"):
        script = str(Path(sys.executable).with_name("oban"))
        subprocess.run([script, "install", "--dsn", database("oban")], check=True, stdout=subprocess.DEVNULL)
    sql("oban", "TRUNCATE oban_jobs; DELETE FROM oban_leaders; DELETE FROM oban_producers")


def producer() -> Producer:
    """A small pool; sets by its bulk call."""
    loop = Loop()

    async def open_it() -> tuple[Oban, AsyncConnectionPool]:
        pool = AsyncConnectionPool(database("oban"), open=False, min_size=1, max_size=2)
        await pool.open()
        return Oban(pool=pool), pool

    oban, pool = loop(open_it())

    def one(number: int) -> None:
        loop(oban.enqueue(Noop.new(payload(number))))  # type: ignore[attr-defined]

    def many(numbers: Sequence[int]) -> None:
        loop(oban.enqueue_many([Noop.new(payload(number)) for number in numbers]))  # type: ignore[attr-defined]

    def close() -> None:
        loop(pool.close())
        loop.close()

    return Producer(one, many, close)


def unfinished() -> int:
    """Neither completed nor given up."""
    states = "('completed', 'cancelled', 'discarded')"
    return int(sql("oban", f"SELECT count(*) FROM oban_jobs WHERE state::text NOT IN {states}")[0])
