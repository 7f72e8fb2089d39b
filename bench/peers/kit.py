"""What every peer's file uses: where its server is, a loop for producers, SQL without a driver. Standard library only."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

POSTGRES, REDIS, PLACE = "BENCH_POSTGRES", "BENCH_REDIS", "BENCH_PLACE"
"""Environment variables: port of the PostgreSQL server, port of the Redis server, a folder for files."""

Command = list[str]


class Setup(NamedTuple):
    """One way to run a system."""

    commands: Sequence[Command]
    """The worker program or programs; scripts of the system's own environment."""
    jobs: int
    """Jobs of a throughput run: enough for several seconds on two cores."""


class Producer(NamedTuple):
    """How jobs get into a system."""

    one: Callable[[int], object]
    """Enqueue one job, durably."""
    many: Callable[[Sequence[int]], object] | None
    """Enqueue up to a thousand jobs by the fastest public way; None: there is no other way than one by one."""
    close: Callable[[], object]


def nothing() -> None:
    """Where there is nothing to close."""


def database(name: str) -> str:
    """The URL of a peer's own database."""
    return f"postgresql://bench@127.0.0.1:{os.environ[POSTGRES]}/{name}"


def redis_url() -> str:
    """The URL of the Redis server."""
    return f"redis://127.0.0.1:{os.environ[REDIS]}/0"


def place(name: str) -> Path:
    """A file of the peer's own."""
    return Path(os.environ[PLACE]) / name


def sql(name: str, statements: str) -> list[str]:
    """Run SQL in a peer's database; the rows as lines."""
    command = ["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", "-d", database(name), "-c", statements]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def has_table(name: str, table: str) -> bool:
    """Whether a peer's schema is installed."""
    return sql(name, f"SELECT to_regclass('{table}') IS NOT NULL") == ["t"]


class Loop:
    """An event loop for producers that are called from plain code."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        """End it."""
        self._loop.close()
