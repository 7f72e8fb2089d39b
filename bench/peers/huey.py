"""huey on SQLite with its own defaults (WAL, synchronous FULL): one thread, or two processes."""

from typing import Any

import huey as library

from bench.peers.kit import Producer, Setup, place
from bench.record import payload, work

DISTRIBUTION = "huey"
RECOVERY = "none: a task is deleted before it runs"
_FILE = place("huey.db")
huey = library.SqliteHuey("bench", filename=str(_FILE))
_WORKER = ["huey_consumer", "bench.peers.huey.huey", "--quiet"]
SETUPS = {
    "1p": Setup([_WORKER], 20_000),
    "2p": Setup([[*_WORKER, "--worker-type", "process", "--workers", "2"]], 20_000),
}


@huey.task(name="noop")
def noop(number: int, body: str) -> None:
    """The job."""
    work(number)


def reset(_setup: str) -> None:
    """A fresh file."""
    huey.storage.close()
    for path in _FILE.parent.glob(_FILE.name + "*"):
        path.unlink()
    huey.storage.initialize_schema()


def producer() -> Producer:
    """One task a call: there is no other way."""
    arguments: Any = payload
    return Producer(lambda number: noop(**arguments(number)), None, huey.storage.close)


def unfinished() -> int:
    """Waiting tasks."""
    return int(huey.pending_count())
