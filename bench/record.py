"""What handlers leave behind: one small record per start (and end), the same for every system that is measured.

A record is 16 bytes (job number and phase, CLOCK_MONOTONIC nanoseconds), appended by one write to a shared file. That counts
alike for threads, event loops and forks, costs microseconds, and survives SIGKILL. Standard library only: peers import this in
environments where chokaq is not installed.
"""

import asyncio
import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

LOG = "BENCH_LOG"
"""Environment variable: the file the records go to; without it handlers record nothing."""
SLEEP = "BENCH_SLEEP"
"""Environment variable: seconds a handler sleeps; it then records its end as well."""

_RECORD = struct.Struct("<qq")
SIZE = _RECORD.size
BODY = "0123456789abcdef" * 6


def payload(number: int) -> dict[str, object]:
    """The arguments of job `number`: about 120 bytes of JSON."""
    return {"number": number, "body": BODY}


# ── in the worker ─────────────────────────────────────────────────────────────────────────────────────────────────────────
_nap = float(os.environ.get(SLEEP, "0"))
_UNOPENED, _NOWHERE = -1, -2
_descriptor = _UNOPENED


def started(number: int) -> None:
    """Record that the handler of a job has begun."""
    _append(number << 1)


def ended(number: int) -> None:
    """Record that the handler of a job is about to end."""
    _append(number << 1 | 1)


def work(number: int) -> None:
    """The whole handler of a job, for threads and processes."""
    started(number)
    if _nap:
        time.sleep(_nap)
        ended(number)


async def work_async(number: int) -> None:
    """The whole handler of a job, for event loops."""
    started(number)
    if _nap:
        await asyncio.sleep(_nap)
        ended(number)


def _append(word: int) -> None:
    global _descriptor  # noqa: PLW0603 - opened by the first job of a process, so that each fork has its own
    if _descriptor == _UNOPENED:
        path = os.environ.get(LOG)
        _descriptor = _NOWHERE if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    if _descriptor != _NOWHERE:
        os.write(_descriptor, _RECORD.pack(word, time.monotonic_ns()))


# ── beside the worker ─────────────────────────────────────────────────────────────────────────────────────────────────────
class Mark(NamedTuple):
    """One record."""

    number: int
    is_end: bool
    at: float
    """Seconds of the monotonic clock."""


class Log:
    """The file of records, as the measuring program reads it."""

    def __init__(self, path: Path) -> None:
        """Empties the file."""
        self.path = path
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self.path.stat().st_size // SIZE

    def marks(self, first: int = 0) -> list[Mark]:
        """Every record from the `first` on, as written."""
        with self.path.open("rb") as file:
            file.seek(first * SIZE)
            data = file.read()
        whole = data[: len(data) - len(data) % SIZE]
        return [Mark(word >> 1, bool(word & 1), at / 1e9) for word, at in _RECORD.iter_unpack(whole)]

    def wait(self, count: int, timeout: float, *, tick: float = 0.005) -> bool:
        """Wait until so many records stand there; False when it takes longer than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while len(self) < count:
            if time.monotonic() > deadline:
                return False
            time.sleep(tick)
        return True
