"""Builders: a job, a worker, an error, with everything a test does not care about filled in."""

from typing import Any

from chokaq.store.records import AttemptError, DeathNotice, Held, NewJob, WorkerInfo

from .ids import new_id

QUEUE = "mail"
TYPE = "email.send.v1"
ERROR = AttemptError("ConnectionError", "the mail server hung up", "Traceback …\n  line 1")


def new_job(**fields: Any) -> NewJob:
    """A job due at once in QUEUE, unless `fields` say otherwise."""
    return NewJob(**{"id": new_id(), "queue": QUEUE, "type_key": TYPE, "payload": '{"n":1}', **fields})


def new_jobs(count: int, **fields: Any) -> list[NewJob]:
    """`count` equal jobs with rising ids."""
    return [new_job(**fields) for _ in range(count)]


def worker_info(queue: str = QUEUE, **fields: Any) -> WorkerInfo:
    """A worker that has never been seen before."""
    return WorkerInfo(
        **{"worker_id": new_id(), "queue": queue, "host": "host-1", "pid": 4321, "version": "0.1.0", **fields}
    )


def death(worker_id: str, cause: str, *culprits: Held, queue: str = QUEUE, **fields: Any) -> DeathNotice:
    """How a worker ended."""
    return DeathNotice(worker_id=worker_id, queue=queue, cause=cause, culprits=list(culprits), **fields)
