"""EnqueueJobs over any connection: the session's own, or the caller's inside the caller's transaction."""

import os
import pwd
import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

from chokaq.lifecycle.states import JobStatus, KeyScope
from chokaq.store.hashing import payload_hash
from chokaq.store.names import check_ascii, check_name, check_text
from chokaq.store.records import Enqueued, NewJob
from chokaq.store.sqlite.clock import to_ms
from chokaq.store.sqlite.connection import bounded, document
from chokaq.store.sqlite.statements import load

_SQL, _KEYED = load("EnqueueJobs"), load("EnqueueKeyedJobs")
BEGIN = _SQL["begin"]
_NEWEST, _INSERT, _PILLARS = _SQL["newest"], _SQL["insert"], _SQL["pillars"]
_KEYS, _TAKE_KEY = _KEYED["keys"], _KEYED["take_key"]

_Standing = tuple[JobStatus, str]
"""Status and payload hash of a job that stands in a pillar."""


def validate(jobs: Sequence[NewJob]) -> None:
    """Refuse what the store cannot hold, naming the field, before any SQL runs. Raises StoreRefused."""
    bounded(jobs)
    # Many jobs of a call share them.
    for queue in {job.queue for job in jobs}:
        check_name("queue", queue)
    for type_key in {job.type_key for job in jobs}:
        check_name("type key", type_key)
    for job in jobs:
        check_name("id", job.id, limit=26)
        check_ascii("payload", job.payload)
        check_ascii("headers", job.headers)
        check_text("tags", job.tags)
        check_text("created_by", job.created_by)
        check_text("idempotency key", job.idempotency_key)


def enqueue(connection: sqlite3.Connection, jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """Insert the jobs; one answer per job. The caller holds a write transaction and has called `validate`."""
    if any(job.idempotency_key is not None for job in jobs):
        return _keyed(connection, jobs, now)
    hashes = [payload_hash(job.payload) for job in jobs]
    ids = [job.id for job in jobs]
    (newest,) = connection.execute(_NEWEST).fetchone()
    if min(ids, default=newest) > newest:
        if _insert(connection, jobs, hashes, now) == len(jobs):
            return [Enqueued(job_id, True, JobStatus.PENDING) for job_id in ids]
    else:
        before = _standing(connection, ids)
        fresh = [pair for pair in zip(jobs, hashes, strict=True) if pair[0].id not in before]
        _insert(connection, [job for job, _ in fresh], [digest for _, digest in fresh], now)
    standing = _standing(connection, ids)
    return [_own(job.id, digest, standing[job.id]) for job, digest in zip(jobs, hashes, strict=True)]


def _keyed(connection: sqlite3.Connection, jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """Like `enqueue`, for a set in which some jobs carry an idempotency key.

    Ids come first: a repeat finds its own job even when the key has passed on. Equal keys of one call fold to the first of them.
    """
    hashes = {job.id: payload_hash(job.payload) for job in jobs}
    before = _standing(connection, list(hashes))
    first: dict[str, NewJob] = {}
    for job in jobs:
        if job.idempotency_key is not None:
            first.setdefault(job.idempotency_key, job)
    asked = [key for key, job in first.items() if job.id not in before]
    holders: dict[str, str] = dict(connection.execute(_KEYS, {"keys": document(asked), "now": now})) if asked else {}
    stands: dict[str, str] = {}
    fresh: list[NewJob] = []
    for job in jobs:
        key = job.idempotency_key
        leader = job if key is None else first[key]
        if job.id in before:
            stands[job.id] = job.id
        elif leader is not job:
            stands[job.id] = stands[leader.id]
        elif key is not None and key in holders:
            stands[job.id] = holders[key]
        else:
            stands[job.id] = job.id
            fresh.append(job)
    _insert(connection, fresh, [hashes[job.id] for job in fresh], now)
    entries = [_entry(job, now) for job in fresh if job.idempotency_key and job.key_scope != KeyScope.ACTIVE]
    if entries:
        connection.executemany(_TAKE_KEY, entries)
    standing = before | {job.id: (JobStatus.PENDING, hashes[job.id]) for job in fresh}
    others = [holder for holder in stands.values() if holder not in standing]
    if others:
        standing |= _standing(connection, others)
    return [
        Enqueued(holder, holder == job.id, standing[holder][0], standing[holder][1] != hashes[job.id])
        for job in jobs
        for holder in (stands[job.id],)
    ]


def _insert(connection: sqlite3.Connection, jobs: Sequence[NewJob], hashes: list[str], now: int) -> int:
    rows = [_row(job, digest, now) for job, digest in zip(jobs, hashes, strict=True)]
    return connection.executemany(_INSERT, rows).rowcount if rows else 0


def _row(job: NewJob, digest: str, now: int) -> tuple[Any, ...]:
    due = now + max(job.delay_ms, 0) if job.due_at is None else to_ms(job.due_at)
    scheduled = due if job.due_at is not None or job.delay_ms > 0 else None
    return (
        job.id,
        job.queue,
        job.type_key,
        due <= now,
        job.priority,
        due,
        now,
        scheduled,
        int(job.key_scope),
        digest,
        job.idempotency_key,
        owner_login(),
        job.created_by,
        job.tags,
        job.headers,
        job.payload,
    )


def _entry(job: NewJob, now: int) -> tuple[Any, ...]:
    expires = now + (job.key_window_ms or 0) if job.key_scope == KeyScope.WINDOW else None
    return (job.idempotency_key, job.id, int(job.key_scope), expires)


def _standing(connection: sqlite3.Connection, ids: list[str]) -> dict[str, _Standing]:
    rows = connection.execute(_PILLARS, {"ids": document(ids)})
    return {job_id: (JobStatus(status), digest) for job_id, status, digest in rows}


def _own(job_id: str, digest: str, standing: _Standing) -> Enqueued:
    return Enqueued(job_id, True, standing[0], standing[1] != digest)


def owner_login() -> str:
    """The operating system's user of this process: what the embedded store takes as the login."""
    return _login(os.geteuid())


@cache
def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"
