"""Counts the store calls of a worker's children, by operation, from inside: for runs that are counted, not timed.

A child imports the application before it opens its store, so the application can wrap the session's methods. Counts stand in a
small mapped file per process: they are read while the child works, and survive its death.
"""

import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

OPERATIONS = (
    "register_worker",
    "fetch_jobs",
    "start_jobs",
    "keep_alive",
    "archive_succeeded",
    "reschedule_for_retry",
    "archive_failed",
    "release_jobs",
)
"""What a child calls; everything else is counted as `other`."""
_WORDS = 3
"""Per operation: calls, jobs carried, calls that carried none."""
_SIZE = 8 * _WORDS * (len(OPERATIONS) + 1)
_GIVEN = ("start_jobs", "archive_succeeded", "reschedule_for_retry", "archive_failed", "release_jobs")


class Count(NamedTuple):
    """What one operation has done."""

    calls: int
    jobs: int
    empty: int
    """Calls that carried no job: polls, and the warm-up."""


def count_here(folder: str) -> None:
    """Wrap both stores' sessions so that every process that is forked from here on counts into `folder`."""
    from chokaq.store.sqlite.session import SqliteSession
    from chokaq.store.sqlserver.session import SqlServerSession

    for kind in (SqliteSession, SqlServerSession):
        for name in dir(kind):
            if not name.startswith("_") and name != "close" and callable(getattr(kind, name)):
                setattr(kind, name, _counting(name, getattr(kind, name), Path(folder)))


def _counting(name: str, operation: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    index = OPERATIONS.index(name) if name in OPERATIONS else len(OPERATIONS)

    def call(session: Any, *args: Any, **options: Any) -> Any:
        answer = operation(session, *args, **options)
        jobs = _carried(name, args, answer)
        words = _words(folder)
        # Three threads of a child write, each only the words of its own lane's operations.
        words[_WORDS * index] += 1
        words[_WORDS * index + 1] += jobs
        words[_WORDS * index + 2] += not jobs
        return answer

    return call


def _carried(name: str, args: Sequence[Any], answer: Any) -> int:
    if name == "fetch_jobs":
        return len(answer.jobs)
    return len(args[1]) if name in _GIVEN else 0


_mapped: dict[int, memoryview] = {}


def _words(folder: Path) -> memoryview:
    words = _mapped.get(os.getpid())
    if words is None:
        with (folder / f"calls-{os.getpid()}").open("w+b") as file:
            file.truncate(_SIZE)
            words = _mapped[os.getpid()] = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("Q")
    return words


def read(folder: Path) -> dict[str, Count]:
    """The counts of every process so far, summed, by operation."""
    sums = [0] * (_SIZE // 8)
    for path in folder.glob("calls-*"):
        data = path.read_bytes()
        if len(data) == _SIZE:
            sums = [total + word for total, word in zip(sums, memoryview(data).cast("Q"), strict=True)]
    names = (*OPERATIONS, "other")
    return {name: Count(*sums[_WORDS * index : _WORDS * (index + 1)]) for index, name in enumerate(names)}


def since(before: dict[str, Count], after: dict[str, Count]) -> dict[str, Count]:
    """What was called between two readings."""
    return {name: Count(*(b - a for a, b in zip(before[name], count, strict=True))) for name, count in after.items()}


def total(counts: dict[str, Count]) -> int:
    """All calls."""
    return sum(count.calls for count in counts.values())


def batch(counts: dict[str, Count], operation: str) -> float:
    """Jobs per call of an operation, calls without jobs left out; 0 when there was none."""
    count = counts[operation]
    filled = count.calls - count.empty
    return count.jobs / filled if filled else 0.0
