"""Puts jobs into a target through the application, as its users would."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.application import Noop, app
from bench.target import Target
from chokaq.config.settings import Settings

BATCH = 1_000


@contextmanager
def client(target: Target) -> Iterator[None]:
    """Inside, the bench's application is a client of the target."""
    with app.bound_to(Settings(database=target.settings)):
        yield


def fill(target: Target, count: int, first: int = 0) -> list[str]:
    """Enqueue jobs number `first` … in calls of a thousand; their ids."""
    ids = []
    with client(target):
        for start in range(first, first + count, BATCH):
            jobs = [Noop(number) for number in range(start, min(first + count, start + BATCH))]
            ids += [answer.id for answer in app.enqueue_many_sync(jobs)]
    return ids
