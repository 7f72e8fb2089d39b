"""Looking at the processes that work."""

from chokaq.store.protocol import Session
from chokaq.store.records import WorkerView


def list_workers(session: Session, *, ended: bool = False) -> list[WorkerView]:
    """The registry, newest first, at most 1,000; `ended`: also those that have ended within the last week."""
    return session.list_workers(ended=ended)
