"""procrastinate on psycopg: one event loop per process, woken by NOTIFY; fifty jobs at once."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import procrastinate as library

from bench.peers.kit import Loop, Producer, Setup, database, has_table, sql
from bench.record import payload, work_async

DISTRIBUTION = "procrastinate"
RECOVERY = "none by itself: its documentation asks the user for a periodic task that retries stalled jobs"
app = library.App(connector=library.PsycopgConnector(conninfo=database("procrastinate")))
_COMMAND = ["procrastinate", "--app=bench.peers.procrastinate.app"]
_WORKER = [*_COMMAND, "worker", "--concurrency", "50"]
SETUPS = {"1p": Setup([_WORKER], 4_000), "2p": Setup([_WORKER, _WORKER], 5_000)}


@app.task(name="noop", queue="default")
async def noop(number: int, body: str) -> None:
    """The job."""
    await work_async(number)


def reset(_setup: str) -> None:
    """Its tables, empty."""
    if not has_table("procrastinate", "procrastinate_jobs"):
        script = str(Path(sys.executable).with_name(_COMMAND[0]))
        subprocess.run(
            [script, *_COMMAND[1:], "schema", "--apply"], check=True, env=os.environ, stdout=subprocess.DEVNULL
        )
    sql("procrastinate", "TRUNCATE procrastinate_jobs, procrastinate_workers, procrastinate_events CASCADE")


def producer() -> Producer:
    """Its async interface; sets by its batch call."""
    loop = Loop()
    loop(app.open_async())

    def one(number: int) -> None:
        arguments: dict[str, Any] = payload(number)
        loop(noop.defer_async(**arguments))

    def many(numbers: Sequence[int]) -> None:
        arguments: list[dict[str, Any]] = [payload(number) for number in numbers]
        loop(noop.batch_defer_async(*arguments))

    def close() -> None:
        loop(app.close_async())
        loop.close()

    return Producer(one, many, close)


def unfinished() -> int:
    """Waiting or running."""
    return int(sql("procrastinate", "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")[0])
